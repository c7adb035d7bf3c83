"""The graph of lineage around one table: which datasets runs read to write which others, found step by step from the
table (docs/design/lineage.md#graph). It is computed from events in memory and from the registry's index, and bounded in
nodes and edges."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field
from itertools import islice

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.planning.lineage_datasets import DatasetRef, KnownTable, Tables, locations_of, names_of
from arco_catalog.planning.lineage_edges import (
    Commit,
    History,
    Match,
    RunEvent,
    RunKey,
    edge_matches,
    histories,
    reports_writes,
    run_key,
    written_snapshot,
)
from arco_catalog.state.entries import RelationEntry, find_relation
from arco_catalog.state.fields import optional_text, text, texts
from arco_catalog.state.index import Index, Namespace, relation_key
from arco_catalog.state.locations import Location
from arco_catalog.state.needs import Needs, Steps
from storage_backends.lazy_dataclass import dataclass

MAX_NODES = 200
"""Maximum number of nodes of a graph."""
MAX_EDGES = 500
"""Maximum number of edges of a graph."""
MAX_PAIRS = 50_000
"""Maximum number of pairs of a read and a written dataset that one search looks at."""
MAX_NAMES_SEARCHED = 4
"""Maximum number of names of one dataset that are searched in the registry."""


@dataclass(frozen=True, slots=True)
class GraphTable:
    """A table or view of the catalog in a graph, with the normalised locations that it holds."""

    namespace: Namespace
    name: str
    entity: str
    kind: str
    locations: tuple[str, ...]

    @classmethod
    def of(cls, namespace: Namespace, name: str, entry: RelationEntry) -> "GraphTable":
        """Returns the table or view with this name and entry."""
        return cls(namespace, name, entry.entity, entry.kind, entry.locations)

    def known(self) -> Iterable[KnownTable]:
        """Returns the table in the form in which a dataset is compared with it, once for each location; once without a
        location if it holds none."""
        namespace = ".".join(self.namespace)
        return (KnownTable(self.entity, namespace, self.name, location) for location in self.locations or (None,))


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A node of a graph: a table or view of the catalog, or a dataset that is none (`table` is None), or something that
    the caller may not know (both are None). `distance` is the number of edges to it from the table in the middle."""

    key: str
    table: GraphTable | None
    dataset: DatasetRef | None
    distance: int

    @property
    def is_hidden(self) -> bool:
        """Whether the caller may not know what it is."""
        return self.table is None and self.dataset is None


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """An edge of a graph: a run read the node `source` and has written the node `target`, both given by their keys. An
    edge of a Servo task without an event has no source and no event (docs/design/lineage.md#rule-10). `match` is the
    commit that wrote the target, None if no commit was found."""

    source: str | None
    target: str
    event: RunEvent | None
    match: Match | None
    snapshot_id: int | None

    @property
    def is_proven(self) -> bool:
        """Whether run and commit name each other and are of one principal, or the commit is of a Servo task without an
        event."""
        return self.match is not None and self.match.verified

    @property
    def at_ms(self) -> int:
        """The time of the commit, or of the event if there is no commit, in milliseconds since 1970; 0 without both."""
        if self.match is not None:
            return self.match.commit.committed_ms
        return 0 if self.event is None else self.event.happened_ms


@dataclass(slots=True)
class LineageGraph:
    """A graph of lineage: nodes by their keys, the first in the middle, and edges. `linked_runs` are the runs of which
    an event has an edge, also if another run's edge replaces it. `limits_reached` has `nodes` if there may be more than
    the maximum, and `edges` if there may be more, or if the search ended after `MAX_PAIRS` pairs of datasets."""

    nodes: dict[str, GraphNode] = field(default_factory=dict)
    edges: dict[object, GraphEdge] = field(default_factory=dict)
    linked_runs: set[RunKey] = field(default_factory=set)
    limits_reached: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class LineageQuery:
    """What a graph is made of: the table in the middle, the directions `upstream` and `downstream`, the maximum number
    of edges to a node from the middle, the names of the catalog for clients, the events, the commits of tables by
    entity, and whether the caller may know a table, or with None a dataset that is no table of the catalog."""

    root: GraphTable
    upstream: bool
    downstream: bool
    distance: int
    catalogs: Collection[str]
    events: Sequence[RunEvent]
    commits: Mapping[str, Sequence[Commit]]
    may_know: Callable[[GraphTable | None], Steps[bool]]


