"""Deliveries go on after writes of unknown outcome, conflicts, failures of any number and ended tasks, and give way to
other tasks (docs/design/delivery.md#rule-4)."""

import math
from contextlib import suppress
from dataclasses import replace

import pytest

from arco_catalog.iceberg.errors import AlreadyExists, InternalError
from arco_catalog.operations.open import build_catalog
from arco_catalog.state.access import State
from arco_catalog.state.feed_floor import read_feed_floor
from arco_catalog.state.subscription import (
    DeadLetter,
    Subscription,
    VersionedSubscription,
    dead_letters,
    read_subscription,
)
from arco_catalog.state.task import Status, Task
from arco_catalog.state.task_log import append_task, list_tasks, read_task
from arco_catalog.tasks.execution import task_session
from arco_catalog.tasks.feed_stats import FeedStats
from arco_catalog.upkeep.delivery import deliver as delivering
from arco_catalog.upkeep.delivery import subscriptions
from arco_catalog.upkeep.delivery.executor import LOOK_AGAIN_MS, Deliveries, submit_delivery
from arco_catalog.upkeep.delivery.sink import DeliveryError, EventRefused, Message, ReceiverUnreachable
from arco_catalog.upkeep.delivery.subscriptions import subscribe, unsubscribe
from arco_catalog.upkeep.feed.work import FeedWork
from arco_catalog.upkeep.purge.worker import task_worker
from storage_backends import ABSENT, ANY, Outcome, StoreDenied, Unknown, When
from storage_backends.memory import MemoryStore
from tests.support.feeding import feed
from tests.upkeep.delivery.test_killed_deliverers import NAME, Feeds, Receiver, feeds, first
from tools.support.request_bodies import set_property

__all__ = ["feeds", "first"]
HOUR_MS = 3_600_000


class LossyStore(MemoryStore):
    """The objects of another store, which does not confirm the first write or deletion of a key that has `part` in it;
    `applies` is whether it makes that write. It does not make that deletion."""

    def __init__(self, inner: MemoryStore, part: str, *, applies: bool) -> None:
        self.__dict__ = inner.__dict__  # the same objects
        self._part, self._applies, self._left = part, applies, 1

    async def put(self, key: str, body: bytes, when: When) -> Outcome:
        if self._part in key and self._left:
            self._left -= 1
            if self._applies:
                await super().put(key, body, when)
            return Unknown("the connection was reset")
        return await super().put(key, body, when)

    async def delete(self, key: str, when: When = ANY) -> Outcome:
        if self._part in key and self._left:
            self._left -= 1
            return Unknown("the connection was reset")
        return await super().delete(key, when)


async def work(feeds: Feeds, store: MemoryStore) -> None:
    """Lets a worker of a new process run until it is idle."""
    catalog = build_catalog(feeds.service.settings, store, "memory:///", (), feeds.service.clock)
    await task_worker(catalog, sinks=lambda subscription: feeds.receiver).run_until_idle()
    feeds.service.clock.ms += 2 * HOUR_MS


async def delivered(feeds: Feeds) -> bool:
    """Whether everything is delivered, in order, after a few more workers."""
    for _ in range(3):
        await work(feeds, feeds.service.store)
    return [*dict.fromkeys(feeds.receiver.ids)] == await feeds.expected() and await feeds.is_done()


@pytest.mark.parametrize("applies", [False, True])
@pytest.mark.parametrize("is_down", [False, True])
async def test_a_place_that_the_store_does_not_confirm_stops_nothing(
    feeds: Feeds, *, applies: bool, is_down: bool
) -> None:
    feeds.receiver.fails = lambda id_: ReceiverUnreachable("down") if is_down else None
    await work(feeds, LossyStore(feeds.service.store, "/subscriptions/", applies=applies))
    feeds.receiver.fails = lambda id_: None

    assert await delivered(feeds)


@pytest.mark.parametrize("applies", [False, True])
async def test_a_letter_that_the_store_does_not_confirm_is_kept(feeds: Feeds, *, applies: bool) -> None:
    poison = (await feeds.expected())[2]
    feeds.receiver.fails = lambda id_: EventRefused("no") if id_ == poison else None
    store = LossyStore(feeds.service.store, "/dead-letters/", applies=applies)
    for _ in range(4):
        await work(feeds, store)

    assert await feeds.is_done()
    letters = dead_letters(feeds.service.session().state, (await feeds.subscription()).id)
    assert [letter.event["id"] async for _, letter in letters] == [poison]


