"""The graph of lineage around a table, computed for a request from stored OpenLineage events and from receipts, within
limits (docs/design/lineage.md#graph)."""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from itertools import islice

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.operations.lineage_events import LAST_DAYS, MAX_DAYS, EventReader, list_events
from arco_catalog.operations.lineage_reasons import explain_missing
from arco_catalog.operations.receipt_cursor import PastCommit, ReceiptCursor
from arco_catalog.operations.relation_history import read_history
from arco_catalog.operations.version_entries import added_snapshot_ids, version_reference
from arco_catalog.planning.access import Requirement, Securable
from arco_catalog.planning.confidence import is_servo
from arco_catalog.planning.lineage_edges import Commit
from arco_catalog.planning.lineage_graph import (
    MAX_NODES,
    GraphEdge,
    GraphNode,
    GraphTable,
    LineageGraph,
    LineageQuery,
    find_table,
    lineage_graph,
)
from arco_catalog.planning.lineage_names import dataset_tags, table_tags
from arco_catalog.planning.privileges import Privilege
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import gather
from arco_catalog.protocol.decisions import resolve_for_read
from arco_catalog.protocol.lookup import carry_out, relation_entry
from arco_catalog.state.fields import mapping, optional_text
from arco_catalog.state.index import Index, Namespace
from arco_catalog.state.needs import Steps
from arco_catalog.state.paths import day_of
from arco_catalog.state.receipt import COMMITTED
from storage_backends.lazy_dataclass import dataclass

MAX_OTHER_TABLES = 4
"""Maximum number of other written tables whose receipts are read."""
MAX_OTHER_READS = 8
"""Maximum number of receipts that are read of each of them."""
DATASET_BYTES = 100
"""An estimate of the size of a dataset's name, by which long computations leave the event loop."""
SYSTEM_LINEAGE = ("system",), "lineage"
"""The table in which the pipeline collects all edges."""


@dataclass(frozen=True, slots=True)
class _CommitLog:
    """The commits of tables by entity, and the version that each made, by the commit key."""

    commits: dict[str, Sequence[Commit]]
    versions: dict[str, JsonObject]

    def add(self, entity: str, found: Sequence[PastCommit]) -> None:
        """Adds the commits of a table that added snapshots, by their receipts, in order of time and in place of earlier
        ones; and the versions that all these receipts are of."""
        commits = (commit for made in found if (commit := _commit(entity, made)) is not None)
        self.commits[entity] = sorted(commits, key=lambda commit: commit.committed_ms)
        for made in found:
            key = optional_text(made.receipt or {}, "commit_key")
            if key is not None:
                self.versions[key] = version_reference(entity, made.file)


