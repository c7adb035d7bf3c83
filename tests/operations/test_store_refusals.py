"""What a store refuses for certain is a definite answer, and an answer that replays; what it lost is not."""

import asyncio

import pytest

from arco_catalog.iceberg.errors import BadRequest, CommitStateUnknown, Forbidden, KeyInProgress, Unavailable
from storage_backends import (
    InvalidKey,
    Listed,
    StoreDenied,
    StoreError,
    StoreUnavailable,
)
from tests.support.scripted_store import Rule, ScriptedStore, get, put
from tools.support.catalog_fixture import CatalogFixture
from tools.support.request_bodies import schema, set_property


async def fixture_over(store: ScriptedStore) -> CatalogFixture:
    fixture = CatalogFixture(store)
    await fixture.namespace("db")
    await fixture.table("t")
    return fixture


async def versions(store: ScriptedStore) -> list[Listed]:
    return list((await store.list("wh/_catalog/iceberg_pointers/")).entries)


EVERYTHING = ""
FILES = "/metadata/"
POINTERS = "/iceberg_pointers/"
NO_ACCESS = StoreDenied("no access")


def refusing(part: str, error: StoreError = NO_ACCESS) -> Rule:
    """The store refuses to write the keys that hold a part."""
    return Rule(put(part), fails=error)


@pytest.mark.parametrize(("part", "keyed"), [(EVERYTHING, False), (FILES, False), (FILES, True)])
@pytest.mark.parametrize(
    ("error", "report"),
    [
        (StoreDenied("read-only file system"), Forbidden),
        (InvalidKey("file name too long"), BadRequest),
    ],
)
async def test_a_commit_that_the_store_refuses_is_refused_with_its_reason(
    error: StoreError, report: type[Exception], part: str, keyed: bool
) -> None:
    store = ScriptedStore()
    fixture = await fixture_over(store)
    before = await versions(store)
    store.rules = [refusing(part, error)]

    with pytest.raises(report, match=str(error)):
        await fixture.commit(set_property("a", "1"), key=fixture.key() if keyed else None)

    assert await versions(store) == before


async def test_a_refusal_by_the_store_is_final_under_its_key_where_the_key_could_be_claimed() -> None:
    store = ScriptedStore()
    fixture = await fixture_over(store)
    key = fixture.key()
    store.rules = [refusing(FILES)]
    with pytest.raises(Forbidden):
        await fixture.commit(set_property("a", "1"), key=key)
    store.rules = []

    with pytest.raises(Forbidden, match="no access"):
        await fixture.another().commit(set_property("a", "1"), key=key)


async def left_in_progress(store: ScriptedStore, *more: Rule, why: str = "no access") -> tuple[CatalogFixture, str]:
    """Sends a commit under a new key while everything is refused: what became of it is open."""
    fixture = await fixture_over(store)
    key = fixture.key()
    store.rules = [refusing(EVERYTHING), *more]
    with pytest.raises(KeyInProgress, match=why):
        await fixture.commit(set_property("a", "1"), key=key)
    return fixture, key


async def test_under_a_key_of_which_nothing_can_be_stored_no_definite_answer_is_given() -> None:
    store = ScriptedStore()
    fixture, key = await left_in_progress(store)
    store.rules = []

    await fixture.another().commit(set_property("a", "1"), key=key)


async def test_a_refusal_of_the_swap_itself_leaves_the_outcome_open() -> None:
    store = ScriptedStore()
    fixture = await fixture_over(store)
    store.rules = [refusing(POINTERS)]

    with pytest.raises(CommitStateUnknown, match="no access"):
        await fixture.commit(set_property("a", "1"), key=fixture.key())


async def test_a_refusal_under_a_key_that_another_began_with_leaves_the_outcome_open() -> None:
    store = ScriptedStore()
    fixture = await fixture_over(store)
    key = fixture.key()
    store.rules = [refusing(POINTERS, StoreUnavailable("gone"))]
    with pytest.raises(CommitStateUnknown):
        await fixture.commit(set_property("a", "1"), key=key)
    store.rules = [refusing(EVERYTHING)]

    with pytest.raises(CommitStateUnknown):
        await fixture.another().commit(set_property("a", "1"), key=key)


@pytest.mark.parametrize(
    "error", [StoreUnavailable("No space left on device"), StoreError("bucket 'b' does not exist")]
)
async def test_a_store_that_fails_otherwise_is_unavailable_with_its_reason(error: StoreError) -> None:
    store = ScriptedStore()
    fixture = await fixture_over(store)
    store.rules = [refusing(EVERYTHING, error)]

    with pytest.raises(Unavailable, match=str(error)):
        await fixture.commit(set_property("a", "1"))
    with pytest.raises(Unavailable, match=str(error)):
        await fixture.table("another", schema=schema("a"))


async def test_a_namespace_that_the_store_refuses_is_refused() -> None:
    store = ScriptedStore()
    fixture = await fixture_over(store)
    store.rules = [refusing(EVERYTHING)]

    with pytest.raises(Forbidden, match="no access"):
        await fixture.namespace("other")

    store.rules = []
    await fixture.another().namespace("other")


async def test_under_a_key_whose_marker_cannot_be_read_no_definite_answer_is_given() -> None:
    blind = Rule(get("/iceberg_idempotency/"), fails=StoreUnavailable("no answer"))
    await left_in_progress(ScriptedStore(), blind, why="no answer")


async def test_beside_a_claim_that_may_still_land_no_definite_answer_is_given() -> None:
    """Metadata files are refused at once, and final slots; claims are on their way until after they are given up."""
    store = ScriptedStore()
    fixture = await fixture_over(store)
    await fixture.commit(set_property("a", "0"))  # warm: the claim goes beside the metadata file
    answers = Rule(put("/iceberg_idempotency/", b'"answer":{'), fails=NO_ACCESS)
    store.rules = [refusing(FILES), answers, Rule(put("/iceberg_idempotency/"), first=asyncio.Event().wait)]

    with pytest.raises(KeyInProgress, match="no access"):
        await fixture.commit(set_property("a", "1"), key=fixture.key())
