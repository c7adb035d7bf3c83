"""Queued work: each message is done, or told to the queue as failed; no message is to blame for another."""

import asyncio
import importlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

import pytest

from arco_catalog.iceberg.json import JsonObject
from storage_backends.local.store import LocalStore
from storage_backends.wrappers.nonconditional import NonconditionalStore
from tests.lambda_.test_reconcile import Invocation
from tools.support.catalog_fixture import CatalogFixture
from tools.support.request_bodies import set_property

Handler = Callable[[Mapping[str, object], Invocation], JsonObject]

ALL = {"version": 1, "work": "reconcile"}
IN_TIME, TOO_LATE = 60_000, 5_000


@pytest.fixture
def handler() -> Handler:
    return cast(Handler, importlib.import_module("lambda.work").handler)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A catalog with three tables, each with a commit of which the receipt was lost."""

    async def fill() -> None:
        fixture = CatalogFixture(LocalStore(tmp_path), url=f"file://{tmp_path}")
        await fixture.namespace("db")
        for name in "abc":
            await fixture.table(name)
            await fixture.commit(set_property("p", "1"), name)

    asyncio.run(fill())
    for receipt in receipts(tmp_path):
        receipt.unlink()
    monkeypatch.setenv("ARCO_STORE", f"file:{tmp_path}")
    monkeypatch.setenv("ARCO_WAREHOUSE", "wh")
    return tmp_path


def receipts(store: Path) -> list[Path]:
    """The committed ones."""
    return [*(store / "wh/_catalog/events").glob("*/iceberg/committed/*.json")]


def entities(store: Path) -> list[str]:
    return sorted(pointer.stem for pointer in (store / "wh/_catalog/iceberg_pointers").glob("*.json"))


def batch(**messages: object) -> Mapping[str, object]:
    """What SQS sends of these messages, each under its id; text is sent as it is."""
    return {
        "Records": [
            {"messageId": name, "body": body if isinstance(body, str) else json.dumps(body)}
            for name, body in messages.items()
        ]
    }


def failed(answer: JsonObject) -> list[object]:
    """The ids that go back to the queue."""
    assert [*answer] == ["batchItemFailures"]
    return [cast(JsonObject, item)["itemIdentifier"] for item in cast(list[object], answer["batchItemFailures"])]


def test_a_reconcile_walks_everything(handler: Handler, store: Path) -> None:
    assert failed(handler(batch(a=ALL), Invocation(IN_TIME))) == []
    assert len(receipts(store)) == 6


def test_a_reconcile_of_one_entity_walks_that_one(handler: Handler, store: Path) -> None:
    message = {**ALL, "entity": entities(store)[1]}
    assert failed(handler(batch(a=message), Invocation(IN_TIME))) == []
    assert len(receipts(store)) == 2


BAD = {
    "no JSON": "nonsense",
    "no object": "[]",
    "no version": {"work": "reconcile"},
    "a later version": {"version": 2, "work": "reconcile"},
    "no work": {"version": 1},
    "unknown work": {"version": 1, "work": "purge"},
    "a path for an entity": {**ALL, "entity": "../../x"},
    "a number for an entity": {**ALL, "entity": 7},
}


@pytest.mark.parametrize("message", BAD.values(), ids=BAD)
def test_what_asks_for_nothing_that_there_is_fails_and_the_others_do_not(
    handler: Handler, store: Path, message: object
) -> None:
    assert failed(handler(batch(bad=message, good=ALL), Invocation(IN_TIME))) == ["bad"]
    assert len(receipts(store)) == 6


def test_a_walk_that_is_not_complete_comes_again(handler: Handler, store: Path) -> None:
    entity = entities(store)[0]
    (store / f"wh/_catalog/iceberg_pointers/{entity}.json").write_text("{}")
    assert failed(handler(batch(a={**ALL, "entity": entity}), Invocation(IN_TIME))) == ["a"]


def test_no_message_is_begun_when_time_is_over(handler: Handler, store: Path) -> None:
    first, second = entities(store)[:2]
    messages = batch(a={**ALL, "entity": first}, b={**ALL, "entity": second})
    begun, between_two_files = (IN_TIME, IN_TIME), (IN_TIME,)
    assert failed(handler(messages, Invocation(*begun, *between_two_files, TOO_LATE))) == ["b"]
    assert len(receipts(store)) == 2


def test_a_long_walk_of_one_entity_goes_on_where_time_cut_it(handler: Handler, store: Path) -> None:
    message = batch(a={**ALL, "entity": entities(store)[0]})
    assert failed(handler(message, Invocation(IN_TIME, IN_TIME, TOO_LATE))) == ["a"]
    assert len(receipts(store)) == 1
    assert failed(handler(message, Invocation(IN_TIME))) == []
    assert len(receipts(store)) == 2


def test_a_message_earns_no_receipt_for_what_no_name_leads_to(handler: Handler, store: Path) -> None:
    """The pointer of a create that never committed, or has yet to."""
    entity = "01KAN0Y7Q2M3C4D5E6F7G8H9JK"
    pointers = store / "wh/_catalog/iceberg_pointers"
    one = pointers / f"{entities(store)[0]}.json"
    (pointers / f"{entity}.json").write_text(one.read_text().replace(one.stem, entity))
    assert failed(handler(batch(a={**ALL, "entity": entity}), Invocation(IN_TIME))) == ["a"]
    assert receipts(store) == []


def test_a_walk_that_time_cuts_short_comes_again(handler: Handler, store: Path) -> None:
    assert failed(handler(batch(a=ALL), Invocation(IN_TIME, IN_TIME, TOO_LATE))) == ["a"]
    assert receipts(store) == []
    assert failed(handler(batch(a=ALL), Invocation(IN_TIME))) == []
    assert len(receipts(store)) == 6


@pytest.mark.parametrize("name", ["lambda.work", "lambda.reconcile"])
def test_work_on_a_store_that_ignores_conditions_fails_as_a_whole(
    store: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    careless = NonconditionalStore(LocalStore(store))
    monkeypatch.setattr("arco_catalog.operations.environment.opener_in", lambda _: lambda _url: careless)
    with pytest.raises(RuntimeError, match="could get lost"):
        importlib.import_module(name).handler(batch(a=ALL), Invocation(IN_TIME))
