"""Appends of engines at the same time, rebased by the catalog (docs/design/appends.md): each row is there once, and
other clients read the table."""

import json
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table

from tests.engines.lake import Lake
from tests.engines.shell import Sql
from tests.engines.spark_shell import spark_properties, spark_shell
from tools.demo.engines import pyiceberg_catalog
from tools.demo.server import WAREHOUSE
from tools.support.appended_files import ALLOWED, REBASE

NO_RETRIES = {"commit.retry.num-retries": "0"}
SCHEMA = pa.schema([pa.field("id", pa.int64()), pa.field("by", pa.string())])


@pytest.fixture(params=["rest", "s3"])
def either_lake(request: pytest.FixtureRequest, local_lake: Lake, s3_lake: Lake) -> Lake:
    """Each of them in turn: it takes no JVM."""
    return local_lake if request.param == local_lake.name else s3_lake


@pytest.fixture
def catalog(either_lake: Lake) -> Iterator[Catalog]:
    with pyiceberg_catalog(either_lake.server.uri, WAREHOUSE, dict(either_lake.s3)) as client:
        yield client


@pytest.fixture
def namespace(request: pytest.FixtureRequest, catalog: Catalog) -> str:
    """An empty namespace of this test's own."""
    name = f"rebase_{request.node.originalname}"
    catalog.create_namespace_if_not_exists(name)
    return name


def rows(*ids: int, by: str = "pyiceberg") -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "by": [by] * len(ids)}, schema=SCHEMA)


def ids(table: Table) -> list[int]:
    return sorted(table.scan(selected_fields=("id",)).to_arrow()["id"].to_pylist())


def test_an_append_to_a_table_that_moved_is_rebased(catalog: Catalog, either_lake: Lake, namespace: str) -> None:
    catalog.create_table(f"{namespace}.t", schema=SCHEMA, properties={**ALLOWED, **NO_RETRIES}).append(rows(1))
    early, late = (catalog.load_table(f"{namespace}.t") for _ in range(2))
    early.append(rows(2))
    late.append(rows(3, 4), snapshot_properties=REBASE)
    assert ids(late) == ids(either_lake.bystander.load_table(f"{namespace}.t")) == [1, 2, 3, 4]
    snapshot = late.refresh().current_snapshot()
    assert snapshot is not None
    assert snapshot.parent_snapshot_id == early.metadata.current_snapshot_id
    assert snapshot.summary is not None
    assert snapshot.summary["total-records"] == "4"


def test_an_append_that_does_not_request_it_is_refused(catalog: Catalog, namespace: str) -> None:
    catalog.create_table(f"{namespace}.t", schema=SCHEMA, properties={**ALLOWED, **NO_RETRIES}).append(rows(1))
    early, late = (catalog.load_table(f"{namespace}.t") for _ in range(2))
    early.append(rows(2))
    with pytest.raises(CommitFailedException, match="branch main has changed"):
        late.append(rows(3))


def test_a_table_is_read_compacted_and_changed_after_rebases(catalog: Catalog, namespace: str) -> None:
    table = catalog.create_table(f"{namespace}.t", schema=SCHEMA, properties={**ALLOWED, **NO_RETRIES})
    handles = [catalog.load_table(f"{namespace}.t") for _ in range(5)]
    for number, handle in enumerate(handles):
        handle.append(rows(number), snapshot_properties=REBASE)
    table.refresh()
    assert ids(table) == [0, 1, 2, 3, 4]
    table.delete("id = 3")
    table.append(rows(9))
    assert ids(table) == [0, 1, 2, 4, 9]
    assert [file["record_count"] for file in table.inspect.files().to_pylist()] == [1] * 5


def test_clients_that_append_at_once_lose_and_repeat_no_row(
    either_lake: Lake, catalog: Catalog, namespace: str
) -> None:
    name = f"{namespace}.t"
    catalog.create_table(name, schema=SCHEMA, properties={**ALLOWED, **NO_RETRIES})

    def client(number: int) -> None:
        with pyiceberg_catalog(either_lake.server.uri, WAREHOUSE, dict(either_lake.s3)) as own:
            for place in range(4):
                table = own.load_table(name)
                table.append(rows(100 * number + place), snapshot_properties=REBASE)

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(client, number) for number in range(4)]:
            done.result(timeout=120)
    expected = [100 * number + place for number in range(4) for place in range(4)]
    assert Counter(ids(either_lake.bystander.load_table(name))) == Counter(expected)
    either_lake.assert_receipts(name)


