"""Makes, lists and removes subscriptions to events, and sends dead letters again, for operators (docs/events.md)."""

import re
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager

from arco_catalog.iceberg.errors import AlreadyExists, BadRequest, NotFound
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.iceberg.shapes import Fields
from arco_catalog.operations.feed import NoSuchFeed, newest_token, number_of, read_feed
from arco_catalog.planning.event_filter import read_filter
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.subscription import DeadLetter, Subscription, dead_letters, read_subscription
from arco_catalog.upkeep.delivery.queues import queue_of
from arco_catalog.upkeep.delivery.sink import DeliveryError, Message, Sink
from arco_catalog.upkeep.delivery.sinks import Sinks
from storage_backends import Applied

NAME = re.compile("[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")


class NoSuchSubscription(NotFound):
    """The catalog has no subscription of this name."""


@contextmanager
def _receiver_errors(receiver: str) -> Iterator[None]:
    """Turns the `ValueError` for a receiver that can't be used into `BadRequest`."""
    try:
        yield
    except ValueError as error:
        raise BadRequest(f"events can't be sent to {receiver!r}: {error}") from error


def is_signed(receiver: str, environment: Mapping[str, str], now_ms: Callable[[], int]) -> bool:
    """Whether what a receiver gets is signed with a secret of its subscription: true for any text that is not of a
    queue or topic, which counts as a webhook, and may be no URL. Raises `BadRequest` for the `ValueError` of
    `queue_of`, which is about the name or variables of a queue or topic, and `StoreError`."""
    with _receiver_errors(receiver):
        return queue_of(receiver, environment, now_ms) is None


async def subscribe(
    session: Session, wanted: Subscription, sinks: Sinks, *, only_new: bool, after: str | None = None
) -> Subscription:
    """Stores a subscription, and returns it: with the place from which it gets events, that of the token `after`, or
    the end of the feed if it is to get `only_new` ones and the catalog has a feed, else the beginning. Raises
    `BadRequest` for a name, a receiver, a filter or a token that can't be used, `AlreadyExists` if the name is in use,
    `NoSuchFeed` for a token without a feed, `StoreError`, and `CommitStateUnknown`."""
    if NAME.fullmatch(wanted.name) is None:
        raise BadRequest(
            f"{wanted.name!r} can't be the name of a subscription: use 1 to 63 lower-case letters, digits and hyphens, "
            "with a letter or digit at both ends"
        )
    read_filter(Fields(wanted.event_filter, "subscription"))
    with _receiver_errors(wanted.sink):
        sinks(wanted)
    token = after
    if after is not None:
        await read_feed(session.state, after, 1)
    elif only_new:
        try:
            token = await newest_token(session.state)
        except NoSuchFeed:
            token = None  # the feed begins later, and everything in it is new
    made = wanted if token is None else wanted.delivered(number_of(token), token)
    outcome = await session.state.swap(session.state.paths.subscription(made.name), made.body, None)
    if isinstance(outcome, Applied):
        return made
    found = await read_subscription(session.state, made.name)
    if found is None:
        raise AlreadyExists(f"The subscription {made.name!r} was removed just now: try again")
    if found.subscription.id != made.id:
        raise AlreadyExists(f"There is a subscription {made.name!r} already: remove it first, or use another name")
    return made


async def require_subscription(session: Session, name: str) -> Subscription:
    """Returns the subscription of this name. Raises `NoSuchSubscription`, also for a text that can't be a name,
    `StoreError`, and `InternalError` for a corrupt one."""
    found = None if NAME.fullmatch(name) is None else await read_subscription(session.state, name)
    if found is None:
        raise NoSuchSubscription(f"There is no subscription {name!r}: list them with `arco events subscriptions`")
    return found.subscription


async def unsubscribe(session: Session, name: str) -> int:
    """Removes a subscription and its dead letters, and returns the number of these. The subscription is removed after
    them, so that the command can be repeated if it is interrupted, and then those that a delivery stored since.
    Raises as `require_subscription` does."""
    subscription = await require_subscription(session, name)
    count = await _delete_letters(session, subscription)
    await session.state.delete(session.state.paths.subscription(name))
    return count + await _delete_letters(session, subscription)


async def _delete_letters(session: Session, subscription: Subscription) -> int:
    """Deletes the dead letters of a subscription, and returns the number of them."""
    count = 0
    async with aclosing(dead_letters(session.state, subscription.id)) as letters:
        async for key, _ in letters:
            await session.state.delete(key)
            count += 1
    return count


async def resend(
    session: Session, subscription: Subscription, sink: Sink
) -> AsyncGenerator[tuple[DeadLetter, DeliveryError | None], None]:
    """Sends the dead letters of a subscription again, in the order of `dead_letters`, and removes those that were
    accepted. Yields each, with the error if it was not accepted, and goes on with the next one. Raises as
    `dead_letters` does."""
    async with aclosing(dead_letters(session.state, subscription.id)) as letters:
        async for key, letter in letters:
            try:
                await sink.send(Message.of(letter.event))
            except DeliveryError as error:
                yield letter, error
                continue
            await session.state.delete(key)
            yield letter, None


def described(subscription: Subscription) -> JsonObject:
    """Returns a subscription as JSON for people and programs, without `secret`, `id`, `token`, `allows_private` and
    `tries`, and with `...` in place of the query of a webhook's URL, which often has a secret."""
    address, query, _ = subscription.sink.partition("?")
    return {
        "name": subscription.name,
        "to": f"{address}?..." if query else address,
        "filter": subscription.event_filter,
        "delivered-up-to": subscription.cursor,
        "created-ms": subscription.created_ms,
        "failures": subscription.failures,
        "next-attempt-ms": subscription.next_ms or None,
        "problem": subscription.problem,
    }
