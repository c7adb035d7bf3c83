"""Rebuilds answers that markers and registry commits keep by reference."""

from collections.abc import Mapping
from typing import assert_never

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.planning.answers import Answer, Document, EntityValue, Reference, ValueReference
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.current_file import rebuilt as rebuilt_table
from arco_catalog.state.fields import mapping
from arco_catalog.state.index import Namespace


async def rebuilt(session: Session, kept: Document | Reference | ValueReference) -> Answer:
    """Returns a stored answer complete: a document as it is, and a reference with the bytes of the first answer or
    equivalent ones. Raises `NotFound` if the table or view has no metadata file any more, and `InternalError` if the
    stored value does not exist."""
    match kept:
        case Document():
            return kept
        case Reference():
            return await rebuilt_table(session, kept)
        case ValueReference(status, value):
            stored = await session.state.entity_value(value.kind, value.id)
            return Document(status, body_of_value(value, stored), value)
        case _:
            assert_never(kept)


def body_of_value(value: EntityValue, document: JsonObject) -> JsonObject:
    """Returns the body of the answer to the change that has written a value. A namespace's value may contain that body;
    otherwise the body is the namespace with its properties. The value of another entity is itself the body, without the
    field `version`, and that of a semantic model gets the value's id as `entity-version`."""
    if value.kind == "namespace":
        answer = document.get("answer")
        return answer if isinstance(answer, dict) else described(value.levels, mapping(document, "properties"))
    shown = {name: field for name, field in document.items() if name != "version"}
    return {**shown, "entity-version": value.id} if value.kind == "semantic-model" else shown


def described(namespace: Namespace, properties: Mapping[str, JsonValue]) -> JsonObject:
    """Returns a namespace with its properties in the form of answers."""
    return {"namespace": [*namespace], "properties": dict(properties)}
