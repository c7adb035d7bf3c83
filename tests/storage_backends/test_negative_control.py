"""What takes conditions and ignores them must fail: every test of the conditional contract, and the start-up probe."""

import inspect
import os
from collections.abc import AsyncIterator

import pytest

from storage_backends import ABSENT, ANY, ObjectStore, Outcome, PreconditionFailed, StoreUnavailable, Unknown, When
from storage_backends.memory import MemoryStore
from storage_backends.open import open_store
from storage_backends.probe import honours_conditions
from tests.storage_backends.contract import ConditionalContract, ConditionalDeleteContract, listed
from tests.support.nonconditional_store import NonconditionalStore
from tools.support.s3_servers import S3Server


class Conditions(ConditionalContract, ConditionalDeleteContract):
    """All that a condition means. Not collected: its tests are run by name."""


RULES = [name for name, _ in inspect.getmembers(Conditions, inspect.isfunction) if name.startswith("test_")]


@pytest.fixture(scope="module")
def careless_bucket(careless_s3: S3Server) -> str:
    """The name of one for these tests alone."""
    careless_s3.make_bucket("careless")
    return "careless"


@pytest.fixture(params=["wrapper", "server"])
async def careless(request: pytest.FixtureRequest) -> AsyncIterator[ObjectStore]:
    if request.param == "wrapper":
        yield NonconditionalStore(MemoryStore())
        return
    bucket = request.getfixturevalue("careless_bucket")
    environment = request.getfixturevalue("careless_s3").environment
    store = open_store(f"s3://{bucket}/{request.node.nodeid.encode().hex()[-200:]}", environment)
    yield store
    await store.close()


def test_there_are_rules_to_break() -> None:
    assert len(RULES) >= 10


@pytest.mark.parametrize("rule", RULES)
async def test_a_store_that_ignores_conditions_breaks(careless: ObjectStore, rule: str) -> None:
    with pytest.raises(AssertionError):
        await getattr(Conditions(), rule)(careless)


async def test_the_probe_finds_a_store_that_ignores_conditions(careless: ObjectStore) -> None:
    verdict = await honours_conditions(careless, "nonce")

    assert not verdict
    assert verdict.reason == "the store ignores If-None-Match: it replaced an object that exists"
    assert await listed(careless, "_probe/") == []


@pytest.mark.parametrize("kind", ["memory", "local", "s3"])
async def test_the_probe_finds_a_store_that_honours_conditions(kind: str, request: pytest.FixtureRequest) -> None:
    match kind:
        case "memory":
            store = open_store("memory:", {})
        case "local":
            store = open_store(f"file:{request.getfixturevalue('tmp_path')}", {})
        case _:
            store = open_store(f"s3://{request.getfixturevalue('s3_bucket')}/prefix", os.environ)

    verdict = await honours_conditions(store, "nonce")

    assert verdict
    assert verdict.conditional_delete
    assert verdict.reason == "the store honours conditions"
    assert await listed(store) == []
    await store.close()


class Ignores(MemoryStore):
    """Ignores conditions of one kind."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self._what = what

    async def put(self, key: str, body: bytes, when: When) -> Outcome:
        kind = "create" if when == ABSENT else "stale" if self.keys(key) else "missing"
        return await super().put(key, body, ANY if kind == self._what else when)

    async def delete(self, key: str, when: When = ANY) -> Outcome:
        return await super().delete(key, ANY if self._what == "delete" else when)


class Lies(MemoryStore):
    """Refuses, and writes all the same."""

    async def put(self, key: str, body: bytes, when: When) -> Outcome:
        outcome = await super().put(key, body, when)
        if isinstance(outcome, PreconditionFailed):
            await super().put(key, body, ANY)
        return outcome


class Answers(MemoryStore):
    """Answers every write alike, and writes nothing."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__()
        self._outcome = outcome

    async def put(self, key: str, body: bytes, when: When) -> Outcome:
        return self._outcome


@pytest.mark.parametrize(
    ("store", "reason"),
    [
        (Ignores("create"), "the store ignores If-None-Match: it replaced an object that exists"),
        (Ignores("stale"), "the store ignores If-Match: it replaced an object of another version"),
        (Ignores("missing"), "the store ignores If-Match: it created an object that was missing"),
        (Lies(), "the store refused a write, but applied it"),
        (Answers(PreconditionFailed(None, 0)), "the store refuses to create an object that does not exist"),
    ],
)
async def test_the_probe_reports_the_fault(store: MemoryStore, reason: str) -> None:
    verdict = await honours_conditions(store, "nonce")

    assert (verdict.honoured, verdict.reason) == (False, reason)
    assert store.keys() == []


async def test_the_probe_finds_a_store_that_ignores_the_condition_of_a_delete() -> None:
    store = Ignores("delete")

    verdict = await honours_conditions(store, "nonce")

    assert verdict
    assert not verdict.conditional_delete
    assert store.keys() == []


async def test_the_probe_judges_nothing_that_is_not_known() -> None:
    with pytest.raises(StoreUnavailable, match="lost"):
        await honours_conditions(Answers(Unknown("lost")), "nonce")
