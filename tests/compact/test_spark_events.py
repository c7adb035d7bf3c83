"""The edges that come of what OpenLineage's own integration sends.

`spark_events.jsonl` is what version 1.37.0 sent of one application on Spark 3.5 with Iceberg 1.11.0, over a catalog at
`http://127.0.0.1:8181` whose tables lie in `file:///lake`; `spark.openlineage.parentRunId` named the run of which the
application was a part. Facets that nobody reads were taken out, all but the first of each run's `RUNNING`, and what
names no dataset, but for the application's own begin and end. `make test-openlineage` has the integration send such
events anew.
"""

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
import ulid

from arco_catalog.planning.lineage_datasets import KnownTable, Tables
from arco_catalog.planning.lineage_edges import Commit, RunEvent, histories, run_key
from arco_catalog.state.lineage import StoredEvent
from reconciler.compact.edges import edges_of
from reconciler.compact.runs import event_rows, run_events
from reconciler.system.definition import Row

FOLDER = "file:///lake/demo/warehouse/sales"
FOLDERS = {
    "orders": f"{FOLDER}/orders-01M83V02XEY5GG5A0AJK63M45C",
    "daily": f"{FOLDER}/daily-01M83V0A61JW6FNB8SX173EPKV",
    "weekly": f"{FOLDER}/weekly-01M83V0F9AA4EG61NAWPTYDTVJ",
}
COMMITS = (
    ("orders", "09:15:14.512", 3134576594932513181),
    ("daily", "09:15:20.055", 6964555305479573829),
    ("weekly", "09:15:24.753", 638727946145106040),
    ("weekly", "09:15:28.531", 1280617725496043928),
    ("weekly", "09:15:29.496", 7649078535059120644),
)
"""What the application committed, by the catalog's clock."""
INSERTED, CREATED, MERGED, UPDATED, REPLACED = (snapshot for _, _, snapshot in COMMITS)
SERVO_RUN = str(ulid.ULID.from_uuid(uuid.UUID("0192f0a0-2222-7000-8000-000000000002")))


def ms(time: str) -> int:
    """Of a time on the day of the run."""
    return int(datetime.fromisoformat(f"2026-11-23T{time}").replace(tzinfo=UTC).timestamp() * 1000)


@pytest.fixture
def events() -> Sequence[RunEvent]:
    """Every event, as it was read from `lineage_events`."""
    rows: list[Mapping[str, object]] = []
    for number, line in enumerate((Path(__file__).parent / "spark_events.jsonl").read_text().splitlines()):
        for row in event_rows(StoredEvent(json.loads(line), "ada"), str(number), date(2026, 11, 23), 1):
            rows.append({**row, "received_on": _time(row["received_on"]), "happened_at": _time(row["happened_at"])})
    return run_events({"role": None, **row} for row in rows)


def _time(ms: object) -> datetime:
    return datetime.fromtimestamp(int(str(ms)) / 1000, UTC)


def edges(events: Sequence[RunEvent], **by: object) -> list[Row]:
    """The edges, where each commit was made by `by`."""
    tables = Tables([KnownTable(name, "sales", name, folder, 5) for name, folder in FOLDERS.items()], ())
    commits: dict[str, list[Commit]] = {}
    for name, at, snapshot in COMMITS:
        made = Commit(f"{name}-{snapshot}", name, "sales", name, ms(at), (snapshot,), **{"principal": "ada", **by})  # type: ignore[arg-type]
        commits.setdefault(name, []).append(made)
    told = histories(events)
    return [edge for event in events for edge in edges_of(event, told[run_key(event)], tables, commits)]


def said(rows: Iterable[Row], *columns: str) -> list[tuple[object, ...]]:
    return [tuple(row.get(column) for column in columns) for row in rows]


def test_each_statement_is_edges_from_the_snapshots_that_it_read_to_the_one_that_it_wrote(
    events: Sequence[RunEvent],
) -> None:
    columns = ("input_name", "input_snapshot_id", "output_name", "output_snapshot_id")
    assert said(edges(events), "job_name", *columns) == [
        ("nightly.append_data.arco_sales_daily", "orders", INSERTED, "daily", CREATED),
        ("nightly.atomic_create_table_as_select.sales_daily", "orders", INSERTED, "daily", CREATED),
        ("nightly.replace_data.arco_sales_weekly", "weekly", None, "weekly", MERGED),
        ("nightly.replace_data.arco_sales_weekly", "daily", CREATED, "weekly", MERGED),
        ("nightly.replace_data.arco_sales_weekly", "weekly", MERGED, "weekly", UPDATED),
        ("nightly.overwrite_by_expression.arco_sales_weekly", "daily", CREATED, "weekly", REPLACED),
        ("nightly.atomic_replace_table_as_select.sales_weekly", "daily", CREATED, "weekly", REPLACED),
    ]


def test_the_part_of_a_replacement_that_names_the_snapshot_before_it_is_found_by_its_time(
    events: Sequence[RunEvent],
) -> None:
    found = said(edges(events), "job_name", "matched_by")
    assert [by for job, by in found if "overwrite_by_expression" in str(job)] == ["time"]
    assert {by for job, by in found if "overwrite_by_expression" not in str(job)} == {"snapshot"}


def test_a_statement_that_failed_is_no_edge_though_its_run_is_told_to_be_complete_too(
    events: Sequence[RunEvent],
) -> None:
    [run] = {event.run for event in events if event.state == "FAIL"}
    [end] = [event for event in events if event.run == run and event.state == "COMPLETE"]
    assert [each.snapshot_id for each in end.outputs] == [REPLACED]
    assert run not in {row["run_id"] for row in edges(events, is_servo=True, run=SERVO_RUN)}


def test_where_a_servo_task_started_the_application_and_committed_edges_are_verified(
    events: Sequence[RunEvent],
) -> None:
    verified = edges(events, is_servo=True, run=SERVO_RUN, task="T")
    assert {row["lineage_confidence"] for row in verified if row["matched_by"] == "snapshot"} == {"Verified"}
    assert {row["root_run_id"] for row in verified} == {"0192f0a0-2222-7000-8000-000000000002"}
    for declared in ({}, {"is_servo": True, "run": SERVO_RUN, "principal": "bob"}, {"run": SERVO_RUN}):
        assert {row["lineage_confidence"] for row in edges(events, **declared)} == {"DeclaredUnverified"}
