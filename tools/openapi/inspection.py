"""The parts of the OpenAPI document about the timelines, comparisons and lineage of tables and views, which no
specification has (docs/receipts.md#timeline)."""

from collections.abc import Mapping

from arco_catalog.http.lineage import DIRECTIONS, MAX_DISTANCE
from arco_catalog.iceberg.snapshot_summary import COUNTS
from arco_catalog.planning.lineage_reasons import NoEdge
from tools.openapi.builders import (
    INTEGER,
    TEXT,
    list_of,
    nullable,
    object_of,
    parameter_references,
    query,
    read_operation,
    reference,
)
from tools.openapi.specifications import Json

_NAMESPACE = "/v1/{prefix}/namespaces/{namespace}"

_LONG: Json = {"type": "integer", "format": "int64"}
_PAGES = [
    *parameter_references("page-token", "page-size"),
    query(
        "at",
        {**_LONG, "minimum": 1},
        "Begin with the version that was current at this time, in milliseconds since 1970.",
    ),
]
_NAMED = "[0-9]{1,9}|[0-9]{1,15}-[0-9a-f]{64}"
"""The pattern of the name of a version."""
_COMPARED = [
    query(
        name,
        {**TEXT, "pattern": f"^({_NAMED}|snapshot:[0-9]{{1,19}})$"},
        "The number or id of a version, or snapshot:ID for the version that added a snapshot.",
        required=name == "from",
    )
    for name in ("from", "to")
]
_VERSION: Json = {
    "name": "version",
    "in": "path",
    "required": True,
    "description": "The number of a version, or its id in the timeline.",
    "schema": {**TEXT, "pattern": f"^({_NAMED})$"},
}
_GRAPH = [
    query("direction", {**TEXT, "enum": [*DIRECTIONS]}),
    query(
        "depth",
        {**INTEGER, "minimum": 1, "maximum": MAX_DISTANCE},
        "The maximum number of edges between a node and the table, by default 1.",
    ),
    query("explain", {"type": "boolean"}, "Whether to return which runs have no edge, and why."),
]


def _operations(of: str, kind: str) -> Mapping[str, Json]:
    path, names = f"{_NAMESPACE}/{kind}s/{{{kind}}}", ("prefix", "namespace", kind)
    return {
        f"GET {path}/timeline": read_operation(f"get{of}Timeline", "Timeline", _PAGES, names),
        f"GET {path}/timeline/{{version}}": read_operation(f"get{of}Version", "TimelineVersion", [_VERSION], names),
        f"GET {path}/compare": read_operation(f"compare{of}Versions", f"{of}Comparison", _COMPARED, names),
    }


OPERATIONS: Mapping[str, Json] = {
    f"GET {_NAMESPACE}/tables/{{table}}/lineage": read_operation(
        "getTableLineage", "LineageGraph", _GRAPH, ("prefix", "namespace", "table")
    ),
    **_operations("Table", "table"),
    **_operations("View", "view"),
}

_ANY_OBJECT: Json = {"type": "object"}
_INTEGERS = list_of(_LONG)


def _change(of: Json) -> Json:
    return {"type": "object", "required": ["from", "to"], "properties": {"from": of, "to": of}}


def _mappings(of: Json) -> Json:
    """The schema of a comparison of two mappings."""
    values: Json = {"type": "object", "additionalProperties": of}
    return object_of(added=values, dropped=values, changed={"type": "object", "additionalProperties": _change(of)})


