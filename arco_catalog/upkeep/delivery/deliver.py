"""Delivers the events of the feed to one subscription, in the order of the feed (docs/design/delivery.md)."""

from collections.abc import Callable
from typing import NamedTuple

from arco_catalog.iceberg.errors import BadRequest, InternalError
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.iceberg.shapes import Fields
from arco_catalog.operations.events import event_of
from arco_catalog.operations.feed import FeedPage, NoSuchFeed, read_feed
from arco_catalog.planning.cloud_events import cloud_event
from arco_catalog.planning.event_filter import EventFilter, read_filter
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.access import State
from arco_catalog.state.feed import FeedRecord
from arco_catalog.state.subscription import DeadLetter, Subscription, VersionedSubscription, read_subscription
from arco_catalog.tasks.new_task import CLOCK_LAG_MS
from arco_catalog.upkeep.delivery.sink import DeliveryError, Message, ReceiverUnreachable, Sink
from arco_catalog.upkeep.delivery.sinks import Sinks
from storage_backends import Applied, StoreError, Version

PAGE = 100
"""The number of records of the feed that are read at once."""
SAVE_AFTER, SAVE_AFTER_MS = 20, 10_000
"""After so many deliveries, or so much time, the cursor is saved: a worker that is killed delivers at most so many
events again."""
RUN_MS = 60_000
"""After so long a delivery pauses, and is due again at once: other tasks of the catalog have their turn before it."""
FIRST_PAUSE_MS, LAST_PAUSE_MS = 5_000, 60 * 60_000
"""The pause after the first failed attempt at an event, which every later one doubles, and the limit of pauses, also of
those that a receiver requests."""
MAX_PROBLEM = 500
"""The maximum length of a problem, in characters."""


class DeliveryResult(NamedTuple):
    """What a delivery did: the numbers of events that were accepted, and of those set aside as dead letters; the time
    from which it is to be continued, in milliseconds since 1970 by the store's clock, None if everything was delivered;
    and whether it stopped because of the receiver, or because the filter or the feed can't be used."""

    accepted: int
    set_aside: int
    again_ms: int | None
    failed: bool = False


class SubscriptionConflict(Exception):
    """The subscription is gone, or another worker has changed it: the delivery ends without doing more. `present` is
    the subscription as it is now, None if it is gone."""

    def __init__(self, reason: str, present: Subscription | None) -> None:
        super().__init__(reason)
        self.present = present


async def deliver(
    open_session: Callable[[], Session], name: str, id_: str, sinks: Sinks, cursor: int | None = None
) -> DeliveryResult:
    """Delivers the selected events of the feed to the subscription of this name and id, up to one that the receiver
    does not accept and that is not set aside, or for `RUN_MS`, and stores the cursor; with a `cursor` only if it has
    that. Before the time of the next attempt nothing is sent. A receiver, filter or feed that can't be used is stored
    as a failure. `open_session` returns a session as long as this worker may go on. Raises `SubscriptionConflict`,
    `StoreError`, `CommitStateUnknown`, `InternalError`, and the errors of `open_session`."""
    delivery = _Delivery(open_session, await _read(open_session().state, name, id_))
    if cursor is not None and delivery.subscription.cursor != cursor:
        raise SubscriptionConflict("another task delivers the next events of the subscription", delivery.subscription)
    now_ms = open_session().now_ms()
    if delivery.subscription.next_ms > now_ms:
        return delivery.result(delivery.subscription.next_ms)
    try:
        sink = sinks(delivery.subscription)
        event_filter = read_filter(Fields(delivery.subscription.event_filter, "subscription"))
    except (ValueError, BadRequest, StoreError) as error:
        return await delivery.failed(ReceiverUnreachable(f"the receiver or the filter can't be used: {error}"))
    try:
        return await delivery.run(event_filter, sink)
    finally:
        await sink.close()


async def _read(state: State, name: str, id_: str) -> VersionedSubscription:
    """Returns the subscription of this name with its version. Raises `SubscriptionConflict` if it is gone, also if one
    with another id has the name now."""
    found = await read_subscription(state, name)
    if found is None or found.subscription.id != id_:
        raise SubscriptionConflict("the subscription was removed", None)
    return found


