"""Delivers events as tasks: one for each subscription that has something to deliver (docs/design/delivery.md)."""

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.feed import NoSuchFeed, read_feed
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.fields import text
from arco_catalog.state.restoration import describe_copy
from arco_catalog.state.subscription import Subscription, list_subscriptions, read_subscription
from arco_catalog.state.task import EVENT_DELIVERY, Task
from arco_catalog.tasks.execution import Execution, NotYet, TaskResult
from arco_catalog.upkeep.delivery.deliver import PAGE, LostPlace, deliver
from arco_catalog.upkeep.delivery.sinks import Sinks
from arco_catalog.upkeep.expiry.tables import submit, task_id
from storage_backends import StoreError

COPY_WAIT_MS = 60 * 60_000
STORE_WAIT_MS = 30_000
"""How long a delivery waits after a failure of the store."""


class DeliveryExecutor:
    """Delivers events to receivers that `sinks` makes; without it, tasks are left to other workers."""

    def __init__(self, sinks: Sinks | None) -> None:
        self._sinks = sinks

    def takes(self, task: Task) -> bool:
        return self._sinks is not None

    async def execute(self, execution: Execution) -> TaskResult:
        """Delivers the events in the feed to one subscription. Raises `NotYet` if the receiver or the store fails, and
        in a copy of a catalog, because the original sends them; raises `LeaseLost` and `InternalError`."""
        if self._sinks is None:
            raise NotImplementedError
        head = await execution.session().state.head()
        if head.copy_of is not None:
            raise NotYet(execution.taken_ms + COPY_WAIT_MS, describe_copy(head.copy_of))
        payload = execution.task.payload
        await execution.start()
        counted = execution.stats().deliveries
        try:
            done = await deliver(
                execution.session, text(payload, "subscription"), text(payload, "subscription_id"), self._sinks
            )
        except LostPlace as lost:
            return TaskResult(f"Nothing more is delivered by this task: {lost}", {})
        except StoreError as error:
            raise NotYet(execution.session().now_ms() + STORE_WAIT_MS, f"the store failed: {error}") from error
        counted.accepted += done.accepted
        counted.set_aside += done.set_aside
        if done.again_ms is not None:
            counted.failed += 1
            raise NotYet(done.again_ms, f"Delivered {done.accepted:,} events; the receiver did not take the next one")
        counts: JsonObject = {"accepted": done.accepted, "set-aside": done.set_aside}
        return TaskResult(f"Delivered {done.accepted:,} events", counts)

    async def abandon(self, execution: Execution, reason: str) -> None:
        """Does nothing: the subscription keeps its place."""


class Deliveries:
    """Makes the tasks that deliver events to the subscriptions of a catalog."""

    def __init__(self) -> None:
        self._made: dict[str, tuple[str, int]] = {}
        """The id and cursor of each subscription for which this process has made or seen the task."""

    async def submit_due(self, session: Session) -> None:
        """Makes a task for each subscription that has something to deliver, unless it exists. Raises `StoreError`, and
        `CatalogError`."""
        for name in await list_subscriptions(session.state):
            found = await read_subscription(session.state, name)
            if found is None or self._made.get(name) == (found[0].id, found[0].cursor):
                continue
            if await has_news(session, found[0]):
                await submit_delivery(session, found[0])
                self._made[name] = (found[0].id, found[0].cursor)


async def submit_delivery(session: Session, subscription: Subscription) -> str:
    """Stores the task that delivers the events after the cursor of a subscription, unless it exists, and returns the
    id. Raises `StoreError`."""
    task = task_id(EVENT_DELIVERY, session.state.paths.root, subscription.id, str(subscription.cursor))
    payload = {"subscription": subscription.name, "subscription_id": subscription.id}
    await submit(session, task, EVENT_DELIVERY, {**payload})
    return task


async def has_news(session: Session, subscription: Subscription) -> bool:
    """Whether the feed has records after the cursor of a subscription, or can't be read on from there, which a
    delivery then records. Raises `StoreError`, and `InternalError`."""
    try:
        page = await read_feed(session.state, subscription.token, PAGE)
    except NoSuchFeed:
        return False
    except BadRequest:
        return True
    return not page.is_end or any(record.number > subscription.cursor for record in page.records)
