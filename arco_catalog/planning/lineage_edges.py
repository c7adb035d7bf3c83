"""Which inputs a run read to write which outputs, and by which commits, of the events of OpenLineage and the commits of
tables (docs/design/lineage.md#edges). Pure functions."""

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import islice, product

from arco_catalog.planning.lineage_datasets import DatasetRef, KnownTable, Tables
from arco_catalog.state.runtime import ulid_of
from storage_backends.lazy_dataclass import dataclass

TOLERANCE_MS = 1_000
"""How much later than the end of the run a commit may be, since clocks of engines and of the catalog differ."""
MAX_EDGES = 10_000
"""How many edges of one event are made. Thousands of inputs and of outputs would be millions of edges."""


@dataclass(slots=True)
class RunEvent:
    """An OpenLineage event of a run. `event` is the name of its object; `received_ms` is when it was received, in the
    pipeline only the midnight of that day, `happened_ms` its own time; `parent` and `root` are ids of runs."""

    event: str
    received_ms: int
    happened_ms: int
    state: str | None
    run: str
    parent: str | None = None
    job_namespace: str | None = None
    job_name: str | None = None
    principal: str | None = None
    inputs: list[DatasetRef] = field(default_factory=list)
    outputs: list[DatasetRef] = field(default_factory=list)
    root: str | None = None


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit to a table that added snapshots: from a row of `commits`, or from a receipt, then without namespace and
    name. `added` has the ids of the snapshots. `run` and `task` are the ids of the Servo run and task that the receipt
    names, or None. `is_servo` is whether they can be relied on: the source is Servo, and not only claimed by an
    anonymous client."""

    commit_key: str
    entity: str
    namespace: str | None
    name: str | None
    committed_ms: int
    added: Sequence[int]
    principal: str | None = None
    is_servo: bool = False
    run: str | None = None
    task: str | None = None


RunKey = tuple[str, str | None]
"""A run's id, and the principal that sent events of it."""


def run_key(event: RunEvent) -> RunKey:
    """Returns the key of a run's history, the run and the principal: events of other principals about the run are not
    in it."""
    return event.run, event.principal


@dataclass(slots=True)
class History:
    """What the OpenLineage events of one run have in common: the time of the first START (None if there is none), the
    inputs of all events, and whether one event is FAIL or ABORT."""

    started_ms: int | None = None
    inputs: list[DatasetRef] = field(default_factory=list)
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Match:
    """A commit that a run made, for an edge of lineage; `by` is how it was found (`snapshot`, `run` or `time`), and
    `verified` whether run and commit name each other and are of one principal; in a graph it is also true for the
    commit of a Servo task without an event."""

    commit: Commit
    by: str
    verified: bool = False


def histories(events: Iterable[RunEvent]) -> Mapping[RunKey, History]:
    """Returns the history of each run in these events, by `run_key`. Events are taken in the order of their own
    times."""
    found: dict[RunKey, History] = {}
    inputs: dict[RunKey, dict[DatasetRef, None]] = {}  # a dict, since an event may name thousands of datasets
    for event in sorted(events, key=lambda each: each.happened_ms):
        history = found.setdefault(run_key(event), History())
        if event.state == "START" and history.started_ms is None:
            history.started_ms = event.happened_ms
        history.failed |= event.state in ("FAIL", "ABORT")
        inputs.setdefault(run_key(event), {}).update(dict.fromkeys(event.inputs))
    for run, named in inputs.items():
        found[run].inputs = [*named]
    return found


@dataclass(frozen=True, slots=True)
class RunEdge:
    """An edge of lineage from a dataset that a run read to one that it has written. `source` and `target` are the
    tables that these mean, None for one that is no known table; `match` is the commit that wrote the target,
    None if no commit was found."""

    read: DatasetRef
    written: DatasetRef
    source: KnownTable | None
    target: KnownTable | None
    match: Match | None


def run_edges(
    event: RunEvent, history: History, tables: Tables, commits: Mapping[str, Sequence[Commit]]
) -> Iterator[RunEdge]:
    """Iterates over the edges of lineage for an event: for each pair of an input and an output of which one is a table
    of the catalog, one edge for each commit that matches the output, or one edge without a commit if none does; only
    the event's first `MAX_EDGES` pairs count. `commits` has the commits of tables by entity. If the event has no
    inputs, the inputs of the run's other events count. A RUNNING event has only edges with a commit that was found by
    the snapshot. A COMPLETE event of a failed run has no edges: Spark sends one after the FAIL event of a statement.
    Events of other states have none, either."""
    if not reports_writes(event, history):
        return
    pairs = islice(product(event.inputs or history.inputs, event.outputs), MAX_EDGES)
    found: dict[str, Sequence[Match | None]] = {}
    snapshots = _snapshots_by_name(history.inputs)
    for read, written in pairs:
        source, target = tables.find(read), tables.find(written)
        if source is None and target is None:
            continue
        key = str(written)
        if key not in found:
            of_table = () if target is None else commits.get(target.entity, ())
            found[key] = edge_matches(event, written, history.started_ms, of_table)
        for match in found[key]:
            yield RunEdge(_as_read(read, written, match, snapshots), written, source, target, match)


