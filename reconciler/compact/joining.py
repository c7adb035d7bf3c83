"""What the join of runs and commits reads of system tables, and the edges that come of it."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import cast

from pyiceberg.expressions import BooleanExpression

from arco_catalog.protocol.concurrency import batches
from reconciler.compact.datasets import KnownTable, Tables, locations_of, names_of
from reconciler.compact.edges import TOLERANCE_MS, Commit, Teller, edges_of, histories, servo_edge, teller
from reconciler.compact.edges import History as RunHistory
from reconciler.compact.runs import COLUMNS as EVENT_COLUMNS
from reconciler.compact.runs import Named, RunEvent, run_events
from reconciler.compact.values import LAST_TIME_MS
from reconciler.compact.versions import milliseconds
from reconciler.system.conditions import after, among, between, both, equal, missing
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
_WAITING_COLUMNS = ("edge_id", "event", "input_dataset", "output_dataset", "output_entity")
_TABLE_COLUMNS = ("entity", "namespace", "name", "location", "committed_at")


@dataclass(frozen=True, slots=True)
class Waiting:
    """Edges that are told again, with a commit, and those that they replace: by ids, and by where these rows are."""

    edges: Sequence[Row]
    replaced: Sequence[str]
    where: BooleanExpression


@dataclass(frozen=True, slots=True)
class Join:
    """The system tables that are joined, as of one state: events, commits, the versions of tables, and the edges that
    were told; `catalogs` are the names that the catalog has for clients."""

    events: OpenTable
    commits: OpenTable
    versions: OpenTable
    lineage: OpenTable
    catalogs: Collection[str]

    def new_edges(self, batch: int) -> Iterator[Row]:
        """The edges of a batch of events that were not told."""
        here = run_events(self.events.rows(equal("batch", batch), *EVENT_COLUMNS).to_pylist())
        yield from self._edges(here, batch)

    def servo_edges(self, since: int) -> Iterator[Row]:
        """Of each commit by a Servo task in batches after a number, what its receipt tells, unless it was told."""
        where = both(equal("source_kind", "Servo"), after("batch", since))
        for rows in self.commits.batches(where, *_COMMIT_COLUMNS):
            made = [commit for commit in _made(rows.to_pylist()) if commit.is_servo]
            if made:
                first_ms = min(commit.committed_ms for commit in made)
                seen = self._told({commit.run for commit in made if commit.run is not None}, first_ms)
                yield from (edge for edge in map(servo_edge, made) if edge["edge_id"] not in seen)

    def waiting(self, since: int) -> Waiting:
        """The edges that were told without a commit which batches after a number brought."""
        touched, first_ms, last_ms = self._touched(since)
        days = _days("happened_at", first_ms - DAY_MS, last_ms + (LOOKBACK_DAYS + 1) * DAY_MS)
        where = both(days, missing("commit_key"))
        told = [
            row
            for rows in (self.lineage.batches(where, *_WAITING_COLUMNS) if touched else ())
            for row in rows.to_pylist()
            if row["output_entity"] in touched
        ]
        # an edge without a commit happened, as far as is known, on the day on which its event came
        days = _days("received_on", first_ms - DAY_MS, last_ms + (LOOKBACK_DAYS + 1) * DAY_MS)
        here = [
            row
            for some in batches(sorted({row["event"] for row in told}), AT_ONCE)
            for row in self.events.rows(both(days, among("event", some)), *EVENT_COLUMNS).to_pylist()
        ]
        edges = [edge for edge in self._edges(run_events(here)) if edge["commit_key"] is not None]
        found = {(edge["event"], edge["input_dataset"], edge["output_dataset"]) for edge in edges}
        replaced = [
            row["edge_id"] for row in told if (row["event"], row["input_dataset"], row["output_dataset"]) in found
        ]
        return Waiting(edges, replaced, where)

    def _touched(self, since: int) -> tuple[set[str], int, int]:
        """The entities to which batches after a number added snapshots, and the first and the last time of that."""
        touched, first_ms, last_ms = set[str](), LAST_TIME_MS, 0
        for rows in self.commits.batches(after("batch", since), *_COMMIT_COLUMNS):
            for commit in _made(rows.to_pylist()):
                touched.add(commit.entity)
                first_ms, last_ms = min(first_ms, commit.committed_ms), max(last_ms, commit.committed_ms)
        return touched, first_ms, last_ms

    def _edges(self, here: Sequence[RunEvent], batch: int | None = None) -> Iterator[Row]:
        """The edges of some events, those of a batch if it has a number, that were not told."""
        told = [event for event in here if event.state in ("COMPLETE", "RUNNING") and event.outputs]
        if not told:
            return
        first_ms = min(event.received_ms for event in told) - LOOKBACK_DAYS * DAY_MS
        stories = self._histories(here, batch, told, first_ms)
        datasets = [
            dataset for event in told for dataset in (*event.outputs, *event.inputs, *stories[teller(event)].inputs)
        ]
        tables = Tables(_tables(self.versions, datasets, self.catalogs), self.catalogs)
        written = {table.entity for event in told for each in event.outputs if (table := tables.find(each)) is not None}
        made = _commits(self.commits, sorted(written), first_ms)
        seen = self._told({event.run for event in told}, first_ms - TOLERANCE_MS)
        for event in told:
            for edge in edges_of(event, stories[teller(event)], tables, made):
                if edge["edge_id"] not in seen:
                    seen.add(edge["edge_id"])
                    yield edge

    def _histories(
        self, here: Sequence[RunEvent], batch: int | None, told: Sequence[RunEvent], first_ms: int
    ) -> Mapping[Teller, RunHistory]:
        """What is known of some runs. Events of earlier batches are looked at where a run did not begin here."""
        found = histories(here)
        lacking = {event.run for event in told if found[teller(event)].started_ms is None}
        if not lacking:
            return found
        days = _days("received_on", first_ms, max(event.received_ms for event in told) + DAY_MS)
        earlier = [
            row
            for rows in self.events.batches(
                both(days, among("state", ["START", "RUNNING", "FAIL", "ABORT"])), *EVENT_COLUMNS, "batch"
            )
            for row in rows.to_pylist()
            if row["run_id"] in lacking and (batch is None or row["batch"] < batch)
        ]
        return histories([*run_events(earlier), *here])

    def _told(self, runs: Collection[str], since_ms: int) -> set[object]:
        """The edges of some runs that were told, and happened since a time."""
        since = _days("happened_at", since_ms, LAST_TIME_MS)
        return {
            edge
            for some in batches(sorted(runs), AT_ONCE)
            for edge in self.lineage.rows(both(since, among("run_id", some)), "edge_id")["edge_id"].to_pylist()
        }


def _tables(known: OpenTable, datasets: Iterable[Named], catalogs: Collection[str]) -> Iterator[KnownTable]:
    """The tables that datasets may be: those of their locations, and those of their names."""
    locations, names = set[str](), set[str]()
    for dataset in datasets:
        there = locations_of(dataset)
        locations.update(there)
        if not there:
            names.update(name for _, name in names_of(dataset, catalogs))
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
    since = _days("committed_at", first_ms - TOLERANCE_MS, LAST_TIME_MS)
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


def _days(column: str, first_ms: int, end_ms: int) -> BooleanExpression:
    return between(column, _time(first_ms), _time(end_ms))


def _time(ms: int) -> str:
    return datetime.fromtimestamp(min(max(ms, 0), LAST_TIME_MS) / 1000, UTC).isoformat()
