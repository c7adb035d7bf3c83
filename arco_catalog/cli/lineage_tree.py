"""Formats a graph of lineage as trees, and adds the edges of `system.lineage` to it. Names in events are their senders'
and may have any characters: they are escaped and shortened."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from arco_catalog.cli.collected_edges import CollectedEdges, Row, end_of
from arco_catalog.cli.columns import format_text, format_time
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.planning.lineage_reasons import NoEdge
from arco_catalog.planning.names import format_identifier
from arco_catalog.state.characters import escaped
from arco_catalog.state.fields import integer, mapping, objects, text, texts

MAX_SHOWN: Final = 300
"""Maximum length of a name or message in characters."""
_ARROWS: Final = {"upstream": "<-", "downstream": "->"}
_INDENT: Final = "   "


def as_text(graph: JsonObject, direction: str) -> str:
    """Formats a tree for each direction, or one sentence without edges; then the runs without an edge,
    and the notes of the graph. A table that a tree has twice has its own edges at the first place."""
    root = text(graph, "root")
    names = {text(node, "id"): _name(node) for node in objects(graph, "nodes")}
    lines = [names[root]]
    for way, arrow in _ARROWS.items():
        if direction in ("both", way):
            lines += _tree(_neighbours(graph, way), names, root, arrow)
    if len(lines) == 1:
        lines = [f"No lineage of {names[root]} was found."]
    return "\n".join([*lines, *_without_edges(graph), "", *map(escaped, texts(graph, "notes"))])


def merged(graph: JsonObject, collected: CollectedEdges) -> JsonObject:
    """Returns the graph with the edges of `collected` for which it has none between the same ends by the same job. The
    field `collected` is true in them, and nodes that are added have ids of this answer. If not all could be read, the
    field `cut-off` names it."""
    nodes = [*objects(graph, "nodes")]
    ids = {_end(node): text(node, "id") for node in nodes if _end(node) is not None}
    edges = [*objects(graph, "edges")]
    known = {(edge["from"], edge["to"], *_job(edge)) for edge in edges}
    for row in collected.rows.values():
        ends: list[JsonValue] = []
        for end in ("input", "output"):
            key = end_of(row, end)
            if key == (None, None):
                ends.append(None)
                continue
            if key not in ids:
                ids[key] = f"c{len(ids)}"
                nodes.append(_collected_node(row, end, ids[key]))
            ends.append(ids[key])
        if (*ends, row["job_namespace"], row["job_name"]) not in known:
            edges.append(_collected_edge(row, *ends))
    limits = {*texts(graph, "cut-off"), *(["collected"] if collected.is_partial else [])}
    return {**graph, "nodes": [*nodes], "edges": [*edges], "cut-off": [*sorted(limits)]}


def _end(node: JsonObject) -> tuple[object, object] | None:
    """Returns what a node is, as `end_of` does; None for one without a name."""
    if node.get("entity") is not None:
        return node["entity"], None
    dataset = _optional(node, "dataset")
    return None if dataset is None else (None, f"{dataset.get('namespace')} {dataset.get('name')}")


def _optional(document: JsonObject, name: str) -> JsonObject | None:
    """Returns the object in a field of a document; None if the field is missing or null, and an empty object for a
    value of another type."""
    return None if document.get(name) is None else mapping(document, name)


def _job(edge: JsonObject) -> tuple[object, object]:
    """Returns the namespace and the name of an edge's job."""
    job = mapping(edge, "job")
    return job.get("namespace"), job.get("name")


def _collected_node(row: Row, end: str, node_id: str) -> JsonObject:
    """Returns the node at one end (`input` or `output`) of a row of `system.lineage`: a table, or a dataset if the row
    has no entity there."""
    entity = row[f"{end}_entity"]
    node: JsonObject = dict.fromkeys(("namespace", "name", "entity", "dataset"))
    if entity is None:
        namespace, _, name = str(row[f"{end}_dataset"]).partition(" ")
        dataset: JsonObject = {"namespace": namespace, "name": name}
        return {"id": node_id, "type": "dataset", **node, "dataset": dataset}
    levels: list[JsonValue] = [*str(row[f"{end}_namespace"]).split(".")]
    return {
        "id": node_id,
        "type": "table",
        **node,
        "namespace": levels,
        "name": str(row[f"{end}_name"]),
        "entity": str(entity),
    }


def _collected_edge(row: Row, source: JsonValue, target: JsonValue) -> JsonObject:
    """Returns a row of `system.lineage` as an edge of the graph."""
    happened = row["happened_at"]
    snapshot = row["output_snapshot_id"]
    job: JsonObject = {"namespace": _text(row["job_namespace"]), "name": _text(row["job_name"])}
    return {
        "from": source,
        "to": target,
        "confidence": str(row["lineage_confidence"]),
        "run-id": _text(row["run_id"]),
        "job": job,
        "principal": _text(row["principal"]),
        "at-ms": round(happened.timestamp() * 1000) if isinstance(happened, datetime) else None,
        "version": None,
        "version-id": None,
        "snapshot-id": snapshot if isinstance(snapshot, int) else None,
        "matched-by": _text(row["matched_by"]),
        "collected": True,
    }


