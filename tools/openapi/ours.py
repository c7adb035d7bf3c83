"""The parts of the OpenAPI document that no specification has: endpoints of our own, and what our endpoints take and
return beyond the specifications (docs/decisions/0054-the-openapi-document-is-made-of-routes.md)."""

from collections.abc import Mapping, Sequence

from arco_catalog.planning.governance import (
    MAX_CHANGES,
    MAX_TAG_NAME,
    MAX_TEXT,
    NOT_CONTROL,
    OWNER,
    PROTECTED,
    QUALITY,
)
from arco_catalog.planning.privilege_check import MAX_CHECKS
from arco_catalog.planning.privileges import GRANTABLE, Privilege
from tools.openapi import discovery, events, inspection, resolving
from tools.openapi.builders import TAG, TEXT, json_content, list_of, parameter_references, query, reference
from tools.openapi.specifications import MANAGEMENT_BASE, Json

_NAMESPACE = "/v1/{prefix}/namespaces/{namespace}"
_TABLE = f"{_NAMESPACE}/tables/{{table}}"
_GOVERNED = f"{MANAGEMENT_BASE}/catalogs/{{catalog}}/namespaces/{{namespace}}"


def _health(name: str) -> Json:
    described = json_content(reference("schemas", "Health")) if name == "health" else {}
    return {"tags": [TAG], "operationId": name, "parameters": [], "responses": {"200": described}}


_GOVERNANCE = reference("schemas", "Governance")
_MERGE_PATCH: Json = {
    "content": {
        kind: {"schema": reference("schemas", "GovernancePatch")}
        for kind in ("application/merge-patch+json", "application/json")
    }
}


def _governance(of: str, path: str, *parameters: str) -> Mapping[str, Json]:
    """The two operations on the governance of something."""
    named: Json = {"tags": [TAG], "parameters": parameter_references(*parameters)}
    responses: Json = {"200": json_content(_GOVERNANCE)}
    return {
        f"GET {path}/governance": {**named, "operationId": f"get{of}Governance", "responses": responses},
        f"POST {path}/governance": {
            **named,
            "operationId": f"update{of}Governance",
            "requestBody": _MERGE_PATCH,
            "responses": responses,
        },
    }


OPERATIONS: Mapping[str, Json] = {
    **discovery.OPERATIONS,
    **_governance("Namespace", _NAMESPACE, "prefix", "namespace"),
    **_governance("Table", _TABLE, "prefix", "namespace", "table"),
    **_governance("View", f"{_NAMESPACE}/views/{{view}}", "prefix", "namespace", "view"),
    **_governance("CatalogNamespace", _GOVERNED, "catalog", "namespace"),
    **_governance("CatalogTable", f"{_GOVERNED}/tables/{{table}}", "catalog", "namespace", "table"),
    **_governance("CatalogView", f"{_GOVERNED}/views/{{view}}", "catalog", "namespace", "view"),
    f"POST {MANAGEMENT_BASE}/catalogs/{{catalog}}/check": {
        "tags": [TAG],
        "operationId": "checkPrivileges",
        "parameters": parameter_references("catalog"),
        "requestBody": json_content(reference("schemas", "PrivilegeChecks")),
        "responses": {"200": json_content(reference("schemas", "PrivilegeCheckResults"))},
    },
    f"GET {MANAGEMENT_BASE}/caller": {
        "tags": [TAG],
        "operationId": "getCaller",
        "parameters": [],
        "responses": {"200": json_content(reference("schemas", "Caller"))},
    },
    "GET /health": _health("health"),
    "HEAD /health": _health("healthExists"),
    "GET /openapi.json": {
        "tags": [TAG],
        "operationId": "getOpenApi",
        "parameters": [reference("parameters", "if-none-match")],
        "responses": {
            "200": {"headers": {"ETag": {"schema": {"type": "string"}}}, **json_content({"type": "object"})},
            "304": {},
        },
    },
    f"POST {_TABLE}/undrop": {
        "tags": [TAG],
        "operationId": "undropTable",
        "parameters": parameter_references("prefix", "namespace", "table"),
        "responses": {"204": {}},
    },
    "POST /api/v1/{prefix}/lineage": {
        "tags": [TAG],
        "operationId": "postEvent",
        "parameters": parameter_references("prefix"),
        "requestBody": json_content(reference("schemas", "LineageEvent")),
        "responses": {"201": {}},
    },
    **inspection.OPERATIONS,
    **resolving.OPERATIONS,
    **events.OPERATIONS,
}
"""Whole operations, by their endpoints."""

