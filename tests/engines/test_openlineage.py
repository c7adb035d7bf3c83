"""OpenLineage's own integration for Spark, with the settings of docs/receipts.md and no others: the catalog keeps what
it sends, and the pipeline makes edges of it. What it sent once is in tests/compact/spark_events.jsonl."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import Catalog

from arco_catalog.cli.client_config import ICEBERG, SCALA_OF_SPARK
from reconciler.system import tables
from tests.compact.lake import ServedLake
from tests.docs.pages import blocks
from tests.engines.principals import Principals
from tests.engines.realm import realm_served
from tests.engines.shell import EngineError, Sql, shell
from tests.support.realm_service import on_catalog
from tools.demo.server import ARCO, WAREHOUSE, Server, serving
from tools.support.environment import PROJECT, exported
from tools.support.local_spark import environment

OPENLINEAGE = "1.37.0"
PAGE = PROJECT / "docs" / "receipts.md"
BOUND_S = 600.0
PYTHONS = {"3.5": str(PROJECT / ".venv-spark-3.5" / "bin" / "python"), "4.1": sys.executable}
"""The oldest Spark that is supported, in an environment of its own, and the newest."""


def jars(spark: str) -> Sequence[str]:
    """Iceberg and OpenLineage for a Spark, in the project."""
    scala = SCALA_OF_SPARK[spark]
    return (
        f".jars/iceberg-spark-runtime-{spark}_{scala}-{ICEBERG}.jar",
        f".jars/openlineage-spark_{scala}-{OPENLINEAGE}.jar",
    )


@pytest.fixture(
    params=[
        pytest.param(spark, id=spark, marks=pytest.mark.optional(os.path.relpath(python, PROJECT), *jars(spark)))
        for spark, python in PYTHONS.items()
    ]
)
def spark(request: pytest.FixtureRequest) -> str:
    """Each Spark in turn, by its two numbers."""
    return str(request.param)


def pasted(about: str, server: Server, token: str = "") -> dict[str, str]:
    """The settings that the page tells a user to paste, of the block in which one of this name is."""
    [block] = [each for each in blocks(PAGE) if each.language == "properties" and about in each.text]
    settings = dict(line.split(maxsplit=1) for line in block.text.splitlines())
    here = {"http://127.0.0.1:8181": server.uri, "/api/v1/arco/lineage": f"/api/v1/{WAREHOUSE}/lineage", "TOKEN": token}
    return {name: here.get(value, value) for name, value in settings.items()}


@contextmanager
def application(spark: str, server: Server, scratch: Path, settings: Mapping[str, str]) -> Iterator[Sql]:
    """Spark's SQL, with the catalog as `arco`. Fails if one of its events was refused."""
    whole = {
        "spark.jars": ",".join(str(PROJECT / jar) for jar in jars(spark)),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": str(scratch / "spark"),
        "spark.sql.catalog.arco": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.arco.type": "rest",
        "spark.sql.catalog.arco.uri": server.uri,
        "spark.sql.catalog.arco.warehouse": WAREHOUSE,
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.defaultCatalog": "arco",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(scratch / "spark-warehouse"),
        "spark.ui.enabled": "false",
        **pasted("spark.extraListeners", server),
        **settings,
    }
    scratch.mkdir()
    python = PYTHONS[spark]
    command = [python, "-m", "tests.engines.openlineage_shell", json.dumps(whole)]
    with shell(command, PROJECT, scratch, {"PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": python}) as sql:
        yield sql
    assert "Could not emit lineage" not in (scratch / "stderr").read_text()


def kept(server: Server) -> list[dict[str, Any]]:
    """The events that the catalog has."""
    folder = Path(server.store.removeprefix("file:"), WAREHOUSE, "_catalog", "events")
    return [json.loads(file.read_bytes()) for file in folder.glob("*/openlineage/*.json")]


def snapshots(catalog: Catalog, *names: str) -> dict[str, list[int]]:
    """Those of some tables, in the order of their commits."""
    return {name: [each.snapshot_id for each in catalog.load_table(f"sales.{name}").snapshots()] for name in names}


def told(rows: Sequence[Mapping[str, object]], *columns: str) -> set[tuple[object, ...]]:
    """The edges to tables, by some of their columns. A CREATE TABLE AS has two: of the statement, and of the part of it
    that writes. Where that part is heard of before the table is there, the integration guesses where it will lie."""
    return {tuple(row[column] for column in columns) for row in rows if row["output_entity"] is not None}


