"""The operations by which people look at a catalog, as the OpenAPI document describes them: no specification has
them."""

from collections.abc import Mapping, Sequence

from arco_catalog.operations.search import KINDS, MAX_RESULTS
from arco_catalog.planning.privileges import GRANTABLE
from arco_catalog.planning.search import MAX_QUERY
from arco_catalog.state.task import Status
from tools.openapi.specifications import MANAGEMENT_BASE, Json

TAG = "Arco API"
_TEXT: Json = {"type": "string"}
_LEVELS: Json = {"type": "array", "items": _TEXT}
_TOKEN: Json = {"type": ["string", "null"]}


def _reference(kind: str, name: str) -> Json:
    return {"$ref": f"#/components/{kind}/{name}"}


def _nullable(kind: str) -> Json:
    return {"type": [kind, "null"]}


def _object(**properties: Json) -> Json:
    """An object that has all of these fields, whose names have hyphens for underscores."""
    named = {name.replace("_", "-"): schema for name, schema in properties.items()}
    return {"type": "object", "required": [*named], "properties": named}


def _list(items: Json) -> Json:
    return {"type": "array", "items": items}


def _query(name: str, schema: Json, *, required: bool = False) -> Json:
    return {"name": name, "in": "query", "required": required, "schema": schema}


def _reads(name: str, answer: str, parameters: Sequence[Json], path: Sequence[str] = ("prefix",)) -> Json:
    """An operation that reads, with the schema of its answer. `path` has the parameters of its path."""
    answered: Json = {"content": {"application/json": {"schema": _reference("schemas", answer)}}}
    return {
        "tags": [TAG],
        "operationId": name,
        "parameters": [*(_reference("parameters", each) for each in path), *parameters],
        "responses": {"200": answered},
    }


