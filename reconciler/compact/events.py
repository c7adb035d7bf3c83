"""A commit of the registry as rows of `catalog_events`: one for each operation that somebody asked for."""

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

ELSEWHERE = frozenset(
    {"id", "kind", "answer", "entity", "namespace", "name", "principal", "principal_id", "session", "source"}
)
"""What of an operation has a column of its own, or is nobody's business."""


def event_rows(commit: JsonObject) -> Iterator[Row]:
    """The rows of a registry commit's document. What the protocols need for themselves is left out, and so is what was
    done to tables of `system`. Raises `InternalError` for a commit without its keys."""
    made: Row = {
        "commit_id": text(commit, "id"),
        "sequence": required_long(commit, "sequence"),
        "at": required_time(commit, "at_ms"),
    }
    for operation in objects_of(commit.get("operations")):
        kind = text(operation, "kind")
        if kind in OWN or _is_of_system(kind, operation):
            continue
        details: JsonObject = {name: value for name, value in operation.items() if name not in ELSEWHERE}
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
    """Whether an operation made, changed or dropped something in `system`. Who may read it is told: grants are."""
    return texts_of(operation.get("namespace"))[:1] == [NAMESPACE] and not kind.endswith("-grant")
