"""Pages show one frozen state, however large the level is and whatever happens meanwhile."""

import asyncio
import math
import random
from collections.abc import AsyncIterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arco_catalog.iceberg.errors import BadRequest, InternalError
from arco_catalog.iceberg.json import JsonValue
from arco_catalog.operations import listing
from arco_catalog.operations.create import create_view
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.listing import Paging, list_namespaces, list_relations
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state.index import relations_in
from arco_catalog.state.spilling import Limits
from tests.support.page_tokens import decode_token, encode_token
from tests.support.registry_builder import RegistryBuilder, spread
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.request_bodies import schema

TINY = Settings("wh", spill=Limits(embedded=300, segment=700))


@pytest.fixture
async def spilled() -> CatalogFixture:
    """Thirty tables over several segments."""
    fixture = CatalogFixture(settings=TINY)
    await fixture.namespace("db")
    for number in range(30):
        await fixture.table(f"t{number:02}")
    assert len((await fixture.session().state.head()).index.directory.refs) > 8
    return fixture


async def pages(fixture: CatalogFixture, size: int | None, kind: str = "table") -> AsyncIterator[list[JsonValue]]:
    """One page after the other, each by a process that remembers nothing."""
    token: str | None = ""
    for _ in range(200):
        listed = await list_relations(fixture.another().session(), NS, kind, Paging(token, size))
        yield [item["name"] if isinstance(item, dict) else item for item in listed.items]
        token = listed.next_page_token
        if token is None:
            return
    raise AssertionError("a listing without an end")


async def everything(fixture: CatalogFixture, kind: str = "table") -> list[JsonValue]:
    listed = await list_relations(fixture.another().session(), NS, kind, Paging(None, None))
    assert listed.next_page_token is None
    return [item["name"] if isinstance(item, dict) else item for item in listed.items]


@pytest.mark.parametrize("size", [1, 2, 7, 30, 31, None])
async def test_pages_over_a_spilled_index_add_up_to_the_whole(spilled: CatalogFixture, size: int | None) -> None:
    found = [name async for page in pages(spilled, size) for name in page]
    assert found == await everything(spilled) == [f"t{number:02}" for number in range(30)]


async def test_a_page_ends_where_a_segment_does(spilled: CatalogFixture) -> None:
    sizes = [len(page) async for page in pages(spilled, None)]
    assert sum(sizes) == 30
    assert all(0 < size < 10 for size in sizes)


@given(seed=st.integers(0, 1_000_000), size=st.integers(1, 9))
@settings(max_examples=15, deadline=None)
def test_creates_and_drops_between_pages_change_no_page(seed: int, size: int) -> None:
    async def run() -> None:
        chance = random.Random(seed)
        fixture, names = CatalogFixture(settings=TINY), {f"t{number:02}" for number in range(12)}
        await fixture.namespace("db")
        for name in sorted(names):
            await fixture.table(name)
        frozen, found = sorted(names), list[JsonValue]()
        async for page in pages(fixture, size):
            found += page
            for _ in range(3):
                name = f"t{chance.randrange(40):02}"
                if name in names:
                    await drop_table(fixture.session(), NS, name, purge=False)
                    names.remove(name)
                else:
                    await fixture.table(name)
                    names.add(name)
        assert found == frozen
        assert await everything(fixture) == sorted(names)

    asyncio.run(run())


async def test_views_among_many_tables_are_found_page_by_page(spilled: CatalogFixture) -> None:
    for name in ("t05_view", "t29_view"):
        version: JsonValue = {
            "version-id": 1,
            "timestamp-ms": 1,
            "schema-id": 0,
            "summary": {},
            "default-namespace": ["db"],
            "representations": [{"type": "sql", "sql": "SELECT 1", "dialect": "spark"}],
        }
        body = {"name": name, "schema": {"schema-id": 0, **schema("x")}, "view-version": version, "properties": {}}
        await create_view(spilled.session(body), NS, body)
    assert [name async for page in pages(spilled, 5, "view") for name in page] == ["t05_view", "t29_view"]


