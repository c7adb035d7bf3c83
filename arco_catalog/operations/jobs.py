"""Jobs that a queued message may start. A message is `{"version": 1, "work": "reconcile"}`, for every catalog of the
deployment. With `"entity"` one table or view is walked, if a name leads to it or did: what a message says is checked,
not trusted."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from arco_catalog.iceberg.errors import BadRequest, CatalogError
from arco_catalog.iceberg.json import loads
from arco_catalog.iceberg.shapes import ANY, STRING, Fields
from arco_catalog.operations.catalogs import DeployedCatalog
from arco_catalog.operations.reconcile import is_named, reconcile, reconcile_one
from arco_catalog.operations.reconcile_all import reconcile_all
from arco_catalog.operations.reconcile_stats import ReconcileStats
from arco_catalog.operations.walk import ShouldStop
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.operation_request import OperationRequest
from arco_catalog.state.runtime import Runtime, is_ulid

MAX_REASONS = 3
"""How many unreadable records the failure of a message names."""


_LOG = logging.getLogger(__name__)


class RetryLater(CatalogError):
    """The job of a message is not finished: the queue must deliver it again."""


@dataclass(frozen=True, slots=True)
class Workplace:
    """What a job works with: the catalogs of the deployment, the request to work under, and whether to stop."""

    catalogs: Sequence[DeployedCatalog]
    request: OperationRequest
    runtime: Runtime
    should_stop: ShouldStop


async def run_job(body: str, workplace: Workplace) -> None:
    """Runs the job of one message. Raises `BadRequest` for an invalid message or job type, and `RetryLater`."""
    if workplace.should_stop():
        raise RetryLater("no time is left to start the job")
    document = loads(body.encode())
    if not isinstance(document, dict):
        raise BadRequest("a message must be a JSON object")
    message = Fields(document, "message")
    version, job = message.required("version", ANY), message.required("work", STRING)
    if version != 1 or job not in _JOBS:
        raise BadRequest(f"unknown job type {job[:64]!r} or message version {version!r}")
    await _JOBS[job](message, workplace)


async def _reconcile(message: Fields, workplace: Workplace) -> None:
    entity = message.optional("entity", STRING)
    if entity is None:
        stats = await _reconcile_all(workplace)
    elif is_ulid(entity):
        stats = await _reconcile_one(workplace, entity)
    else:
        raise BadRequest(f"invalid entity id {entity[:64]!r}: expected a ULID")
    if stats.stopped or stats.incomplete:
        raise RetryLater(
            f"{stats.incomplete} walks are not complete, stopped: {stats.stopped}, {stats.unreadable[:MAX_REASONS]}"
        )


async def _reconcile_all(workplace: Workplace) -> ReconcileStats:
    async def walk(session: Session) -> ReconcileStats:
        return await reconcile(session, should_stop=workplace.should_stop)

    total = ReconcileStats()
    walked = reconcile_all(workplace.catalogs, workplace.request, workplace.runtime, walk)
    async with aclosing(walked):
        async for _, stats in walked:
            total.add(stats)
    return total


async def _reconcile_one(workplace: Workplace, entity: str) -> ReconcileStats:
    """Walks an entity in the catalog that has it, of those that can be opened; if none has, the last one's refusal says
    so."""
    session: Session | None = None
    for catalog in workplace.catalogs:
        try:
            session = catalog.open().session(workplace.request)
        except BadRequest as error:
            _LOG.error("catalog %s cannot be opened: %s", catalog.name, error.message)
            continue
        if len(workplace.catalogs) > 1 and await is_named(session, entity):
            break
    if session is None:
        raise BadRequest(f"there is no catalog that could have entity {entity}")
    return await reconcile_one(session, entity, should_stop=workplace.should_stop)


_JOBS: Mapping[str, Callable[[Fields, Workplace], Awaitable[None]]] = {"reconcile": _reconcile}