_PAGE_TOKEN, _PAGE_SIZE = _reference("parameters", "page-token"), _reference("parameters", "page-size")
_NAME: Json = _object(namespace=_LEVELS, name=_nullable("string"))
_TASK: Json = {"name": "task", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
_TASK_FIELDS: Mapping[str, Json] = {
    "id": _TEXT,
    "type": _TEXT,
    "namespace": {**_LEVELS, "type": ["array", "null"]},
    "name": _nullable("string"),
    "status": {"enum": [*Status]},
    "version": {"type": "integer"},
    "attempts": {"type": "integer"},
    "created_at_ms": {"type": "integer"},
    "changed_at_ms": {"type": "integer"},
    "next_run_at_ms": {"type": "integer"},
    "held": {"description": "Whether a worker has it now.", "type": "boolean"},
    "undone": {"description": "Whether the drop was undone: nothing will be deleted.", "type": "boolean"},
    "stuck": {"description": "Whether it failed half-way, and holds the table's locations.", "type": "boolean"},
    "retriable": {"type": "boolean"},
    "progress": {"type": "object"},
    "result": _nullable("string"),
    "correlation_id": _nullable("string"),
}
_UNDO: Json = {
    "description": "Of a drop: whether an undrop would undo it, as far as the registry shows.",
    **_object(
        possible={"type": "boolean"},
        state={"enum": ["dropped", "purging", "purged", "restored", "gone"]},
        until_ms=_nullable("integer"),
        purge_task=_nullable("string"),
        blocked_by={
            **_object(
                reason={"enum": ["name-taken", "dropped-later", "namespace-missing"]},
                type=_TEXT,
                namespace=_LEVELS,
                name=_nullable("string"),
            ),
            "type": ["object", "null"],
        },
    ),
    "type": ["object", "null"],
}


def _holders(of: str, catalog: str, prefix: str) -> Mapping[str, Json]:
    """The operations that list who has access, below the path of a catalog, which its parameter `prefix` names."""
    namespace, found = f"{catalog}/namespaces/{{namespace}}", dict[str, Json]()
    for kind, path in (("namespace", ""), ("table", "/tables/{table}"), ("view", "/views/{view}")):
        names = (prefix, "namespace", *(() if kind == "namespace" else (kind,)))
        parameters = [_query("privilege", {"enum": sorted(GRANTABLE[kind])}), _PAGE_TOKEN, _PAGE_SIZE]
        found[f"GET {namespace}{path}/access"] = _reads(
            f"list{of}{kind.capitalize()}Access", "Access", parameters, names
        )
    return found


OPERATIONS: Mapping[str, Json] = {
    **_holders("", "/v1/{prefix}", "prefix"),
    **_holders("Catalog", f"{MANAGEMENT_BASE}/catalogs/{{catalog}}", "catalog"),
    "GET /v1/{prefix}/search": _reads(
        "search",
        "SearchResults",
        [
            _query("q", {"type": "string", "minLength": 1, "maxLength": MAX_QUERY}, required=True),
            _query("type", {"enum": [*KINDS]}),
            _query("limit", {"type": "integer", "minimum": 1}),
            _PAGE_TOKEN,
        ],
    ),
    "GET /v1/{prefix}/tasks": _reads(
        "listTasks",
        "Tasks",
        [
            _query("status", {"enum": [*Status]}),
            _query("stuck", {"type": "boolean"}),
            _query("unfinished", {"type": "boolean"}),
            _PAGE_TOKEN,
            _PAGE_SIZE,
        ],
    ),
    "GET /v1/{prefix}/tasks/{task}": _reads("getTask", "TaskDetails", [_TASK]),
    "POST /v1/{prefix}/tasks/{task}/retry": {
        **_reads("retryTask", "TaskDetails", [_TASK]),
        "requestBody": {"content": {"application/json": {"schema": {"type": "object"}}}},
    },
    "GET /v1/{prefix}/history": _reads(
        "listHistory",
        "History",
        [_PAGE_TOKEN, _PAGE_SIZE, _query("namespace", _TEXT), _query("table", _TEXT)],
    ),
}
"""Whole operations, by their endpoints."""

SCHEMAS: Mapping[str, Json] = {
    "Task": {
        "description": "A background task.",
        **_object(**_TASK_FIELDS),
    },
    "TaskDetails": {
        "description": "A background task with its payload and the details of its last result.",
        **_object(**_TASK_FIELDS, result_details=_nullable("string"), payload={"type": "object"}),
    },
    "UnreadableTask": {"description": "A task whose record is damaged.", **_object(id=_TEXT, unreadable=_TEXT)},
    "Tasks": {
        "description": "A page of tasks. It may be empty although there is a next page.",
        **_object(
            tasks=_list({"anyOf": [_reference("schemas", "Task"), _reference("schemas", "UnreadableTask")]}),
            next_page_token=_TOKEN,
        ),
    },
    "SearchResults": {
        "description": "A page of what a search found. It may be empty although there is a next page.",
        **_object(
            results={
                **_list(_object(type={"enum": [*KINDS]}, namespace=_LEVELS, name=_nullable("string"))),
                "maxItems": MAX_RESULTS,
            },
            scanned={"type": "integer"},
            next_page_token=_TOKEN,
        ),
    },
    "Access": {
        "description": "A page of the principals that have access, each by one of its principal roles.",
        **_object(
            checked={"description": "Whether this server checks grants.", "type": "boolean"},
            access=_list(
                _object(
                    principal_role=_TEXT,
                    principal={"description": "Null for a role that no principal has.", **_nullable("string")},
                    privileges=_list(
                        _object(privilege=_TEXT, catalog_role=_nullable("string"), grant={"type": "object"})
                    ),
                )
            ),
            next_page_token=_TOKEN,
        ),
    },
    "HistoryOperation": {
        "description": "An operation on the names, roles and grants of a catalog, by one registry commit.",
        **_object(
            id=_nullable("string"),
            commit=_TEXT,
            sequence={"type": "integer"},
            at_ms=_nullable("integer"),
            kind=_TEXT,
            principal=_nullable("string"),
            session=_nullable("string"),
            source=_nullable("object"),
            namespace={**_LEVELS, "type": ["array", "null"]},
            name=_nullable("string"),
            entity=_nullable("string"),
            to={**_NAME, "type": ["object", "null"]},
            detail={"type": "object"},
            undo=_UNDO,
        ),
    },
    "History": {
        "description": "A page of operations, newest first. It may be empty although there is a next page.",
        **_object(operations=_list(_reference("schemas", "HistoryOperation")), next_page_token=_TOKEN),
    },
}