async def test_a_delivery_that_loses_a_swap_at_its_cursor_is_made_again(feeds: Feeds) -> None:
    state, first_one = feeds.service.session().state, True

    class ConflictingReceiver(Receiver):
        async def send(self, message: Message) -> None:
            nonlocal first_one
            if first_one:
                first_one = False
                changed = (await feeds.subscription()).failed("another worker was here", 0, counts=False)
                await feeds.service.store.put(state.paths.subscription(NAME), changed.body, ANY)
            await super().send(message)

    feeds.receiver = ConflictingReceiver()
    await work(feeds, feeds.service.store)

    assert await delivered(feeds)


async def test_no_number_of_failures_ends_a_delivery(feeds: Feeds) -> None:
    def fails(id_: str) -> None:
        raise RuntimeError("a defect")

    feeds.receiver.fails = fails
    for _ in range(12):
        await work(feeds, feeds.service.store)
    feeds.receiver.fails = lambda id_: None

    assert await delivered(feeds)


async def test_the_task_of_a_cursor_is_made_again_if_it_has_ended(feeds: Feeds) -> None:
    session, deliveries = feeds.service.session(), Deliveries()
    await deliveries.submit_due(session)
    [id_] = await list_tasks(session.state)
    await _end(feeds, id_)
    await deliveries.submit_due(session)
    assert await list_tasks(session.state) == [id_], "it is not read at each look"

    feeds.service.clock.ms += LOOK_AGAIN_MS
    await deliveries.submit_due(feeds.service.session())

    session = feeds.service.session()
    [made] = {*await list_tasks(session.state)} - {id_}
    assert await submit_delivery(session, await feeds.subscription()) == made
    assert await delivered(feeds)


async def _end(feeds: Feeds, id_: str) -> None:
    state = feeds.service.session().state
    stored = await read_task(state, id_)
    assert stored is not None
    ended = Task({**stored.task.document, "task_version": 2, "status": Status.SUCCESS.value})
    assert await append_task(state, ended) is not None


async def test_a_slow_delivery_gives_way_after_a_minute_and_is_due_again(feeds: Feeds) -> None:
    clock = feeds.service.clock

    def slow(id_: str) -> None:
        clock.ms += 15_000

    feeds.receiver.fails = slow
    id_, began_ms = (await feeds.subscription()).id, clock.ms
    done = await delivering.deliver(feeds.service.session, NAME, id_, lambda _: feeds.receiver)

    assert done.accepted == 4
    assert not done.failed
    assert done.again_ms is not None
    assert done.again_ms <= clock.ms == began_ms + 60_000
    last = feeds.receiver.taken[-1]
    assert (await feeds.subscription()).cursor == int(str(last["sequence"]))


@pytest.mark.parametrize("failure", [None, ReceiverUnreachable("down"), RuntimeError("a defect")])
async def test_a_receiver_is_closed_however_a_delivery_ends(feeds: Feeds, failure: Exception | None) -> None:
    def fails(id_: str) -> None:
        if failure is not None:
            raise failure

    feeds.receiver.fails = fails
    with suppress(RuntimeError):
        await delivering.deliver(feeds.service.session, NAME, (await feeds.subscription()).id, lambda _: feeds.receiver)

    assert feeds.receiver.closed == 1


async def test_the_place_of_a_slow_delivery_is_saved_after_seconds(feeds: Feeds) -> None:
    cursors: list[int] = []

    class SlowReceiver(Receiver):
        async def send(self, message: Message) -> None:
            cursors.append((await feeds.subscription()).cursor)
            feeds.service.clock.ms += 5_000
            await super().send(message)

    feeds.receiver = SlowReceiver()
    id_ = (await feeds.subscription()).id
    await delivering.deliver(feeds.service.session, NAME, id_, lambda _: feeds.receiver)

    assert cursors[0] == cursors[1] < cursors[2] == cursors[3] < cursors[4]


async def test_credentials_that_can_t_be_used_are_a_problem_of_the_subscription(feeds: Feeds) -> None:
    def sinks(subscription: Subscription) -> Receiver:
        raise StoreDenied("the account's key is not base64")

    id_ = (await feeds.subscription()).id
    done = await delivering.deliver(feeds.service.session, NAME, id_, sinks)

    assert done.failed
    assert "not base64" in str((await feeds.subscription()).problem)


