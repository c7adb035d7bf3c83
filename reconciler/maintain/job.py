"""Runs the job `maintain` on Spark: options, output and exit status (docs/maintenance.md)."""

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
from reconciler.maintain.driver import Maintenance, MaintenanceStats
from reconciler.maintain.iceberg import UnsupportedIceberg, require_iceberg
from reconciler.maintain.outcome_rows import MaintenanceTable
from reconciler.maintain.procedures import SparkProcedures
from reconciler.maintain.report import Report
from reconciler.session import catalog_of, spark_of
from reconciler.system import connection

CATALOG = "arco"
"""The catalog's name in Spark. A warehouse's name would not do: it need not be an identifier in SQL."""
EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
VENDED_CREDENTIALS = {"header.X-Iceberg-Access-Delegation": "vended-credentials"}

SHUFFLE = "spark.sql.shuffle.partitions"
"""Spark's default of 200 partitions makes rewrites of small tables slow on a machine of few cores."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the job `maintain` to a command-line parser."""
    connection.add_arguments(parser)
    parser.add_argument("--dry-run", action="store_true", help="print what is due and why, and change nothing")
    parser.add_argument("--max-bytes", type=_size, metavar="BYTES", help="the most bytes to rewrite, such as 100G")
    parser.add_argument("--minutes", type=float, metavar="N", help="start no procedure after N minutes")
    parser.add_argument("--packages", help="Maven coordinates of Iceberg for Spark, unless spark-submit has them")
    parser.add_argument("--jars", help="files with Iceberg for Spark, in place of --packages")
    parser.add_argument(
        "--spark-property",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of Iceberg's catalog in Spark, such as io-impl; may be repeated",
    )
    parser.add_argument(
        "--no-vended-credentials",
        action="store_true",
        help="have Spark reach files by the rights of the cluster, also where the catalog would give credentials",
    )


def run(parsed: argparse.Namespace) -> tuple[JsonObject, int]:
    """Runs the job `maintain` on Spark, or with `--dry-run` only plans it, without Spark, and prints a report to
    stdout. Returns the run's counts and the exit status: 1 if a procedure failed, or a table or task could not be
    read, otherwise 0. Raises `SystemExit` with a message for a `--property` that is not NAME=VALUE; and without
    `--dry-run` for such a `--spark-property`, if Spark has no Iceberg or one that is too old, and for a copy of a
    catalog."""
    stats = asyncio.run(_plan(parsed)) if parsed.dry_run else _maintain(parsed)
    return stats.to_json(), 1 if stats.unreadable or stats.outcomes.get("failed") else 0


async def _plan(parsed: argparse.Namespace) -> MaintenanceStats:
    """Plans the maintenance of all tables, prints the plans, with the steps that are due and the procedures that are
    held back, and changes nothing. Returns the counts."""
    async with catalog_of(parsed).session() as session:
        maintenance = Maintenance(session, _rows(parsed), _budget(parsed), Report(_print))
        await maintenance.plan()
        return maintenance.stats


def _maintain(parsed: argparse.Namespace) -> MaintenanceStats:
    """Starts Spark, calls the procedures that are due for all tables, and returns the counts. Raises `SystemExit` if
    Spark has no Iceberg or one that is too old, for an option that is not NAME=VALUE, and for a copy of a catalog."""
    with spark_of(parsed, "arco-maintain", launch_settings(parsed)) as context:
        try:
            require_iceberg(context)
        except UnsupportedIceberg as error:
            raise SystemExit(f"reconciler: {error}") from error
        spark = SparkSession(context)
        for name, value in catalog_settings(parsed, own_environment()).items():
            spark.conf.set(name, value)
        if not context.getConf().contains(SHUFFLE):
            spark.conf.set(SHUFFLE, str(max(8, 4 * context.defaultParallelism)))

        async def work() -> MaintenanceStats:
            async with catalog_of(parsed).session() as session:
                maintenance = Maintenance(session, _rows(parsed), _budget(parsed), Report(_print))
                try:
                    await maintenance.run(SparkProcedures(spark, CATALOG), task_policies_from_env(own_environment()))
                except CatalogIsCopy as copy:
                    raise SystemExit(f"reconciler: {copy.message}") from copy
                return maintenance.stats

        return asyncio.run(work())


def launch_settings(parsed: argparse.Namespace) -> Mapping[str, str]:
    """Returns the Spark settings that must be set before Spark starts: Iceberg's SQL extensions, packages and jars."""
    packages = {"spark.jars.packages": parsed.packages} if parsed.packages else {}
    jars = {"spark.jars": parsed.jars} if parsed.jars else {}
    return {"spark.sql.extensions": EXTENSIONS, **packages, **jars}


def catalog_settings(parsed: argparse.Namespace, environment: Mapping[str, str]) -> Mapping[str, str]:
    """Returns the Spark settings for the catalog, which are set on a running session, so that secrets are on no command
    line: the catalog `CATALOG` of the server `--uri`, with the credentials of the options, and times in UTC. `$NAME` in
    a `--spark-property` is replaced by the variable of `environment`, and stays where there is none. Raises
    `SystemExit` for a `--spark-property` that is not NAME=VALUE."""
    login = connection.credential(parsed)
    if login:
        login = {**login, "oauth2-server-uri": f"{parsed.uri.rstrip('/')}/v1/oauth/tokens"}
    properties = connection.settings(parsed.spark_property, "--spark-property")
    # A table's metadata may name files of another table: vended credentials give access only to the table's own.
    access = {} if parsed.no_vended_credentials else VENDED_CREDENTIALS
    catalog = {
        "": "org.apache.iceberg.spark.SparkCatalog",
        ".type": "rest",
        ".uri": parsed.uri,
        ".warehouse": parsed.catalog or parsed.warehouse,
        ".cache-enabled": "false",  # a procedure sees what writers have just committed
        **{f".{name}": value for name, value in (*login.items(), *access.items())},
        **{f".{name}": Template(value).safe_substitute(environment) for name, value in properties.items()},
    }
    settings = {f"spark.sql.catalog.{CATALOG}{name}": value for name, value in catalog.items()}
    return {"spark.sql.session.timeZone": "UTC", **settings}


def _print(text: str) -> None:
    """Writes text on standard output at once."""
    sys.stdout.write(text)
    sys.stdout.flush()


def _rows(parsed: argparse.Namespace) -> MaintenanceTable:
    """Connects to the catalog's server, and returns the access to the table `system.maintenance`, which need not
    exist."""
    runtime = SystemRuntime()
    return MaintenanceTable(connection.system_tables(parsed, runtime), runtime)


def _budget(parsed: argparse.Namespace) -> Budget:
    """Returns the limits of bytes and time for a run."""
    return Budget.of(SystemRuntime(), parsed.max_bytes, parsed.minutes)


def _size(text: str) -> int:
    """Reads a number of bytes; a suffix K, M, G or T stands for KiB, MiB, GiB or TiB. Raises `ValueError` for any other
    text, and a negative number."""
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
    unit = units.get(text[-1:].upper())
    number = int(text if unit is None else text[:-1]) * (unit or 1)
    if number < 0:
        raise ValueError(text)
    return number
