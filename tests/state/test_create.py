"""Who is refused at a create-only write reads what is there and compares it, always (docs/design/store.md#rule-1)."""

import gzip
from collections.abc import Awaitable, Callable

import pytest

from arco_catalog.operations.commit import commit_table
from arco_catalog.operations.load import load_table
from arco_catalog.planning.writes import PointerWrite
from arco_catalog.protocol.writing import writes
from arco_catalog.state.access import KeyConflict
from arco_catalog.state.pointer import MetadataFile, Pointer
from storage_backends import ABSENT, ANY, Applied, Found, PreconditionFailed, When
from storage_backends.base import Outcome
from storage_backends.memory import MemoryStore
from tests.support.fake_runtime import FakeRuntime
from tests.support.scripted_store import Rule, ScriptedStore, get, put
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.request_bodies import set_property

Create = Callable[[CatalogFixture], Awaitable[None]]

FILE = "memory:///wh/warehouse/t/metadata/00000-6c97e413-d51b-4538-ac70-12fe2a85cb83.metadata.json"
ENTITY = "01KAN0Y7Q2M3C4D5E6F7G8H9JK"


class Echoing(ScriptedStore):
    """Sends each write that creates something twice, as transports do, and shows the second answer."""

    async def put(self, key: str, body: bytes, when: When) -> Outcome:
        first = await super().put(key, body, when)
        return await super().put(key, body, when) if when == ABSENT and isinstance(first, Applied) else first


async def a_file(fixture: CatalogFixture) -> None:
    await fixture.session().files.create(FILE, b'{"format-version":2}', packed=False)


async def a_packed_file(fixture: CatalogFixture) -> None:
    await fixture.session().files.create(FILE, b'{"format-version":2}', packed=True)


async def a_commit(fixture: CatalogFixture) -> None:
    state = fixture.session().state
    await state.create(state.paths.registry_commit("c"), b'{"id":"c"}')


async def a_pointer(fixture: CatalogFixture) -> None:
    [write] = writes(fixture.session(), PointerWrite(pointer()))
    await write.put()


def pointer(move: str = "01KAN0Y7Q2M3C4D5E6F7G8H9JM") -> Pointer:
    return Pointer.first(entity=ENTITY, kind="table", move=move, metadata=MetadataFile(FILE, 1), summary={})


CREATES: dict[str, Create] = {
    "a metadata file": a_file,
    "a packed metadata file": a_packed_file,
    "a registry commit": a_commit,
    "a pointer": a_pointer,
}


@pytest.mark.parametrize("create", CREATES.values(), ids=CREATES)
async def test_an_echo_is_known_by_its_bytes(create: Create) -> None:
    fixture = CatalogFixture(Echoing(), FakeRuntime())
    await create(fixture)
    await create(fixture)


@pytest.mark.parametrize("create", CREATES.values(), ids=CREATES)
async def test_what_another_wrote_is_never_taken_for_an_echo(create: Create) -> None:
    store = MemoryStore()
    await create(CatalogFixture(store, FakeRuntime()))
    [key] = store.keys()
    theirs = pointer("01KAN0Y7Q2M3C4D5E6F7G8H9JN").body if "pointers" in key else gzip.compress(b"theirs", mtime=0)
    await store.put(key, theirs, ANY)

    with pytest.raises(KeyConflict, match=key):
        await create(CatalogFixture(store, FakeRuntime()))

    found = await store.get(key)
    assert isinstance(found, Found)
    assert found.body == theirs


async def test_a_pointer_that_moved_before_its_echo_came_back_is_ours_and_is_not_remembered_as_it_was() -> None:
    store = Echoing()
    fixture = CatalogFixture(store, FakeRuntime())
    moved = pointer().fenced("01KAN0Y7Q2M3C4D5E6F7G8H9JP")

    async def move() -> None:
        await store.put(store.calls[-1].key, moved.body, ANY)

    store.rules = [Rule(put(), then=move, times=1)]
    await a_pointer(fixture)

    remembered = fixture.session().state.cached_pointer(ENTITY)
    assert remembered is None or remembered.sequence == moved.sequence


async def test_an_echo_that_was_removed_before_it_was_read_is_written_again() -> None:
    async def lose_it() -> None:
        await store.delete(store.calls[-1].key)

    store = Echoing()
    store.rules = [Rule(get(), first=lose_it, times=1)]
    await a_commit(CatalogFixture(store, FakeRuntime()))
    assert store.rules[0].times == 0
    assert store.keys() == ["wh/_catalog/core/commits/c.json"]


def forestall(store: ScriptedStore, part: str) -> None:
    """A write of another process precedes each of ours to a key."""

    async def theirs() -> None:
        await store.put(store.calls[-1].key, b"theirs", ANY)

    store.rules = [Rule(put(part), first=theirs)]


async def test_a_commit_is_answered_though_another_record_stands_where_its_receipt_belongs() -> None:
    store = ScriptedStore()
    fixture = CatalogFixture(store, FakeRuntime())
    await fixture.namespace("db")
    await fixture.table("t")
    forestall(store, "/iceberg/committed/")

    session = fixture.session()
    state = await commit_table(session, NS, "t", set_property("p", "1"))

    assert state == await load_table(fixture.another().session(), NS, "t")
    assert session.stats.dropped_writes == 1


async def test_a_commit_is_not_made_where_its_metadata_file_would_be_anothers() -> None:
    store = ScriptedStore()
    fixture = CatalogFixture(store, FakeRuntime())
    await fixture.namespace("db")
    before = await fixture.table("t")
    forestall(store, "/metadata/")

    with pytest.raises(KeyConflict):
        await fixture.commit(set_property("p", "1"))

    after = await load_table(fixture.another().session(), NS, "t")
    assert after.metadata_location == before.metadata_location


async def test_the_echoing_store_shows_the_second_answer() -> None:
    assert isinstance(await Echoing().put("k", b"1", ABSENT), PreconditionFailed)
