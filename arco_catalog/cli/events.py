"""`arco events`: lists the events of a catalog as lines of JSON, and manages the subscriptions to them."""

import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass

from arco_catalog.cli.columns import as_json as json_text
from arco_catalog.cli.columns import format_text, format_time
from arco_catalog.cli.command import CatalogOptions
from arco_catalog.cli.finders import find_catalog
from arco_catalog.cli.output import table
from arco_catalog.cli.session import DAY_MS, another, carry_out, open_session
from arco_catalog.config.variables import EVENTS
from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps
from arco_catalog.iceberg.shapes import Fields
from arco_catalog.operations.events import MAX_EVENTS, events_page
from arco_catalog.operations.feed import NoSuchFeed, newest_token, read_feed
from arco_catalog.planning.event_filter import read_filter
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.runtime import SystemRuntime
from arco_catalog.state.subscription import Subscription, dead_letters, list_subscriptions
from arco_catalog.upkeep.delivery.signing import new_secret
from arco_catalog.upkeep.delivery.sinks import sinks_from
from arco_catalog.upkeep.delivery.subscriptions import (
    NoSuchSubscription,
    described,
    is_signed,
    require_subscription,
    resend,
    subscribe,
    unsubscribe,
)

FOLLOW_SECONDS = 2.0
HEADINGS = ("NAME", "TO", "DELIVERED UP TO", "FAILURES", "NEXT ATTEMPT (UTC)", "PROBLEM")


@dataclass(frozen=True, slots=True)
class SubscriptionRequest:
    """A subscription that is to be made: its name, its receiver, which events it is to get, and whether a webhook may
    have a private address."""

    name: str
    sink: str
    event_filter: JsonObject
    allows_private: bool


def event_filter_of(types: Sequence[str] | None, names: Sequence[Sequence[str]] | None) -> JsonObject:
    """Returns a filter in the form of requests for events: by types, and by the levels of names; None selects all."""
    event_filter: JsonObject = {}
    if types:
        event_filter["operation-types"] = [*types]
    if names:
        event_filter["catalog-objects-by-name"] = [[*levels] for levels in names]
    return event_filter


def run_read(
    options: CatalogOptions,
    event_filter: JsonObject,
    token: str | None,
    limit: int | None,
    *,
    since_ms: int | None,
    new: bool,
    follow: bool,
) -> int:
    """Lists the events after a token, or from the beginning of the feed, or only `new` ones, of the time `since_ms` and
    later, at most `limit`; with `follow` also events that enter later, until there are `limit` or the command is
    stopped, and without a token it waits for a feed while there is none. The last event of each page has the token
    after it. Returns 0. Raises `CliError`."""
    selected: JsonObject = {**event_filter, **({} if since_ms is None else {"since-timestamp-ms": since_ms})}

    async def work() -> None:
        async with open_session(options, "events", find_catalog, DAY_MS) as session:
            waited = follow and token is None and await _wait_for_feed(session)
            # All events of a feed that has begun meanwhile are new.
            start = await newest_token(session.state) if new and not waited else token
            async with aclosing(_events(session, selected, start, limit, follow=follow)) as found:
                async for event in found:
                    print(dumps(event).decode(), flush=follow)

    carry_out(work)
    return 0


async def _wait_for_feed(session: Session) -> bool:
    """Waits until the catalog has an event feed, and returns whether it had none at first, which is then written to
    stderr, once."""
    waited = False
    while True:
        try:
            await read_feed(another(session).state, None, 1)
            return waited
        except NoSuchFeed as error:
            if not waited:
                print(f"Waiting: {error.message}", file=sys.stderr, flush=True)
            waited = True
            await session.runtime.sleep(FOLLOW_SECONDS)


async def _events(
    session: Session, event_filter: JsonObject, token: str | None, limit: int | None, *, follow: bool
) -> AsyncGenerator[JsonObject, None]:
    """Yields the events after a token that the filter selects, at most `limit`, the last one of each page with the
    token after it. Ends where the feed ends; with `follow` it waits for later events."""
    selected, left = read_filter(Fields(event_filter, "events")), limit
    while left is None or left > 0:
        page = await events_page(
            another(session), selected, token, MAX_EVENTS if left is None else min(left, MAX_EVENTS)
        )
        for number, event in enumerate(page.events, 1):
            yield {**event, "continuation-token": page.token} if number == len(page.events) else event
        left = None if left is None else left - len(page.events)
        token = page.token
        if page.is_end and not follow:
            return
        if page.is_end and left != 0:
            await session.runtime.sleep(FOLLOW_SECONDS)


