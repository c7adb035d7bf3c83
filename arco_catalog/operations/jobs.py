"""Jobs that a queued message may start. A message is `{"version": 1, "work": "reconcile"}`. With `"entity"` one table
or view is walked, if a name leads to it or did: what a message says is checked, not trusted."""

from collections.abc import Awaitable, Callable, Mapping

from arco_catalog.iceberg.errors import BadRequest, CatalogError
from arco_catalog.iceberg.json import loads
from arco_catalog.iceberg.shapes import ANY, STRING, Fields
from arco_catalog.operations.reconcile import reconcile, reconcile_one
from arco_catalog.operations.walk import ShouldStop
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.runtime import is_ulid

MAX_REASONS = 3
"""How many unreadable records the failure of a message names."""


class RetryLater(CatalogError):
    """The job of a message is not finished: the queue must deliver it again."""


async def run_job(body: str, session: Session, should_stop: ShouldStop) -> None:
    """Runs the job of one message. Raises `BadRequest` for an invalid message or job type, and `RetryLater`."""
    if should_stop():
        raise RetryLater("no time is left to start the job")
    document = loads(body.encode())
    if not isinstance(document, dict):
        raise BadRequest("a message must be a JSON object")
    message = Fields(document, "message")
    version, job = message.required("version", ANY), message.required("work", STRING)
    if version != 1 or job not in _JOBS:
        raise BadRequest(f"unknown job type {job[:64]!r} or message version {version!r}")
    await _JOBS[job](message, session, should_stop)


async def _reconcile(message: Fields, session: Session, should_stop: ShouldStop) -> None:
    entity = message.optional("entity", STRING)
    if entity is None:
        stats = await reconcile(session, should_stop=should_stop)
    elif is_ulid(entity):
        stats = await reconcile_one(session, entity, should_stop=should_stop)
    else:
        raise BadRequest(f"invalid entity id {entity[:64]!r}: expected a ULID")
    if stats.stopped or stats.incomplete:
        raise RetryLater(
            f"{stats.incomplete} walks are not complete, stopped: {stats.stopped}, {stats.unreadable[:MAX_REASONS]}"
        )


_JOBS: Mapping[str, Callable[[Fields, Session, ShouldStop], Awaitable[None]]] = {"reconcile": _reconcile}
