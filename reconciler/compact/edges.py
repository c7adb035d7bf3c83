"""Makes rows of `lineage` of the edges between datasets that runs read and wrote (docs/design/lineage.md#edges). Pure
functions."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence

from arco_catalog.iceberg.json import dumps
from arco_catalog.planning.lineage_datasets import KnownTable, Tables
from arco_catalog.planning.lineage_edges import Commit, History, RunEdge, RunEvent, run_edges, written_snapshot
from reconciler.system.definition import Row


def edges_of(
    event: RunEvent, history: History, tables: Tables, commits: Mapping[str, Sequence[Commit]]
) -> Iterator[Row]:
    """Iterates over the rows of `lineage` for an event: one for each edge that `run_edges` finds."""
    return (_edge(event, edge) for edge in run_edges(event, history, tables, commits))


def servo_edge(commit: Commit) -> Row:
    """Returns the edge of lineage that every commit by a Servo task has, also one with OpenLineage events: the edge has
    an output, and no input."""
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


def _edge(event: RunEvent, edge: RunEdge) -> Row:
    """Returns the row of `lineage` for an edge. The time is that of the commit, without one the midnight of the day on
    which the event was received; the edge counts as verified if the match with the commit does."""
    read, written, match = edge.read, edge.written, edge.match
    commit = None if match is None else match.commit
    snapshot = written_snapshot(written, commit)
    known = (None, snapshot) if commit is None else (commit.commit_key, None)
    return {
        "edge_id": _digest(event.run, event.principal, str(read), read.snapshot_id, str(written), *known),
        "happened_at": event.received_ms if commit is None else commit.committed_ms,
        **_columns("input", edge.source),
        "input_snapshot_id": read.snapshot_id,
        "input_dataset": str(read),
        **_columns("output", edge.target),
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


def _columns(side: str, table: KnownTable | None) -> Row:
    """Returns the columns about a table at one side of an edge; none without a table."""
    if table is None:
        return {}
    return {f"{side}_entity": table.entity, f"{side}_namespace": table.namespace, f"{side}_name": table.name}


def _digest(*parts: str | int | None) -> str:
    """Returns the digest of values, which identifies a row."""
    return hashlib.sha256(dumps([*parts])).hexdigest()