def reports_writes(event: RunEvent, history: History) -> bool:
    """Whether an event reports that its run has written its outputs: the run goes on, or is complete and did not fail.
    Spark sends a COMPLETE event after the FAIL event of a statement."""
    return event.state == "RUNNING" or (event.state == "COMPLETE" and not history.failed)


def edge_matches(
    event: RunEvent, written: DatasetRef, started_ms: int | None, commits: Sequence[Commit]
) -> Sequence[Match | None]:
    """Returns a match for each edge to an output, of an event that `reports_writes`: the commits that `matches` finds,
    or None for the one edge without a commit. A RUNNING event has only edges with a commit that was found by the
    snapshot."""
    found = matches(event, written, started_ms, commits)
    if event.state == "RUNNING":
        return [match for match in found if match.by == "snapshot"]
    return found or [None]


def matches(event: RunEvent, written: DatasetRef, started_ms: int | None, commits: Sequence[Commit]) -> Sequence[Match]:
    """Returns the commits of a run to an output: the one with the snapshot that the event names; or else those
    with receipts that name the run; or else the only one that the event's sender made during the run, if the start is
    known. Commits before the start do not count: after a statement that wrote nothing, engines name the snapshot that
    was current before. Commits more than `TOLERANCE_MS` after the event's time do not count, either."""
    within = [
        commit
        for commit in commits
        if (started_ms is None or commit.committed_ms >= started_ms)
        and commit.committed_ms <= event.happened_ms + TOLERANCE_MS
    ]
    for commit in within:
        if written.snapshot_id in commit.added:
            verified = _names(commit, event) and commit.principal == event.principal
            return [Match(commit, "snapshot", verified)]
    naming = [commit for commit in within if _names(commit, event)]
    if naming:
        return [Match(commit, "run") for commit in naming]
    of_sender = [commit for commit in within if commit.principal == event.principal]
    return [Match(of_sender[0], "time")] if started_ms is not None and len(of_sender) == 1 else []


def written_snapshot(written: DatasetRef, commit: Commit | None) -> int | None:
    """Returns the id of the snapshot that a run added to an output: without a commit, or if the commit added it, the
    one that the event names, None if it names none; else the last one that the commit added."""
    named = written.snapshot_id
    return named if commit is None or named in commit.added else commit.added[-1]


def ulid_of_uuid(run: str) -> str | None:
    """Returns the ULID with the 128 bits of a UUID, which is how Servo writes ids of runs; None if `run` is not a
    UUID."""
    try:
        bits = uuid.UUID(run).bytes
    except ValueError:
        return None
    return ulid_of(int.from_bytes(bits[:6], "big"), bits[6:])


def _names(commit: Commit, event: RunEvent) -> bool:
    """Whether a commit is by Servo, and its receipt names the run of an event, its parent run, or its root run."""
    runs = {run if run is None else ulid_of_uuid(run) for run in (event.run, event.parent, event.root)}
    return commit.is_servo and commit.run is not None and commit.run in runs


def _snapshots_by_name(inputs: Iterable[DatasetRef]) -> Mapping[str, Sequence[int | None]]:
    """Returns the ids of the snapshots that a run has read of each dataset, by the dataset's text; None stands for an
    input without a snapshot."""
    found: dict[str, list[int | None]] = {}
    for each in inputs:
        found.setdefault(str(each), []).append(each.snapshot_id)
    return found


def _as_read(
    read: DatasetRef, written: DatasetRef, match: Match | None, snapshots: Mapping[str, Sequence[int | None]]
) -> DatasetRef:
    """Returns an input with the snapshot that was read. Engines that change a table, as by MERGE, may name the snapshot
    that they have written as the one that they read: it is replaced by the first entry of `snapshots` for this input
    that is another id or None, even if ids follow that None; without such an entry by None. Only the ids of snapshots
    are compared, not the tables."""
    added = (written.snapshot_id,) if match is None else match.commit.added
    if read.snapshot_id is None or read.snapshot_id not in added:
        return read
    return replace(read, snapshot_id=next((each for each in snapshots.get(str(read), ()) if each not in added), None))