async def read_lineage(
    session: Session,
    namespace: Namespace,
    name: str,
    *,
    upstream: bool,
    downstream: bool,
    distance: int,
    explains: bool = False,
) -> JsonObject:
    """Returns the graph of lineage around a table, in one direction or both, to nodes that are at most `distance` edges
    away. Tables, views and other datasets that the caller may not know are nodes without a name. With `explains` it
    also returns the first runs that have no edge, and why, but null to a caller who may not read the properties of all
    tables. Raises the errors of `load_table`."""
    history = await read_history(session, namespace, name, "table")
    head = session.judged_on or session.state.cached_head() or await session.state.head()
    written = _CommitLog({}, {})
    written.add(history.entity, await _commits_of(history.cursor(history.current)))
    events = await list_events(session, _days(session, written.commits[history.entity]))
    root = GraphTable.of(namespace, name, history.state.entry)

    def may_know(table: GraphTable | None) -> Steps[bool]:
        return session.access.holds(head.index, _required(table))

    catalogs = (session.settings.warehouse,)
    query = LineageQuery(root, upstream, downstream, distance, catalogs, events.events, written.commits, may_know)

    def tables_named(index: Index) -> Steps[Sequence[Requirement]]:
        datasets = dict.fromkeys(each for event in events.events for each in (*event.inputs, *event.outputs))
        found = [_required(None)]
        for dataset in islice(datasets, MAX_NODES):
            found.append(_required((yield from find_table(index, dataset, catalogs))))
        return found

    async def search() -> LineageGraph:
        await session.access.prepare(session.state, head, tables_named)
        datasets = sum(len(event.inputs) + len(event.outputs) for event in events.events)
        return await carry_out(session.state, head.index, lineage_graph(head.index, query), DATASET_BYTES * datasets)

    graph = await search()
    for _ in range(distance):
        if not await events.read(_tags(graph)):
            break
        graph = await search()
    others = {edge.target for edge in graph.edges.values()} - {root.entity}
    tables = [entity for entity, node in graph.nodes.items() if entity in others and node.table is not None]
    if tables:
        await gather(*(_read_commits(session, entity, written) for entity in tables[:MAX_OTHER_TABLES]))
        graph = await search()
    collected = await relation_entry(session.state, head.index, *SYSTEM_LINEAGE) is not None
    searched: JsonObject = {"days": [day.isoformat() for day in events.days], "events": len(events.events)}
    return {
        **_describe(graph, written.versions),
        "cut-off": [*sorted(graph.limits_reached | ({"events"} if events.is_partial else set()))],
        "searched": searched,
        "without-edges": await explain_missing(session, head, query, graph, events) if explains else None,
        "collected": collected,
        "notes": _notes(events, collected=collected),
    }


def _tags(graph: LineageGraph) -> frozenset[str]:
    """Returns the tags of all tables and datasets in a graph of lineage, by which events that may name them are found;
    none of the nodes that are hidden from the caller."""
    tags: set[str] = set()
    for node in graph.nodes.values():
        if node.table is not None:
            tags |= table_tags(node.table.namespace, node.table.name, node.table.locations)
        elif node.dataset is not None:
            tags |= dataset_tags(node.dataset)
    return frozenset(tags)


async def _commits_of(cursor: ReceiptCursor) -> list[PastCommit]:
    """Returns the commits of a cursor that have receipts, back to the first without one, as many as it may read."""
    found: list[PastCommit] = []
    while cursor.may_read and (commit := await cursor.step()) is not None and commit.receipt is not None:
        found.append(commit)
    return found


async def _read_commits(session: Session, entity: str, written: _CommitLog) -> None:
    """Adds the latest commits of another table to `written`, by at most `MAX_OTHER_READS` reads of receipts, also of
    missing ones; none if the pointer does not exist."""
    pointer = await session.state.pointer(entity)
    if pointer is not None:
        newest = (await resolve_for_read(session.state, pointer)).metadata
        cursor = ReceiptCursor(session, entity, newest, origin=pointer.registered_from, max_reads=MAX_OTHER_READS)
        written.add(entity, await _commits_of(cursor))


def _commit(entity: str, made: PastCommit) -> Commit | None:
    """Returns a commit of a table as the graph of lineage uses it, by the commit's receipt; None if it added no
    snapshot, or the receipt is missing or only pending."""
    receipt = made.receipt or {}
    added = added_snapshot_ids(receipt)
    if not added or receipt.get("state") != COMMITTED:
        return None
    source = mapping(receipt, "source")
    return Commit(
        str(receipt["commit_key"]),
        entity,
        None,
        None,
        made.file.ms,
        added,
        optional_text(receipt, "principal"),
        is_servo(source),
        optional_text(source, "run_id"),
        optional_text(source, "task_id"),
    )


def _days(session: Session, commits: Sequence[Commit]) -> Mapping[date, Sequence[int]]:
    """Returns the days of which events are read, at most `MAX_DAYS`: the last `LAST_DAYS`, and then the ones of the
    latest commits. Days of commits have the times of these."""
    today = day_of(session.now_ms())
    found: dict[date, list[int]] = {today - timedelta(days=back): [] for back in range(LAST_DAYS)}
    for commit in reversed(commits):
        day = day_of(commit.committed_ms)
        if day in found or len(found) < MAX_DAYS:
            found.setdefault(day, []).append(commit.committed_ms)
    return found


