"""`arco events`: the events that it displays, and the subscriptions that it makes, lists and removes."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import web

from arco_catalog.cli import events
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.access import State
from arco_catalog.state.runtime import SystemRuntime
from arco_catalog.state.subscription import DeadLetter, list_subscriptions, read_subscription
from arco_catalog.upkeep.delivery.deliver import deliver
from arco_catalog.upkeep.delivery.sinks import sinks_from
from storage_backends import ANY
from tests.cli.in_process import arco
from tests.cli.test_operator import catalog_in
from tests.support.feeding import feed
from tests.support.stub_server import stub_server
from tools.support.catalog_fixture import CatalogFixture
from tools.support.request_bodies import set_property

WEBHOOK = "https://hooks.example.com/arco"


@pytest.fixture
async def fixture(folder: Path) -> CatalogFixture:
    """A catalog whose feed begins with a namespace, and has a table with two commits after that."""
    made = catalog_in(folder)
    await made.namespace("db")
    await feed(made.session())
    await made.table("t")
    await made.commit(set_property("a", "1"))
    await feed(made.another().session())
    return made


def lines(text: str) -> list[JsonObject]:
    return [json.loads(line) for line in text.splitlines()]


async def test_events_are_lines_of_json_and_the_last_has_the_token(fixture: CatalogFixture, folder: Path) -> None:
    shown = await arco("events", "--store", f"file:{folder}")
    assert shown.code == 0, shown.err
    first, last = lines(shown.out)
    assert [each["operation"]["operation-type"] for each in (first, last)] == ["create-table", "update-table"]  # type: ignore[index,call-overload]
    assert "continuation-token" not in first

    await fixture.commit(set_property("a", "2"))
    await feed(fixture.another().session())
    later = await arco("events", "--from", str(last["continuation-token"]), "--store", f"file:{folder}")
    [found] = lines(later.out)
    assert found["event-id"] not in (first["event-id"], last["event-id"])


async def test_following_waits_for_a_feed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = catalog_in(folder)
    await made.namespace("db")
    monkeypatch.setattr(events, "FOLLOW_SECONDS", 0.01)
    following = asyncio.create_task(arco("events", "--follow", "--new", "--limit", "1", "--store", f"file:{folder}"))
    await asyncio.sleep(0.3)
    assert not following.done(), following.result().err

    await feed(made.session())
    await made.table("t")
    await feed(made.another().session())

    shown = await asyncio.wait_for(following, 30)
    assert "Waiting: This catalog has no event feed" in shown.err
    assert "ARCO_EVENTS=true" in shown.err
    assert [each["operation"]["operation-type"] for each in lines(shown.out)] == ["create-table"]  # type: ignore[index,call-overload]

    without = await arco("events", "--from", "1-1-01KDVDNA00000000000000000Z", "--store", f"file:{folder}")
    assert without.code != 0, "a wrong token is refused at once"


async def test_options_select_events(fixture: CatalogFixture, folder: Path) -> None:
    store = ("--store", f"file:{folder}")
    assert len(lines((await arco("events", "--type", "update-table", *store)).out)) == 1
    assert len(lines((await arco("events", "--name", "db.t", *store)).out)) == 2
    assert lines((await arco("events", "--name", "other", *store)).out) == []
    assert len(lines((await arco("events", "--limit", "1", *store)).out)) == 1
    assert lines((await arco("events", "--new", *store)).out) == []
    assert lines((await arco("events", "--since", "2099-01-01", *store)).out) == []


async def test_a_subscription_is_made_listed_and_removed(fixture: CatalogFixture, folder: Path) -> None:
    store = ("--store", f"file:{folder}")
    url = f"{WEBHOOK}?key=hidden"
    made = await arco("events", "subscribe", "alerts", "--to", url, "--type", "drop-table", "--new", *store)
    assert made.code == 0, made.err
    assert "or ARCO_EVENTS=true in the environment" in made.out
    secret = made.out.rpartition(": ")[2].strip()
    found = await read_subscription(fixture.another().session().state, "alerts")
    assert found is not None
    assert (found.subscription.secret, found.subscription.sink, found.subscription.event_filter) == (
        secret,
        url,
        {"operation-types": ["drop-table"]},
    )
    assert found.subscription.cursor > 0

    listed = await arco("events", "subscriptions", "--json", *store)
    [described] = json.loads(listed.out)
    assert (described["name"], described["to"]) == ("alerts", f"{WEBHOOK}?...")
    assert secret not in listed.out
    assert "hidden" not in (await arco("events", "subscriptions", *store)).out

    again = await arco("events", "subscribe", "alerts", "--to", WEBHOOK, *store)
    assert "There is a subscription 'alerts' already" in again.err

    assert (await arco("events", "unsubscribe", "alerts", *store)).code == 0
    assert "There are no subscriptions." in (await arco("events", "subscriptions", *store)).out


async def test_a_subscription_that_is_removed_while_all_are_listed_is_left_out(
    fixture: CatalogFixture, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ("--store", f"file:{folder}")
    for name in ("a", "b"):
        assert (await arco("events", "subscribe", name, "--to", WEBHOOK, *store)).code == 0

    async def list_and_remove(state: State) -> Sequence[str]:
        names = await list_subscriptions(state)
        await state.delete(state.paths.subscription("a"))
        return names

    monkeypatch.setattr(events, "list_subscriptions", list_and_remove)
    listed = await arco("events", "subscriptions", "--json", *store)
    assert [each["name"] for each in json.loads(listed.out)] == ["b"]


async def test_a_subscription_begins_after_a_token(fixture: CatalogFixture, folder: Path) -> None:
    store = ("--store", f"file:{folder}")
    [event] = lines((await arco("events", "--limit", "1", *store)).out)
    token = str(event["continuation-token"])

    made = await arco("events", "subscribe", "alerts", "--to", WEBHOOK, "--from", token, *store)

    assert made.code == 0, made.err
    found = await read_subscription(fixture.another().session().state, "alerts")
    assert found is not None
    assert (found.subscription.token, str(found.subscription.cursor)) == (token, token.partition("-")[0])


async def test_a_run_of_tasks_without_the_feed_shows_that_it_sends_nothing(
    fixture: CatalogFixture, folder: Path
) -> None:
    without = await arco("tasks", "run", ARCO_STORE=f"file:{folder}")
    assert without.err == ""

    await arco("events", "subscribe", "alerts", "--to", WEBHOOK, "--new", "--store", f"file:{folder}")
    assert "ARCO_EVENTS=true is not in the environment" in (await arco("tasks", "run", ARCO_STORE=f"file:{folder}")).err
    assert (await arco("tasks", "run", ARCO_STORE=f"file:{folder}", ARCO_EVENTS="true")).err == ""


async def test_dead_letters_are_shown_sent_again_and_deleted_with_the_subscription(
    fixture: CatalogFixture, folder: Path
) -> None:
    store = ("--store", f"file:{folder}")
    url = "http://127.0.0.1:1/"
    await arco("events", "subscribe", "alerts", "--to", url, "--allow-private", *store)
    state = fixture.another().session().state
    found = await read_subscription(state, "alerts")
    assert found is not None
    letter = DeadLetter(7, "status 400", {"id": "an-id"}, 1)
    await state.create(state.paths.dead_letter(found.subscription.id, 7), letter.body)

    [shown] = lines((await arco("events", "dead-letters", "alerts", *store)).out)
    assert shown == {"number": 7, "reason": "status 400", "event": {"id": "an-id"}}
    sent = await arco("events", "resend", "alerts", *store)
    assert sent.code == 1
    assert sent.out.startswith("event 7: no complete answer") or "no connection" in sent.out
    removed = await arco("events", "unsubscribe", "alerts", *store)
    assert "1 dead letters with it" in removed.out
    assert (await fixture.store.list(state.paths.dead_letters(found.subscription.id))).entries == ()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["subscribe"], "the subscription's name is required"),
        (["subscribe", "a"], "the receiver is required"),
        (["subscribe", "A_b", "--to", WEBHOOK], "can't be the name of a subscription"),
        (["subscribe", "a", "--to", "http://example.com"], "must be an https URL"),
        (["subscribe", "a", "--to", "http://127.0.0.1/"], "must be an https URL"),
        (["subscribe", "a", "--to", "arn:aws:s3:::b"], "a queue or topic of AWS is arn:aws:sqs"),
        (["subscribe", "a", "--to", "kafka://broker:9092/t"], "a topic of Kafka is kafka:TOPIC"),
        (["subscribe", "a", "--to", "https://x.queue.core.windows.net/a/"], "a queue of Azure Storage is"),
        (["subscribe", "a", "--to", WEBHOOK, "--from", "x"], "invalid continuation token"),
        (["subscriptions", "--from", "x"], "--from is for arco events read and subscribe"),
        (["subscriptions", "a"], "takes no NAME"),
        (["subscriptions", "--follow"], "--follow is for arco events read"),
        (["read", "--to", WEBHOOK], "--to is for arco events subscribe"),
        (["--new", "--from", "x"], "exclude each other"),
        (["--from", "x"], "invalid continuation token"),
        (["resend", "none"], "There is no subscription 'none'"),
        (["unsubscribe", "../x"], "There is no subscription '../x'"),
    ],
)
async def test_what_can_t_be_done_is_refused(
    fixture: CatalogFixture, folder: Path, arguments: list[str], message: str
) -> None:
    refused = await arco("events", *arguments, "--store", f"file:{folder}")
    assert refused.code != 0
    assert message in refused.err


async def test_a_worker_sends_new_events_to_a_webhook_and_a_dead_letter_is_accepted_later(
    fixture: CatalogFixture, folder: Path
) -> None:
    store, got, refusing = ("--store", f"file:{folder}"), list[JsonObject](), True

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read()
        if refusing and b"create-table" in body:
            return web.Response(status=400)
        got.append(json.loads(body))
        return web.Response()

    async with stub_server(handle) as server:
        await arco("events", "subscribe", "alerts", "--to", server.uri, "--allow-private", *store)
        subscription = (await arco("events", "subscriptions", "--json", *store)).out
        assert json.loads(subscription)[0]["problem"] is None
        worked = await arco("tasks", "run", ARCO_EVENTS="true", ARCO_STORE=f"file:{folder}")
        assert worked.code == 0, worked.err
        assert got == [], "the first event is refused, and later ones wait for it"
        listed = await arco("events", "subscriptions", *store)
        assert listed.code == 1
        assert "answered with status 400" in listed.out

        state = fixture.another().session().state
        found = await read_subscription(state, "alerts")
        assert found is not None
        due = replace(found.subscription, tries=2, next_ms=0)  # what two more attempts would leave
        await fixture.store.put(state.paths.subscription("alerts"), due.body, ANY)
        await deliver(lambda: fixture.another().session(), "alerts", due.id, sinks_from({}, SystemRuntime().now_ms))
        assert [each["type"] for each in got] == ["arco.update-table"]

        refusing = False
        sent = await arco("events", "resend", "alerts", *store)
        assert (sent.code, sent.out.rpartition(": ")[2]) == (0, "accepted\n")
        assert [each["type"] for each in got] == ["arco.update-table", "arco.create-table"]
        assert (await arco("events", "dead-letters", "alerts", *store)).out == ""
