"""Subscriptions to the events of a catalog: where events are sent, which, and up to which one they were
(docs/design/delivery.md).

A subscription is one object that is changed by compare-and-swap. An event that its receiver never accepts is kept
beside it, as an object that never changes: a dead letter.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import field, replace
from typing import NamedTuple, Self

from arco_catalog.iceberg.json import JsonObject, dumps
from arco_catalog.state.access import State
from arco_catalog.state.fields import integer, mapping, optional_text, parse_record, text
from arco_catalog.state.listing import list_pages
from storage_backends import Found, Version
from storage_backends.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Subscription:
    """A subscription with its progress.

    `sink` is the URL or name of the receiver. `secret` signs the requests to a webhook; None for other receivers. With
    `allows_private` a webhook may have a private address. `event_filter` has the form of requests for events. All
    events up to the number `cursor` were delivered, kept as dead letters, not selected, or came before the place where
    the subscription begins; the feed is read on from `token`, which is that of this event, None for the beginning of
    the feed. `failures` attempts in a row to deliver failed, of which `tries` may have failed because of the next
    event; the last one failed for the reason `problem`. The next attempt is made from `next_ms` on, a time of the
    store's clock in milliseconds since 1970.
    """

    name: str
    id: str
    sink: str
    cursor: int
    token: str | None
    created_ms: int
    secret: str | None = field(default=None, repr=False)
    event_filter: JsonObject = field(default_factory=dict)
    allows_private: bool = False
    tries: int = 0
    failures: int = 0
    next_ms: int = 0
    problem: str | None = None

    @classmethod
    def parse(cls, body: bytes, where: str) -> Self:
        """Reads the record of a subscription to events. Raises `InternalError` if it is corrupt; the error names
        `where` it is stored only if it is not JSON, or has an unknown version or none, and otherwise a field."""
        document = parse_record(body, where)
        return cls(
            name=text(document, "name"),
            id=text(document, "id"),
            sink=text(document, "sink"),
            cursor=integer(document, "cursor"),
            token=optional_text(document, "token"),
            created_ms=integer(document, "created_ms"),
            secret=optional_text(document, "secret"),
            event_filter=mapping(document, "event_filter"),
            allows_private=document.get("allows_private") is True,
            tries=integer(document, "tries"),
            failures=integer(document, "failures"),
            next_ms=integer(document, "next_ms"),
            problem=optional_text(document, "problem"),
        )

    @property
    def body(self) -> bytes:
        """The bytes of the record of the subscription."""
        document: JsonObject = {
            "version": 1,
            "name": self.name,
            "id": self.id,
            "sink": self.sink,
            "cursor": self.cursor,
            "token": self.token,
            "created_ms": self.created_ms,
            "secret": self.secret,
            "event_filter": self.event_filter,
            "allows_private": self.allows_private,
            "tries": self.tries,
            "failures": self.failures,
            "next_ms": self.next_ms,
            "problem": self.problem,
        }
        return dumps(document, sort_keys=True)

    def delivered(self, number: int, token: str | None) -> Self:
        """Returns the subscription after everything up to the record of this number was delivered, set aside or not
        selected, without failures. `token` is that of this record."""
        return replace(self, cursor=number, token=token, tries=0, failures=0, next_ms=0, problem=None)

    def failed(self, problem: str, next_ms: int, *, counts: bool) -> Self:
        """Returns the subscription after an attempt to deliver the next event failed for the reason `problem`, with the
        next one from `next_ms` on. The attempt `counts` as a try of the event if the receiver may have failed because
        of that."""
        return replace(self, tries=self.tries + counts, failures=self.failures + 1, next_ms=next_ms, problem=problem)


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """An event that a receiver did not accept, or failed to take too often, with its number in the feed."""

    number: int
    reason: str
    event: JsonObject
    at_ms: int

    @classmethod
    def parse(cls, body: bytes, where: str) -> Self:
        """Reads the record of an event that could not be delivered. Raises `InternalError` if it is corrupt."""
        document = parse_record(body, where)
        return cls(
            integer(document, "number"),
            text(document, "reason"),
            mapping(document, "event"),
            integer(document, "at_ms"),
        )

    @property
    def body(self) -> bytes:
        """This dead letter as bytes, which `parse` reads: the number, the reason, the event and the time."""
        document: JsonObject = {
            "version": 1,
            "number": self.number,
            "reason": self.reason,
            "event": self.event,
            "at_ms": self.at_ms,
        }
        return dumps(document, sort_keys=True)


class VersionedSubscription(NamedTuple):
    """A subscription, and the version of its object."""

    subscription: Subscription
    version: Version


async def read_subscription(state: State, name: str) -> VersionedSubscription | None:
    """Reads a subscription; None if there is none of this name. Raises `StoreError`, and `InternalError` for a corrupt
    one."""
    key = state.paths.subscription(name)
    found = await state.store.get(key)
    if not isinstance(found, Found):
        return None
    return VersionedSubscription(Subscription.parse(found.body, key), found.version)


async def list_subscriptions(state: State) -> list[str]:
    """Lists the names of all subscriptions of a catalog, in order. Raises `StoreError`."""
    prefix = state.paths.subscriptions
    found: list[str] = []
    async with aclosing(list_pages(state, prefix)) as pages:
        async for page in pages:
            found += [listed.key.removeprefix(prefix).removesuffix(".json") for listed in page.entries]
    return sorted(found)


async def dead_letters(state: State, subscription: str) -> AsyncGenerator[tuple[str, DeadLetter], None]:
    """Yields the dead letters of the subscription with this id, each with its key, in the order of keys within a page
    of the listing. One that no longer exists by then is left out. Raises `StoreError`, and `InternalError` for a
    corrupt one."""
    async with aclosing(list_pages(state, state.paths.dead_letters(subscription))) as pages:
        async for page in pages:
            for listed in sorted(page.entries, key=lambda each: each.key):
                found = await state.store.get(listed.key)
                if isinstance(found, Found):
                    yield listed.key, DeadLetter.parse(found.body, listed.key)
