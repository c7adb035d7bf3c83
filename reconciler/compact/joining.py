"""Joins runs in OpenLineage events with commits: reads their rows from system tables, and makes the edges of
lineage."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import cast

from pyiceberg.expressions import BooleanExpression

from arco_catalog.planning.lineage_datasets import DatasetRef, KnownTable, Tables, locations_of, names_of
from arco_catalog.planning.lineage_edges import TOLERANCE_MS, Commit, RunEvent, RunKey, histories, run_key
from arco_catalog.planning.lineage_edges import History as RunHistory
from arco_catalog.protocol.concurrency import batches
from reconciler.compact.edges import edges_of, servo_edge
from reconciler.compact.runs import COLUMNS as EVENT_COLUMNS
from reconciler.compact.runs import run_events
from reconciler.compact.values import LAST_TIME_MS
from reconciler.compact.versions import milliseconds
from reconciler.system.conditions import after, between, both, equal, missing, one_of
from reconciler.system.definition import DAY_MS, Row
from reconciler.system.opened import OpenTable

LOOKBACK_DAYS = 7
"""How many days before the day of an event the run may have started and made commits."""
AT_ONCE = 1_000
"""How many names are in one condition."""
_COMMIT_COLUMNS = (
    *("commit_key", "entity", "namespace", "name", "committed_at", "added_snapshot_ids", "principal"),
    *("source_kind", "source_claimed", "run_id", "task_id"),
)
_UNMATCHED_COLUMNS = ("edge_id", "event", "input_dataset", "output_dataset", "output_entity")
_TABLE_COLUMNS = ("entity", "namespace", "name", "location", "committed_at")


@dataclass(frozen=True, slots=True)
class MatchedEdges:
    """Edges of lineage for which a commit was found after they were written: in `edges` the new rows, in `replaced` the
    ids of the rows without a commit that they replace, and in `where` a condition that all replaced rows meet."""

    edges: Sequence[Row]
    replaced: Sequence[str]
    where: BooleanExpression


@dataclass(frozen=True, slots=True)
class Join:
    """Joins runs in OpenLineage events with commits, by reading four system tables in the states in which they were
    opened: `lineage_events` (`events`), `commits`, `tables` (`versions`) and `lineage`. `catalogs` are the names of the
    catalog for clients."""

    events: OpenTable
    commits: OpenTable
    versions: OpenTable
    lineage: OpenTable
    catalogs: Collection[str]

    def new_edges(self, batch: int) -> Iterator[Row]:
        """Iterates over the edges for the batch of `lineage_events` with this number, without the edges that the table
        `lineage` has."""
        here = run_events(self.events.rows(equal("batch", batch), *EVENT_COLUMNS).to_pylist())
        yield from self._edges(here, batch)

    def servo_edges(self, since: int) -> Iterator[Row]:
        """Iterates over an edge for each commit by a Servo task that added snapshots, in the batches of `commits` after
        the number `since`, unless the table `lineage` has the edge."""
        where = both(equal("source_kind", "Servo"), after("batch", since))
        for rows in self.commits.batches(where, *_COMMIT_COLUMNS):
            made = [commit for commit in _made(rows.to_pylist()) if commit.is_servo]
            if made:
                first_ms = min(commit.committed_ms for commit in made)
                seen = self._written({commit.run for commit in made if commit.run is not None}, first_ms)
                yield from (edge for edge in map(servo_edge, made) if edge["edge_id"] not in seen)

    def newly_matched(self, since: int) -> MatchedEdges:
        """Returns the edges that `lineage` has without a commit and for which the batches of `commits` after the number
        `since` have one now, with that commit. Edges without such a commit are left out."""
        changed, first_ms, last_ms = self._changed(since)
        days = _days("happened_at", first_ms - DAY_MS, last_ms + (LOOKBACK_DAYS + 1) * DAY_MS)
        where = both(days, missing("commit_key"))
        unmatched = [
            row
            for rows in (self.lineage.batches(where, *_UNMATCHED_COLUMNS) if changed else ())
            for row in rows.to_pylist()
            if row["output_entity"] in changed
        ]
        # `happened_at` of an edge without a commit is the day on which the event was received.
        days = _days("received_on", first_ms - DAY_MS, last_ms + (LOOKBACK_DAYS + 1) * DAY_MS)
        here = [
            row
            for some in batches(sorted({row["event"] for row in unmatched}), AT_ONCE)
            for row in self.events.rows(both(days, one_of("event", some)), *EVENT_COLUMNS).to_pylist()
        ]
        edges = [edge for edge in self._edges(run_events(here)) if edge["commit_key"] is not None]
        found = {(edge["event"], edge["input_dataset"], edge["output_dataset"]) for edge in edges}
        replaced = [
            row["edge_id"] for row in unmatched if (row["event"], row["input_dataset"], row["output_dataset"]) in found
        ]
        return MatchedEdges(edges, replaced, where)

    def _changed(self, since: int) -> tuple[set[str], int, int]:
        """Returns the entities to which the batches of `commits` after the number `since` have commits that added
        snapshots, with the first and the last time of these commits; without any commit, `LAST_TIME_MS` and 0."""
        changed, first_ms, last_ms = set[str](), LAST_TIME_MS, 0
        for rows in self.commits.batches(after("batch", since), *_COMMIT_COLUMNS):
            for commit in _made(rows.to_pylist()):
                changed.add(commit.entity)
                first_ms, last_ms = min(first_ms, commit.committed_ms), max(last_ms, commit.committed_ms)
        return changed, first_ms, last_ms

    def _edges(self, here: Sequence[RunEvent], batch: int | None = None) -> Iterator[Row]:
        """Iterates over the edges that the table `lineage` does not have, for the COMPLETE and RUNNING ones of the
        events that have outputs. `batch` is the number of the events' batch: events of later batches do not count for
        the histories of runs; None if all count."""
        writing = [event for event in here if event.state in ("COMPLETE", "RUNNING") and event.outputs]
        if not writing:
            return
        first_ms = min(event.received_ms for event in writing) - LOOKBACK_DAYS * DAY_MS
        by_run = self._histories(here, batch, writing, first_ms)
        datasets = [
            dataset for event in writing for dataset in (*event.outputs, *event.inputs, *by_run[run_key(event)].inputs)
        ]
        tables = Tables(_tables(self.versions, datasets, self.catalogs), self.catalogs)
        outputs = (tables.find(each) for event in writing for each in event.outputs)
        written = {table.entity for table in outputs if table is not None}
        made = _commits(self.commits, sorted(written), first_ms)
        seen = self._written({event.run for event in writing}, first_ms - TOLERANCE_MS)
        for event in writing:
            for edge in edges_of(event, by_run[run_key(event)], tables, made):
                if edge["edge_id"] not in seen:
                    seen.add(edge["edge_id"])
                    yield edge

    def _histories(
        self, here: Sequence[RunEvent], batch: int | None, writing: Sequence[RunEvent], first_ms: int
    ) -> Mapping[RunKey, RunHistory]:
        """Returns the histories of the runs of these events. If the START event of a run in `writing` is missing, other
        events of the run, with the state START, RUNNING, FAIL or ABORT, are read from `lineage_events`: from `first_ms`
        to a day after the last event in `writing`, of batches before `batch`, or of all if it is None."""
        found = histories(here)
        lacking = {event.run for event in writing if found[run_key(event)].started_ms is None}
        if not lacking:
            return found
        days = _days("received_on", first_ms, max(event.received_ms for event in writing) + DAY_MS)
        before = [
            row
            for rows in self.events.batches(
                both(days, one_of("state", ["START", "RUNNING", "FAIL", "ABORT"])), *EVENT_COLUMNS, "batch"
            )
            for row in rows.to_pylist()
            if row["run_id"] in lacking and (batch is None or row["batch"] < batch)
        ]
        return histories([*run_events(before), *here])

    def _written(self, runs: Collection[str], since_ms: int) -> set[object]:
        """Returns the ids of the edges of these runs that the table `lineage` has, with a `happened_at` of `since_ms`
        or later."""
        since = _days("happened_at", since_ms, LAST_TIME_MS)
        return {
            edge
            for some in batches(sorted(runs), AT_ONCE)
            for edge in self.lineage.rows(both(since, one_of("run_id", some)), "edge_id")["edge_id"].to_pylist()
        }


def _tables(known: OpenTable, datasets: Iterable[DatasetRef], catalogs: Collection[str]) -> Iterator[KnownTable]:
    """Iterates over the tables that these datasets may mean: current rows of `tables` with a location of a dataset, or,
    for a dataset without a location, with a name of the dataset."""
    locations, names = set[str](), set[str]()
    for dataset in datasets:
        there = locations_of(dataset)
        locations.update(there)
        if not there:
            names.update(name for _, name in names_of(dataset, catalogs))
    for column, values in (("location", locations), ("name", names)):
        for some in batches(sorted(values), AT_ONCE):
            where = both(equal("current", True), one_of(column, some))
            for row in known.rows(where, *_TABLE_COLUMNS).to_pylist():
                yield KnownTable(
                    row["entity"],
                    row["namespace"] or "",
                    row["name"] or "",
                    row["location"],
                    milliseconds(row["committed_at"]),
                )


def _commits(commits: OpenTable, entities: Sequence[str], first_ms: int) -> Mapping[str, Sequence[Commit]]:
    """Returns the commits that added snapshots to each of these entities since `TOLERANCE_MS` before `first_ms`, the
    oldest first, by entity."""
    found: dict[str, list[Commit]] = {}
    since = _days("committed_at", first_ms - TOLERANCE_MS, LAST_TIME_MS)
    for some in batches(entities, AT_ONCE):
        for rows in commits.batches(both(one_of("entity", some), since), *_COMMIT_COLUMNS):
            for commit in _made(rows.to_pylist()):
                found.setdefault(commit.entity, []).append(commit)
    return {entity: sorted(made, key=lambda each: each.committed_ms) for entity, made in found.items()}


def _made(rows: Iterable[Mapping[str, object]]) -> Iterator[Commit]:
    """Yields the rows of `system.commits` that have added snapshots, as commits."""
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


def _days(column: str, first_ms: int, end_ms: int) -> BooleanExpression:
    """Returns the condition that a column is at `first_ms` or later, and before `end_ms`."""
    return between(column, _time(first_ms), _time(end_ms))


def _time(ms: int) -> str:
    """Formats a time in milliseconds as ISO 8601 in UTC; one before 1970 or after the year 9999 as the first or last
    time between these."""
    return datetime.fromtimestamp(min(max(ms, 0), LAST_TIME_MS) / 1000, UTC).isoformat()
