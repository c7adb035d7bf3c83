"""Nothing that a writer says keeps the pipeline from telling what others did (docs/design/pipeline.md#rule-7)."""

from collections.abc import Iterable, Iterator
from datetime import date

import pytest
from pyiceberg.table.update import AddSnapshotUpdate

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.state.lineage import StoredEvent
from arco_catalog.state.task import TABLE_PURGE, Task
from reconciler.compact.commits import commit_row
from reconciler.compact.events import event_rows
from reconciler.compact.health import Health
from reconciler.compact.projection import project
from reconciler.compact.reports import report_row
from reconciler.compact.runs import event_rows as lineage_event_rows
from reconciler.compact.tasks import task_row
from reconciler.compact.version import Version
from reconciler.system import tables
from reconciler.system.definition import Row
from reconciler.system.writing import to_arrow
from tests.compact.lake import ServedLake
from tests.compact.test_lineage import SCAN, stored
from tests.compact.test_rows import METADATA, REST, SQL_VIEW, receipt, version
from tests.state.test_lineage import EVENT

NANOSECONDS = 1_795_341_600_123_456_789
NESTED: list[JsonValue] = [None, True, [], {}, [2**70], [None], {"a": 2**70}, {"type": "list", "element": 2**70}]
HOSTILE: tuple[JsonValue, ...] = (
    *(NANOSECONDS, 2**53, 2**63 - 1, 2**63, -(2**63), 10**400, -1, 0, 1.5, float("nan"), float("inf")),
    *(
        "",
        "x" * 5_000,
        "9" * 19,
        "-1",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-14:00",
        "9999-12-31T23:59:59Z",
    ),
    *NESTED,
)
KEYS = ("event_id", "commit_key", "entity", "metadata_location", "metadata_ms")
DAY = date(1970, 1, 3)
DEFINITIONS = {table.name: table for table in tables.ALL}


def spoilt(whole: JsonValue) -> Iterator[JsonValue]:
    """The same with one thing in it replaced by a hostile value, or with one more; each thing, each value."""
    yield from HOSTILE
    if isinstance(whole, dict):
        for name, held in whole.items():
            yield from ({**whole, name: each} for each in spoilt(held))
    elif isinstance(whole, list):
        for place, held in enumerate(whole):
            yield from ([*whole[:place], each, *whole[place + 1 :]] for each in spoilt(held))


def documents(whole: JsonObject) -> Iterator[JsonObject]:
    return (each for each in spoilt(whole) if isinstance(each, dict))


def check(rows: Iterable[tuple[str, Row]]) -> int:
    """Writes rows as executors do, and reads them as the driver does. Returns how many there are."""
    found: dict[str, list[Row]] = {}
    for table, row in rows:
        found.setdefault(table, []).append(row)
    for name, some in found.items():
        for row in some:
            DEFINITIONS[name].partition_of(row)
        read = to_arrow(DEFINITIONS[name], some)
        assert len(read.to_pylist()) == len(some)
        lacking = [
            column.name for column in DEFINITIONS[name].columns if column.required and read[column.name].null_count
        ]
        assert lacking == []
    return sum(map(len, found.values()))


@pytest.mark.parametrize("of", [version(previous=False), version(restored=True, added_snapshot_ids=(), is_view=False)])
def test_rows_of_any_metadata_file_can_be_written_and_read(of: Version) -> None:
    assert check(row for document in documents(METADATA) for row in project(of, document)) > 1_000


def test_rows_of_any_view_can_be_written_and_read() -> None:
    of = version(is_view=True, previous=False, snapshot_id=None, added_snapshot_ids=())
    assert check(row for document in documents(SQL_VIEW) for row in project(of, document)) > 100


def test_rows_of_any_receipt_that_has_its_keys_can_be_written_and_read() -> None:
    def rows() -> Iterator[tuple[str, Row]]:
        for said in documents(receipt()):
            try:
                yield "commits", commit_row(said, METADATA, 1)
            except InternalError:
                assert any(said.get(name) != receipt()[name] for name in KEYS)

    assert check(rows()) > 500


def test_rows_of_any_registry_commit_that_has_its_keys_can_be_written_and_read() -> None:
    operation: JsonObject = {"id": "O", "kind": "drop-table", "namespace": ["a"], "name": "t", "source": REST, "x": 1}
    commit: JsonObject = {"id": "C", "sequence": 9, "at_ms": 77, "operations": [operation]}

    def rows() -> Iterator[tuple[str, Row]]:
        for said in documents(commit):
            try:
                yield from [("catalog_events", row) for row in event_rows(said)]
            except InternalError:
                continue  # without an id, a number or a time

    assert check(rows()) > 100


def test_rows_of_any_report_that_is_one_can_be_written_and_read() -> None:
    def rows() -> Iterator[tuple[str, Row]]:
        for said in documents(stored(SCAN)):
            try:
                yield "reports", report_row(said, "R", 1)
            except InternalError:
                assert said.get("ms") != 9 or not isinstance(said.get("report"), dict)

    assert check(rows()) > 500


def test_rows_of_any_event_that_was_taken_can_be_written_and_read() -> None:
    def rows() -> Iterator[tuple[str, Row]]:
        for said in documents(EVENT):
            try:
                yield from [("lineage_events", row) for row in lineage_event_rows(StoredEvent(said, "a"), "H", DAY, 1)]
            except InternalError:
                continue  # it would have been answered 400

    assert check(rows()) > 100


def test_rows_of_any_task_can_be_written_and_read() -> None:
    task = Task.submitted(record="r", task="A", kind=TABLE_PURGE, payload={}, at_ms=5, not_before_ms=6)
    ended: JsonObject = {**task.document, "status": "SUCCESS", "last_status_change_ts": 9}

    def rows() -> Iterator[tuple[str, Row]]:
        for said in documents(ended):
            try:
                row = task_row(Task({**said, "task_version": 4, "attempt_count": 1}))
            except (InternalError, ValueError):
                continue  # it lacks what `Task.parse` asks for
            if row is not None:
                yield "tasks", row

    assert check(rows()) > 100


def test_the_figures_of_any_manifest_can_be_written_and_read() -> None:
    health = Health(target_bytes=100)
    for _ in range(3):
        health.add({"record_count": 2**63 - 1, "file_size_in_bytes": 2**63 - 1, "partition": None})
    told: Row = {"entity": "T", "commit_key": "k", "committed_at": 1, "snapshot_id": 1, **health.columns()}
    assert check([("files_health", told)]) == 1


async def test_a_snapshot_of_another_century_stops_nobody(lake: ServedLake) -> None:
    table = lake.client.load_table("db.t")
    last = table.current_snapshot()
    assert last is not None
    later = last.model_copy(update={"snapshot_id": 77, "timestamp_ms": NANOSECONDS, "sequence_number": 99})
    lake.client.commit_table(table, (), (AddSnapshotUpdate(snapshot=later),))
    stats = await lake.compact()
    assert stats.unreadable_count == 0
    lake.assert_each_event_once()
    [row] = [row for row in lake.rows(tables.SNAPSHOTS) if row["snapshot_id"] == 77]
    assert (row["snapshot_at"], row["sequence_number"]) == (None, 99)
    assert (await lake.compact()).commits == 0
