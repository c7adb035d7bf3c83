"""Spark, PyIceberg, iceberg-go, Flink and Trino append to one table at once, and each row is there once. All but Trino
request rebases, each by a setting of its own. The catalog rebases no commit of Flink, which recognises its own commits:
Flink and Trino retry by themselves."""

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]

from tests.engines.lake import Lake, attempt_of
from tests.engines.others.conftest import flink_sink, iceberg_go
from tests.engines.shell import Sql
from tests.engines.spark_shell import spark_properties, spark_shell
from tests.engines.trino_server import run, trino_properties, trino_server
from tools.demo.engines import pyiceberg_catalog
from tools.demo.server import WAREHOUSE
from tools.support.appended_files import ALLOWED, REBASE

TABLE = "at_once.t"
SCHEMA = pa.schema([pa.field("id", pa.int64()), pa.field("engine", pa.string())])
PROPERTIES = {
    **ALLOWED,
    "commit.manifest-merge.enabled": "false",  # no commit that merges manifests is rebased
    "commit.retry.num-retries": "100",  # for Flink and Trino, beside writers that never pause
    "commit.retry.max-wait-ms": "500",
    "write.metadata.previous-versions-max": "5000",  # all that have receipts
}
APPENDS = {"spark": 10, "flink": 5, "trino": 10}
"""How many rows each engine appends that takes long for one."""
QUICK = ("pyiceberg", "iceberg-go")
"""The engines that append until the others are done."""
REQUESTING = {"spark", "flink", *QUICK}
REBASED = {"spark", *QUICK}
RETRYING = {"flink", "trino"}
JOINED_S = 600.0

Append = Callable[[int], object]
"""Appends the row with this id."""


def inserting(sql: Sql, engine: str) -> Append:
    """The append of an engine by its SQL."""
    return lambda number: sql(f"INSERT INTO rest.{TABLE} VALUES ({number}, '{engine}')")


@contextmanager
def pyiceberg(lake: Lake) -> Iterator[Append]:
    """The append of PyIceberg, with a request to rebase."""
    with pyiceberg_catalog(lake.server.uri, WAREHOUSE, {}) as catalog:

        def append(number: int) -> None:
            rows = pa.table({"id": [number], "engine": ["pyiceberg"]}, schema=SCHEMA)
            catalog.load_table(TABLE).append(rows, snapshot_properties=REBASE)

        yield append


@contextmanager
def all_engines(lake: Lake, scratch: Path) -> Iterator[tuple[Mapping[str, Append], Sql]]:
    """The appends of all five, each of which has started, and Trino's SQL."""

    def folder(name: str) -> Path:
        made = scratch / name
        made.mkdir()
        return made

    with ExitStack() as stack:
        spark = stack.enter_context(spark_shell({lake.name: spark_properties(lake)}, folder("spark")))
        flink = stack.enter_context(flink_sink(lake, TABLE, folder("flink")))
        connection = stack.enter_context(trino_server({lake.name: trino_properties(lake)}, folder("trino")))
        go = stack.enter_context(iceberg_go(lake, TABLE, folder("iceberg-go")))
        python = stack.enter_context(pyiceberg(lake))

        def trino(statement: str) -> list[tuple[object, ...]]:
            return run(connection, statement)

        spark("SET `spark.sql.iceberg.snapshot-property.arco.append`=rebase")
        appends: dict[str, Append] = {
            "spark": inserting(spark, "spark"),
            "flink": lambda number: flink(str(number)),
            "trino": inserting(trino, "trino"),
            "iceberg-go": lambda number: go(str(number)),
            "pyiceberg": python,
        }
        yield appends, trino


def append_at_once(appends: Mapping[str, Append]) -> Counter[tuple[object, ...]]:
    """Has all engines append, each one row after the other, and returns the rows of the appends that succeeded."""
    slow_are_done = threading.Event()
    ids = {engine: 10_000 * place for place, engine in enumerate(appends)}

    def quick(engine: str) -> list[tuple[object, ...]]:
        rows: list[tuple[object, ...]] = []
        while not slow_are_done.is_set():
            appends[engine](ids[engine] + len(rows))
            rows.append((ids[engine] + len(rows), engine))
        return rows

    def slow(engine: str) -> list[tuple[object, ...]]:
        numbers = range(ids[engine], ids[engine] + APPENDS[engine])
        for number in numbers:
            appends[engine](number)
        return [(number, engine) for number in numbers]

    with ThreadPoolExecutor(len(appends)) as pool:
        beside = [pool.submit(quick, engine) for engine in QUICK]
        try:
            waited = [pool.submit(slow, engine) for engine in APPENDS]
            rows = [row for done in waited for row in done.result(timeout=JOINED_S)]
        finally:
            slow_are_done.set()
        return Counter([*rows, *(row for done in beside for row in done.result(timeout=JOINED_S))])


def engine_of(receipt: Mapping[str, str | dict[str, str]]) -> str:
    """The engine that sent a commit: by the name in its summary, or by its User-Agent if it gives none there."""
    named, source = receipt.get("engine"), receipt["source"]
    if isinstance(named, str):
        return named.partition("/")[0]
    assert isinstance(source, dict)
    return {"PyIceberg": "pyiceberg", "GoIceberg": "iceberg-go"}[source["client_info"].partition("/")[0]]


def test_five_engines_append_at_once(local_lake: Lake, tmp_path: Path) -> None:
    local_lake.bystander.create_namespace("at_once")
    local_lake.bystander.create_table(TABLE, schema=SCHEMA, properties=PROPERTIES)
    with all_engines(local_lake, tmp_path) as (appends, trino):
        appended = append_at_once(appends)
        assert Counter(trino(f"SELECT id, engine FROM rest.{TABLE}")) == appended
    assert Counter(local_lake.rows(TABLE)) == appended
    local_lake.assert_receipts(TABLE)

    receipts = json.loads(local_lake.server.receipts(TABLE))
    engines = {snapshot: engine_of(receipt) for receipt in receipts for snapshot in receipt["added_snapshot_ids"]}
    assert Counter(engines.values()) == Counter(engine for _, engine in appended)
    snapshots = local_lake.bystander.load_table(TABLE).metadata.snapshots
    requests = {each.snapshot_id for each in snapshots if each.summary and each.summary.get("arco.append") == "rebase"}
    assert requests == {snapshot for snapshot, engine in engines.items() if engine in REQUESTING}
    rebased = Counter(engine_of(receipt) for receipt in receipts if "manifest_list" in receipt)
    print(f"appends: {Counter(engines.values())}, rebased: {rebased}")
    assert set(rebased) == REBASED
    attempts = [(engines[each.snapshot_id], attempt_of(each)) for each in snapshots]
    print(f"attempts of those that retry: {sorted(each for each in attempts if each[0] in RETRYING)}")
    assert {engine for engine, attempt in attempts if attempt > 1} >= RETRYING
