"""Jobs that a queued message starts, by the field `work`, in the catalogs of a deployment:

- `{"version": 1, "work": "reconcile"}` writes missing receipts; with `"entity"` only of that table or view, which HEAD
  must have, live or dropped: the content of a message is not trusted.
- `{"version": 1, "work": "tasks"}` executes the tasks that are due; with `"task"` that one task.
- `{"version": 1, "work": "collect"}` deletes objects that no record refers to, or that are past their retention.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field

from arco_catalog.iceberg.errors import BadRequest, CatalogError, InternalError
from arco_catalog.iceberg.json import loads
from arco_catalog.iceberg.shapes import ANY, STRING, Fields
from arco_catalog.operations.catalogs import Inventory
from arco_catalog.operations.reconcile_stats import ReconcileStats
from arco_catalog.protocol.access import ALLOW_ALL
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.operation_request import OperationRequest
from arco_catalog.state.runtime import Runtime, is_ulid
from arco_catalog.tasks.retry import TaskPolicies
from arco_catalog.tasks.work_stats import WorkStats
from arco_catalog.upkeep.collection.collect import collect, collect_all
from arco_catalog.upkeep.collection.stats import CollectionStats
from arco_catalog.upkeep.delivery.sinks import Sinks
from arco_catalog.upkeep.invocation import MARGIN_MS
from arco_catalog.upkeep.purge.delegate import Delegate
from arco_catalog.upkeep.reconcile import TimeLimit, is_named, reconcile, reconcile_one
from arco_catalog.upkeep.reconcile_all import reconcile_all
from arco_catalog.upkeep.run_tasks import run_tasks
from arco_catalog.upkeep.walk import ShouldStop

MAX_REASONS = 3
"""Maximum records that could not be read and are named in the error of a job, or its log."""

_LOG = logging.getLogger(__name__)


class RetryLater(CatalogError):
    """The job of a queued message is not finished, and the queue must deliver the same message again."""


class Unfinished(RetryLater):
    """The time was over, or a catalog could not be opened, before a background job was finished. What is left is done
    by a new message, or by the next run of the schedule."""


Report = Callable[[str, WorkStats], None]
"""Receives the counts of a worker in the catalog of this name."""


ReportCollection = Callable[[str, CollectionStats], None]
"""Receives the counts of a collection in the catalog, registry or service of this name."""


def _ignore(catalog: str, stats: WorkStats | CollectionStats) -> None:
    """Ignores the counts of a catalog: the default receiver of reports."""


@dataclass(frozen=True, slots=True)
class Workplace:
    """The context of a job that a queued message starts: the deployment's catalogs, the request whose deadline limits
    it, the check whether to stop, the policies of leases and retries, and the receivers of its reports."""

    inventory: Inventory
    request: OperationRequest
    runtime: Runtime
    should_stop: ShouldStop
    policies: TaskPolicies = field(default_factory=TaskPolicies)
    report: Report = _ignore
    delegate: Delegate | None = None
    """The delegation service that purges for these catalogs, if there is one."""
    report_collection: ReportCollection = _ignore
    sinks: Sinks | None = None
    """Makes the receivers of events, if work on tasks also fills the event feeds of these catalogs."""
    margin_ms: int = MARGIN_MS
    """The part of the request's time that is left to release leases."""


async def run_job(body: str, workplace: Workplace) -> None:
    """Runs the job of one message. Raises `MalformedJson` for a message that is no JSON, `BadRequest` for an invalid
    message or job type, `RetryLater` if the job must be run again, `Unfinished` if this run ends before the job is
    finished, `InternalError` for a corrupt record, and `StoreError`."""
    if workplace.should_stop():
        raise RetryLater("no time is left to start the background job: its message must be delivered again")
    document = loads(body.encode())
    if not isinstance(document, dict):
        raise BadRequest("the message of a background job must be a JSON object")
    message = Fields(document, "message")
    version, job = message.required("version", ANY), message.required("work", STRING)
    if version != 1 or job not in _JOBS:
        raise BadRequest(f"unknown type {job[:64]!r} or version {version!r} of the message of a background job")
    await _JOBS[job](message, workplace)


async def _reconcile(message: Fields, workplace: Workplace) -> None:
    """Writes the missing receipts of the entity that the message names, or else of all entities in all catalogs. Raises
    `RetryLater` if the time was over, a walk is incomplete, or a catalog can't be opened or has a corrupt HEAD;
    `StoreError`; and `BadRequest` for an id that is no ULID or that no catalog has."""
    entity = message.optional("entity", STRING)
    if entity is None:
        stats = await _reconcile_all(workplace)
    elif is_ulid(entity):
        stats = await _reconcile_one(workplace, entity)
    else:
        raise BadRequest(f"invalid entity id {entity[:64]!r}: expected a ULID")
    if stats.stopped or stats.incomplete:
        raise RetryLater(
            "the reconciliation is not complete, and the message must be delivered once more: "
            f"{stats.incomplete} tables and views were not walked to the end. Out of time, or a catalog could not be "
            f"walked: {stats.stopped}. Could not be read: {stats.unreadable[:MAX_REASONS]}"
        )