def _required(table: GraphTable | None) -> Requirement:
    """Returns what a caller must hold to know a table or view: the privilege to read its properties. A dataset that is
    no table here may be a dropped one, or one of another catalog: its name is for callers who may read the properties
    of all tables."""
    if table is None:
        return Requirement(Privilege.TABLE_READ_PROPERTIES)
    if table.kind == "view":
        return Requirement(Privilege.VIEW_READ_PROPERTIES, Securable(table.namespace, table.name, "view"))
    return Requirement(Privilege.TABLE_READ_PROPERTIES, Securable(table.namespace, table.name))


def _describe(graph: LineageGraph, versions: Mapping[str, JsonObject]) -> JsonObject:
    """Returns the JSON of the nodes and edges of a graph, with ids of nodes that are only valid in this answer; the
    root is `n0`."""
    ids = {key: f"n{place}" for place, key in enumerate(graph.nodes)}
    visible = {key for key, node in graph.nodes.items() if not node.is_hidden}
    nodes: list[JsonValue] = [_node(ids[key], node) for key, node in graph.nodes.items()]
    edges: list[JsonValue] = [_edge(edge, ids, visible, versions) for edge in graph.edges.values()]
    return {"root": "n0", "nodes": nodes, "edges": edges}


def _node(node_id: str, node: GraphNode) -> JsonObject:
    """Returns the JSON of a node; of a table or dataset that the caller may not know, only that it is hidden, and the
    depth."""
    fields: JsonObject = {"type": "hidden", "namespace": None, "name": None, "entity": None, "dataset": None}
    if node.table is not None:
        of_table: JsonObject = {"namespace": [*node.table.namespace], "name": node.table.name}
        fields |= {"type": node.table.kind, **of_table, "entity": node.table.entity}
    elif node.dataset is not None:
        dataset: JsonObject = {"namespace": node.dataset.namespace, "name": node.dataset.name}
        fields |= {"type": "dataset", "dataset": dataset}
    return {"id": node_id, **fields, "depth": node.distance}


def _edge(edge: GraphEdge, ids: Mapping[str, str], visible: set[str], versions: Mapping[str, JsonObject]) -> JsonObject:
    """Returns the JSON of an edge. Its run, job and principal are there only if both ends are visible, since their
    names may contain names of tables; its version and snapshot only if its target is."""
    both = edge.target in visible and (edge.source is None or edge.source in visible)
    commit = None if edge.match is None else edge.match.commit
    version = versions.get(commit.commit_key, {}) if commit is not None and edge.target in visible else {}
    event = edge.event if both else None
    job: JsonObject = {} if event is None else {"namespace": event.job_namespace, "name": event.job_name}
    servo = commit if both and edge.event is None else None
    return {
        "from": None if edge.source is None else ids[edge.source],
        "to": ids[edge.target],
        "confidence": "Verified" if edge.is_proven else "DeclaredUnverified",
        "run-id": (None if servo is None else servo.run) if event is None else event.run,
        "job": job or None,
        "principal": (None if servo is None else servo.principal) if event is None else event.principal,
        "at-ms": edge.at_ms,
        "version": version.get("version"),
        "version-id": version.get("id"),
        "snapshot-id": edge.snapshot_id if edge.target in visible else None,
        "matched-by": None if edge.match is None else edge.match.by,
    }


def _notes(events: EventReader, *, collected: bool) -> list[JsonValue]:
    """Returns sentences for the user: that a limit kept events from being read, if one did, and whether
    `system.lineage` has edges of other days."""
    notes: list[JsonValue] = []
    if events.is_partial:
        notes.append("Not all events of these days that may be about these tables were read, so edges may be missing")
    notes.append(
        "The table system.lineage has the edges of all days that the pipeline has collected"
        if collected
        else "Events of other days are not collected: run `arco pipeline run compact` for the table system.lineage"
    )
    return notes
