"""A lake that tells of itself: some tables, runs that tell of their reads, and `system`. Answers to usual questions of
it, as PyIceberg's rows give them."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]

from arco_catalog.state.runtime import SystemRuntime
from reconciler.catalog_config import CatalogConfig
from reconciler.compact.driver import compact
from reconciler.executors import LocalExecutor
from reconciler.system import questions
from reconciler.system.opened import SystemTables
from reconciler.system.questions import Question
from tests.engines.lake import Lake, lake
from tools.demo.server import WAREHOUSE
from tools.support.openlineage import Query, dataset

ROW = pa.table({"id": pa.array([1], pa.int64())})
AT_ONCE = "INTERVAL '0' DAY"
"""In place of the thirty days after which a table is stale: this lake is young."""
Rows = Sequence[Mapping[str, Any]]


@contextmanager
def telling_lake(folder: Path) -> Iterator[Lake]:
    """A catalog on local files that keeps reports, with some tables and the tables of `system`."""
    with lake("telling", f"file:{folder / 'store'}", folder / "server.log", {}, "--metrics", "store") as made:
        client = made.bystander
        client.create_namespace("shop")
        for name in ("raw", "clean", "gone"):
            client.create_table(f"shop.{name}", ROW.schema).append(ROW)
        read, written = client.load_table("shop.raw"), client.load_table("shop.clean")
        query = Query(made.server.uri, "nightly.append_data.shop_clean")
        query.start([read], [written])
        written.append(ROW)
        query.complete([dataset(read)], [written])
        client.drop_table("shop.gone")
        fill(made)
        yield made


def fill(lake: Lake) -> None:
    """Brings `system` up to date."""
    system = SystemTables.connect(lake.server.uri, WAREHOUSE, {}, SystemRuntime(), lake.name)
    asyncio.run(compact(system, CatalogConfig(lake.server.store, WAREHOUSE), LocalExecutor()))


ASKED = [question for question in questions.ALL if question is not questions.SAVINGS]
"""The questions that have answers in this lake, which nobody maintains."""


def stale_at_once(question: Question, system: str = "") -> str:
    """The text of a question, by which each table is stale at once."""
    return question.text(system).replace("INTERVAL '30' DAY", AT_ONCE)


def expected(lake: Lake, question: Question) -> list[tuple[object, ...]]:
    """The answer to a question, every table being stale at once."""
    rows = _ANSWERS[question.name](
        lambda table: lake.bystander.load_table(f"system.{table}").scan().to_arrow().to_pylist()
    )
    return ordered([tuple(row) for row in rows])


def ordered(rows: Sequence[tuple[object, ...]]) -> list[tuple[object, ...]]:
    """The same rows in an order of their own, their times in UTC: engines give them as text, or in the local zone."""
    return sorted((tuple(_plain(cell) for cell in row) for row in rows), key=repr)


def _plain(cell: object) -> object:
    if isinstance(cell, str) and len(cell) > 18 and cell[4] == cell[7] == "-" and cell[13] == ":":
        cell = datetime.fromisoformat(cell)
    return cell.astimezone(UTC) if isinstance(cell, datetime) else cell


Read = Callable[[str], Rows]


def _week(rows: Rows, column: str = "committed_at") -> Iterator[Mapping[str, Any]]:
    since = datetime.now(UTC) - timedelta(days=7)
    return (row for row in rows if row[column] > since)


def _grouped(rows: Iterator[Mapping[str, Any]], *columns: str) -> Mapping[tuple[Any, ...], list[Mapping[str, Any]]]:
    found = defaultdict(list)
    for row in rows:
        found[tuple(row[column] for column in columns)].append(row)
    return found


def _last_writers(read: Read) -> Iterator[Sequence[object]]:
    found = _grouped(_week(read("commits")), "namespace", "name", "principal", "client", "engine")
    return ([*key, len(rows), max(row["committed_at"] for row in rows)] for key, rows in found.items())


def _growth(read: Read) -> Iterator[Sequence[object]]:
    for key, rows in _grouped(_week(read("snapshots")), "namespace", "name").items():
        grown = sum((row["added_bytes"] or 0) - (row["removed_bytes"] or 0) for row in rows)
        yield [*key, len(rows), grown, sum((row["added_records"] or 0) - (row["deleted_records"] or 0) for row in rows)]


def _unverified(read: Read) -> Iterator[Sequence[object]]:
    for row in read("commits"):
        for snapshot in row["added_snapshot_ids"] if row["lineage_confidence"] == "DeclaredUnverified" else ():
            said = ("committed_at", "namespace", "name", "principal", "client")
            yield [*(row[column] for column in said), snapshot]


def _stale(read: Read) -> Iterator[Sequence[object]]:
    last = {
        key: max(row["committed_at"] for row in rows)
        for (key,), rows in _grouped(iter(read("snapshots")), "entity").items()
    }
    dropped = {row["entity"] for row in read("catalog_events") if row["kind"] == "drop-table"}
    for row in read("tables"):
        if row["current"] and row["entity"] not in dropped:
            yield [row["namespace"], row["name"], last.get(row["entity"]), row["bytes"]]


def _hot(read: Read) -> Iterator[Sequence[object]]:
    def counted(rows: Iterator[Mapping[str, Any]]) -> Counter[tuple[str, str]]:
        return Counter((row["namespace"], row["name"]) for row in rows)

    scans = counted(row for row in _week(read("reports"), "received_at") if row["report_type"] == "scan")
    commits = counted(_week(read("commits")))
    return ([*key, scans[key], commits[key]] for key in {*scans, *commits})


def _made_from(read: Read) -> Iterator[Sequence[object]]:
    told = ("output_namespace", "output_name", "input_namespace", "input_name", "input_dataset", "job_name")
    found = _grouped((row for row in read("lineage") if row["input_dataset"]), *told, "lineage_confidence")
    return ([*key, len(rows), max(row["happened_at"] for row in rows)] for key, rows in found.items())


_ANSWERS: Mapping[str, Callable[[Read], Iterator[Sequence[object]]]] = {
    "last_writers": _last_writers,
    "growth": _growth,
    "unverified_writes": _unverified,
    "stale_tables": _stale,
    "hot_tables": _hot,
    "made_from": _made_from,
}