REQUESTS_REBASE = "SET `spark.sql.iceberg.snapshot-property.arco.append`=rebase"
REQUESTS_NONE = "RESET `spark.sql.iceberg.snapshot-property.arco.append`"


@contextmanager
def lone_spark(local_lake: Lake, scratch: Path) -> Iterator[Sql]:
    """Spark SQL that knows the catalog on local files alone."""
    with spark_shell({local_lake.name: spark_properties(local_lake)}, scratch) as sql:
        yield sql


@pytest.fixture(scope="module")
def spark(local_lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sql]:
    with lone_spark(local_lake, tmp_path_factory.mktemp("spark")) as sql:
        yield sql


def spark_table(spark: Sql, name: str, version: int) -> None:
    """A table without retries, of this format version."""
    properties = {**ALLOWED, **NO_RETRIES, "format-version": str(version)}
    written = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    spark(f"CREATE TABLE {name} (id BIGINT, by STRING) USING iceberg TBLPROPERTIES ({written})")


@pytest.mark.slow
def test_spark_and_pyiceberg_append_at_once(spark: Sql, local_lake: Lake) -> None:
    spark("CREATE NAMESPACE IF NOT EXISTS rest.rebase_spark")
    spark_table(spark, "rest.rebase_spark.t", 2)
    stop = threading.Event()
    appended: list[int] = []

    def append() -> None:
        with pyiceberg_catalog(local_lake.server.uri, WAREHOUSE, {}) as own:
            while not stop.is_set():
                own.load_table("rebase_spark.t").append(rows(1_000 + len(appended)), snapshot_properties=REBASE)
                appended.append(1_000 + len(appended))

    spark(REQUESTS_REBASE)
    with ThreadPoolExecutor(1) as pool:
        beside = pool.submit(append)
        try:
            for number in range(10):
                spark(f"INSERT INTO rest.rebase_spark.t VALUES ({number}, 'spark')")
        finally:
            stop.set()
            spark(REQUESTS_NONE)
        beside.result(timeout=60)
    table = local_lake.bystander.load_table("rebase_spark.t")
    assert ids(table) == [*range(10), *appended]
    assert len(spark("SELECT id FROM rest.rebase_spark.t")) == 10 + len(appended)
    assert "spark" in rebased_by(local_lake, "rebase_spark.t")
    spark("DELETE FROM rest.rebase_spark.t WHERE id < 5")
    spark("CALL rest.system.rewrite_manifests('rebase_spark.t')")
    assert ids(local_lake.bystander.load_table("rebase_spark.t")) == [*range(5, 10), *appended]


def rebased_by(lake: Lake, table: str) -> set[str]:
    """The engines whose appends were rebased, by the receipts."""
    receipts = json.loads(lake.server.receipts(table))
    return {each.get("engine", "").partition("/")[0] for each in receipts if "manifest_list" in each}


@pytest.mark.slow
def test_two_sparks_append_at_once_to_a_table_of_format_version_3(
    spark: Sql, local_lake: Lake, tmp_path_factory: pytest.TempPathFactory
) -> None:
    spark("CREATE NAMESPACE IF NOT EXISTS rest.rebase_sparks")
    spark_table(spark, "rest.rebase_sparks.t", 3)
    with lone_spark(local_lake, tmp_path_factory.mktemp("other")) as other, ThreadPoolExecutor(2) as pool:

        def insert(sql: Sql, first: int) -> None:
            sql(REQUESTS_REBASE)
            for number in range(first, first + 10):
                sql(f"INSERT INTO rest.rebase_sparks.t VALUES ({number}, 'spark'), ({number + 500}, 'spark')")
            sql(REQUESTS_NONE)

        other("SELECT count(*) FROM rest.rebase_sparks.t")  # it has started
        for done in [pool.submit(insert, spark, 0), pool.submit(insert, other, 100)]:
            done.result(timeout=300)
    assert rebased_by(local_lake, "rebase_sparks.t") == {"spark"}
    expected = [first + number + more for more in (0, 500) for first in (0, 100) for number in range(10)]
    assert [row[0] for row in spark("SELECT id FROM rest.rebase_sparks.t ORDER BY id")] == sorted(expected)
    row_ids = spark("SELECT _row_id FROM rest.rebase_sparks.t")
    assert len({row[0] for row in row_ids}) == len(expected)
    sequences = spark("SELECT count(DISTINCT _last_updated_sequence_number) FROM rest.rebase_sparks.t")
    assert sequences == [(20,)]
