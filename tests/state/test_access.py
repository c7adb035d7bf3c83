"""What a process remembers is the newest that it saw, though answers overtake each other."""

import asyncio

import pytest

from arco_catalog.state.access import Caches, State
from arco_catalog.state.paths import Paths
from arco_catalog.state.pointer import MetadataFile, Pointer
from arco_catalog.state.registry import Operation
from storage_backends import ANY, Applied, Found
from tests.support.fake_runtime import FakeRuntime
from tests.support.scripted_store import Rule, ScriptedStore, get
from tests.support.steps import result


@pytest.fixture
def store() -> ScriptedStore:
    return ScriptedStore()


def a_process(store: ScriptedStore) -> State:
    return State(store, Paths("wh"), Caches.of(1 << 20), FakeRuntime())


def keep_back_the_next_answer(store: ScriptedStore) -> tuple[asyncio.Event, asyncio.Event]:
    """Of the next read: that its answer is there, and that it may go on."""
    kept, go_on = asyncio.Event(), asyncio.Event()

    async def keep() -> None:
        kept.set()
        await go_on.wait()

    store.rules = [Rule(get(), then=keep, times=1)]
    return kept, go_on


async def move_head(state: State, operation: str) -> None:
    head = await state.head()
    successor = result(state.successor(head, {}, [Operation(operation, "create-namespace", {}, None)]))
    assert isinstance(await state.move_head(successor, head.version), Applied)


async def move_pointer(state: State, move: str) -> None:
    pointer = await state.pointer("e")
    assert pointer is not None
    assert isinstance(await state.move_pointer(pointer.fenced(move), pointer.version), Applied)


async def test_a_head_that_was_read_before_a_newer_one_was_made_is_not_remembered(store: ScriptedStore) -> None:
    other, state = a_process(store), a_process(store)
    await move_head(other, "first")
    kept, go_on = keep_back_the_next_answer(store)
    reading = asyncio.create_task(state.head())
    await kept.wait()
    await move_head(state, "second")

    go_on.set()

    assert (await reading).sequence == 1
    known = state.cached_head()
    assert known is not None
    assert known.sequence == 2
    assert known.version == (await other.head()).version


async def test_a_pointer_that_was_read_before_a_newer_one_was_made_is_not_remembered(store: ScriptedStore) -> None:
    other, state = a_process(store), a_process(store)
    first = Pointer.first(entity="e", kind="table", move="m1", metadata=MetadataFile("memory:///f", 1), summary={})
    assert isinstance(await other.move_pointer(first, None), Applied)
    kept, go_on = keep_back_the_next_answer(store)
    reading = asyncio.create_task(state.pointer("e"))
    await kept.wait()
    await move_pointer(state, "m2")

    go_on.set()

    read, known = await reading, state.cached_pointer("e")
    assert read is not None
    assert read.sequence == 1
    assert known is not None
    assert known.recent == ("m2", "m1")


async def test_what_others_made_since_is_remembered_once_it_is_read(store: ScriptedStore) -> None:
    other, state = a_process(store), a_process(store)
    await move_head(state, "first")
    await move_head(other, "second")

    assert (await state.head()).sequence == 2

    known = state.cached_head()
    assert known is not None
    assert known.sequence == 2


async def test_a_head_and_a_pointer_that_a_restore_put_back_replace_later_ones(store: ScriptedStore) -> None:
    other, state = a_process(store), a_process(store)
    first = Pointer.first(entity="e", kind="table", move="m1", metadata=MetadataFile("memory:///f", 1), summary={})
    assert isinstance(await other.move_pointer(first, None), Applied)
    await move_head(other, "first")
    keys = (state.paths.manifest, state.paths.pointer("e"))
    archived = [(await store.get(key), key) for key in keys]
    await move_head(state, "second")
    await move_pointer(state, "m2")
    for found, key in archived:
        assert isinstance(found, Found)
        await store.put(key, found.body, ANY)

    assert (await state.head()).sequence == 1
    await state.pointer("e")

    head, pointer = state.cached_head(), state.cached_pointer("e")
    assert head is not None
    assert head.sequence == 1
    assert pointer is not None
    assert pointer.sequence == 1
