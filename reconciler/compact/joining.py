"""What the join of runs and commits reads of system tables, and the edges that come of it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import cast

from arco_catalog.protocol.concurrency import batches
from reconciler.compact.datasets import KnownTable, Tables, locations_of, names_of
from reconciler.compact.edges import TOLERANCE_MS, Commit, Teller, edges_of, histories, servo_edge, teller
from reconciler.compact.edges import History as RunHistory
from reconciler.compact.runs import COLUMNS as EVENT_COLUMNS
from reconciler.compact.runs import Named, RunEvent, run_events
from reconciler.compact.versions import milliseconds
from reconciler.system.conditions import after, among, between, both, equal
from reconciler.system.definition import DAY_MS, Row
from reconciler.system.opened import OpenTable

LOOKBACK_DAYS = 7
"""How long before the day of an event its run may have begun, and made commits."""
AT_ONCE = 1_000
"""Names in one condition."""
_COMMIT_COLUMNS = (
    *("commit_key", "entity", "namespace", "name", "committed_at", "added_snapshot_ids", "principal"),
    *("source_kind", "source_claimed", "run_id", "task_id"),
)
_TABLE_COLUMNS = ("entity", "namespace", "name", "location", "committed_at")


def new_edges(batch: int, events: OpenTable, commits: OpenTable, known: OpenTable, lineage: OpenTable) -> Iterator[Row]:
    """The edges of a batch of events that `lineage` does not have."""
    told = [event for event in _events(events, batch) if event.state in ("COMPLETE", "RUNNING") and event.outputs]
    if not told:
        return
    first_ms = min(event.received_ms for event in told) - LOOKBACK_DAYS * DAY_MS
    stories = _histories(events, batch, told, first_ms)
    datasets = [
        dataset for event in told for dataset in (*event.outputs, *event.inputs, *stories[teller(event)].inputs)
    ]
    tables = Tables(_tables(known, datasets))
    written = {table.entity for event in told for each in event.outputs if (table := tables.find(each)) is not None}
    made = _commits(commits, sorted(written), first_ms)
    seen = _known(lineage, {event.run for event in told})
    for event in told:
        for edge in edges_of(event, stories[teller(event)], tables, made):
            if edge["edge_id"] not in seen:
                seen.add(edge["edge_id"])
                yield edge


def servo_edges(commits: OpenTable, since: int) -> Iterator[Row]:
    """Of each commit by a Servo task in batches after a number, what its receipt tells."""
    where = both(equal("source_kind", "Servo"), after("batch", since))
    for rows in commits.batches(where, *_COMMIT_COLUMNS):
        for commit in _made(rows.to_pylist()):
            if commit.is_servo:
                yield servo_edge(commit)


def _events(events: OpenTable, batch: int) -> Sequence[RunEvent]:
    return run_events(events.rows(equal("batch", batch), *EVENT_COLUMNS).to_pylist())


def _histories(events: OpenTable, batch: int, told: Sequence[RunEvent], first_ms: int) -> Mapping[Teller, RunHistory]:
    """What is known of some runs. Events of earlier batches are looked at where a run did not begin in this one."""
    here = _events(events, batch)
    found = histories(here)
    lacking = {event.run for event in told if found[teller(event)].started_ms is None}
    if not lacking:
        return found
    days = between("received_on", _time(first_ms), _time(max(event.received_ms for event in told) + DAY_MS))
    earlier = [
        row
        for rows in events.batches(both(days, among("state", ["START", "RUNNING"])), *EVENT_COLUMNS, "batch")
        for row in rows.to_pylist()
        if row["run_id"] in lacking and row["batch"] < batch
    ]
    return histories([*run_events(earlier), *here])


def _tables(known: OpenTable, datasets: Iterable[Named]) -> Iterator[KnownTable]:
    """The tables that datasets may be: those of their locations, and those of their names."""
    locations, names = set[str](), set[str]()
    for dataset in datasets:
        there = locations_of(dataset)
        locations.update(there)
        if not there:
            names.update(name for _, name in names_of(dataset))
    for column, values in (("location", locations), ("name", names)):
        for some in batches(sorted(values), AT_ONCE):
            where = both(equal("current", True), among(column, some))
            for row in known.rows(where, *_TABLE_COLUMNS).to_pylist():
                yield KnownTable(
                    row["entity"],
                    row["namespace"] or "",
                    row["name"] or "",
                    row["location"],
                    milliseconds(row["committed_at"]),
                )


def _commits(commits: OpenTable, entities: Sequence[str], first_ms: int) -> Mapping[str, Sequence[Commit]]:
    """The commits of some tables since a time that added snapshots, the oldest first."""
    found: dict[str, list[Commit]] = {}
    since = between("committed_at", _time(first_ms - TOLERANCE_MS), "9999-01-01T00:00:00+00:00")
    for some in batches(entities, AT_ONCE):
        for rows in commits.batches(both(among("entity", some), since), *_COMMIT_COLUMNS):
            for commit in _made(rows.to_pylist()):
                found.setdefault(commit.entity, []).append(commit)
    return {entity: sorted(made, key=lambda each: each.committed_ms) for entity, made in found.items()}


def _made(rows: Iterable[Mapping[str, object]]) -> Iterator[Commit]:
    for row in rows:
        added = cast("Sequence[int] | None", row["added_snapshot_ids"])
        if added:
            yield Commit(
                cast(str, row["commit_key"]),
                cast(str, row["entity"]),
                cast("str | None", row["namespace"]),
                cast("str | None", row["name"]),
                milliseconds(cast(datetime, row["committed_at"])),
                added,
                cast("str | None", row["principal"]),
                row["source_kind"] == "Servo" and not row["source_claimed"],
                cast("str | None", row["run_id"]),
                cast("str | None", row["task_id"]),
            )


def _known(lineage: OpenTable, runs: Iterable[str]) -> set[object]:
    """The edges that were told of some runs."""
    return {
        edge
        for some in batches(sorted(runs), AT_ONCE)
        for edge in lineage.rows(among("run_id", some), "edge_id")["edge_id"].to_pylist()
    }


def _time(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat()
