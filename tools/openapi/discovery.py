"""The parts of the OpenAPI document about search, history, tasks, and who has access, which no specification has."""

from collections.abc import Mapping

from arco_catalog.operations.search import KINDS, MAX_RESULTS
from arco_catalog.planning.privileges import GRANTABLE
from arco_catalog.planning.search import MAX_QUERY
from arco_catalog.state.task import Status
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
from tools.openapi.specifications import MANAGEMENT_BASE, Json

_LEVELS = list_of(TEXT)
_PAGE_TOKEN, _PAGE_SIZE = parameter_references("page-token", "page-size")
_NAME: Json = object_of(namespace=_LEVELS, name=nullable(TEXT))
_TASK: Json = {"name": "task", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
_TASK_FIELDS: Mapping[str, Json] = {
    "id": TEXT,
    "type": TEXT,
    "namespace": nullable(_LEVELS),
    "name": nullable(TEXT),
    "status": {"enum": [*Status]},
    "version": INTEGER,
    "attempts": INTEGER,
    "created_at_ms": INTEGER,
    "changed_at_ms": INTEGER,
    "next_run_at_ms": INTEGER,
    "held": {"description": "Whether a worker has it now.", "type": "boolean"},
    "undone": {"description": "Whether the drop was undone: nothing will be deleted.", "type": "boolean"},
    "stuck": {"description": "Whether it failed half-way, and holds the table's locations.", "type": "boolean"},
    "retriable": {"type": "boolean"},
    "progress": {"type": "object"},
    "result": nullable(TEXT),
    "correlation_id": nullable(TEXT),
}
_UNDO: Json = {
    "description": "Of a drop: whether an undrop would undo it, as far as the registry shows.",
    **object_of(
        possible={"type": "boolean"},
        state={"enum": ["dropped", "purging", "purged", "restored", "gone"]},
        until_ms=nullable(INTEGER),
        purge_task=nullable(TEXT),
        blocked_by={
            **object_of(
                reason={"enum": ["name-taken", "dropped-later", "namespace-missing"]},
                type=TEXT,
                namespace=_LEVELS,
                name=nullable(TEXT),
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
        parameters = [query("privilege", {"enum": sorted(GRANTABLE[kind])}), _PAGE_TOKEN, _PAGE_SIZE]
        found[f"GET {namespace}{path}/access"] = read_operation(
            f"list{of}{kind.capitalize()}Access", "Access", parameters, names
        )
    return found


OPERATIONS: Mapping[str, Json] = {
    **_holders("", "/v1/{prefix}", "prefix"),
    **_holders("Catalog", f"{MANAGEMENT_BASE}/catalogs/{{catalog}}", "catalog"),
    "GET /v1/{prefix}/search": read_operation(
        "search",
        "SearchResults",
        [
            query("q", {"type": "string", "minLength": 1, "maxLength": MAX_QUERY}, required=True),
            query("type", {"enum": [*KINDS]}),
            query("limit", {"type": "integer", "minimum": 1}),
            _PAGE_TOKEN,
        ],
    ),
    "GET /v1/{prefix}/tasks": read_operation(
        "listTasks",
        "Tasks",
        [
            query("status", {"enum": [*Status]}),
            query("stuck", {"type": "boolean"}),
            query("unfinished", {"type": "boolean"}),
            _PAGE_TOKEN,
            _PAGE_SIZE,
        ],
    ),
    "GET /v1/{prefix}/tasks/{task}": read_operation("getTask", "TaskDetails", [_TASK]),
    "POST /v1/{prefix}/tasks/{task}/retry": {
        **read_operation("retryTask", "TaskDetails", [_TASK]),
        "requestBody": {"content": {"application/json": {"schema": {"type": "object"}}}},
    },
    "GET /v1/{prefix}/history": read_operation(
        "listHistory",
        "History",
        [_PAGE_TOKEN, _PAGE_SIZE, query("namespace", TEXT), query("table", TEXT)],
    ),
}
"""Whole operations, by their endpoints."""

SCHEMAS: Mapping[str, Json] = {
    "Task": {
        "description": "A background task.",
        **object_of(**_TASK_FIELDS),
    },
    "TaskDetails": {
        "description": "A background task with its payload and the details of its last result.",
        **object_of(**_TASK_FIELDS, result_details=nullable(TEXT), payload={"type": "object"}),
    },
    "UnreadableTask": {"description": "A task whose record is damaged.", **object_of(id=TEXT, unreadable=TEXT)},
    "Tasks": {
        "description": "A page of tasks. It may be empty although there is a next page.",
        **object_of(
            tasks=list_of({"anyOf": [reference("schemas", "Task"), reference("schemas", "UnreadableTask")]}),
            next_page_token=nullable(TEXT),
        ),
    },
    "SearchResults": {
        "description": "A page of what a search found. It may be empty although there is a next page.",
        **object_of(
            results={
                **list_of(object_of(type={"enum": [*KINDS]}, namespace=_LEVELS, name=nullable(TEXT))),
                "maxItems": MAX_RESULTS,
            },
            next_page_token=nullable(TEXT),
        ),
    },
    "Access": {
        "description": "A page of the principals that have access, each by one of its principal roles.",
        **object_of(
            checked={"description": "Whether this server checks grants.", "type": "boolean"},
            access=list_of(
                object_of(
                    principal_role=TEXT,
                    principal={"description": "Null for a role that no principal has.", **nullable(TEXT)},
                    privileges=list_of(
                        object_of(privilege=TEXT, catalog_role=nullable(TEXT), grant={"type": "object"})
                    ),
                )
            ),
            next_page_token=nullable(TEXT),
        ),
    },
    "HistoryOperation": {
        "description": "An operation on the names, roles and grants of a catalog, by one registry commit.",
        **object_of(
            id=nullable(TEXT),
            commit=TEXT,
            sequence=INTEGER,
            at_ms=nullable(INTEGER),
            kind=TEXT,
            principal=nullable(TEXT),
            session=nullable(TEXT),
            source=nullable({"type": "object"}),
            namespace=nullable(_LEVELS),
            name=nullable(TEXT),
            entity=nullable(TEXT),
            to={**_NAME, "type": ["object", "null"]},
            detail={"type": "object"},
            undo=_UNDO,
        ),
    },
    "History": {
        "description": "A page of operations, newest first. It may be empty although there is a next page.",
        **object_of(operations=list_of(reference("schemas", "HistoryOperation")), next_page_token=nullable(TEXT)),
    },
}