def lineage_graph(index: Index, query: LineageQuery) -> Steps[LineageGraph]:
    """Computes the graph around a table. Of edges between two nodes by one job it has the best one: a proven one
    before a claim, then the latest. It ends at what the caller may not know: a node for each dataset in the events of
    one principal, whether the catalog has a table for it or not."""
    return (yield from _Search(index, query).run())


class _Search:
    """The search for one graph, from the middle outwards."""

    def __init__(self, index: Index, query: LineageQuery) -> None:
        self._index = index
        self._query = query
        self._graph = LineageGraph()
        self._histories: Mapping[RunKey, History] = histories(query.events)
        self._keys: dict[tuple[object, ...], str | None] = {}
        """The node of each dataset that was searched, by all names of the dataset; None for a hidden one."""
        self._pairs_left = MAX_PAIRS

    def run(self) -> Steps[LineageGraph]:
        """Searches from the root, a distance at a time, adds the edges of Servo's commits to the root if the query goes
        upstream, and returns the graph."""
        query, graph = self._query, self._graph
        root = GraphNode(query.root.entity, query.root, None, 0)
        graph.nodes[root.key] = root
        frontier = [root]
        for distance in range(1, query.distance + 1):
            frontier = yield from self._around(frontier, distance)
        for commit in query.commits.get(query.root.entity, ()) if query.upstream else ():
            self._add_servo_edge(commit)
        return graph

    def _around(self, frontier: Sequence[GraphNode], distance: int) -> Steps[list[GraphNode]]:
        """Adds the edges from events that name nodes of the frontier, in the directions of the query, and returns the
        new nodes, without hidden ones. Events that report no writes are skipped."""
        nodes = self._graph.nodes
        before = len(nodes)
        tables = Tables(
            (known for node in frontier if node.table is not None for known in node.table.known()),
            self._query.catalogs,
        )
        named = {str(node.dataset): node.key for node in frontier if node.dataset is not None}

        def in_frontier(dataset: DatasetRef) -> str | None:
            found = tables.find(dataset)
            return named.get(str(dataset)) if found is None else found.entity

        for event in self._query.events:
            history = self._histories[run_key(event)]
            if not reports_writes(event, history):
                continue
            inputs = event.inputs or history.inputs
            for written in event.outputs if self._query.upstream else ():
                if (key := in_frontier(written)) is not None:
                    yield from self._link(event, history, inputs, written, key, distance, upstream=True)
            for read in inputs if self._query.downstream else ():
                if (key := in_frontier(read)) is not None:
                    yield from self._link(event, history, event.outputs, read, key, distance, upstream=False)
        return [node for node in islice(nodes.values(), before, None) if not node.is_hidden]

    def _link(
        self,
        event: RunEvent,
        history: History,
        others: Sequence[DatasetRef],
        here: DatasetRef,
        key: str,
        distance: int,
        *,
        upstream: bool,
    ) -> Steps[None]:
        """Adds the edges of an event between the dataset `here`, which has the node with this key, and the `others`,
        which were read with `upstream`, else written. Stops, and notes that a limit was reached, once the graph has
        `MAX_EDGES` edges or the search has met `MAX_PAIRS` pairs."""
        for other in others:
            self._pairs_left -= 1
            if len(self._graph.edges) >= MAX_EDGES or self._pairs_left < 0:
                self._graph.limits_reached.add("edges")
                return
            other_key = yield from self._node_of(other, event.principal, distance)
            if other_key:
                written = here if upstream else other
                source, target = (other_key, key) if upstream else (key, other_key)
                self._add_edge(event, history, source, target, written)

    def _add_edge(self, event: RunEvent, history: History, source: str, target: str, written: DatasetRef) -> None:
        """Adds the edges of a run from a source to a target. Of several by one job, a proven one stays, or else the
        newest."""
        commits = self._query.commits.get(target, ())
        for match in edge_matches(event, written, history.started_ms, commits):
            self._graph.linked_runs.add(run_key(event))
            snapshot_id = written_snapshot(written, None if match is None else match.commit)
            edge = GraphEdge(source, target, event, match, snapshot_id)
            identity = source, target, event.job_namespace, event.job_name
            best = self._graph.edges.get(identity)
            if best is None or (edge.is_proven, edge.at_ms) > (best.is_proven, best.at_ms):
                self._graph.edges[identity] = edge

    def _add_servo_edge(self, commit: Commit) -> None:
        """Adds the edge of a commit by a Servo task, unless the graph has an edge of an event for the commit; an edge
        that another one of the job replaced is not in the graph. If the graph has `MAX_EDGES` edges, it notes
        that limit instead. A commit of another source adds none."""
        graph, entity = self._graph, commit.entity
        known = {edge.match.commit.commit_key for edge in graph.edges.values() if edge.match is not None}
        if not commit.is_servo or commit.commit_key in known:
            return
        if len(graph.edges) >= MAX_EDGES:
            graph.limits_reached.add("edges")
        else:
            graph.edges[commit.commit_key] = GraphEdge(None, entity, None, Match(commit, "run", True), commit.added[-1])

    def _node_of(self, dataset: DatasetRef, sender: str | None, distance: int) -> Steps[str]:
        """Returns the key of the node of a dataset that an event of the principal `sender` names. The node is added if
        it is new. If the graph is full, a dataset that was met before still gives the key of a node that is there;
        for any other one, notes that limit and returns an empty key."""
        nodes, name = self._graph.nodes, (str(dataset), *dataset.further)
        hidden = f"{sender}\n{dataset}"
        if name in self._keys:
            key = self._keys[name] or hidden
            if key in nodes:
                return key
        if len(nodes) >= MAX_NODES:
            self._graph.limits_reached.add("nodes")
            return ""
        node = yield from self._node(dataset, distance)
        self._keys[name] = None if node is None else node.key
        node = node or GraphNode(hidden, None, None, distance)
        nodes.setdefault(node.key, node)
        return node.key

    def _node(self, dataset: DatasetRef, distance: int) -> Steps[GraphNode | None]:
        """Returns the node of a dataset, None if the caller may not know it."""
        table = yield from find_table(self._index, dataset, self._query.catalogs)
        if not (yield from self._query.may_know(table)):
            return None
        if table is None:
            return GraphNode(str(dataset), None, dataset, distance)
        return GraphNode(table.entity, table, None, distance)