async def _reconcile_all(workplace: Workplace) -> ReconcileStats:
    """Writes the missing receipts in all deployed catalogs, and returns the sum of their counts. A catalog that can't
    be opened, or whose walk raises `InternalError`, as for a corrupt HEAD, counts as a failure, and as stopped. Other
    errors of a walk end the run and are raised, such as `StoreError`."""

    async def walk(session: Session) -> ReconcileStats:
        return await reconcile(session, should_stop=workplace.should_stop)

    total = ReconcileStats()
    walked = reconcile_all(workplace.inventory.catalogs, workplace.request, workplace.runtime, walk)
    async with aclosing(walked):
        async for _, stats in walked:
            total.add(stats)
    return total


async def _reconcile_one(workplace: Workplace, entity: str) -> ReconcileStats:
    """Writes the missing receipts of an entity in the catalog that has it, or, if none has it, tries the last one that
    can be opened, which does not permit it. Logs and passes over catalogs that can't be opened. Raises `BadRequest` if
    no catalog has the entity, or none can be opened, and `InternalError` if the search in a catalog raised that, as
    for a corrupt HEAD, and no other one has the entity."""
    session: Session | None = None
    failure: InternalError | None = None
    for catalog in workplace.inventory.catalogs:
        try:
            session = catalog.open().session(workplace.request, ALLOW_ALL)
        except BadRequest as error:
            _LOG.error(
                "catalog %s cannot be opened, so the reconciler looks for entity %s in other catalogs only: %s",
                catalog.name,
                entity,
                error.message,
            )
            continue
        try:
            if len(workplace.inventory.catalogs) > 1 and await is_named(session, entity):
                break
        except InternalError as error:
            failure = error
            _LOG.error(
                "the reconciler could not look for entity %s in the catalog %s: %s", entity, catalog.name, error.message
            )
    else:
        if failure is not None:
            raise failure
    if session is None:
        raise BadRequest(f"no catalog can be opened that could have the table or view with the entity id {entity}")
    return await reconcile_one(session, entity, should_stop=workplace.should_stop)


async def _tasks(message: Fields, workplace: Workplace) -> None:
    """Executes the task that the message names, in the catalog that has it, if it is due and no worker has it; without
    one, the tasks that are due in every catalog. Passes the counts of each catalog, also of one that failed, to
    `workplace.report`. Raises `Unfinished` if the time ends before all are executed."""
    task, total = message.optional("task", STRING), WorkStats()
    end_ms = workplace.request.deadline_ms - workplace.margin_ms
    worked = run_tasks(
        workplace.inventory.catalogs,
        workplace.runtime,
        end_ms,
        workplace.policies,
        task,
        delegate=workplace.delegate,
        sinks=workplace.sinks,
    )
    async with aclosing(worked):
        async for catalog, stats in worked:
            workplace.report(catalog.name, stats)
            total.add(stats)
    if total.stopped:
        raise Unfinished("the time of this run is over, and due tasks may be left: the next run executes them")


async def _collect(message: Fields, workplace: Workplace) -> None:
    """Deletes objects that nothing refers to, or of which the retention is over, in every catalog, registry and
    delegation service, except in a copy or with a corrupt HEAD. Passes the counts of each to
    `workplace.report_collection`, but not of a service without objects, and logs if records could not be read. If the
    time was over, or a catalog could not be opened, raises `Unfinished` if some objects were deleted, and `RetryLater`
    if none were, since a continuation could not delete any either."""

    async def collection(session: Session) -> CollectionStats:
        return await collect(session, delete=True, should_stop=TimeLimit(session, workplace.should_stop))

    total = CollectionStats()
    collected = collect_all(workplace.inventory, workplace.request, workplace.runtime, collection)
    async with aclosing(collected):
        async for catalog, stats in collected:
            workplace.report_collection(catalog.name, stats)
            total.add(stats)
    if total.unreadable:
        _LOG.error(
            "a collection kept some objects, since %s records or catalogs could not be read, such as %s",
            total.unreadable_count,
            total.unreadable[:MAX_REASONS],
        )
    if total.stopped:
        left = (
            f"the time of this run ended before all collections, or a catalog could not be opened, after {total.count} "
            "deletes: another run does the rest"
        )
        raise Unfinished(left) if total.count else RetryLater(left)


_JOBS: Mapping[str, Callable[[Fields, Workplace], Awaitable[None]]] = {
    "reconcile": _reconcile,
    "tasks": _tasks,
    "collect": _collect,
}
