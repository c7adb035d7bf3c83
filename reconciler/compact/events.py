"""Makes the rows of the system table `catalog_events` for a commit of the registry: one for each operation of a
request, but none for operations other than grants on the namespace `system` and what is in it."""

from collections.abc import Iterator

from arco_catalog.iceberg.json import JsonObject, dumps
from arco_catalog.operations.history import OWN
from arco_catalog.state.fields import text
from arco_catalog.state.watermarks import NAMESPACE
from reconciler.compact.source import source_columns
from reconciler.compact.values import (
    namespace_of,
    object_of,
    objects_of,
    required_long,
    required_time,
    text_of,
    texts_of,
)
from reconciler.system.definition import Row

NOT_IN_DETAILS = frozenset(
    {"id", "kind", "answer", "entity", "namespace", "name", "principal", "principal_id", "session", "source"}
)
"""The fields of an operation that are not in the column `details`: they have columns of their own, or are internal."""


def event_rows(commit: JsonObject) -> Iterator[Row]:
    """Iterates over the rows of `catalog_events` for the document of a registry commit: one for each operation. The
    catalog's internal operations are left out, and so are those on the namespace `system` and what is in it, except
    grants. Raises `InternalError` if a required field is missing or invalid."""
    made: Row = {
        "commit_id": text(commit, "id"),
        "sequence": required_long(commit, "sequence"),
        "at": required_time(commit, "at_ms"),
    }
    for operation in objects_of(commit.get("operations")):
        kind = text(operation, "kind")
        if kind in OWN or _is_of_system(kind, operation):
            continue
        details: JsonObject = {name: value for name, value in operation.items() if name not in NOT_IN_DETAILS}
        to = object_of(operation.get("to"))
        yield {
            **made,
            "event_id": text(operation, "id"),
            "kind": kind,
            "entity": text_of(operation.get("entity")),
            "namespace": namespace_of(operation.get("namespace")),
            "name": text_of(operation.get("name")),
            "to_namespace": namespace_of(to.get("namespace")),
            "to_name": text_of(to.get("name")),
            **source_columns(operation),
            "details": dumps(details, sort_keys=True).decode() if details else None,
        }


def _is_of_system(kind: str, operation: JsonObject) -> bool:
    """Whether an operation is about the namespace `system`, or about an object in it or below it. False for grants
    there."""
    return texts_of(operation.get("namespace"))[:1] == [NAMESPACE] and not kind.endswith("-grant")
