"""The answers to mutations, and the form in which markers and registry commits store them.

Small answers are saved in full. A table's state, and texts that users gave to a namespace, policy, generic table or
semantic model, are saved by reference. A repeated request then gets an equivalent answer, which may have other bytes
(docs/design/idempotency.md#rule-6).
"""

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from arco_catalog.iceberg import errors
from arco_catalog.iceberg.errors import InternalError, Refusal
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.entries import DESCRIBED_KINDS, DescribedKind
from arco_catalog.state.fields import integer, mapping, text, texts
from storage_backends.lazy_dataclass import dataclass

ValueKind = Literal["namespace", "policy"] | DescribedKind
VALUE_KINDS: tuple[ValueKind, ...] = ("namespace", "policy", *DESCRIBED_KINDS)


@dataclass(frozen=True, slots=True)
class EntityValue:
    """A reference to the stored value of an entity (a namespace, policy, generic table or semantic model), from which
    an answer can be rebuilt: the kind of the entity, the id of the value, and in `levels` the levels of the namespace,
    followed by the name of an entity in it."""

    kind: ValueKind
    id: str
    levels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """An answer to a mutation with a status and a JSON body, or no body. If the body has texts that users gave to an
    entity, `value` refers to the object with them. Only that reference is saved then, because the texts may be long or
    secret, and stored answers are kept for long and read by all requests."""

    status: int
    body: JsonObject | None = None
    value: EntityValue | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class TableState:
    """An answer to a load or a mutation: the state of a table or view at one metadata file, with the file's
    decompressed bytes.

    `created` is true in answers to create and register, which contain configuration, and false in all others, such as
    those to loads and commits. `governance` is that of a load's answer, which has it as labels; a stored answer has
    none.
    """

    entity: str
    metadata_location: str
    metadata: bytes
    created: bool
    governance: Mapping[str, str] = field(default_factory=dict, compare=False)


Answer = Document | TableState


@dataclass(frozen=True, slots=True)
class Reference:
    """An answer with the state of a table or view, as it is stored: a `TableState` without the bytes, which must be
    read from the metadata file."""

    entity: str
    metadata_location: str
    created: bool


@dataclass(frozen=True, slots=True)
class ValueReference:
    """A saved `Document` whose body must be built from the entity's value, which was not read yet."""

    status: int
    value: EntityValue


Kept = Document | Reference | ValueReference | Refusal


def encode_answer(answer: Answer | Reference | Refusal) -> JsonObject:
    """Returns the stored form of an answer. Instead of the metadata of a table or view, and of texts of users, it has a
    reference to the object that contains them."""
    match answer:
        case Document(status, _, EntityValue(kind, value, levels)):
            return {"status": status, kind: {"levels": [*levels], "value": value}}
        case Document(status, body):
            return {"status": status, "body": body}
        case TableState(entity, location, _, created) | Reference(entity, location, created):
            return {"status": 200, "table": {"entity": entity, "metadata_location": location, "created": created}}
        case Refusal():
            return {"error": type(answer).__name__, "message": answer.message}


def decode_answer(stored: JsonObject) -> Kept:
    """Returns an answer, or the error that was the answer, from its stored form. An answer that was stored by reference
    is returned as that reference. Raises `InternalError` for an unknown type of error and for malformed fields."""
    if "error" in stored:
        refusal = _REFUSALS.get(text(stored, "error"))
        if refusal is None:
            raise InternalError(f"a stored answer has an unknown error type {text(stored, 'error')}")
        return refusal(text(stored, "message"))
    table = mapping(stored, "table")
    if table:
        return Reference(text(table, "entity"), text(table, "metadata_location"), bool(table.get("created")))
    status = integer(stored, "status")
    for kind in VALUE_KINDS:
        named = mapping(stored, kind)
        if named:
            return ValueReference(status, EntityValue(kind, text(named, "value"), texts(named, "levels")))
    body = stored.get("body")
    return Document(status, body if isinstance(body, dict) else None)


def _refusals(root: type[Refusal]) -> dict[str, type[Refusal]]:
    """Returns an error class and the ones derived from it, by their names."""
    found = {root.__name__: root}
    for child in root.__subclasses__():
        found |= _refusals(child)
    return found


_REFUSALS = _refusals(errors.Refusal)