def run_subscribe(
    options: CatalogOptions, wanted: SubscriptionRequest, token: str | None, *, new: bool, as_json: bool
) -> int:
    """Makes a subscription to the events after a token, from the beginning of the feed, or only to `new` ones, and
    writes it to stdout with the secret of a webhook, which no other command has. Returns 0. Raises `CliError`."""

    async def work() -> Subscription:
        async with open_session(options, "events", find_catalog, writes=True) as session:
            environment, now_ms = options.environment, session.runtime.now_ms
            signed = is_signed(wanted.sink, environment, now_ms)
            made = Subscription(
                name=wanted.name,
                id=session.runtime.ulid(),
                sink=wanted.sink,
                cursor=0,
                token=None,
                created_ms=session.now_ms(),
                secret=new_secret(SystemRuntime().entropy) if signed else None,
                event_filter=wanted.event_filter,
                allows_private=wanted.allows_private,
            )
            return await subscribe(session, made, sinks_from(environment, now_ms), only_new=new, after=token)

    made = carry_out(work)
    if as_json:
        print(json_text({**described(made), "secret": made.secret}))
        return 0
    print(f"The subscription {made.name} gets the events that it selects, beginning after number {made.cursor:,}.")
    print(
        f"Servers send the events with --events or {EVENTS.name}=true in the environment, functions and `arco tasks "
        "run` only with the latter."
    )
    if made.secret is not None:
        print(f"Requests to the receiver are signed with this secret, which no later command displays: {made.secret}")
    return 0


def run_list(options: CatalogOptions, *, as_json: bool) -> int:
    """Lists the subscriptions of a catalog. Returns 1 if one has a problem, else 0. Raises `CliError`."""

    async def work() -> list[JsonObject]:
        async with open_session(options, "events", find_catalog) as session:
            found: list[JsonObject] = []
            for name in await list_subscriptions(session.state):
                with suppress(NoSuchSubscription):  # removed since it was listed
                    found.append(described(await require_subscription(session, name)))
            return found

    found = carry_out(work)
    if as_json:
        documents: list[JsonValue] = [*found]
        print(json_text(documents))
    else:
        print(table(HEADINGS, [*map(_row, found)]) if found else "There are no subscriptions.")
    return 1 if any(each["problem"] is not None for each in found) else 0


def _row(subscription: JsonObject) -> tuple[str, ...]:
    """Returns a subscription's row in the table."""
    return (
        format_text(subscription["name"]),
        format_text(subscription["to"]),
        format_text(subscription["delivered-up-to"]),
        format_text(subscription["failures"]),
        format_time(subscription["next-attempt-ms"]),
        format_text(subscription["problem"]),
    )


def run_unsubscribe(options: CatalogOptions, name: str) -> int:
    """Removes a subscription with its dead letters, and prints how many these were. Returns 0. Raises `CliError`, also
    if there is none."""

    async def work() -> int:
        async with open_session(options, "events", find_catalog, writes=True) as session:
            return await unsubscribe(session, name)

    count = carry_out(work)
    print(f"The subscription {name} was removed, and {count:,} dead letters with it.")
    return 0


def run_dead_letters(options: CatalogOptions, name: str) -> int:
    """Lists the dead letters of a subscription: the events that the receiver did not accept, and that are not tried
    again, each as a line of JSON with the reason. Returns 0. Raises `CliError`."""

    async def work() -> None:
        async with open_session(options, "events", find_catalog) as session:
            subscription = await require_subscription(session, name)
            async with aclosing(dead_letters(session.state, subscription.id)) as letters:
                async for _, letter in letters:
                    line: JsonObject = {"number": letter.number, "reason": letter.reason, "event": letter.event}
                    print(dumps(line).decode())

    carry_out(work)
    return 0


def run_resend(options: CatalogOptions, name: str) -> int:
    """Sends the dead letters of a subscription to the receiver again, removes the ones that it accepts, and writes out
    the outcome of each. Returns 1 if one was not accepted, else 0. Raises `CliError`."""

    async def work() -> int:
        failed = 0
        async with open_session(options, "events", find_catalog, DAY_MS, writes=True) as session:
            subscription = await require_subscription(session, name)
            sink = sinks_from(options.environment, session.runtime.now_ms)(subscription)
            try:
                async with aclosing(resend(session, subscription, sink)) as sent:
                    async for letter, error in sent:
                        failed += error is not None
                        outcome = "accepted" if error is None else format_text(str(error))
                        print(f"event {letter.number}: {outcome}", flush=True)
            finally:
                await sink.close()
        return 1 if failed else 0

    return carry_out(work)
