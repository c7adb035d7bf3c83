"""The job `maintain` (docs/maintenance.md)."""

import argparse
import asyncio
import sys
from collections.abc import Mapping
from string import Template

from pyspark.sql import SparkSession

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.environment import task_policies_from_env
from arco_catalog.protocol.copies import CatalogIsCopy
from arco_catalog.state.runtime import SystemRuntime
from reconciler.catalog_config import own_environment
from reconciler.maintain.budget import Budget
from reconciler.maintain.driver import MaintainStats, Maintenance
from reconciler.maintain.iceberg import IcebergUnfit, require_iceberg
from reconciler.maintain.procedures import OnSpark
from reconciler.maintain.report import Report
from reconciler.maintain.telling import MaintenanceTable
from reconciler.session import catalog_of, spark_of
from reconciler.system import connection

CATALOG = "arco"
"""What Spark calls the catalog. Not the warehouse, whose name need not be an identifier in SQL."""
EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
VENDED_CREDENTIALS = {"header.X-Iceberg-Access-Delegation": "vended-credentials"}

SHUFFLE = "spark.sql.shuffle.partitions"
"""Spark's default of 200 is for clusters: on few cores it makes small tables slow."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what it takes besides a catalog."""
    connection.add_arguments(parser)
    parser.add_argument("--dry-run", action="store_true", help="tell what would be done and why, and change nothing")
    parser.add_argument("--max-bytes", type=_size, metavar="BYTES", help="rewrite so many at most: 100G, say")
    parser.add_argument("--minutes", type=float, metavar="N", help="begin nothing more after so long")
    parser.add_argument("--packages", help="Maven coordinates of Iceberg for Spark, unless spark-submit has them")
    parser.add_argument("--jars", help="files with Iceberg for Spark, in place of --packages")
    parser.add_argument(
        "--spark-property",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of Iceberg's catalog in Spark, such as io-impl; several times",
    )
    parser.add_argument(
        "--no-vended-credentials",
        action="store_true",
        help="have Spark reach files by the rights of the cluster, also where the catalog would give credentials",
    )


def run(parsed: argparse.Namespace) -> tuple[JsonObject, int]:
    """Prints what is due and what came of it. Returns the counts, and 1 if something failed or could not be read."""
    stats = asyncio.run(_plan(parsed)) if parsed.dry_run else _maintain(parsed)
    return stats.to_json(), 1 if stats.unreadable or stats.outcomes.get("failed") else 0


async def _plan(parsed: argparse.Namespace) -> MaintainStats:
    async with catalog_of(parsed).session() as session:
        maintenance = Maintenance(session, _rows(parsed), _budget(parsed), Report(_say))
        await maintenance.plan()
        return maintenance.stats


def _maintain(parsed: argparse.Namespace) -> MaintainStats:
    with spark_of(parsed, "arco-maintain", launch_settings(parsed)) as context:
        try:
            require_iceberg(context)
        except IcebergUnfit as error:
            raise SystemExit(f"reconciler: {error}") from error
        spark = SparkSession(context)
        for name, value in catalog_settings(parsed, own_environment()).items():
            spark.conf.set(name, value)
        if not context.getConf().contains(SHUFFLE):
            spark.conf.set(SHUFFLE, str(max(8, 4 * context.defaultParallelism)))

        async def work() -> MaintainStats:
            async with catalog_of(parsed).session() as session:
                maintenance = Maintenance(session, _rows(parsed), _budget(parsed), Report(_say))
                try:
                    await maintenance.run(OnSpark(spark, CATALOG), task_policies_from_env(own_environment()))
                except CatalogIsCopy as copy:
                    raise SystemExit(f"reconciler: {copy.message}") from copy
                return maintenance.stats

        return asyncio.run(work())


def launch_settings(parsed: argparse.Namespace) -> Mapping[str, str]:
    """What Spark is started with."""
    fetched = {"spark.jars.packages": parsed.packages} if parsed.packages else {}
    there = {"spark.jars": parsed.jars} if parsed.jars else {}
    return {"spark.sql.extensions": EXTENSIONS, **fetched, **there}


def catalog_settings(parsed: argparse.Namespace, environment: Mapping[str, str]) -> Mapping[str, str]:
    """What Spark is told of the catalog when it runs: a secret is on no command line, and `$NAME` stands for a
    variable."""
    login = connection.credential(parsed)
    if login:
        login = {**login, "oauth2-server-uri": f"{parsed.uri.rstrip('/')}/v1/oauth/tokens"}
    said = connection.settings(parsed.spark_property, "--spark-property")
    # A table may name files of another: Spark is to read no more than this table, whatever the cluster may read.
    access = {} if parsed.no_vended_credentials else VENDED_CREDENTIALS
    catalog = {
        "": "org.apache.iceberg.spark.SparkCatalog",
        ".type": "rest",
        ".uri": parsed.uri,
        ".warehouse": parsed.catalog or parsed.warehouse,
        ".cache-enabled": "false",  # a procedure sees what writers have just committed
        **{f".{name}": value for name, value in (*login.items(), *access.items())},
        **{f".{name}": Template(value).safe_substitute(environment) for name, value in said.items()},
    }
    settings = {f"spark.sql.catalog.{CATALOG}{name}": value for name, value in catalog.items()}
    return {"spark.sql.session.timeZone": "UTC", **settings}


def _say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _rows(parsed: argparse.Namespace) -> MaintenanceTable:
    runtime = SystemRuntime()
    return MaintenanceTable(connection.system_tables(parsed, runtime), runtime)


def _budget(parsed: argparse.Namespace) -> Budget:
    return Budget.of(SystemRuntime(), parsed.max_bytes, parsed.minutes)


def _size(said: str) -> int:
    """A number of bytes, with K, M, G or T behind it for as many KiB, MiB, GiB or TiB."""
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
    unit = units.get(said[-1:].upper())
    number = int(said if unit is None else said[:-1]) * (unit or 1)
    if number < 0:
        raise ValueError(said)
    return number