def find_table(index: Index, dataset: DatasetRef, catalogs: Collection[str]) -> Steps[GraphTable | None]:
    """Returns the table or view that a dataset means: the one that holds the dataset's location, or of a dataset
    without a location the one that has one of the first `MAX_NAMES_SEARCHED` names of it; None if there is none.
    Intents of transactions do not count."""
    locations = locations_of(dataset)
    if locations:
        return (yield from _table_at(index, locations))
    for joined, name in islice(names_of(dataset, catalogs), MAX_NAMES_SEARCHED):
        namespace = tuple(joined.split("."))
        found = yield from _table_named(index, namespace, name)
        if found is not None:
            return found
    return None


def _table_at(index: Index, locations: Iterable[str]) -> Steps[GraphTable | None]:
    """Returns the table or view that holds one of these locations, by the first that is held; None without one. Intents
    of transactions do not count."""
    for location in dict.fromkeys(normal for each in locations if (normal := _normal(each)) is not None):
        yield Needs(holds=[location])
        for _, hold in [*index.holds_on(location)]:
            name = texts(hold, "name")
            if len(name) > 1 and optional_text(hold, "transaction") is None:
                found = yield from _table_named(index, name[:-1], name[-1])
                if found is not None and found.entity == text(hold, "entity"):
                    return found
    return None


def _table_named(index: Index, namespace: Namespace, name: str) -> Steps[GraphTable | None]:
    """Returns the table or view of this name; None without one, for an intent of a transaction, and for another
    kind."""
    yield Needs(keys=[relation_key(namespace, name)])
    entry = find_relation(index, namespace, name)
    if entry is None or entry.transaction is not None or entry.kind not in ("table", "view"):
        return None
    return GraphTable.of(namespace, name, entry)


def _normal(location: str) -> str | None:
    """Returns the normal form of a location; None for an invalid one."""
    try:
        return Location.parse_stored(location).normal
    except BadRequest:
        return None
