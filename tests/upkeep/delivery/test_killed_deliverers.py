"""Events are delivered at least once, in the order of the feed, whatever call of the store or of the receiver a worker
is killed at; and no event blocks the others (docs/design/delivery.md)."""

import asyncio
import gc
from collections.abc import Callable, Coroutine
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TypeVar

import pytest

from arco_catalog.iceberg.json import JsonObject, loads
from arco_catalog.operations.events import event_of
from arco_catalog.operations.feed import read_feed
from arco_catalog.operations.open import build_catalog
from arco_catalog.planning.event_filter import EventFilter
from arco_catalog.state.subscription import Subscription, dead_letters, read_subscription
from arco_catalog.state.task_log import list_tasks, read_task
from arco_catalog.upkeep.delivery import deliver as delivering
from arco_catalog.upkeep.delivery.sink import DeliveryError, EventRefused, Message, ReceiverUnreachable
from arco_catalog.upkeep.purge.worker import task_worker
from storage_backends import ABSENT, ANY, Cursor, Found, Missing, Outcome, Page, Unchanged, Version, When
from storage_backends.memory import MemoryStore
from tests.support.feeding import feed
from tests.support.http_service import HttpService
from tools.support.request_bodies import set_property

T = TypeVar("T")
NAME = "s"
ROUNDS = 400
"""The maximum number of workers that one test starts after one another."""


class ProcessKilled(BaseException):
    """The process was killed."""


@dataclass
class Receiver:
    """A receiver of events that keeps what it took. `fails` returns how it fails, None if it does not."""

    taken: list[JsonObject] = field(default_factory=list)
    fails: Callable[[str], DeliveryError | None] = lambda id_: None
    before: Callable[[], None] = lambda: None
    """Runs before and after each message is taken."""
    closed: int = 0

    async def send(self, message: Message) -> None:
        self.before()
        failure = self.fails(message.id)
        if failure is not None:
            raise failure
        event = loads(message.body)
        assert isinstance(event, dict)
        self.taken.append(event)
        self.before()

    async def close(self) -> None:
        self.closed += 1

    @property
    def ids(self) -> list[str]:
        return [str(each["id"]) for each in self.taken]


class Killer:
    """Kills the process at the call of this number; never with None."""

    def __init__(self) -> None:
        self.left: int | None = None

    def step(self) -> None:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise ProcessKilled


class KillingStore(MemoryStore):
    """The objects of another store, each call of which may be the last one of its process, before it or after it."""

    def __init__(self, inner: MemoryStore, killer: Killer) -> None:
        self.__dict__ = inner.__dict__  # the same objects
        self._killer = killer

    async def get(self, key: str, if_changed_from: Version | None = None) -> Found | Unchanged | Missing:
        return await self._killed(super().get(key, if_changed_from))

    async def put(self, key: str, body: bytes, when: When) -> Outcome:
        return await self._killed(super().put(key, body, when))

    async def list(self, prefix: str, after: Cursor | None = None) -> Page:
        return await self._killed(super().list(prefix, after))

    async def delete(self, key: str, when: When = ANY) -> Outcome:
        return await self._killed(super().delete(key, when))

    async def _killed(self, call: Coroutine[None, None, T]) -> T:
        try:
            self._killer.step()
        except ProcessKilled:
            call.close()
            raise
        found = await call
        self._killer.step()
        return found


