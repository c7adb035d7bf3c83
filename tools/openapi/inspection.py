"""The parts of the OpenAPI document about the timelines, comparisons and lineage of tables and views, which no
specification has (docs/receipts.md#timeline)."""

from collections.abc import Mapping

from arco_catalog.http.lineage import DIRECTIONS, MAX_DISTANCE
from arco_catalog.iceberg.snapshot_summary import COUNTS
from tools.openapi.specifications import Json

TAG = "Arco API"
_NAMESPACE = "/v1/{prefix}/namespaces/{namespace}"
_KINDS = {"Table": (f"{_NAMESPACE}/tables/{{table}}", "table"), "View": (f"{_NAMESPACE}/views/{{view}}", "view")}

_LONG: Json = {"type": "integer", "format": "int64"}
_TEXT: Json = {"type": "string"}


def _optional(schema: Json) -> Json:
    return {**schema, "type": [schema["type"], "null"]}


def _object(**properties: Json) -> Json:
    """The schema of an object that has all of these properties; underscores stand for dashes."""
    named = {name.replace("_", "-"): schema for name, schema in properties.items()}
    return {"type": "object", "required": [*named], "properties": named}


def _reference(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def _operation(name: str, kind: str, answer: str, *parameters: Json) -> Json:
    named = [{"$ref": f"#/components/parameters/{each}"} for each in ("prefix", "namespace", kind)]
    described = {"content": {"application/json": {"schema": _reference(answer)}}}
    return {"tags": [TAG], "operationId": name, "parameters": [*named, *parameters], "responses": {"200": described}}


_PAGES: tuple[Json, ...] = (
    {"$ref": "#/components/parameters/page-token"},
    {"$ref": "#/components/parameters/page-size"},
    {
        "name": "at",
        "in": "query",
        "required": False,
        "description": "Begin with the version that was current at this time, in milliseconds since 1970.",
        "schema": {"type": "integer", "format": "int64", "minimum": 1},
    },
)
_NAMED = "[0-9]{1,9}|[0-9]{1,15}-[0-9a-f]{64}"
"""The pattern of the name of a version."""
_COMPARED: tuple[Json, ...] = tuple(
    {
        "name": name,
        "in": "query",
        "required": name == "from",
        "description": "The number or id of a version, or snapshot:ID for the version that added a snapshot.",
        "schema": {"type": "string", "pattern": f"^({_NAMED}|snapshot:[0-9]{{1,19}})$"},
    }
    for name in ("from", "to")
)
_VERSION: Json = {
    "name": "version",
    "in": "path",
    "required": True,
    "description": "The number of a version, or its id in the timeline.",
    "schema": {"type": "string", "pattern": f"^({_NAMED})$"},
}


def _operations(of: str, path: str, kind: str) -> Mapping[str, Json]:
    return {
        f"GET {path}/timeline": _operation(f"get{of}Timeline", kind, "Timeline", *_PAGES),
        f"GET {path}/timeline/{{version}}": _operation(f"get{of}Version", kind, "TimelineVersion", _VERSION),
        f"GET {path}/compare": _operation(f"compare{of}Versions", kind, f"{of}Comparison", *_COMPARED),
    }


_GRAPH: tuple[Json, ...] = (
    {
        "name": "direction",
        "in": "query",
        "required": False,
        "schema": {"type": "string", "enum": [*DIRECTIONS]},
    },
    {
        "name": "depth",
        "in": "query",
        "required": False,
        "description": "The maximum number of edges between a node and the table, by default 1.",
        "schema": {"type": "integer", "minimum": 1, "maximum": MAX_DISTANCE},
    },
)
OPERATIONS: Mapping[str, Json] = {
    f"GET {_NAMESPACE}/tables/{{table}}/lineage": _operation("getTableLineage", "table", "LineageGraph", *_GRAPH),
    **{
        endpoint: operation
        for of, (path, kind) in _KINDS.items()
        for endpoint, operation in _operations(of, path, kind).items()
    },
}

_ANY_OBJECT: Json = {"type": "object"}
_INTEGERS: Json = {"type": "array", "items": _LONG}


def _list(item: Json) -> Json:
    return {"type": "array", "items": item}


def _change(of: Json) -> Json:
    return {"type": "object", "required": ["from", "to"], "properties": {"from": of, "to": of}}


def _mappings(of: Json) -> Json:
    """The schema of a comparison of two mappings."""
    values: Json = {"type": "object", "additionalProperties": of}
    return _object(added=values, dropped=values, changed={"type": "object", "additionalProperties": _change(of)})


_COLUMN = _object(id=_LONG, name=_TEXT, type=_TEXT, required={"type": "boolean"}, doc=_optional(_TEXT))
_LAYOUT = _list(_object(id=_LONG, fields=_list(_TEXT)))
_LAYOUTS = _object(default=_optional(_change(_LONG)), added=_LAYOUT, dropped=_LAYOUT)
_SNAPSHOT = _object(
    snapshot_id=_LONG, parent_snapshot_id=_optional(_LONG), timestamp_ms=_LONG, operation=_optional(_TEXT)
)
_COMPARED_VERSION = _object(
    version=_optional(_LONG), id=_TEXT, metadata_location=_TEXT, at_ms=_LONG, snapshot_id=_optional(_LONG)
)
_BOTH: Mapping[str, Json] = {
    "type": {"enum": ["table", "view"]},
    "from": _COMPARED_VERSION,
    "to": _COMPARED_VERSION,
    "equal": {"type": "boolean"},
    "fields": {"type": "object", "additionalProperties": _change({})},
    "schema": _object(
        added=_list(_COLUMN),
        dropped=_list(_COLUMN),
        changed=_list({"type": "object", "required": ["id", "from", "to", "differs"]}),
        reordered={"type": "boolean"},
        identifiers=_optional(_change(_INTEGERS)),
    ),
    "properties": _mappings(_TEXT),
}
_COMPARISONS: Mapping[str, Json] = {
    "TableComparison": {
        "description": "What differs between two versions of a table.",
        **_object(
            **_BOTH,
            partition_specs=_LAYOUTS,
            sort_orders=_LAYOUTS,
            refs=_mappings(_ANY_OBJECT),
            size={"type": "object", "additionalProperties": _change(_optional(_LONG))},
            snapshots=_object(
                added=_list(_SNAPSHOT),
                dropped=_list(_SNAPSHOT),
                relation={"enum": ["equal", "ahead", "behind", "diverged", "unknown"]},
                between=_INTEGERS,
                counts=_object(**dict.fromkeys(("added", "dropped", "between"), _LONG)),
            ),
        ),
    },
    "ViewComparison": {
        "description": "What differs between two versions of a view.",
        **_object(
            **_BOTH,
            representations=_mappings(_TEXT),
            view_versions=_object(current=_optional(_change(_LONG)), added=_INTEGERS, dropped=_INTEGERS),
        ),
    },
}
_NODE = _object(
    id={"description": "The id of the node in this graph.", "type": "string"},
    type={"enum": ["table", "view", "dataset", "hidden"]},
    namespace=_optional(_list(_TEXT)),
    name=_optional(_TEXT),
    dataset=_optional(_object(namespace=_TEXT, name=_TEXT)),
    depth={"type": "integer"},
)
_EDGE: Json = {
    "from": _optional(_TEXT),
    "to": _TEXT,
    "confidence": {"enum": ["Verified", "DeclaredUnverified"]},
    "run-id": _optional(_TEXT),
    "job": _optional(_object(namespace=_optional(_TEXT), name=_optional(_TEXT))),
    "principal": _optional(_TEXT),
    "at-ms": _LONG,
    "version": _optional(_LONG),
    "version-id": _optional(_TEXT),
    "snapshot-id": _optional(_LONG),
    "matched-by": {"enum": ["snapshot", "run", "time", None]},
}
SCHEMAS: Mapping[str, Json] = {
    **_COMPARISONS,
    "LineageGraph": {
        "description": "The lineage around a table, from events and receipts that were read within limits.",
        **_object(
            root=_TEXT,
            nodes=_list(_NODE),
            edges=_list(_object(**_EDGE)),
            cut_off=_list({"enum": ["nodes", "edges", "events"]}),
            searched=_object(days=_list({"type": "string", "format": "date"}), events={"type": "integer"}),
            notes=_list(_TEXT),
        ),
    },
    "TimelineSnapshot": {
        "description": "What a snapshot added and left, by its summary; null where that is unknown.",
        **_object(
            snapshot_id=_LONG,
            known={"description": "Whether the snapshot is in the current metadata.", "type": "boolean"},
            operation=_optional(_TEXT),
            **dict.fromkeys(COUNTS, _optional(_LONG)),
        ),
    },
    "TimelineEntry": {
        "description": "A version of a table or view: a metadata file that was current.",
        **_object(
            version=_optional(_LONG),
            id=_TEXT,
            current={"type": "boolean"},
            metadata_location=_TEXT,
            at_ms=_LONG,
            at_by={"description": "Who set the time in the metadata file.", "enum": ["catalog", "writer"]},
            receipt={"enum": ["committed", "pending", "missing", "none"]},
            source={"enum": ["pipeline", "engine", "admin", "command", "task", "other", "unknown"]},
            external={"type": ["boolean", "null"]},
            claimed={"type": "boolean"},
            client=_optional(_TEXT),
            engine=_optional(_TEXT),
            principal=_optional(_TEXT),
            run_id=_optional(_TEXT),
            task_id=_optional(_TEXT),
            user_id=_optional(_TEXT),
            lineage={"enum": ["Verified", "DeclaredUnverified", None]},
            quality_status={"enum": ["Checked", "NotChecked", None]},
            application=_optional(_TEXT),
            changes={"type": "object", "additionalProperties": {"type": "integer"}},
            snapshot_id=_optional(_LONG),
            added_snapshots={"type": "integer"},
            snapshots={"type": "array", "items": _reference("TimelineSnapshot")},
        ),
    },
    "Timeline": _object(
        type={"enum": ["table", "view"]},
        entity=_TEXT,
        quality=_optional(_TEXT),
        versions={"type": "array", "items": _reference("TimelineEntry")},
        next_page_token=_optional(_TEXT),
        end={
            "description": "Why there are no versions before the last one.",
            **_optional(_object(reason={"enum": ["created", "registered", "follows", "unknown"]}, message=_TEXT)),
        },
    ),
    "TimelineVersion": _object(entry=_reference("TimelineEntry"), receipt=_optional({"type": "object"})),
}