_DELETED = query("deleted", {"type": "boolean"}, "List tables that were dropped and can be restored.")
_STAGED_LOCATION: Json = {
    **query("staged-location", list_of(TEXT), "Where the files of a staged table lie, once for each place."),
    "explode": True,
}
QUERIES: Mapping[str, Sequence[Json]] = {
    f"GET {_NAMESPACE}/tables": [_DELETED],
    f"GET {_TABLE}/credentials": [_STAGED_LOCATION],
    f"POST {_TABLE}/sign": [_STAGED_LOCATION],
}
"""Parameters that operations of specifications have besides."""

_NOT_DELEGATED, _TOO_MANY_SECRETS = ("406",), ("429",)
REFUSALS: Mapping[str, Sequence[str]] = {
    f"GET {_TABLE}/credentials": _NOT_DELEGATED,
    f"POST {_TABLE}/sign": _NOT_DELEGATED,
    "GET /polaris/v1/{prefix}/namespaces/{namespace}/generic-tables/{generic-table}": _NOT_DELEGATED,
    "POST /api/v1/{prefix}/lineage": ("406",),
    "POST /v1/oauth/tokens": _TOO_MANY_SECRETS,
    "POST /api/management/v1/principals/{principal}/reset": _TOO_MANY_SECRETS,
}
"""How operations are refused besides."""

PARAMETERS: Mapping[str, Json] = {
    "if-none-match": {"name": "If-None-Match", "in": "header", "required": False, "schema": {"type": "string"}},
    "catalog": {
        "name": "catalog",
        "in": "path",
        "required": True,
        "schema": {"type": "string", "minLength": 1, "maxLength": 256},
    },
}

_NAMED: Json = {
    "type": "object",
    "required": ["namespace", "name"],
    "properties": {
        "namespace": {"type": "string", "minLength": 1, "maxLength": 4096},
        "name": {"type": "string", "minLength": 1, "maxLength": 4096},
        "facets": {"type": "object"},
    },
}
_RUN: Json = {
    "type": "object",
    "required": ["runId"],
    "properties": {"runId": {"type": "string", "format": "uuid"}, "facets": {"type": "object"}},
}

_STRINGS: Json = {"type": "object", "additionalProperties": {"type": "string"}}
_NO_CONTROLS = f"^{NOT_CONTROL}*$"
_TAGS = rf"^arco\.(column\.(0|[1-9][0-9]{{0,8}})\.)?tag\.{NOT_CONTROL}{{1,{MAX_TAG_NAME}}}$"


def _said(least: int) -> Json:
    return {"type": ["string", "null"], "minLength": least, "maxLength": MAX_TEXT, "pattern": _NO_CONTROLS}


