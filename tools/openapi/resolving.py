"""The part of the OpenAPI document about loads of several tables and views in one request, which follows a proposal for
Iceberg's specification (docs/decisions/0107-resolve-follows-a-proposal.md)."""

from collections.abc import Mapping

from arco_catalog.http.config import RESOLVE_MAX_ITEMS
from arco_catalog.http.names import MAX_LEVELS
from arco_catalog.http.resolve import MAX_ETAG
from tools.openapi.builders import TAG, TEXT, json_content, list_of, parameter_references, reference
from tools.openapi.specifications import Json

_IDENTIFIER = reference("schemas", "RelationIdentifier")


def _outcome(status: str, description: str, required: Mapping[str, Json], optional: Mapping[str, Json]) -> Json:
    fields: Mapping[str, Json] = {"identifier": _IDENTIFIER, "status": {"const": status}, **required}
    properties = {**fields, **optional}
    return {"description": description, "type": "object", "required": [*fields], "properties": properties}


def _result(kind: str, schema: str) -> Json:
    fields: Mapping[str, Json] = {"object-type": {"const": kind}, kind: reference("schemas", schema)}
    return {"type": "object", "required": [*fields], "properties": {**fields}}


OPERATIONS: Mapping[str, Json] = {
    "POST /v1/{prefix}/resolve": {
        "tags": [TAG],
        "operationId": "resolve",
        "parameters": parameter_references("prefix"),
        "requestBody": json_content(reference("schemas", "ResolveRequest")),
        "responses": {
            "200": json_content(reference("schemas", "ResolveResponse")),
            "403": json_content(reference("schemas", "ResolveForbiddenResponse")),
        },
    }
}

SCHEMAS: Mapping[str, Json] = {
    "RelationIdentifier": {
        "description": "The levels of a namespace, and then the name of a table or view in it.",
        "type": "array",
        "minItems": 2,
        "maxItems": MAX_LEVELS + 1,
        "items": {"type": "string", "minLength": 1},
    },
    "ResolveRelationItem": {
        "type": "object",
        "required": ["identifier"],
        "properties": {
            "identifier": _IDENTIFIER,
            "etag": {
                "description": "Of the state of a table that the client has; of a view it is ignored.",
                "type": ["string", "null"],
                "maxLength": MAX_ETAG,
            },
            "snapshots": {"description": "Of a view it is ignored.", "enum": ["all", "refs", None]},
        },
    },
    "ResolveRequest": {
        "type": "object",
        "required": ["relations"],
        "properties": {
            "relations": {
                "description": "Tables and views.",
                "type": "array",
                "minItems": 1,
                "maxItems": RESOLVE_MAX_ITEMS,
                "items": reference("schemas", "ResolveRelationItem"),
            },
            "consistent": {
                "description": "Whether all items are loaded as they are at one instant, or none; not of the proposal.",
                "type": ["boolean", "null"],
            },
        },
    },
    "LoadRelationResult": {"oneOf": [_result("table", "LoadTableResult"), _result("view", "LoadViewResult")]},
    "ResolveRelationResult": {
        "oneOf": [
            _outcome(
                "loaded",
                "The state of the table or view; of a table with its ETag.",
                {"result": reference("schemas", "LoadRelationResult")},
                {"etag": TEXT},
            ),
            _outcome("not-modified", "The client has the state of the table.", {"etag": TEXT}, {}),
            _outcome(
                "not-found",
                "There is no table or view of that name, or none that the caller may know of.",
                {},
                {"error": reference("schemas", "ErrorModel")},
            ),
        ]
    },
    "ResolveResponse": {
        "type": "object",
        "required": ["relations"],
        "properties": {
            "relations": list_of(reference("schemas", "ResolveRelationResult")),
            "consistent": {"description": "All states are of one instant.", "const": True},
            "unprocessed": {
                "description": "Items beyond the bytes or the time of one answer: to be sent in another request.",
                "type": "object",
                "required": ["relations"],
                "properties": {"relations": list_of(reference("schemas", "ResolveRelationItem"))},
            },
        },
    },
    "ResolveForbiddenResponse": {
        "type": "object",
        "required": ["error"],
        "properties": {
            "error": {
                "allOf": [reference("schemas", "ErrorModel")],
                "properties": {"forbidden-identifiers": list_of(_IDENTIFIER)},
            }
        },
    },
}
