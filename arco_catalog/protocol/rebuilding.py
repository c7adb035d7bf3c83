"""Answers that markers and registry commits keep by reference, made whole again."""

from collections.abc import Mapping
from typing import assert_never

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.planning.answers import Answer, Document, NamespaceReference, Reference
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.current_file import rebuilt as rebuilt_table
from arco_catalog.state.fields import mapping
from arco_catalog.state.index import Namespace


async def rebuilt(session: Session, kept: Document | Reference | NamespaceReference) -> Answer:
    """The answer as it was first given, or an equivalent one. Raises `NotFound` if the file that it tells of is
    gone, and `InternalError` where a namespace's value is."""
    match kept:
        case Document():
            return kept
        case Reference():
            return await rebuilt_table(session, kept)
        case NamespaceReference(status, value):
            document = await session.state.namespace_value(value.id)
            answer = mapping(document, "answer") or described(value.namespace, mapping(document, "properties"))
            return Document(status, answer, value)
        case _:
            assert_never(kept)


def described(namespace: Namespace, properties: Mapping[str, JsonValue]) -> JsonObject:
    """A namespace as clients are told of it."""
    return {"namespace": [*namespace], "properties": dict(properties)}
