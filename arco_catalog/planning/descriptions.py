"""What users say of a generic table, a semantic model or a policy: an immutable value of its own, which its entry
names. Descriptions may be long, and secrets; the registry's commits are read at every request (docs/decisions/0025)."""

import hashlib

from arco_catalog.iceberg.json import JsonObject, dumps
from arco_catalog.planning.answers import EntityValue, ValueKind
from arco_catalog.planning.attempt import Attempt
from arco_catalog.planning.context import Context
from arco_catalog.planning.names import dotted
from arco_catalog.planning.writes import RecordWrite
from arco_catalog.state.index import Namespace

FIELDS: dict[ValueKind, str] = {"generic-table": "table", "semantic-model": "document", "policy": "policy"}
"""Under which name answers give what describes something of a kind."""


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
    """A value, fresh for the attempt, and the object that holds it. The same description is the same value. Fields
    that a later version added to the `replaced` value are kept. Raises `AnswerTooLarge`."""
    body = dumps({**(replaced or {}), "version": 1, FIELDS[kind]: description}, sort_keys=True)
    context.check_properties(body, dotted(namespace, name))
    value = f"{attempt.id}-{hashlib.sha256(body).hexdigest()[:16]}"
    write = RecordWrite(context.paths.entity_value(kind, value), body)
    return EntityValue(kind, value, (*namespace, name)), write