@pytest.mark.slow
def test_each_step_of_an_application_is_an_edge_between_snapshots(spark: str, tmp_path: Path) -> None:
    with serving(f"file:{tmp_path / 'store'}", tmp_path / "server.log") as server:
        with application(spark, server, tmp_path / "spark", {}) as sql:
            sql("CREATE NAMESPACE sales")
            sql("CREATE TABLE sales.orders (id BIGINT, amount BIGINT) USING iceberg")
            sql("INSERT INTO sales.orders VALUES (1, 10), (2, 20)")
            sql("CREATE TABLE sales.daily USING iceberg AS SELECT id, amount * 2 AS amount FROM sales.orders")
            sql("INSERT INTO sales.daily SELECT id + 2, amount FROM sales.orders")
            sql("CREATE TABLE sales.weekly (id BIGINT, amount BIGINT) USING iceberg")
            sql(
                "MERGE INTO sales.weekly w USING sales.daily d ON w.id = d.id "
                "WHEN MATCHED THEN UPDATE SET amount = d.amount WHEN NOT MATCHED THEN INSERT *"
            )
            sql("UPDATE sales.weekly SET amount = amount + 1 WHERE id > 2")
            with pytest.raises(EngineError, match="no such amount"):
                sql(
                    "INSERT INTO sales.weekly SELECT id, CAST(raise_error('no such amount') AS BIGINT) FROM sales.daily"
                )
        states = {each["event"]["eventType"] for each in kept(server)}
        compacted(server)
        lake = ServedLake(server)
        rows = lake.rows(tables.LINEAGE)
        made = snapshots(lake.client, "orders", "daily", "weekly")

    assert states == {"START", "RUNNING", "COMPLETE", "FAIL"}
    [inserted], [created, appended], [merged, updated] = made["orders"], made["daily"], made["weekly"]
    assert told(rows, "input_name", "input_snapshot_id", "output_name", "output_snapshot_id") == {
        ("orders", inserted, "daily", created),
        ("orders", inserted, "daily", appended),
        ("daily", appended, "weekly", merged),
        ("weekly", None, "weekly", merged),
        ("weekly", merged, "weekly", updated),
    }
    assert told(rows, "matched_by", "lineage_confidence", "principal") == {
        ("snapshot", "DeclaredUnverified", "anonymous")
    }


def compacted(server: Server) -> None:
    """Runs the pipeline's job as a user does."""
    said = ["pipeline", "run", "compact", "--uri", server.uri, "--master", "local[1]"]
    with exported(environment()):
        done = subprocess.run(
            [str(ARCO), *said, "--store", server.store, "--warehouse", WAREHOUSE],
            capture_output=True,
            text=True,
            timeout=BOUND_S,
            check=False,
        )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_in_a_realm_edges_are_verified_where_a_servo_task_started_the_application(spark: str, tmp_path: Path) -> None:
    grant = on_catalog("CATALOG_MANAGE_CONTENT")
    with realm_served(tmp_path, lifetime_s="3600") as realm:
        principals, server = Principals(realm), realm.owner.server
        servo = principals.make("servo", grant, **{"arco.source": "true"})
        settings = as_principal(principals, servo, "parentRunId")
        with application(spark, server, tmp_path / "servo", settings) as sql:
            sql("CREATE NAMESPACE sales")
            sql("CREATE TABLE sales.orders (id BIGINT) USING iceberg")
            sql("INSERT INTO sales.orders VALUES (1), (2)")
            sql("CREATE TABLE sales.daily USING iceberg AS SELECT * FROM sales.orders")
        engine = principals.make("engine", grant)
        with application(spark, server, tmp_path / "engine", as_principal(principals, engine)) as sql:
            sql("CREATE TABLE sales.weekly (id BIGINT) USING iceberg")
            sql("INSERT INTO sales.weekly SELECT * FROM sales.daily")
        events = kept(server)
        pipeline = principals.make("pipeline", grant, **{"arco.pipeline": "true"})
        principals.compact(pipeline)
        rows = principals.system(pipeline).open(tables.LINEAGE).table.scan().to_arrow().to_pylist()

    assert {each["principal"] for each in events} == {"servo", "engine"}
    assert settings["spark.openlineage.transport.auth.apiKey"] not in json.dumps(events)
    assert told(rows, "input_name", "output_name", "lineage_confidence", "principal") == {
        (None, "orders", "Verified", "servo"),  # what the receipt of the task tells
        (None, "daily", "Verified", "servo"),
        ("orders", "daily", "Verified", "servo"),
        ("daily", "weekly", "DeclaredUnverified", "engine"),
    }


def as_principal(principals: Principals, credential: str, *more: str) -> dict[str, str]:
    """Settings with which the catalog and the listener log in, and those of further blocks."""
    server = principals.realm.owner.server
    token = principals.headers(credential)["Authorization"].removeprefix("Bearer ")
    login = {f"spark.sql.catalog.arco.{name}": value for name, value in principals.login(credential).items()}
    settings = {**login, **pasted("transport.auth", server, token)}
    for about in more:
        settings |= pasted(about, server)
    return settings
