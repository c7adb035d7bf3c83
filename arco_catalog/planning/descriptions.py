"""The descriptions that users give to generic tables, semantic models and policies. Each is an immutable object, to
which the registry's entry refers, because a description may be long or secret, and every request reads the registry
(docs/decisions/0025)."""

import hashlib

from arco_catalog.iceberg.json import JsonObject, dumps
from arco_catalog.planning.answers import EntityValue, ValueKind
from arco_catalog.planning.attempt import Attempt
from arco_catalog.planning.context import Context
from arco_catalog.planning.names import dotted
from arco_catalog.planning.writes import RecordWrite
from arco_catalog.state.index import Namespace

FIELDS: dict[ValueKind, str] = {"generic-table": "table", "semantic-model": "document", "policy": "policy"}
"""The field of an answer that has the description, by kind."""


def describe(
    context: Context,
    attempt: Attempt,
    kind: ValueKind,
    namespace: Namespace,
    name: str,
    description: JsonObject,
    *,
    replaced: JsonObject | None = None,
) -> tuple[EntityValue, RecordWrite]:
    """Returns a reference to a new value with this description of a generic table, semantic model or policy, and the
    write of the value. The value's id follows from the attempt and the description. Unknown fields of the `replaced`
    value are kept. Raises `AnswerTooLarge` if the host could not carry an answer with it."""
    body = dumps({**(replaced or {}), "version": 1, FIELDS[kind]: description}, sort_keys=True)
    context.check_properties(body, dotted(namespace, name))
    value = f"{attempt.id}-{hashlib.sha256(body).hexdigest()[:16]}"
    write = RecordWrite(context.paths.entity_value(kind, value), body)
    return EntityValue(kind, value, (*namespace, name)), write
