"""What a mutation answers, and the form in which markers and registry commits keep it.

Small answers are kept as they are; a table's state by reference, to be rebuilt on replay: equivalent, not necessarily
identical (design.md 6.1).
"""

from dataclasses import dataclass

from arco_catalog.iceberg import errors
from arco_catalog.iceberg.errors import Broken, Refusal
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.fields import integer, mapping, text


@dataclass(frozen=True, slots=True)
class Document:
    """A status and a JSON body, or none."""

    status: int
    body: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class TableState:
    """A table or view as of one metadata file, whose bytes are carried as they were stored (decompressed).

    `created` tells answers to create and register, which carry configuration, from those to commits, which do not.
    """

    entity: str
    metadata_location: str
    metadata: bytes
    created: bool


Answer = Document | TableState


@dataclass(frozen=True, slots=True)
class Reference:
    """A kept `TableState`, its bytes yet to be read."""

    entity: str
    metadata_location: str
    created: bool


Kept = Document | Reference | Refusal


def keep(answer: Answer | Reference | Refusal) -> JsonObject:
    """The form to store."""
    match answer:
        case Document(status, body):
            return {"status": status, "body": body}
        case TableState(entity, location, _, created) | Reference(entity, location, created):
            return {"status": 200, "table": {"entity": entity, "metadata_location": location, "created": created}}
        case Refusal():
            return {"error": type(answer).__name__, "message": answer.message}


def recall(stored: JsonObject) -> Kept:
    """Reads a stored answer. Raises `Broken`."""
    if "error" in stored:
        refusal = _REFUSALS.get(text(stored, "error"))
        if refusal is None:
            raise Broken(f"a stored answer names an unknown error {text(stored, 'error')}")
        return refusal(text(stored, "message"))
    table = mapping(stored, "table")
    if table:
        return Reference(text(table, "entity"), text(table, "metadata_location"), bool(table.get("created")))
    body = stored.get("body")
    return Document(integer(stored, "status"), body if isinstance(body, dict) else None)


def _refusals(root: type[Refusal]) -> dict[str, type[Refusal]]:
    found = {root.__name__: root}
    for child in root.__subclasses__():
        found |= _refusals(child)
    return found


_REFUSALS = _refusals(errors.Refusal)