@dataclass
class Feeds:
    """A catalog with a feed, and a subscription to it."""

    service: HttpService = field(default_factory=HttpService)
    receiver: Receiver = field(default_factory=Receiver)
    killer: Killer = field(default_factory=Killer)

    async def start(self, tables: int = 3, commits: int = 4) -> "Feeds":
        await self.service.namespace("db", "db")
        await feed(self.service.session())
        for number in range(tables):
            await self.service.table(f"t{number}")
        for number in range(commits):
            for each in range(tables):
                await self.service.client.post(f"/v1/wh/namespaces/db/tables/t{each}", set_property("n", str(number)))
        await feed(self.service.session())
        subscription = Subscription(NAME, self.service.clock.ulid(), "test", 0, None, self.service.clock.now_ms())
        state = self.service.session().state
        await self.service.store.put(state.paths.subscription(NAME), subscription.body, ABSENT)
        return self

    async def work(self) -> None:
        """Lets a worker of a new process run until it is idle, or is killed."""
        store = KillingStore(self.service.store, self.killer)
        catalog = build_catalog(self.service.settings, store, "memory:///", (), self.service.clock)
        worker = task_worker(catalog, sinks=lambda subscription: self.receiver)
        await worker.run_until_idle()

    async def work_until_done(self) -> None:
        """Lets workers run after one another until everything is delivered, each after the lease of the one before."""
        for _ in range(ROUNDS):
            self.killer.left = None
            await self.work()
            if await self.is_done():
                return
            self.service.clock.ms += 10 * 60_000
        raise AssertionError("the deliveries do not end")

    def copy(self) -> "Feeds":
        """A copy in a store of its own, before anything was delivered."""
        service = HttpService()
        service.store.__dict__ = {**service.store.__dict__, **deepcopy(_objects_of(self.service.store))}
        service.clock.ms = self.service.clock.ms
        service.clock._ids = self.service.clock._ids
        return Feeds(service)

    async def expected(self) -> list[str]:
        page = await read_feed(self.service.session().state, None, 10_000)
        events = [(record, event_of(record)) for record in page.records]
        return [str(event["event-id"]) for _, event in events if event is not None and EventFilter().selects(event)]

    async def subscription(self) -> Subscription:
        found = await read_subscription(self.service.session().state, NAME)
        assert found is not None
        return found.subscription

    async def is_done(self) -> bool:
        page = await read_feed(self.service.session().state, None, 10_000)
        return (await self.subscription()).cursor == page.records[-1].number


def _objects_of(store: MemoryStore) -> dict[str, object]:
    return {name: value for name, value in vars(store).items() if name != "_now_ms"}


@pytest.fixture(scope="module")
def first() -> Feeds:
    return asyncio.run(Feeds().start())


@pytest.fixture
async def feeds(first: Feeds) -> Feeds:
    return first.copy()


async def test_all_events_are_delivered_in_order(feeds: Feeds) -> None:
    await feeds.work()

    assert feeds.receiver.ids == await feeds.expected()
    assert await feeds.is_done()
    assert [int(str(each["sequence"])) for each in feeds.receiver.taken] == sorted(
        int(str(each["sequence"])) for each in feeds.receiver.taken
    )


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")  # a killed process does not await its own
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_a_worker_is_killed_at_each_call(first: Feeds) -> None:
    expected = await first.expected()
    number = 0
    while True:
        feeds = first.copy()
        feeds.killer.left, feeds.receiver.before = number, feeds.killer.step
        try:
            await feeds.work()
            break  # no call has this number
        except (ProcessKilled, BaseExceptionGroup):
            await _end_tasks()
        cursor = (await feeds.subscription()).cursor
        taken = {int(str(each["sequence"])) for each in feeds.receiver.taken}
        assert all(each in taken for each in await _numbers(feeds) if each <= cursor), "the cursor is ahead"

        feeds.service.clock.ms += 10 * 60_000
        await feeds.work_until_done()

        assert [*dict.fromkeys(feeds.receiver.ids)] == expected, "in order, where repetitions are left out"
        assert len(feeds.receiver.ids) <= len(expected) + delivering.SAVE_AFTER
        number += 1
    assert number > 2 * len(expected)
    gc.collect()  # what killed processes did not await warns here, and in no later test


async def _end_tasks() -> None:
    """Waits for the tasks that a killed worker left. Each is killed at the next call."""
    await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}), return_exceptions=True)


async def _numbers(feeds: Feeds) -> list[int]:
    page = await read_feed(feeds.service.session().state, None, 10_000)
    return [record.number for record in page.records if event_of(record) is not None]