_CHECK: Json = {
    "description": "A privilege on a securable, of a principal or, without one, of the caller.",
    "type": "object",
    "required": ["type", "privilege"],
    "properties": {
        "type": {"enum": [*GRANTABLE]},
        "privilege": {"enum": [*Privilege]},
        "namespace": {"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}},
        **{
            f"{kind}Name": {"description": f"Ignored unless the type is {kind}."}
            for kind in ("table", "view", "policy")
        },
        "principal": {"type": "string", "minLength": 1},
    },
}
_RESULT: Json = {
    "description": "Whether the privilege is there, and by which roles and grant, or what is lacking.",
    "type": "object",
    "required": ["allowed", "principal"],
    "properties": {
        "allowed": {"type": "boolean"},
        "principal": {"type": ["string", "null"]},
        "reason": {"type": "string"},
        "principalRole": {"type": "string"},
        "catalogRole": {"type": "string"},
        "grant": {
            "type": "object",
            "required": ["type", "privilege"],
            "properties": {"type": {"enum": ["realm", *GRANTABLE]}, "privilege": {"type": "string"}},
        },
    },
}

SCHEMAS: Mapping[str, Json] = {
    **discovery.SCHEMAS,
    **inspection.SCHEMAS,
    **resolving.SCHEMAS,
    **events.SCHEMAS,
    "Caller": {
        "description": "The caller's principal, null if its rights are not checked, and its active principal roles.",
        "type": "object",
        "required": ["principal", "principalRoles"],
        "properties": {"principal": {"type": ["string", "null"]}, "principalRoles": list_of(TEXT)},
    },
    "PrivilegeChecks": {
        "type": "object",
        "required": ["checks"],
        "properties": {"checks": {"type": "array", "maxItems": MAX_CHECKS, "items": _CHECK}},
    },
    "PrivilegeCheckResults": {
        "type": "object",
        "required": ["results"],
        "properties": {"results": {"type": "array", "items": _RESULT}},
    },
    "Governance": {
        "description": "Owner, quality, protection and tags of a namespace, table or view; tags of its columns.",
        **_STRINGS,
    },
    "GovernancePatch": {
        "description": "A JSON merge patch (RFC 7386): null removes a name.",
        "type": "object",
        "maxProperties": MAX_CHANGES,
        "properties": {
            OWNER: _said(1),
            QUALITY: _said(1),
            PROTECTED: {
                "description": "True: drops, replacements and renames are refused with 409.",
                "enum": ["true", "false", None],
            },
        },
        "patternProperties": {_TAGS: _said(0)},
        "additionalProperties": False,
    },
    "FieldLabels": {
        "type": "object",
        "required": ["field-id", "labels"],
        "properties": {"field-id": {"type": "integer"}, "labels": _STRINGS},
    },
    "Labels": {
        "description": "What the catalog says of a table or view besides its metadata.",
        "type": "object",
        "properties": {
            "object-labels": _STRINGS,
            "fields": {"type": "array", "items": reference("schemas", "FieldLabels")},
        },
    },
    "LineageEvent": {
        "description": "An event of OpenLineage (https://openlineage.io/spec/2-0-2/OpenLineage.json).",
        "type": "object",
        "required": ["eventTime", "producer", "schemaURL"],
        "properties": {
            "eventTime": {"type": "string", "format": "date-time"},
            "eventType": {"enum": ["START", "RUNNING", "COMPLETE", "ABORT", "FAIL", "OTHER"]},
            "producer": {"type": "string", "minLength": 1, "maxLength": 4096},
            "schemaURL": {"type": "string", "minLength": 1, "maxLength": 4096},
        },
        "anyOf": [
            {
                "required": ["job"],
                "properties": {
                    "run": _RUN,
                    "job": _NAMED,
                    "inputs": {"type": "array", "items": _NAMED, "maxItems": 10_000},
                    "outputs": {"type": "array", "items": _NAMED, "maxItems": 10_000},
                },
            },
            {"required": ["dataset"], "properties": {"dataset": _NAMED}},
        ],
    },
    "Health": {
        "type": "object",
        "required": ["status", "warehouses"],
        "properties": {
            "status": {"type": "string", "const": "ok"},
            "warehouses": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["name", "read_only_because"],
                    "properties": {
                        "name": {"type": "string"},
                        "read_only_because": {"type": ["string", "null"]},
                    },
                },
            },
        },
    },
}

FIELDS: Mapping[str, Mapping[str, Json]] = {
    "CatalogConfig": {
        "file-io": {
            "description": "Properties of Iceberg by which engines reach the files, without secrets, for people who "
            "write the settings of an engine.",
            "type": "object",
            "additionalProperties": {"type": "string"},
        },
        "resolve-max-items": {
            "description": "The maximum number of items in one request to resolve.",
            "type": "integer",
            "minimum": 1,
        },
    },
    "LoadTableResult": {"labels": reference("schemas", "Labels")},
    "LoadViewResult": {"labels": reference("schemas", "Labels")},
}
"""What schemas of the specifications have besides: Iceberg's has labels since the version that is extracted."""
