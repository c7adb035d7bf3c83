"""Which edges come of runs and commits: pure functions (docs/design/lineage.md#edges)."""

import uuid
from dataclasses import dataclass
from datetime import date
from typing import Any, ClassVar

import pytest
import ulid

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.lineage_datasets import DatasetRef, KnownTable, Tables
from arco_catalog.planning.lineage_edges import (
    MAX_EDGES,
    Commit,
    History,
    RunEvent,
    histories,
    matches,
    run_key,
    ulid_of_uuid,
)
from arco_catalog.state.lineage import StoredEvent
from reconciler.compact.edges import edges_of, servo_edge
from reconciler.compact.reports import report_row
from reconciler.compact.runs import event_rows
from reconciler.system.definition import Row
from tests.state.test_lineage import EVENT, RUN

ULID = str(ulid.ULID.from_uuid(uuid.UUID(RUN)))
RAW = KnownTable("E-raw", "shop", "raw", "s3://lake/wh/shop/raw", 5)
DAILY = KnownTable("E-daily", "shop", "daily", "s3://lake/wh/shop/daily", 5)
TABLES = Tables([RAW, DAILY], {"lake", "wh"})
REST = "http://lake:8181"
AT_RAW = DatasetRef("s3://lake", "wh/shop/raw", ((REST, "shop.raw"),), 11)
AT_DAILY = DatasetRef("s3://lake", "wh/shop/daily", ((REST, "shop.daily"),), 22)
BEGUN, ENDED = 100_000, 200_000


def event(**more: Any) -> RunEvent:
    """A run that read `raw` and wrote `daily`, and is complete."""
    made = RunEvent("H1", 86_400_000, ENDED, "COMPLETE", RUN, None, "nightly", "daily", "ada", [AT_RAW], [AT_DAILY])
    for name, value in more.items():
        setattr(made, name, value)
    return made


def commit(key: str = "k1", at_ms: int = 150_000, added: int = 22, **more: Any) -> Commit:
    """A commit of `daily`, made while the run ran."""
    said = {"principal": "ada", **more}
    return Commit(key, "E-daily", "shop", "daily", at_ms, (added,), **said)


def servo(**more: Any) -> Commit:
    """The same by a Servo task, whose receipt names the run."""
    return commit(is_servo=True, run=ULID, task="T1", **more)


def edges(of: RunEvent, *commits: Commit, started_ms: int | None = BEGUN) -> list[Row]:
    return [*edges_of(of, History(started_ms), TABLES, {"E-daily": commits})]


def test_an_edge_leads_from_the_snapshot_that_was_read_to_the_one_that_was_written() -> None:
    [edge] = edges(event(), commit())
    assert (edge["input_entity"], edge["input_name"], edge["input_snapshot_id"]) == ("E-raw", "raw", 11)
    assert (edge["output_entity"], edge["output_name"], edge["output_snapshot_id"]) == ("E-daily", "daily", 22)
    assert (edge["commit_key"], edge["matched_by"], edge["happened_at"], edge["run_id"]) == (
        "k1",
        "snapshot",
        150_000,
        RUN,
    )
    assert edge["lineage_confidence"] == "DeclaredUnverified"


def test_an_edge_is_verified_where_run_and_commit_name_each_other() -> None:
    [edge] = edges(event(), servo())
    assert (edge["lineage_confidence"], edge["task_id"]) == ("Verified", "T1")
    [of_part] = edges(event(run="00000000-0000-0000-0000-000000000001", parent=RUN), servo())
    assert of_part["lineage_confidence"] == "Verified"


@pytest.mark.parametrize(
    ("told", "made"),
    [
        (event(outputs=[DatasetRef("s3://lake", "wh/shop/daily")]), servo()),  # the run does not name the commit
        (event(run="00000000-0000-0000-0000-000000000001"), servo()),  # the commit names another run
        (event(), commit(run=ULID)),  # an anonymous client claims to be of the run
        (event(principal="mallory"), servo()),  # somebody else says so of the run
    ],
    ids=["no snapshot", "another run", "claimed", "another's word"],
)
def test_an_edge_is_not_verified_by_the_word_of_one_side(told: RunEvent, made: Commit) -> None:
    [edge] = edges(told, made)
    assert edge["lineage_confidence"] == "DeclaredUnverified"