class _Delivery:
    """One delivery to a subscription, which it changes only if no other process has."""

    def __init__(self, open_session: Callable[[], Session], found: VersionedSubscription) -> None:
        self._open_session = open_session
        self.subscription, self._version = found
        self._saved_ms = open_session().now_ms()
        self._end_ms = self._saved_ms + RUN_MS
        self._accepted = 0
        self._set_aside = 0
        self._unsaved = 0
        self._letter: str | None = None
        """The key of a dead letter that was stored since the cursor was."""

    def result(self, again_ms: int | None, *, failed: bool = False) -> DeliveryResult:
        """Returns the result of the delivery: the counts until now, the time from which to go on, and whether it
        stopped because of the receiver, or because the filter or the feed can't be used."""
        return DeliveryResult(self._accepted, self._set_aside, again_ms, failed)

    async def run(self, event_filter: EventFilter, sink: Sink) -> DeliveryResult:
        """Sends the events of the feed that are selected, until its end, an event that is neither accepted nor set
        aside, or the end of the time. A feed that can't be read is stored as a failure."""
        while True:
            try:
                page = await read_feed(self._open_session().state, self.subscription.token, PAGE)
            except (BadRequest, NoSuchFeed, InternalError) as error:
                return await self.failed(ReceiverUnreachable(f"the feed can't be read: {error.message}"))
            stopped = await self.send(page, event_filter, sink)
            if stopped is not None:
                return stopped
            if page.is_end:
                return self.result(None)

    async def send(self, page: FeedPage, event_filter: EventFilter, sink: Sink) -> DeliveryResult | None:
        """Sends the events of a page of the feed that are selected and were not delivered before, and stores the
        cursor, also now and then between them. Returns the result if an event was neither accepted nor set aside, or if
        the time is over; None after the whole page."""
        for record, token in zip(page.records, page.tokens, strict=True):
            if record.number <= self.subscription.cursor:
                continue
            event = event_of(record)
            if event is not None and event_filter.selects(event):
                stopped = await self._send_one(record, event, sink)
                if stopped is not None:
                    return stopped
            self.subscription = self.subscription.delivered(record.number, token)
            now_ms = self._open_session().now_ms()
            is_over = now_ms >= self._end_ms
            if is_over or self._letter or self._unsaved >= SAVE_AFTER or now_ms >= self._saved_ms + SAVE_AFTER_MS:
                await self._save()
            if is_over:
                return self.result(now_ms - CLOCK_LAG_MS)
        last = page.records[-1].number if page.records else self.subscription.cursor
        self.subscription = self.subscription.delivered(max(last, self.subscription.cursor), page.token)
        await self._save()
        return None

    async def _send_one(self, record: FeedRecord, event: JsonObject, sink: Sink) -> DeliveryResult | None:
        """Sends an event and counts it if it was accepted. Otherwise sets it aside if it has failed often enough, or
        else stores the failure and returns the result. Returns None if the delivery can go on."""
        made = cloud_event(event, record.number, self._open_session().settings.warehouse)
        self._unsaved += 1
        try:
            await sink.send(Message.of(made))
        except DeliveryError as error:
            return await self._not_accepted(record, made, error)
        self._accepted += 1
        return None

    async def _not_accepted(self, record: FeedRecord, event: JsonObject, error: DeliveryError) -> DeliveryResult | None:
        """Stores an event that its receiver has not accepted as a dead letter, if it has failed as often as the kind of
        error permits, and returns None; or else stores when to try again, and returns the result."""
        tries = self.subscription.tries + 1
        if error.max_tries is None or tries < error.max_tries:
            return await self.failed(error)
        session = self._open_session()
        letter = DeadLetter(record.number, str(error)[:MAX_PROBLEM], event, session.now_ms())
        key = session.state.paths.dead_letter(self.subscription.id, record.number)
        await session.state.swap(key, letter.body, None)  # a letter that is there already is of the same event
        self._letter = key
        self._set_aside += 1
        return None

    async def failed(self, error: DeliveryError) -> DeliveryResult:
        """Stores that the next event was not delivered, why, and when it is tried again: after a pause that doubles
        with each failure, or a longer one that the receiver requests, up to an hour. The try counts against the event
        only if the error has `max_tries`. Returns the result."""
        before = self.subscription
        pause_ms = max(FIRST_PAUSE_MS << min(before.failures, 20), error.pause_s * 1_000)
        next_ms = self._open_session().now_ms() + int(min(pause_ms, LAST_PAUSE_MS))
        problem, counts = str(error)[:MAX_PROBLEM], error.max_tries is not None
        self.subscription = before.failed(problem, next_ms, counts=counts)
        await self._save()
        return self.result(next_ms, failed=True)

    async def _save(self) -> None:
        """Stores the subscription if the stored one is still that which was read or written last, and notes the new
        version. Raises `SubscriptionConflict` if it is not, and then, if the subscription was removed, deletes the dead
        letter that was added since the last call, if any; raises `StoreError`, and `CommitStateUnknown`."""
        session, subscription = self._open_session(), self.subscription
        state, key = session.state, session.state.paths.subscription(subscription.name)
        outcome = await state.swap(key, subscription.body, self._version)
        try:
            self._version = outcome.version if isinstance(outcome, Applied) else await self._version_of_ours(state)
        except SubscriptionConflict as conflict:
            if conflict.present is None and self._letter is not None:
                await state.delete(self._letter)  # the removal of the subscription did not find it
            raise
        self._saved_ms, self._unsaved, self._letter = session.now_ms(), 0, None

    async def _version_of_ours(self, state: State) -> Version:
        """Returns the version of the subscription after a write that failed, if an earlier sending of it was applied.
        Raises `SubscriptionConflict` if it was not."""
        present, version = await _read(state, self.subscription.name, self.subscription.id)
        if present != self.subscription:
            raise SubscriptionConflict("another worker has changed the subscription", present)
        return version
