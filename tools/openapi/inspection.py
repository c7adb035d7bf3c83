"""The parts of the OpenAPI document about the timelines of tables and views, which no specification has
(docs/receipts.md#timeline)."""

from collections.abc import Mapping

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
_VERSION: Json = {
    "name": "version",
    "in": "path",
    "required": True,
    "description": "The number of a version, or its id in the timeline.",
    "schema": {"type": "string", "minLength": 1},
}


def _operations(of: str, path: str, kind: str) -> Mapping[str, Json]:
    return {
        f"GET {path}/timeline": _operation(f"get{of}Timeline", kind, "Timeline", *_PAGES),
        f"GET {path}/timeline/{{version}}": _operation(f"get{of}Version", kind, "TimelineVersion", _VERSION),
    }


OPERATIONS: Mapping[str, Json] = {
    endpoint: operation
    for of, (path, kind) in _KINDS.items()
    for endpoint, operation in _operations(of, path, kind).items()
}

SCHEMAS: Mapping[str, Json] = {
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