def test_a_commit_from_before_the_start_is_not_the_runs_by_however_little() -> None:
    [edge] = edges(event(), servo(at_ms=BEGUN - 1))
    assert (edge["commit_key"], edge["matched_by"], edge["lineage_confidence"]) == (None, None, "DeclaredUnverified")
    assert edges(event(state="RUNNING"), servo(at_ms=BEGUN - 1)) == []
    [begun] = edges(event(), servo(at_ms=BEGUN))
    assert (begun["matched_by"], begun["lineage_confidence"]) == ("snapshot", "Verified")


def test_a_run_that_failed_has_no_end_and_what_it_did_meanwhile_stays() -> None:
    failed = History(BEGUN, failed=True)
    assert [*edges_of(event(), failed, TABLES, {"E-daily": [commit()]})] == []
    assert len([*edges_of(event(state="RUNNING"), failed, TABLES, {"E-daily": [commit()]})]) == 1


def test_a_commit_is_found_by_the_run_that_its_receipt_names() -> None:
    [match] = matches(event(), DatasetRef("s3://lake", "wh/shop/daily"), BEGUN, [commit("other"), servo()])
    assert (match.commit.task, match.by) == ("T1", "run")


def test_a_commit_is_found_by_its_time_if_its_sender_made_no_other_meanwhile() -> None:
    written = DatasetRef("s3://lake", "wh/shop/daily")
    [match] = matches(event(), written, BEGUN, [commit(at_ms=50_000), commit("k2", principal="bob"), commit("k3")])
    assert (match.commit.commit_key, match.by) == ("k3", "time")
    assert matches(event(), written, BEGUN, [commit("k2"), commit("k3")]) == []
    assert matches(event(), written, None, [commit("k3")]) == []


def test_a_snapshot_that_was_there_before_the_run_began_is_not_what_it_wrote() -> None:
    stale, own = commit("stale", at_ms=50_000, added=22), commit("own", added=23)
    [edge] = edges(event(), stale, own)
    assert (edge["commit_key"], edge["matched_by"], edge["output_snapshot_id"]) == ("own", "time", 23)


def test_without_a_commit_an_edge_says_what_the_event_says() -> None:
    [edge] = edges(event())
    assert (edge["commit_key"], edge["matched_by"], edge["output_snapshot_id"]) == (None, None, 22)
    assert edge["happened_at"] == 86_400_000  # the day on which it came: an event's own time may be any


def test_a_run_that_goes_on_gives_edges_to_commits_that_it_names_and_no_others() -> None:
    assert edges(event(state="RUNNING", outputs=[DatasetRef("s3://lake", "wh/shop/daily")]), commit()) == []
    assert len(edges(event(state="RUNNING"), commit())) == 1
    assert edges(event(state="FAIL"), commit()) == []
    assert edges(event(state="START"), commit()) == []


def test_events_that_say_the_same_of_a_run_are_the_same_edge_and_what_others_say_is_another() -> None:
    [running], [complete] = edges(event(state="RUNNING"), commit()), edges(event(event="H2"), commit())
    [other] = edges(event(principal="mallory"), commit())
    assert running["edge_id"] == complete["edge_id"] != other["edge_id"]


def test_inputs_may_be_told_earlier_in_the_run_by_the_same_sender() -> None:
    start = event(event="H0", state="START", happened_ms=BEGUN, outputs=[])
    lie = event(event="H9", state="START", happened_ms=0, principal="mallory", inputs=[DatasetRef("file", "/secret")])
    end = event(inputs=[])
    history = histories([end, lie, start])[run_key(end)]
    assert history == History(BEGUN, [AT_RAW])
    assert len([*edges_of(end, history, TABLES, {})]) == 1


@dataclass(frozen=True)
class CountedName(DatasetRef):
    """A dataset that counts how often one is compared."""

    comparisons: ClassVar[int] = 0
    spellings: ClassVar[int] = 0

    __hash__ = DatasetRef.__hash__

    def __str__(self) -> str:
        CountedName.spellings += 1
        return DatasetRef.__str__(self)

    def __eq__(self, other: object) -> bool:
        CountedName.comparisons += 1
        return isinstance(other, DatasetRef) and self.name == other.name