async def test_a_corrupt_subscription_delays_no_other(feeds: Feeds) -> None:
    state = feeds.service.session().state
    await feeds.service.store.put(state.paths.subscription("a-corrupt-one"), b"{", ABSENT)

    stats = FeedStats()
    await FeedWork(feeds.service.catalog(), Deliveries())(stats)
    assert (stats.errors, stats.waiting) == (0, 1)
    assert await delivered(feeds)


async def test_a_corrupt_segment_is_a_problem_of_the_subscription_until_it_is_restored(feeds: Feeds) -> None:
    state, store = feeds.service.session().state, feeds.service.store
    key = state.paths.feed_segment(await read_feed_floor(state))
    whole = await state.read(key)
    assert whole is not None
    await store.put(key, b"{", ANY)

    assert await Deliveries().submit_due(feeds.service.session()) == 0
    await work(feeds, store)
    stopped = await feeds.subscription()
    assert f"the feed can't be read: The record {key} is not JSON" in str(stopped.problem)
    assert (stopped.cursor, stopped.tries, feeds.receiver.taken) == (0, 0, [])

    await store.put(key, whole.body, ANY)
    assert await delivered(feeds)


async def test_a_feed_that_is_deleted_for_a_corrupt_segment_begins_anew(feeds: Feeds) -> None:
    state, store = feeds.service.session().state, feeds.service.store
    await store.put(state.paths.feed_segment(await read_feed_floor(state)), b"{", ANY)
    for listed in (await store.list(f"{state.paths.root}/_catalog/feed/")).entries:
        await store.delete(listed.key)
    await unsubscribe(feeds.service.session(), NAME)

    await feed(feeds.service.session())
    session = feeds.service.session()
    made = Subscription(NAME, feeds.service.clock.ulid(), "test", 0, None, session.now_ms())
    await subscribe(session, made, lambda _: feeds.receiver, only_new=True)
    await feeds.service.client.post("/v1/wh/namespaces/db/tables/t0", set_property("n", "new"))
    await feed(feeds.service.session())
    await work(feeds, store)

    assert len(feeds.receiver.taken) == 1
    assert (await feeds.subscription()).problem is None


@pytest.mark.parametrize(("requested_s", "waits_s"), [(0.0, 5), (2.0, 5), (90.5, 90.5), (1e9, 3600), (math.inf, 3600)])
async def test_a_receiver_decides_when_it_is_tried_again_within_limits(
    feeds: Feeds, requested_s: float, waits_s: float
) -> None:
    feeds.receiver.fails = lambda id_: DeliveryError("overloaded", requested_s)

    id_, began_ms = (await feeds.subscription()).id, feeds.service.clock.ms
    done = await delivering.deliver(feeds.service.session, NAME, id_, lambda _: feeds.receiver)

    stored = await feeds.subscription()
    assert done.again_ms == stored.next_ms == began_ms + waits_s * 1000
    assert stored.tries == 1


async def test_a_subscription_whose_write_is_not_confirmed_is_made_once(feeds: Feeds) -> None:
    lossy = LossyStore(feeds.service.store, "/subscriptions/", applies=True)
    catalog = build_catalog(feeds.service.settings, lossy, "memory:///", (), feeds.service.clock)
    made = replace(await feeds.subscription(), name="b", id=feeds.service.clock.ulid())
    opened = task_session(catalog, "test", feeds.service.clock.ms + HOUR_MS)

    assert await subscribe(opened, made, lambda _: feeds.receiver, only_new=False) == made
    with pytest.raises(AlreadyExists):
        await subscribe(opened, replace(made, id="another"), lambda _: feeds.receiver, only_new=False)


