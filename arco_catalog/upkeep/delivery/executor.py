"""Delivers events as tasks: one for each subscription that has something to deliver (docs/design/delivery.md)."""

import logging

from arco_catalog.iceberg.errors import BadRequest, CatalogError, CommitStateUnknown, InternalError
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.feed import NoSuchFeed, read_feed
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.fields import integer, text
from arco_catalog.state.restoration import describe_copy
from arco_catalog.state.subscription import Subscription, list_subscriptions, read_subscription
from arco_catalog.state.task import ENDED, EVENT_DELIVERY, Task
from arco_catalog.state.task_log import read_task
from arco_catalog.tasks.execution import Execution, NotYet, TaskResult
from arco_catalog.tasks.new_task import store_new_task
from arco_catalog.upkeep.delivery.deliver import PAGE, SubscriptionConflict, deliver
from arco_catalog.upkeep.delivery.sinks import Sinks
from arco_catalog.upkeep.expiry.tables import task_id
from storage_backends import StoreError

_LOG = logging.getLogger(__name__)

COPY_WAIT_MS = 60 * 60_000
STORE_WAIT_MS = 30_000
"""How long a delivery waits after a failure of the store."""
LOOK_AGAIN_MS = 10 * 60_000
"""After so long the task of a cursor that has not moved is read again: it may have ended without a delivery."""


class DeliveryExecutor:
    """Delivers events to receivers that `sinks` makes; without it, tasks are left to other workers."""

    def __init__(self, sinks: Sinks | None) -> None:
        self._sinks = sinks

    def takes(self, task: Task) -> bool:
        """Whether this executor has `sinks`, whatever the task is."""
        return self._sinks is not None

    async def execute(self, execution: Execution) -> TaskResult:
        """Delivers the events in the feed to the subscription of the task, and counts them. If the subscription is
        gone, or has moved on to another task, this task ends without more. Raises `NotYet` if the receiver, filter,
        feed or store fails, if another worker has changed the subscription but not the cursor, before the next attempt
        is due, if the run's time is over, and in a copy of a catalog, because the original sends the events; raises
        `LeaseLost` and `InternalError`."""
        if self._sinks is None:
            raise NotImplementedError
        head = await execution.session().state.head()
        if head.copy_of is not None:
            raise NotYet(execution.taken_ms + COPY_WAIT_MS, describe_copy(head.copy_of))
        payload = execution.task.payload
        await execution.start()
        counted = execution.stats().deliveries
        try:
            name, id_ = text(payload, "subscription"), text(payload, "subscription_id")
            done = await deliver(execution.session, name, id_, self._sinks, integer(payload, "cursor"))
        except SubscriptionConflict as conflict:
            session = execution.session()
            if conflict.present is not None and await submit_delivery(session, conflict.present) == execution.task.id:
                raise NotYet(session.now_ms() + STORE_WAIT_MS, str(conflict)) from conflict
            return TaskResult(f"Nothing more is delivered by this task: {conflict}", {})
        except (StoreError, CommitStateUnknown) as error:
            raise NotYet(execution.session().now_ms() + STORE_WAIT_MS, f"the store failed: {error}") from error
        counted.accepted += done.accepted
        counted.set_aside += done.set_aside
        counted.failed += done.failed
        if done.again_ms is not None:
            reason = "the next one could not be delivered" if done.failed else "the next ones are to follow"
            raise NotYet(done.again_ms, f"Delivered {done.accepted:,} events; {reason}")
        counts: JsonObject = {"accepted": done.accepted, "set-aside": done.set_aside}
        return TaskResult(f"Delivered {done.accepted:,} events", counts)

    async def abandon(self, execution: Execution, reason: str) -> None:
        """Does nothing for an abandoned delivery: the subscription keeps its place in the feed."""


class Deliveries:
    """Makes the tasks that deliver events to the subscriptions of a catalog."""

    def __init__(self) -> None:
        self.created = 0
        """The number of tasks that were created or found."""
        self._made: dict[tuple[str, int], int] = {}
        """When this process has made or seen the task of a subscription, by the subscription's id and cursor."""

    async def submit_due(self, session: Session) -> int:
        """Makes a task for each subscription that has something to deliver, unless it exists, or this process has known
        it for less than ten minutes. Logs the subscriptions for which that fails because of a corrupt record, and
        returns the number of them. Raises `StoreError`."""
        now_ms, failed = session.now_ms(), 0
        self._made = {made: at_ms for made, at_ms in self._made.items() if now_ms < at_ms + LOOK_AGAIN_MS}
        for name in await list_subscriptions(session.state):
            try:
                await self._submit(session, name)
            except CatalogError as error:
                failed += 1
                _LOG.warning(
                    "no task can be created that sends the next events to the subscription %s, since a record can't be "
                    "read, and the next poll tries it: %s",
                    name,
                    error,
                )
        return failed

    async def _submit(self, session: Session, name: str) -> None:
        """Makes the task of one subscription, if it has something to deliver and no task, and remembers that. Does
        nothing for a subscription that is gone, or if this process remembers the task for the present cursor."""
        found = await read_subscription(session.state, name)
        if found is None:
            return
        subscription = found.subscription
        key = (subscription.id, subscription.cursor)
        if key not in self._made and await has_news(session, subscription):
            await submit_delivery(session, subscription)
            self._made[key] = session.now_ms()
            self.created += 1


async def submit_delivery(session: Session, subscription: Subscription) -> str:
    """Stores the task that delivers the events after the cursor of a subscription, unless it exists and has not ended,
    and returns the id of that task. The id follows from the subscription and the cursor, and from the number of such
    tasks that have ended. Raises `StoreError`, and `InternalError`."""
    parts = [session.state.paths.root, subscription.id, str(subscription.cursor)]
    while True:
        task = task_id(EVENT_DELIVERY, *parts)
        found = await read_task(session.state, task)
        if found is None:
            payload: JsonObject = {
                "subscription": subscription.name,
                "subscription_id": subscription.id,
                "cursor": subscription.cursor,
            }
            await store_new_task(session, task, EVENT_DELIVERY, payload)
        if found is None or found.task.status not in ENDED:
            return task
        parts.append("ended")  # without a delivery, since the cursor has not moved: another task follows it


async def has_news(session: Session, subscription: Subscription) -> bool:
    """Whether the feed has records after the cursor of a subscription, or can't be read on from there, which a delivery
    then records. False if there is no feed. Raises `StoreError`."""
    try:
        page = await read_feed(session.state, subscription.token, PAGE)
    except NoSuchFeed:
        return False
    except (BadRequest, InternalError):
        return True
    return not page.is_end or any(record.number > subscription.cursor for record in page.records)
