"""Runs joined to commits: rows of `lineage` (docs/design/lineage.md#edges). Pure functions."""

import hashlib
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, product

from arco_catalog.iceberg.json import dumps
from arco_catalog.state.runtime import ulid_of
from reconciler.compact.datasets import KnownTable, Tables
from reconciler.compact.runs import Named, RunEvent
from reconciler.system.definition import Row

TOLERANCE_MS = 1_000
"""How much later than the end of its run a commit may be: clocks of engines and of the catalog differ."""
MAX_EDGES = 10_000
"""Of one event. One that names thousands of inputs and of outputs would be millions."""


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit that added snapshots, as `commits` tells it."""

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


Teller = tuple[str, str | None]
"""A run, and who tells of it."""


def teller(event: RunEvent) -> Teller:
    """Whose story an event belongs to."""
    return event.run, event.principal


@dataclass(slots=True)
class History:
    """What the events of a run said."""

    started_ms: int | None = None
    inputs: list[Named] = field(default_factory=list)
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Match:
    """A commit that a run made, how it was found, and whether run and commit name each other."""

    commit: Commit
    by: str
    verified: bool = False


def histories(events: Iterable[RunEvent]) -> Mapping[Teller, History]:
    """What is known of each run from its events. What others say of somebody's run is another story."""
    found: dict[Teller, History] = {}
    inputs: dict[Teller, dict[Named, None]] = {}  # found by hash: an event may name thousands
    for event in sorted(events, key=lambda each: each.happened_ms):
        history = found.setdefault(teller(event), History())
        if event.state == "START" and history.started_ms is None:
            history.started_ms = event.happened_ms
        history.failed |= event.state in ("FAIL", "ABORT")
        inputs.setdefault(teller(event), {}).update(dict.fromkeys(event.inputs))
    for run, named in inputs.items():
        found[run].inputs = [*named]
    return found


def edges_of(
    event: RunEvent, history: History, tables: Tables, commits: Mapping[str, Sequence[Commit]]
) -> Iterator[Row]:
    """The edges that an event tells: each input with each output, if one of them is a table of the catalog. `commits`
    are those of tables, by entity. Of a run that has not ended only those whose commit it names are certain enough. One
    that failed has no end: Spark tells of a statement that failed, and then that it is complete."""
    if event.state not in ("COMPLETE", "RUNNING") or (event.state == "COMPLETE" and history.failed):
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
            found[key] = matches(event, written, history.started_ms, of_table) or (None,)
        for match in found[key]:
            if event.state == "COMPLETE" or (match is not None and match.by == "snapshot"):
                yield _edge(event, _as_read(read, written, match, snapshots), source, written, target, match)


def matches(event: RunEvent, written: Named, started_ms: int | None, commits: Sequence[Commit]) -> Sequence[Match]:
    """The commits by which a run wrote an output: the one whose snapshot the event names; or those that name the run;
    or the only one that its sender made while it ran. A snapshot that was there before the run began it did not
    write, by however little: engines name the one that they find, and after a statement that wrote nothing, too."""
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
    meanwhile = [commit for commit in within if commit.principal == event.principal]
    return [Match(meanwhile[0], "time")] if started_ms is not None and len(meanwhile) == 1 else []


def servo_edge(commit: Commit) -> Row:
    """What the receipt of a Servo task tells by itself: who wrote the snapshot, and not from what."""
    return {
        "edge_id": _digest("servo", commit.commit_key),
        "happened_at": commit.committed_ms,
        "output_entity": commit.entity,
        "output_namespace": commit.namespace,
        "output_name": commit.name,
        "output_snapshot_id": commit.added[-1],
        "commit_key": commit.commit_key,
        "run_id": commit.run,
        "task_id": commit.task,
        "principal": commit.principal,
        "lineage_confidence": "Verified",
    }


def ulid_of_uuid(run: str) -> str | None:
    """The same 128 bits as Servo writes them; None for what is no uuid."""
    try:
        bits = uuid.UUID(run).bytes
    except ValueError:
        return None
    return ulid_of(int.from_bytes(bits[:6], "big"), bits[6:])


def _names(commit: Commit, event: RunEvent) -> bool:
    """Whether the commit's receipt names the run, or one of which it is a part, by Servo's own word."""
    runs = {run if run is None else ulid_of_uuid(run) for run in (event.run, event.parent, event.root)}
    return commit.is_servo and commit.run is not None and commit.run in runs


def _edge(
    event: RunEvent,
    read: Named,
    source: KnownTable | None,
    written: Named,
    target: KnownTable | None,
    match: Match | None,
) -> Row:
    commit = None if match is None else match.commit
    snapshot = written.snapshot_id if commit is None else _written(commit, written)
    known = (None, snapshot) if commit is None else (commit.commit_key, None)
    return {
        "edge_id": _digest(event.run, event.principal, str(read), read.snapshot_id, str(written), *known),
        "happened_at": event.received_ms if commit is None else commit.committed_ms,
        **_columns("input", source),
        "input_snapshot_id": read.snapshot_id,
        "input_dataset": str(read),
        **_columns("output", target),
        "output_snapshot_id": snapshot,
        "output_dataset": str(written),
        "commit_key": None if commit is None else commit.commit_key,
        "matched_by": None if match is None else match.by,
        "run_id": event.run,
        "parent_run_id": event.parent,
        "root_run_id": event.root,
        "task_id": None if commit is None else commit.task,
        "job_namespace": event.job_namespace,
        "job_name": event.job_name,
        "principal": event.principal,
        "event": event.event,
        "lineage_confidence": "Verified" if match is not None and match.verified else "DeclaredUnverified",
    }


def _snapshots_by_name(inputs: Iterable[Named]) -> Mapping[str, Sequence[int | None]]:
    """The snapshots of which events of a run name each dataset."""
    found: dict[str, list[int | None]] = {}
    for each in inputs:
        found.setdefault(str(each), []).append(each.snapshot_id)
    return found


def _as_read(read: Named, written: Named, match: Match | None, snapshots: Mapping[str, Sequence[int | None]]) -> Named:
    """An input with the snapshot that was read: no run reads the one that it writes. Engines look for the snapshot of a
    table that they change, by MERGE say, when they have changed it; what they said when the run began holds."""
    added = (written.snapshot_id,) if match is None else match.commit.added
    if read.snapshot_id is None or read.snapshot_id not in added:
        return read
    return replace(read, snapshot_id=next((each for each in snapshots.get(str(read), ()) if each not in added), None))


def _written(commit: Commit, written: Named) -> int:
    told = written.snapshot_id
    return told if told is not None and told in commit.added else commit.added[-1]


def _columns(side: str, table: KnownTable | None) -> Row:
    if table is None:
        return {}
    return {f"{side}_entity": table.entity, f"{side}_namespace": table.namespace, f"{side}_name": table.name}


def _digest(*parts: str | int | None) -> str:
    return hashlib.sha256(dumps([*parts])).hexdigest()
