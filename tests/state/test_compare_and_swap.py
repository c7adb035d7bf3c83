"""One object is changed by compare-and-swap: no change of another's is lost, and none of ours is made twice."""

import asyncio

import pytest

from arco_catalog.state.access import Caches, State
from arco_catalog.state.compare_and_swap import StoredValue, UpdateContention, update_until_applied
from arco_catalog.state.paths import Paths
from storage_backends import ABSENT, ANY, Applied, Found, Missing, ObjectStore, Outcome, Unknown, Version, When
from storage_backends.memory import MemoryStore
from tests.support.fake_runtime import FakeRuntime
from tools.support.wrapped_stores import CountingStore

KEY = "key"


class LosesAnswers(CountingStore):
    """Applies writes, and loses so many of its answers."""

    def __init__(self, inner: ObjectStore, lost: int) -> None:
        super().__init__(inner)
        self._lost = lost

    async def put(self, key: str, body: bytes, when: When) -> Outcome:
        outcome = await super().put(key, body, when)
        if self._lost and isinstance(outcome, Applied):
            self._lost -= 1
            return Unknown("the answer was lost")
        return outcome


def state_over(store: ObjectStore) -> State:
    return State(store, Paths("wh"), Caches.of(1 << 20), FakeRuntime())


def words_in(found: Found | None) -> frozenset[str]:
    return frozenset() if found is None else frozenset(found.body.decode().split())


def encoded(words: frozenset[str]) -> bytes:
    return " ".join(sorted(words)).encode()


async def add(
    state: State, word: str, known: StoredValue[frozenset[str]] | None = None, tries: int = 64
) -> StoredValue[frozenset[str]]:
    def mutate(words: frozenset[str]) -> frozenset[str] | None:
        return None if word in words else words | {word}

    return await update_until_applied(state, KEY, words_in, mutate, encoded, known=known, tries=tries)


async def body_of(store: ObjectStore) -> bytes:
    found = await store.get(KEY)
    assert isinstance(found, Found)
    return found.body


async def test_racing_changes_are_all_made() -> None:
    state = state_over(MemoryStore())

    await asyncio.gather(*(add(state, f"word-{number}") for number in range(20)))

    assert words_in(await state.store.get(KEY)) == {f"word-{number}" for number in range(20)}  # type: ignore[arg-type]


async def test_a_change_whose_answer_was_lost_is_found_and_not_made_again() -> None:
    store = LosesAnswers(MemoryStore(), lost=1)

    with store.measure() as measured:
        applied = await add(state_over(store), "ours")

    assert applied.value == {"ours"}
    assert measured.calls == 3  # a read, the write, and the read that finds it
    assert await body_of(store) == b"ours"


async def test_what_is_known_is_not_read_first_and_read_where_it_is_old() -> None:
    store = CountingStore(MemoryStore())
    nothing: StoredValue[frozenset[str]] = StoredValue(frozenset(), None)
    with store.measure() as measured:
        first = await add(state_over(store), "a", known=nothing)
    assert measured.calls == 1

    with store.measure() as measured:
        again = await add(state_over(store), "b", known=nothing)

    assert measured.calls == 3
    assert again.value == {"a", "b"}
    assert again.version != first.version


async def test_nothing_is_written_where_there_is_nothing_to_change() -> None:
    store = CountingStore(MemoryStore())
    await store.put(KEY, b"ours", ABSENT)

    with store.measure() as measured:
        kept = await add(state_over(store), "ours")

    assert kept.value == {"ours"}
    assert measured.calls == 1


class AlwaysLater(MemoryStore):
    """Another writer comes between each read and the write after it."""

    async def get(self, key: str, if_changed_from: Version | None = None) -> Found | Missing:
        found = await super().get(key)
        await super().put(key, b"theirs", ANY)
        assert isinstance(found, Found | Missing)
        return found


async def test_tries_are_bounded() -> None:
    with pytest.raises(UpdateContention, match="not confirmed in 3 attempts"):
        await add(state_over(AlwaysLater()), "ours", tries=3)