def test_inputs_of_many_events_are_compared_no_more_often_than_there_are_inputs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(CountedName, "comparisons", 0)
    runs = [
        event(event=f"H{number}", inputs=[CountedName("s3://lake", f"t{n}") for n in range(2_000)])
        for number in range(3)
    ]
    assert len(histories(runs)[run_key(runs[0])].inputs) == 2_000
    assert CountedName.comparisons < 4 * 2_000


def test_edges_of_many_inputs_read_each_name_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CountedName, "spellings", 0)
    inputs = [CountedName("s3://lake", f"wh/{n}", snapshot_id=22) for n in range(2_000)]
    run = event(inputs=inputs)
    assert len([*edges_of(run, histories([run])[run_key(run)], TABLES, {"E-daily": [commit()]})]) == 2_000
    assert CountedName.spellings < 6 * 2_000


def test_what_is_no_table_of_the_catalog_is_told_by_its_name_if_the_other_side_is_one() -> None:
    topic = DatasetRef("kafka://broker:9092", "orders")
    [edge] = edges(event(inputs=[topic]), commit())
    assert (edge.get("input_entity"), edge["input_dataset"]) == (None, "kafka://broker:9092 orders")
    assert edges(event(inputs=[topic], outputs=[topic])) == []


def test_one_event_has_a_bounded_number_of_edges() -> None:
    many = [DatasetRef("file", f"/{number}") for number in range(200)]
    assert len(edges(event(inputs=many, outputs=[AT_DAILY, *many]))) <= MAX_EDGES


def test_a_receipt_of_servo_tells_who_wrote_and_not_from_what() -> None:
    row = servo_edge(servo())
    assert (row["run_id"], row["task_id"], row["output_snapshot_id"]) == (ULID, "T1", 22)
    assert (row.get("input_dataset"), row["lineage_confidence"]) == (None, "Verified")


@pytest.mark.parametrize(
    ("dataset", "found"),
    [
        (DatasetRef("s3://lake", "wh/shop/raw"), RAW),
        (DatasetRef("s3a://lake", "/wh/shop/raw/"), RAW),
        (DatasetRef(REST, "shop.raw"), RAW),
        (DatasetRef("https://lake.example.com/iceberg", "wh.shop.raw"), RAW),
        (DatasetRef("iceberg", "shop.raw"), RAW),
        (DatasetRef("trino://lake:8080", "lake.shop.raw"), RAW),
        (DatasetRef("bigquery", "x", ((REST, "shop.daily"),)), DAILY),
        (DatasetRef("s3://other", "wh/shop/raw", ((REST, "shop.raw"),)), None),  # another lake's table of the same name
        (DatasetRef("trino://lake:8080", "raw"), None),
        (DatasetRef("trino://lake:8080", "shop.raw"), None),  # a table `raw` of nothing, in a catalog `shop`
        (DatasetRef("trino://lake:8080", "postgres.shop.raw"), None),
        (DatasetRef(REST, "other.shop.raw"), None),
        (DatasetRef("kafka://broker:9092", "shop.raw"), None),
        (DatasetRef("postgres://db:5432", "shop.raw"), None),
        (DatasetRef("postgres://db:5432", "wh.shop.raw"), None),
        (DatasetRef("snowflake://account", "wh.shop.raw"), None),
        (DatasetRef("bigquery", "wh.shop.raw"), None),
        (DatasetRef("hive://metastore:9083", "shop.raw"), None),
        (DatasetRef("arn:aws:glue:us-east-1:123456789012", "shop.raw"), None),
        (DatasetRef("bigquery", "x", (("kafka://broker:9092", "shop.daily"),)), None),
        (DatasetRef("", "shop.raw"), None),
        (DatasetRef("s3://lake", "/"), None),
    ],
)
def test_a_dataset_is_what_lies_at_its_location_or_else_what_has_its_name(
    dataset: DatasetRef, found: KnownTable | None
) -> None:
    assert TABLES.find(dataset) == found


def test_a_namespace_may_be_called_as_the_catalog() -> None:
    inner = KnownTable("E", "wh.shop", "raw", None, 4)
    assert Tables([RAW, inner], {"wh"}).find(DatasetRef(REST, "wh.shop.raw")) == inner
    assert Tables([RAW, inner], {"wh"}).find(DatasetRef("trino://lake:8080", "wh.shop.raw")) == RAW