async def test_an_event_that_is_always_refused_is_set_aside_and_delays_no_other(feeds: Feeds) -> None:
    expected = await feeds.expected()
    poison = expected[4]
    feeds.receiver.fails = lambda id_: EventRefused("no") if id_ == poison else None

    await feeds.work_until_done()

    assert feeds.receiver.ids == [each for each in expected if each != poison]
    subscription = await feeds.subscription()
    [(_, letter)] = [each async for each in dead_letters(feeds.service.session().state, subscription.id)]
    assert (letter.event["id"], letter.reason, letter.number) == (poison, "no", await _number_of(feeds, poison))


async def _number_of(feeds: Feeds, id_: str) -> int:
    page = await read_feed(feeds.service.session().state, None, 10_000)
    [found] = [each.number for each in page.records if (event := event_of(each)) and event["event-id"] == id_]
    return found


@pytest.mark.parametrize(("failure", "tries"), [(EventRefused("no"), 3), (DeliveryError("busy"), 12)])
async def test_an_event_is_tried_some_times_after_pauses_that_grow(
    feeds: Feeds, failure: DeliveryError, tries: int
) -> None:
    poison, times = (await feeds.expected())[0], list[int]()

    def fails(id_: str) -> DeliveryError | None:
        if id_ == poison:
            times.append(feeds.service.clock.ms)
            return failure
        return None

    feeds.receiver.fails = fails
    id_ = (await feeds.subscription()).id
    for _ in range(ROUNDS):
        done = await delivering.deliver(feeds.service.session, NAME, id_, lambda _: feeds.receiver)
        if done.again_ms is None:
            break
        assert done.again_ms > feeds.service.clock.ms
        feeds.service.clock.ms = done.again_ms

    assert len(times) == tries
    assert (done.accepted, done.set_aside) == (len(await feeds.expected()) - 1, 1)
    assert (times[1] - times[0], times[2] - times[1]) == (5_000, 10_000)


async def test_a_receiver_that_takes_nothing_loses_nothing(feeds: Feeds) -> None:
    feeds.receiver.fails = lambda id_: ReceiverUnreachable("gone")
    for _ in range(30):
        await feeds.work()
        feeds.service.clock.ms += 2 * 60 * 60_000
    subscription = await feeds.subscription()
    assert (feeds.receiver.ids, subscription.tries, subscription.problem) == ([], 0, "gone")
    assert subscription.failures >= 25

    feeds.receiver.fails = lambda id_: None
    await feeds.work_until_done()

    assert feeds.receiver.ids == await feeds.expected()
    assert (await feeds.subscription()).problem is None


async def test_two_workers_at_once_deliver_everything_in_order(feeds: Feeds) -> None:
    await asyncio.gather(feeds.work(), feeds.work())
    feeds.service.clock.ms += 10 * 60_000
    await feeds.work_until_done()

    assert [*dict.fromkeys(feeds.receiver.ids)] == await feeds.expected()


async def test_a_removed_subscription_gets_nothing_more(feeds: Feeds) -> None:
    feeds.receiver.fails = lambda id_: DeliveryError("busy")
    await feeds.work()
    state = feeds.service.session().state
    await feeds.service.store.delete(state.paths.subscription(NAME))
    feeds.receiver.fails = lambda id_: None
    feeds.service.clock.ms += 10 * 60_000

    await feeds.work()

    assert feeds.receiver.ids == []
    state = feeds.service.session().state
    stored = [await read_task(state, task) for task in await list_tasks(state)]
    assert {each.task.status for each in stored if each is not None} == {"SUCCESS"}


async def test_a_worker_whose_place_another_has_moved_changes_nothing(feeds: Feeds) -> None:
    found = await feeds.subscription()
    state = feeds.service.session().state
    moved = found.delivered(3, found.token)

    async def overtaken(message: Message) -> None:
        await feeds.service.store.put(state.paths.subscription(NAME), moved.body, ANY)

    feeds.receiver.send = overtaken  # type: ignore[method-assign]
    with pytest.raises(delivering.SubscriptionConflict, match="another worker"):
        await delivering.deliver(feeds.service.session, NAME, found.id, lambda _: feeds.receiver)

    assert await feeds.subscription() == moved