def _text(value: object) -> str | None:
    """Returns the value as text; None for None."""
    return None if value is None else str(value)


def _neighbours(graph: JsonObject, direction: str) -> Mapping[str, Sequence[tuple[str | None, JsonObject]]]:
    """Returns the edges at each node with the id of the node at their other end, the latest first. An edge of a task
    without an event has no other end upstream (None), and downstream it is left out."""
    here, there = ("to", "from") if direction == "upstream" else ("from", "to")
    found: dict[str, list[tuple[str | None, JsonObject]]] = defaultdict(list)
    for edge in sorted(objects(graph, "edges"), key=_time, reverse=True):
        if edge[here] is not None:
            other = edge[there]
            found[text(edge, here)].append((None if other is None else str(other), edge))
    return found


def _time(edge: JsonObject) -> int:
    """Returns the time of an edge in milliseconds; 0 without one."""
    at_ms = edge.get("at-ms")
    return at_ms if isinstance(at_ms, int) else 0


def _tree(
    neighbours: Mapping[str, Sequence[tuple[str | None, JsonObject]]], names: Mapping[str, str], root: str, arrow: str
) -> Iterator[str]:
    """Yields a line for every edge below the root, followed by the lines below it. The walk goes on only from the first
    place of a node; at other places the line refers to that, if the node has edges."""
    walked = {root}
    waiting = [(1, other, edge) for other, edge in reversed(neighbours.get(root, ()))]
    while waiting:
        level, other, edge = waiting.pop()
        is_new = other is not None and other not in walked
        again = "  (its edges are above)" if other is not None and not is_new and neighbours.get(other) else ""
        name = "unknown inputs" if other is None else names[other]
        yield f"{_INDENT * level}{arrow} {name}  {_facts(edge)}{again}"
        if other is not None and is_new:
            walked.add(other)
            waiting += [(level + 1, *each) for each in reversed(neighbours.get(other, ()))]


def _facts(edge: JsonObject) -> str:
    """Formats job, principal, time, version (if there is one) and confidence of an edge, and whether it is from
    `system.lineage`."""
    version = edge.get("version")
    parts = [
        f"by {_short(_job(edge)[1])} of {_short(edge.get('principal'))}",
        format_time(edge.get("at-ms")),
        *([] if version is None else [f"version {version}"]),
        _short(edge.get("confidence")),
        *(["from system.lineage"] if edge.get("collected") else []),
    ]
    return ", ".join(parts)


def _name(node: JsonObject) -> str:
    """Returns the name of a node for the tree, escaped and shortened; `(hidden)` for one that the caller may not
    see."""
    if node["type"] == "dataset":
        dataset = mapping(node, "dataset")
        return _short(f"{dataset.get('namespace')} {dataset.get('name')}")
    if node["type"] == "hidden":
        return "(hidden)"
    return _short(format_identifier((*texts(node, "namespace"), text(node, "name"))))


def _short(value: JsonValue | object) -> str:
    """Formats a value as one line of text, cut to `MAX_SHOWN` characters and followed by three dots if it is longer;
    None is a dash."""
    short = format_text(None if value is None else str(value))
    return short if len(short) <= MAX_SHOWN else f"{short[:MAX_SHOWN]}..."


def _without_edges(graph: JsonObject) -> Iterator[str]:
    """Yields lines about the runs without an edge, except runs about other tables, which only the counts have, and how
    many events were read and were not; one sentence instead if the user may not know these."""
    found = _optional(graph, "without-edges")
    if found is None:
        yield from ("", "Which runs have no edge, and why, is for users who may read the properties of all tables.")
        return
    runs = [run for run in objects(found, "runs") if run["reason"] != NoEdge.OTHER_TABLES]
    reasons = mapping(found, "reasons")
    count = sum(integer(reasons, name) for name in reasons)
    days = texts(mapping(graph, "searched"), "days")
    read = f"of {integer(found, 'events'):,} events of {len(days)} days that were read"
    yield ""
    runs_are = f"{count:,} {'run' if count == 1 else 'runs'} without an edge here"
    yield f"{runs_are}, {read}:" if count else f"Every run has an edge here, {read}."
    for run in runs:
        who = f"{_short(_job(run)[1])} of {_short(run.get('principal'))}"
        yield f"{_INDENT}{format_time(run.get('at-ms'))}  {who}: {_short(run.get('message'))}"
    if count > len(runs):
        counts = ", ".join(f"{integer(reasons, name):,} {_short(name)}" for name in sorted(reasons))
        yield f"{_INDENT}and {count - len(runs):,} more; of all {count:,}: {counts}"
    earlier = objects(found, "earlier")
    if earlier:
        counts = ", ".join(f"{integer(each, 'events'):,} on {_short(each['day'])}" for each in earlier)
        yield f"{_INDENT}Older events may be about the table, and were not read: {counts}"