def test_of_two_tables_of_one_name_the_younger_one_is_meant() -> None:
    dropped = KnownTable("E-old", "shop", "raw", None, 4)
    assert Tables([RAW, dropped], ()).find(DatasetRef(REST, "shop.raw")) == RAW


def test_a_file_is_named_by_its_path() -> None:
    table = KnownTable("E", "a", "b", "file:///tmp/wh/a/b", 1)
    assert Tables([table], ()).find(DatasetRef("file", "/tmp/wh/a/b")) == table


def test_a_run_of_servo_is_the_same_128_bits() -> None:
    assert ulid_of_uuid(RUN) == ULID
    assert ulid_of_uuid("no uuid") is None


def test_an_event_is_a_row_for_each_dataset() -> None:
    rows = [*event_rows(StoredEvent(EVENT, "ada"), "H1", date(1970, 1, 3), 4)]
    assert [(row["role"], row["snapshot_id"], row["further_names"], row["further_namespaces"]) for row in rows] == [
        ("input", 4358109269898191911, ["shop.orders"], ["http://lake:8181"]),
        ("output", None, [], []),
    ]
    assert {(row["run_id"], row["received_on"], row["principal"], row["batch"]) for row in rows} == {
        (RUN, 2 * 86_400_000, "ada", 4)
    }


def test_an_event_that_names_no_dataset_is_one_row() -> None:
    bare: JsonObject = {name: value for name, value in EVENT.items() if name not in ("inputs", "outputs")}
    [row] = event_rows(StoredEvent(bare, "ada"), "H1", date(1970, 1, 3), 4)
    assert "role" not in row
    with pytest.raises(InternalError, match="H1"):
        [*event_rows(StoredEvent({}, "ada"), "H1", date(1970, 1, 3), 4)]


SCAN: JsonObject = {
    "report-type": "scan-report",
    "table-name": "rest.shop.raw",
    "snapshot-id": 11,
    "filter": {"type": "eq", "term": "id", "value": 1},
    "schema-id": 0,
    "projected-field-ids": [1],
    "projected-field-names": ["id"],
    "metrics": {
        "total-planning-duration": {"count": 1, "time-unit": "nanoseconds", "total-duration": 2_644_235_116},
        "result-data-files": {"unit": "count", "value": 3},
        "total-file-size-in-bytes": {"unit": "bytes", "value": 77},
    },
}


def stored(report: JsonObject) -> JsonObject:
    """A report as it is kept."""
    by: JsonObject = {"principal": "ada", "source": {"kind": "IcebergRest", "client_info": "Spark/4.1"}}
    return {"version": 1, "ms": 9, "namespace": ["shop"], "table": "raw", "entity": "E", "by": by, "report": report}


def test_a_report_of_a_scan_is_a_row() -> None:
    row = report_row(stored(SCAN), "R1", 2)
    assert (row["report_id"], row["report_type"], row["namespace"], row["name"]) == ("R1", "scan", "shop", "raw")
    assert (row["duration_ms"], row["data_files"], row["bytes"], row["delete_files"]) == (2_644, 3, 77, None)
    assert (row["projected"], row["principal"], row["client"]) == (["id"], "ada", "Spark/4.1")
    assert row["filter"] == '{"term":"id","type":"eq","value":1}'
    assert row["metrics"] == {
        "total-planning-duration": "2644235116 nanoseconds",
        "result-data-files": "3",
        "total-file-size-in-bytes": "77",
    }


def test_a_report_of_a_commit_is_a_row() -> None:
    report: JsonObject = {
        "report-type": "commit-report",
        "table-name": "rest.shop.raw",
        "snapshot-id": 11,
        "sequence-number": 4,
        "operation": "append",
        "metrics": {"added-records": {"unit": "count", "value": 5}, "added-data-files": {"unit": "count", "value": 1}},
    }
    row = report_row(stored(report), "R1", 2)
    assert (row["report_type"], row["operation"], row["sequence_number"]) == ("commit", "append", 4)
    assert (row["records"], row["data_files"], row["duration_ms"], row["projected"]) == (5, 1, None, None)