async def test_a_page_reads_few_segments_in_vain_and_is_empty_then(
    spilled: CatalogFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "EMPTY_SEGMENTS", 3)
    index = (await spilled.session().state.head()).index
    segments = len([*index.key_ranges(relations_in(NS), relations_in(NS))])
    assert segments > 6
    assert [page async for page in pages(spilled, None, "view")] == [[]] * math.ceil(segments / 3)


async def test_spilled_namespaces_are_listed_in_order() -> None:
    fixture = CatalogFixture(settings=Settings("wh", spill=Limits(embedded=0, segment=400)))
    for number in range(12):
        await fixture.namespace(f"n{number:02}")
        await fixture.namespace(f"n{number:02}", "inner")
    listed = await list_namespaces(fixture.another().session(), (), Paging(None, None))
    assert listed.items == [[f"n{number:02}"] for number in range(12)]
    inner = await list_namespaces(fixture.another().session(), ("n03",), Paging("", 5))
    assert inner.items == [["n03", "inner"]]


async def test_a_large_catalog_is_listed_whole_and_in_pages() -> None:
    fixture = CatalogFixture()
    builder = RegistryBuilder(
        fixture.catalog.mounts[0].root, fixture.catalog.paths, fixture.runtime, fixture.settings.spill
    )
    names = [name for _, name in spread(3_000, each=3_000)]
    objects = dict(builder.namespace("db"))
    for name in names:
        builder.table("db", name)
    for key, body in (objects | dict(builder.registry())).items():
        await fixture.session().state.create(key, body)
    assert await everything(fixture) == names
    assert [name async for page in pages(fixture, None) for name in page] == names


# Tokens.


async def token_of(fixture: CatalogFixture) -> str:
    listed = await list_relations(fixture.session(), NS, "table", Paging("", 2))
    assert listed.next_page_token is not None
    return listed.next_page_token


async def ask(fixture: CatalogFixture, token: str) -> None:
    await list_relations(fixture.another().session(), NS, "table", Paging(token, 2))


async def test_a_token_whose_commit_was_collected_has_expired(spilled: CatalogFixture) -> None:
    token = await token_of(spilled)
    commit = (await spilled.session().state.head()).id or ""
    await spilled.table("later")
    await spilled.store.delete(spilled.catalog.paths.registry_commit(commit))
    with pytest.raises(BadRequest, match="expired"):
        await ask(spilled, token)


async def test_a_token_whose_segment_was_collected_has_expired(spilled: CatalogFixture) -> None:
    token = await token_of(spilled)
    for ref in (await spilled.session().state.head()).index.directory.refs:
        await spilled.store.delete(spilled.catalog.paths.index_segment(ref.id))
    with pytest.raises(BadRequest, match="expired"):
        await ask(spilled, token)
    with pytest.raises(InternalError, match="gone"):
        await everything(spilled)


@pytest.mark.parametrize("commit", ["A" * 2_000, "é" * 26, "../" * 9])
async def test_a_token_that_names_no_commit_is_refused(spilled: CatalogFixture, commit: str) -> None:
    with pytest.raises(BadRequest, match="page token"):
        await ask(spilled, encode_token([commit, relations_in(NS)]))


MALFORMED = [
    "x",
    "%%%",
    "e30",
    "=",
    encode_token(None),
    encode_token([1, 2]),
    encode_token(["c"]),
    encode_token(["../x", "relation\ndb\n"]),
]


@pytest.mark.parametrize("token", [*MALFORMED, encode_token(["c", "relation\nother\nt"]), encode_token(["c", ""])])
async def test_a_token_that_is_not_ours_is_refused(spilled: CatalogFixture, token: str) -> None:
    with pytest.raises(BadRequest, match="page token"):
        await ask(spilled, token)


async def test_a_token_leads_where_it_was_made_for_and_nowhere_else(spilled: CatalogFixture) -> None:
    token = await token_of(spilled)
    decoded = decode_token(token)
    assert decoded == [(await spilled.session().state.head()).id, "relation\ndb\nt02"]
    with pytest.raises(BadRequest, match="belongs to another listing"):
        await list_namespaces(spilled.session(), (), Paging(token, 2))