async def test_a_subscription_that_was_not_stored_is_refused_although_its_name_is_free_by_then(
    feeds: Feeds, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def freed(state: State, name: str) -> VersionedSubscription | None:
        await state.delete(state.paths.subscription(name))
        return await read_subscription(state, name)

    monkeypatch.setattr(subscriptions, "read_subscription", freed)
    made = replace(await feeds.subscription(), id=feeds.service.clock.ulid())

    with pytest.raises(AlreadyExists):
        await subscribe(feeds.service.session(), made, lambda _: feeds.receiver, only_new=False)


@pytest.mark.parametrize("part", ["/dead-letters/", "/subscriptions/"])
async def test_a_removal_that_the_store_does_not_confirm_is_made(feeds: Feeds, part: str) -> None:
    session, found = feeds.service.session(), await feeds.subscription()
    letter = DeadLetter(1, "no", {"id": "1"}, 1)
    await session.state.create(session.state.paths.dead_letter(found.id, 1), letter.body)
    lossy = LossyStore(feeds.service.store, part, applies=True)
    catalog = build_catalog(feeds.service.settings, lossy, "memory:///", (), feeds.service.clock)

    assert await unsubscribe(task_session(catalog, "test", feeds.service.clock.ms + HOUR_MS), NAME) == 1
    assert [key async for key, _ in dead_letters(session.state, found.id)] == []
    assert await read_subscription(session.state, NAME) is None


async def test_a_removal_that_is_interrupted_can_be_repeated(feeds: Feeds) -> None:
    session, found = feeds.service.session(), await feeds.subscription()
    for number in (1, 2):
        letter = DeadLetter(number, "no", {"id": str(number)}, 1)
        await session.state.create(session.state.paths.dead_letter(found.id, number), letter.body)
    await feeds.service.store.put(session.state.paths.dead_letter(found.id, 3), b"{", ABSENT)  # ends the command
    with pytest.raises(InternalError):
        await unsubscribe(session, NAME)
    await feeds.service.store.delete(session.state.paths.dead_letter(found.id, 3))

    assert await unsubscribe(session, NAME) == 0
    assert [key async for key, _ in dead_letters(session.state, found.id)] == []


async def test_a_place_inside_a_page_is_not_that_of_another_history(feeds: Feeds) -> None:
    """A restore removes the events after the token; other ones get the numbers up to the cursor."""
    expected = await feeds.expected()
    feeds.receiver.fails = lambda id_: ReceiverUnreachable("down") if id_ == expected[7] else None
    await work(feeds, feeds.service.store)
    assert feeds.receiver.ids == expected[:7]
    feeds.receiver.fails = lambda id_: None
    paths = feeds.service.session().state.paths
    segments = feeds.service.store.keys(paths.feed_segments)
    assert (await feeds.subscription()).cursor >= int(segments[-1].rpartition("/")[2].removesuffix(".json"))
    for key in (segments[-1], *feeds.service.store.keys(paths.all_feed_cursors)):
        await feeds.service.store.delete(key)
    await feed(feeds.service.session())

    await work(feeds, feeds.service.store)

    assert feeds.receiver.ids == expected[:7]
    assert "can't be read" in str((await feeds.subscription()).problem)


@pytest.mark.parametrize("is_late", [False, True])
async def test_a_letter_that_is_stored_while_its_subscription_is_removed_is_deleted(
    feeds: Feeds, monkeypatch: pytest.MonkeyPatch, *, is_late: bool
) -> None:
    """It is stored after those that there were are deleted, or after the subscription is."""
    subscription, refused = await feeds.subscription(), EventRefused("no")
    feeds.receiver.fails = lambda id_: refused
    store, delete, put = feeds.service.store, feeds.service.store.delete, feeds.service.store.put

    async def send() -> None:
        with suppress(delivering.SubscriptionConflict):
            await delivering.deliver(feeds.service.session, NAME, subscription.id, lambda _: feeds.receiver)

    for _ in range(2):
        await send()
        feeds.service.clock.ms += HOUR_MS
    session = feeds.service.session()
    letters, key = session.state.paths.dead_letters(subscription.id), session.state.paths.subscription(NAME)

    async def put_late(stored: str, body: bytes, when: When) -> Outcome:
        if stored.startswith(letters):
            await delete(key)
            assert [each async for each in dead_letters(session.state, subscription.id)] == []
        return await put(stored, body, when)

    async def meet(deleted: str, when: When = ANY) -> Outcome:
        if deleted == key:
            if is_late:
                monkeypatch.setattr(store, "put", put_late)
            await send()
        return await delete(deleted, when)

    monkeypatch.setattr(store, "delete", meet)
    await unsubscribe(session, NAME)

    assert store.keys(letters) == []
    assert len(feeds.receiver.taken) == 0