_COLUMN = object_of(id=_LONG, name=TEXT, type=TEXT, required={"type": "boolean"}, doc=nullable(TEXT))
_LAYOUT = list_of(object_of(id=_LONG, fields=list_of(TEXT)))
_LAYOUTS = object_of(default=nullable(_change(_LONG)), added=_LAYOUT, dropped=_LAYOUT)
_SNAPSHOT = object_of(
    snapshot_id=_LONG, parent_snapshot_id=nullable(_LONG), timestamp_ms=_LONG, operation=nullable(TEXT)
)
_COMPARED_VERSION = object_of(
    version=nullable(_LONG), id=TEXT, metadata_location=TEXT, at_ms=_LONG, snapshot_id=nullable(_LONG)
)
_BOTH: Mapping[str, Json] = {
    "type": {"enum": ["table", "view"]},
    "from": _COMPARED_VERSION,
    "to": _COMPARED_VERSION,
    "equal": {"type": "boolean"},
    "fields": {"type": "object", "additionalProperties": _change({})},
    "schema": object_of(
        added=list_of(_COLUMN),
        dropped=list_of(_COLUMN),
        changed=list_of({"type": "object", "required": ["id", "from", "to", "differs"]}),
        reordered={"type": "boolean"},
        identifiers=nullable(_change(_INTEGERS)),
    ),
    "properties": _mappings(TEXT),
}
_COMPARISONS: Mapping[str, Json] = {
    "TableComparison": {
        "description": "What differs between two versions of a table.",
        **object_of(
            **_BOTH,
            partition_specs=_LAYOUTS,
            sort_orders=_LAYOUTS,
            refs=_mappings(_ANY_OBJECT),
            size={"type": "object", "additionalProperties": _change(nullable(_LONG))},
            snapshots=object_of(
                added=list_of(_SNAPSHOT),
                dropped=list_of(_SNAPSHOT),
                relation={"enum": ["equal", "ahead", "behind", "diverged", "unknown"]},
                between=_INTEGERS,
                counts=object_of(**dict.fromkeys(("added", "dropped", "between"), _LONG)),
            ),
        ),
    },
    "ViewComparison": {
        "description": "What differs between two versions of a view.",
        **object_of(
            **_BOTH,
            representations=_mappings(TEXT),
            view_versions=object_of(current=nullable(_change(_LONG)), added=_INTEGERS, dropped=_INTEGERS),
        ),
    },
}
_NODE = object_of(
    id={"description": "The id of the node in this graph.", "type": "string"},
    type={"enum": ["table", "view", "dataset", "hidden"]},
    namespace=nullable(list_of(TEXT)),
    name=nullable(TEXT),
    entity=nullable(TEXT),
    dataset=nullable(object_of(namespace=TEXT, name=TEXT)),
    depth=INTEGER,
)
_DAY: Json = {"type": "string", "format": "date"}
_RUN = object_of(
    event={"description": "The digest of the run's event that reports most.", "type": "string"},
    events=INTEGER,
    at_ms=_LONG,
    state=nullable(TEXT),
    run_id=nullable(TEXT),
    job=nullable(object_of(namespace=nullable(TEXT), name=nullable(TEXT))),
    principal=nullable(TEXT),
    reason={"enum": [*NoEdge]},
    message=TEXT,
)
_WITHOUT_EDGES: Json = {
    "description": "Runs without an edge in the graph, and events of no run: the first ones, and a number for each "
    "reason. Null without `explain`, and for callers who may not read the properties of all tables.",
    **nullable(
        object_of(
            runs=list_of(_RUN),
            reasons={"type": "object", "additionalProperties": INTEGER},
            events=INTEGER,
            earlier=list_of(object_of(day=_DAY, events=INTEGER)),
        )
    ),
}
_EDGE: Json = {
    "from": nullable(TEXT),
    "to": TEXT,
    "confidence": {"enum": ["Verified", "DeclaredUnverified"]},
    "run-id": nullable(TEXT),
    "job": nullable(object_of(namespace=nullable(TEXT), name=nullable(TEXT))),
    "principal": nullable(TEXT),
    "at-ms": _LONG,
    "version": nullable(_LONG),
    "version-id": nullable(TEXT),
    "snapshot-id": nullable(_LONG),
    "matched-by": {"enum": ["snapshot", "run", "time", None]},
}
SCHEMAS: Mapping[str, Json] = {
    **_COMPARISONS,
    "LineageGraph": {
        "description": "The lineage around a table, from events and receipts that were read within limits.",
        **object_of(
            root=TEXT,
            nodes=list_of(_NODE),
            edges=list_of(object_of(**_EDGE)),
            cut_off=list_of({"enum": ["nodes", "edges", "events"]}),
            searched=object_of(days=list_of(_DAY), events=INTEGER),
            without_edges=_WITHOUT_EDGES,
            collected={"description": "Whether there is a table system.lineage.", "type": "boolean"},
            notes=list_of(TEXT),
        ),
    },
    "TimelineSnapshot": {
        "description": "What a snapshot added and left, by its summary; null where that is unknown.",
        **object_of(
            snapshot_id=_LONG,
            known={"description": "Whether the snapshot is in the current metadata.", "type": "boolean"},
            operation=nullable(TEXT),
            **dict.fromkeys(COUNTS, nullable(_LONG)),
        ),
    },
    "TimelineEntry": {
        "description": "A version of a table or view: a metadata file that was current.",
        **object_of(
            version=nullable(_LONG),
            id=TEXT,
            current={"type": "boolean"},
            metadata_location=TEXT,
            at_ms=_LONG,
            at_by={"description": "Who set the time in the metadata file.", "enum": ["catalog", "writer"]},
            receipt={"enum": ["committed", "pending", "missing", "none"]},
            source={"enum": ["pipeline", "engine", "admin", "command", "task", "other", "unknown"]},
            external={"type": ["boolean", "null"]},
            claimed={"type": "boolean"},
            client=nullable(TEXT),
            engine=nullable(TEXT),
            principal=nullable(TEXT),
            run_id=nullable(TEXT),
            task_id=nullable(TEXT),
            user_id=nullable(TEXT),
            lineage={"enum": ["Verified", "DeclaredUnverified", None]},
            quality_status={"enum": ["Checked", "NotChecked", None]},
            application=nullable(TEXT),
            changes={"type": "object", "additionalProperties": INTEGER},
            snapshot_id=nullable(_LONG),
            added_snapshots=INTEGER,
            snapshots=list_of(reference("schemas", "TimelineSnapshot")),
        ),
    },
    "Timeline": object_of(
        type={"enum": ["table", "view"]},
        entity=TEXT,
        quality=nullable(TEXT),
        versions=list_of(reference("schemas", "TimelineEntry")),
        next_page_token=nullable(TEXT),
        end={
            "description": "Why there are no versions before the last one.",
            **nullable(object_of(reason={"enum": ["created", "registered", "follows", "unknown"]}, message=TEXT)),
        },
    ),
    "TimelineVersion": object_of(entry=reference("schemas", "TimelineEntry"), receipt=nullable({"type": "object"})),
}
