"""Errands: what a queued message may ask for. A message is `{"version": 1, "work": "reconcile"}`; with `"entity"`, one
table or view is walked, if a name leads to it or did: nothing that a message says is taken for true."""

from collections.abc import Awaitable, Callable, Mapping

from arco_catalog.iceberg.errors import BadRequest, CatalogError
from arco_catalog.iceberg.json import loads
from arco_catalog.iceberg.shapes import ANY, STRING, Fields
from arco_catalog.operations.catalog import Session
from arco_catalog.operations.reconcile import reconcile, reconcile_one
from arco_catalog.operations.walk import Enough
from arco_catalog.state.runtime import is_ulid

TOLD = 3
"""Of how many things that could not be read a message's failure tells."""


class Undone(CatalogError):
    """A message whose work is not finished: it is to come again."""


async def run_errand(body: str, session: Session, enough: Enough) -> None:
    """Does what one message asks for. Raises `BadRequest` for an invalid message or job type, and `Undone`."""
    if enough():
        raise Undone("no time is left to start the job")
    document = loads(body.encode())
    if not isinstance(document, dict):
        raise BadRequest("a message must be a JSON object")
    message = Fields(document, "message")
    version, work = message.required("version", ANY), message.required("work", STRING)
    if version != 1 or work not in _WORK:
        raise BadRequest(f"unknown job type {work[:64]!r} or message version {version!r}")
    await _WORK[work](message, session, enough)


async def _reconcile(message: Fields, session: Session, enough: Enough) -> None:
    entity = message.optional("entity", STRING)
    if entity is None:
        tally = await reconcile(session, enough=enough)
    elif is_ulid(entity):
        tally = await reconcile_one(session, entity, enough=enough)
    else:
        raise BadRequest(f"invalid entity id {entity[:64]!r}: expected a ULID")
    if tally.stopped or tally.incomplete:
        raise Undone(f"{tally.incomplete} walks are not complete, stopped: {tally.stopped}, {tally.unreadable[:TOLD]}")


_WORK: Mapping[str, Callable[[Fields, Session, Enough], Awaitable[None]]] = {"reconcile": _reconcile}
