"""What a store refuses for certain is a definite answer, and an answer that replays; what it lost is not."""

import asyncio

import pytest

from arco_catalog.iceberg.errors import BadRequest, CommitStateUnknown, Forbidden, KeyInProgress, Unavailable
from storage_backends import (
    Found,
    InvalidKey,
    Listed,
    Missing,
    Outcome,
    StoreDenied,
    StoreError,
    StoreUnavailable,
    Unchanged,
    Version,
    When,
)
from storage_backends.memory import MemoryStore
from tests.support.catalog_fixture import CatalogFixture, schema, set_property


class RefusingStore(MemoryStore):
    """Refuses to write the keys that hold one of `parts`."""

    def __init__(self, error: StoreError) -> None:
        super().__init__()
        self.error = error
        self.parts: tuple[str, ...] = ()

    async def put(self, key: str, body: bytes, when: When) -> Outcome:
        if any(part in key for part in self.parts):
            raise self.error
        return await super().put(key, body, when)


async def fixture_over(store: RefusingStore) -> CatalogFixture:
    fixture = CatalogFixture(store)
    await fixture.namespace("db")
    await fixture.table("t")
    return fixture


async def versions(store: RefusingStore) -> list[Listed]:
    return list((await store.list("wh/_catalog/iceberg_pointers/")).entries)


EVERYTHING = ("",)
FILES = ("/metadata/",)
POINTERS = ("/iceberg_pointers/",)


@pytest.mark.parametrize(("parts", "keyed"), [(EVERYTHING, False), (FILES, False), (FILES, True)])
@pytest.mark.parametrize(
    ("error", "told"),
    [
        (StoreDenied("read-only file system"), Forbidden),
        (InvalidKey("file name too long"), BadRequest),
    ],
)
async def test_a_commit_that_the_store_refuses_is_refused_with_its_reason(
    error: StoreError, told: type[Exception], parts: tuple[str, ...], keyed: bool
) -> None:
    store = RefusingStore(error)
    fixture = await fixture_over(store)
    before = await versions(store)
    store.parts = parts

    with pytest.raises(told, match=str(error)):
        await fixture.commit(set_property("a", "1"), key=fixture.key() if keyed else None)

    assert await versions(store) == before


async def test_a_refusal_by_the_store_is_final_under_its_key_where_the_key_could_be_claimed() -> None:
    store = RefusingStore(StoreDenied("no access"))
    fixture = await fixture_over(store)
    key = fixture.key()
    store.parts = FILES
    with pytest.raises(Forbidden):
        await fixture.commit(set_property("a", "1"), key=key)
    store.parts = ()

    with pytest.raises(Forbidden, match="no access"):
        await fixture.another().commit(set_property("a", "1"), key=key)


async def left_in_progress(store: RefusingStore, why: str) -> tuple[CatalogFixture, str]:
    """Sends a commit under a new key while everything is refused: what became of it is open."""
    fixture = await fixture_over(store)
    key = fixture.key()
    store.parts = EVERYTHING
    with pytest.raises(KeyInProgress, match=why):
        await fixture.commit(set_property("a", "1"), key=key)
    return fixture, key


async def test_under_a_key_of_which_nothing_can_be_stored_no_definite_answer_is_given() -> None:
    store = RefusingStore(StoreDenied("no access"))
    fixture, key = await left_in_progress(store, "no access")
    store.parts = ()

    await fixture.another().commit(set_property("a", "1"), key=key)


async def test_a_refusal_of_the_swap_itself_leaves_the_outcome_open() -> None:
    store = RefusingStore(StoreDenied("no access"))
    fixture = await fixture_over(store)
    store.parts = POINTERS

    with pytest.raises(CommitStateUnknown, match="no access"):
        await fixture.commit(set_property("a", "1"), key=fixture.key())


async def test_a_refusal_under_a_key_that_somebody_else_began_with_leaves_the_outcome_open() -> None:
    store = RefusingStore(StoreDenied("no access"))
    fixture = await fixture_over(store)
    key = fixture.key()
    store.error, store.parts = StoreUnavailable("gone"), POINTERS
    with pytest.raises(CommitStateUnknown):
        await fixture.commit(set_property("a", "1"), key=key)
    store.error, store.parts = StoreDenied("no access"), EVERYTHING

    with pytest.raises(CommitStateUnknown):
        await fixture.another().commit(set_property("a", "1"), key=key)


@pytest.mark.parametrize(
    "error", [StoreUnavailable("No space left on device"), StoreError("bucket 'b' does not exist")]
)
async def test_a_store_that_fails_otherwise_is_unavailable_with_its_reason(error: StoreError) -> None:
    store = RefusingStore(error)
    fixture = await fixture_over(store)
    store.parts = EVERYTHING

    with pytest.raises(Unavailable, match=str(error)):
        await fixture.commit(set_property("a", "1"))
    with pytest.raises(Unavailable, match=str(error)):
        await fixture.table("another", schema=schema("a"))


async def test_a_namespace_that_the_store_refuses_is_refused() -> None:
    store = RefusingStore(StoreDenied("no access"))
    fixture = await fixture_over(store)
    store.parts = EVERYTHING

    with pytest.raises(Forbidden, match="no access"):
        await fixture.namespace("other")

    store.parts = ()
    await fixture.another().namespace("other")


class Blinding(RefusingStore):
    """Refuses writes, and has no answer to who asks for a marker afterwards."""

    async def get(self, key: str, if_changed_from: Version | None = None) -> Found | Unchanged | Missing:
        if self.parts and "/iceberg_idempotency/" in key:
            raise StoreUnavailable("no answer")
        return await super().get(key, if_changed_from)


async def test_under_a_key_whose_marker_cannot_be_read_no_definite_answer_is_given() -> None:
    await left_in_progress(Blinding(StoreDenied("no access")), "no answer")


class LateClaims(RefusingStore):
    """Refuses metadata files at once, and final slots; claims are on their way until long after they are given up."""

    async def put(self, key: str, body: bytes, when: When) -> Outcome:
        if "/iceberg_idempotency/" in key and self.parts:
            if b'"answer":{' in body:
                raise self.error
            await asyncio.sleep(3600)
        return await super().put(key, body, when)


async def test_beside_a_claim_that_may_still_land_no_definite_answer_is_given() -> None:
    store = LateClaims(StoreDenied("no access"))
    fixture = await fixture_over(store)
    await fixture.commit(set_property("a", "0"))  # warm: the claim goes beside the metadata file
    store.parts = FILES

    with pytest.raises(KeyInProgress, match="no access"):
        await fixture.commit(set_property("a", "1"), key=fixture.key())
