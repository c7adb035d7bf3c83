"""Why runs that OpenLineage events report have no edge in a graph of lineage (docs/design/lineage.md#rule-15). Computed
from events in memory and from the registry's index."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final

from arco_catalog.planning.lineage_datasets import DatasetRef, is_catalog, is_engine, locations_of
from arco_catalog.planning.lineage_edges import History, RunEvent, RunKey, histories, reports_writes, run_key
from arco_catalog.planning.lineage_graph import GraphTable, LineageGraph, LineageQuery, find_table
from arco_catalog.planning.names import dotted
from arco_catalog.state.index import Index
from arco_catalog.state.needs import Steps
from storage_backends.lazy_dataclass import dataclass

MAX_SEARCHED = 200
"""Maximum number of datasets that are searched in the registry, for all runs together."""
MAX_SEARCHED_OF_RUN = 20
"""Maximum number of inputs and outputs of one run that are compared."""
MAX_TABLES_NAMED = 3
"""Maximum number of other tables that one reason names."""
_REPORTS: Final = {"COMPLETE": 2, "RUNNING": 1}
"""How much events report, by state; of any other state less."""


class NoEdge(StrEnum):
    """Why a run has no edge in a graph, or an event that is of no run or was not read."""

    FAILED = "failed"
    NOT_COMPLETE = "not-complete"
    NO_OUTPUTS = "no-outputs"
    NO_INPUTS = "no-inputs"
    NO_COMMIT = "no-commit"
    OTHER_LOCATION = "other-location"
    OTHER_NAMESPACE = "other-namespace"
    OTHER_CATALOG = "other-catalog"
    UNKNOWN_DATASETS = "unknown-datasets"
    OTHER_TABLES = "other-tables"
    NOT_SHOWN = "not-shown"
    NOT_SEARCHED = "not-searched"
    NO_RUN = "no-run"
    UNREADABLE = "unreadable"
    TOO_LARGE = "too-large"


LEFT_OUT: Final[Mapping[NoEdge, str]] = {
    NoEdge.NO_RUN: "it is about a job or a dataset alone, not about a run",
    NoEdge.UNREADABLE: "the stored event is corrupt: `arco fsck` has more",
    NoEdge.TOO_LARGE: "it is larger than a graph may read",
}
"""The sentences about events that are of no run, or were not read."""


@dataclass(frozen=True, slots=True)
class LeftOutEvent:
    """An event that is of no run, can't be read or is too large, by the digest in its name and the time when it
    arrived."""

    event: str
    received_ms: int
    reason: NoEdge


@dataclass(frozen=True, slots=True)
class RunWithoutEdge:
    """A run without an edge in a graph: its event that reports most, how many of its events were read, the reason,
    and a sentence about it, with the names of the datasets that matter, if any."""

    event: RunEvent
    events: int
    reason: NoEdge
    sentence: str


def runs_without_edges(
    index: Index, query: LineageQuery, graph: LineageGraph, others: Sequence[RunEvent]
) -> Steps[list[RunWithoutEdge]]:
    """Returns the runs of the query's events without an edge in the graph, then of `others`, events that by their
    tags are not about the graph's tables; the latest first. At most `MAX_SEARCHED` of their datasets are searched. Of
    a table that the caller may not know, the reason is that of a dataset that is no table."""
    known = histories((*query.events, *others))
    explained = _Reasons(index, query, graph)
    found: list[RunWithoutEdge] = []
    for events in (query.events, others):
        for run, of_run in _by_run(events).items():
            if run not in graph.linked_runs:
                event = max(of_run, key=_weight)
                reason, sentence = yield from explained.of(event, known[run])
                found.append(RunWithoutEdge(event, len(of_run), reason, sentence))
    return found


def _by_run(events: Sequence[RunEvent]) -> Mapping[RunKey, Sequence[RunEvent]]:
    """Returns the events of each run, the run with the latest event first."""
    found: dict[RunKey, list[RunEvent]] = {}
    for event in sorted(events, key=lambda each: each.received_ms, reverse=True):
        found.setdefault(run_key(event), []).append(event)
    return found


def _weight(event: RunEvent) -> tuple[int, bool, int]:
    """Returns a sort key: of the events of a run, the one with the highest represents it."""
    return _REPORTS.get(event.state or "", 0), bool(event.outputs), event.happened_ms


class _Reasons:
    """Finds the reasons of runs, and counts the datasets that it searches."""

    def __init__(self, index: Index, query: LineageQuery, graph: LineageGraph) -> None:
        self._index = index
        self._query = query
        self._graph = graph
        self._found: dict[DatasetRef, GraphTable | None] = {}

    def of(self, event: RunEvent, history: History) -> Steps[tuple[NoEdge, str]]:
        """Returns why the run of an event has no edge, and a sentence about it: the first reason that applies. Searches
        at most `MAX_SEARCHED_OF_RUN` of the run's datasets in the registry, outputs first; none, which is a reason, if
        the datasets of all runs together would then be more than `MAX_SEARCHED`."""
        if history.failed:
            return NoEdge.FAILED, "the run failed, or was aborted"
        if not reports_writes(event, history):
            return (
                NoEdge.NOT_COMPLETE,
                f"no event reports that it has written: the last is {event.state or 'of no state'}",
            )
        inputs = event.inputs or history.inputs
        if not event.outputs:
            return NoEdge.NO_OUTPUTS, "its events name no output"
        if not inputs:
            return NoEdge.NO_INPUTS, "its events name no input"
        datasets = dict.fromkeys((*event.outputs[:MAX_SEARCHED_OF_RUN], *inputs[:MAX_SEARCHED_OF_RUN]))
        named = [*datasets][:MAX_SEARCHED_OF_RUN]
        if len(self._found.keys() | {*named}) > MAX_SEARCHED:
            return NoEdge.NOT_SEARCHED, "its datasets were not searched: too many events have no edge"
        tables: list[GraphTable] = []
        for dataset in named:
            table = yield from self._table(dataset)
            missed = None if table is not None else _miss(dataset, self._query.root, self._query.catalogs)
            if missed is not None:
                return missed
            tables += [] if table is None else [table]
        return _of_tables(event, named, tables, self._graph)

    def _table(self, dataset: DatasetRef) -> Steps[GraphTable | None]:
        """Returns the table that a dataset means; None if none that the caller may know. Each dataset is searched
        once."""
        if dataset not in self._found:
            table = yield from find_table(self._index, dataset, self._query.catalogs)
            known = table is not None and (yield from self._query.may_know(table))
            self._found[dataset] = table if known else None
        return self._found[dataset]


def _of_tables(
    event: RunEvent, named: Sequence[DatasetRef], tables: Sequence[GraphTable], graph: LineageGraph
) -> tuple[NoEdge, str]:
    """Returns the reason of a run whose datasets are these tables of the catalog, or none of the catalog's."""
    if not tables:
        return NoEdge.UNKNOWN_DATASETS, f"none of its datasets is a table of this catalog: {named[0]}"
    names = ", ".join(dotted(table.namespace, table.name) for table in tables[:MAX_TABLES_NAMED])
    if not any(table.entity in graph.nodes for table in tables):
        return NoEdge.OTHER_TABLES, f"it is about other tables: {names}"
    if event.state == "RUNNING":
        return NoEdge.NO_COMMIT, f"it goes on, and names no snapshot that a commit added: {names}"
    return (
        NoEdge.NOT_SHOWN,
        f"its edges are of the other direction, further away, or beyond the limits of a graph: {names}",
    )


def _miss(dataset: DatasetRef, table: GraphTable, catalogs: Collection[str]) -> tuple[NoEdge, str] | None:
    """Returns why a dataset does not mean a table although one of the dataset's names is the table's full name, or ends
    with it after a dot; None if no name does. The caller has found already that the dataset means no table."""
    name = dotted(table.namespace, table.name)
    for where, spelled in _names(dataset):
        if spelled != name and not spelled.endswith(f".{name}"):
            continue
        if locations_of(dataset):
            return (
                NoEdge.OTHER_LOCATION,
                f"it names {name} at {dataset}, where this catalog has no table: one that was dropped, or another "
                "catalog's",
            )
        if not is_catalog(where) and not is_engine(where):
            return (
                NoEdge.OTHER_NAMESPACE,
                f"it names {spelled} in the namespace {where}, which is that of no catalog and of no engine",
            )
        return (
            NoEdge.OTHER_CATALOG,
            f"it names {spelled} in the namespace {where}, and this catalog is {' or '.join(sorted(catalogs))}",
        )
    return None


def _names(dataset: DatasetRef) -> Iterator[tuple[str, str]]:
    """Yields the pairs of namespace and name of a dataset."""
    yield dataset.namespace, dataset.name
    yield from dataset.further
