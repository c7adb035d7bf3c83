"""Answers that markers and registry commits keep by reference, made whole again."""

from collections.abc import Mapping
from typing import assert_never

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.planning.answers import Answer, Document, EntityValue, Reference, ValueReference
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.current_file import rebuilt as rebuilt_table
from arco_catalog.state.fields import mapping
from arco_catalog.state.index import Namespace


async def rebuilt(session: Session, kept: Document | Reference | ValueReference) -> Answer:
    """The answer as it was first given, or an equivalent one. Raises `NotFound` if the file that it tells of is
    gone, and `InternalError` where a value is."""
    match kept:
        case Document():
            return kept
        case Reference():
            return await rebuilt_table(session, kept)
        case ValueReference(status, value):
            return Document(status, told(value, await session.state.entity_value(value.kind, value.id)), value)
        case _:
            assert_never(kept)


def told(value: EntityValue, document: JsonObject) -> JsonObject:
    """The answer that tells a value. What a change of a namespace answers besides is kept with it; the other values
    hold what is told of them, but for the version of a semantic model, which is the value's own id."""
    if value.kind == "namespace":
        answer = document.get("answer")
        return answer if isinstance(answer, dict) else described(value.levels, mapping(document, "properties"))
    shown = {name: field for name, field in document.items() if name != "version"}
    return {**shown, "entity-version": value.id} if value.kind == "semantic-model" else shown


def described(namespace: Namespace, properties: Mapping[str, JsonValue]) -> JsonObject:
    """A namespace as clients are told of it."""
    return {"namespace": [*namespace], "properties": dict(properties)}
