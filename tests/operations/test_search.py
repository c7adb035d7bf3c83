"""A search finds what its words name, whatever the size of the index, within bounds of work for each page."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps
from arco_catalog.operations import search as searching
from arco_catalog.operations.search import MAX_RESULTS, MAX_SEGMENTS, search
from arco_catalog.planning.search import MAX_QUERY, MAX_WORDS, SearchQuery, words_of
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state.index import Namespace
from arco_catalog.state.spilling import Limits
from storage_backends import ANY
from storage_backends.memory import MemoryStore
from tests.operations.test_listing_transactions import built
from tests.support.page_tokens import encode_token
from tests.support.registry_builder import RegistryBuilder, spread
from tools.support.catalog_fixture import CatalogFixture, CountingFixture
from tools.support.wrapped_stores import CountingStore

TINY = Settings("wh", spill=Limits(embedded=300, segment=700))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("orders", ["orders"]),
        ("fact_order-items.v2 eu", ["fact", "order", "items", "v2", "eu"]),
        ("FactOrderItems", ["fact", "order", "items"]),
        ("HTTPServerLog", ["http", "server", "log"]),
        ("customerID", ["customer", "id"]),
        ("GrößeÄndern", ["grösse", "ändern"]),
        ("_.-", []),
        ("A", ["a"]),
    ],
)
def test_names_are_split_at_separators_and_capitals(text: str, words: Sequence[str]) -> None:
    assert [*words_of(text)] == words


@pytest.mark.parametrize(
    ("query", "namespace", "name", "found"),
    [
        ("ord", ("sales",), "orders", True),
        ("ORD", ("sales",), "orders", True),
        ("rders", ("sales",), "orders", False),
        ("items", ("sales",), "FactOrderItems", True),
        ("item fact", ("sales",), "FactOrderItems", True),
        ("factorderi", ("sales",), "FactOrderItems", True),
        ("orderitems", ("sales",), "FactOrderItems", False),
        ("sales.ord", ("sales",), "orders", True),
        ("sa ord", ("sales", "eu"), "orders", True),
        ("eu.ord", ("sales", "eu"), "orders", True),
        ("sales", ("sales",), "orders", False),
        ("orders sales", ("sales",), "orders", False),
        ("hr.ord", ("sales",), "orders", False),
        ("_", ("sales",), "_hidden", True),
        ("_", ("sales",), "orders_", False),
        ("_hid", ("sales",), "_hidden", True),
        ("STRASSE", ("a",), "Straße", True),
    ],
)
def test_the_last_word_is_of_the_name_itself(query: str, namespace: Namespace, name: str, found: bool) -> None:
    sought = SearchQuery.parse(query)

    assert sought.matches(namespace, name) == found
    assert sought.may_match(name) or not found


@given(st.text(min_size=1, max_size=12), st.text(min_size=1, max_size=12), st.text(min_size=1, max_size=12))
def test_what_may_not_be_found_is_found_nowhere(query: str, level: str, name: str) -> None:
    sought = SearchQuery.parse(query)
    assert sought.may_match(name) or not sought.matches((level,), name)


@given(st.text(min_size=1, max_size=12))
def test_every_name_is_found_by_itself(name: str) -> None:
    assert SearchQuery.parse(name).matches(("db",), name)


@pytest.mark.parametrize("query", ["", "x" * (MAX_QUERY + 1), " ".join("a" * (MAX_WORDS + 1))])
def test_a_query_that_is_empty_or_too_long_is_refused(query: str) -> None:
    with pytest.raises(BadRequest, match="The query 'q' has"):
        SearchQuery.parse(query)


async def found(
    fixture: CatalogFixture, query: str, *, kind: str | None = None, limit: int | None = None
) -> list[JsonObject]:
    """All pages, each by a process that has nothing in memory."""
    results: list[JsonObject] = []
    token: str | None = None
    for _ in range(500):
        sought = SearchQuery.parse(query)
        page = await search(fixture.another().session(), sought, kind=kind, limit=limit, token=token)
        assert len(page.results) <= (limit or MAX_RESULTS)
        results += page.results
        token = page.next_page_token
        if token is None:
            return results
    raise AssertionError("a search without an end")


def table(name: str, *namespace: str) -> JsonObject:
    return {"type": "table", "namespace": [*(namespace or ("db",))], "name": name}


def namespace(*levels: str) -> JsonObject:
    return {"type": "namespace", "namespace": [*levels], "name": None}


@pytest.fixture
async def spilled() -> CatalogFixture:
    """Thirty tables and three namespaces over several segments."""
    fixture = CatalogFixture(settings=TINY)
    await fixture.namespace("db")
    await fixture.namespace("db", "order_7")
    await fixture.namespace("orders")
    for number in range(30):
        await fixture.table(f"{'order' if number % 3 else 'item'}_{number:02}")
    assert len((await fixture.session().state.head()).index.directory.refs) > 8
    return fixture


@pytest.mark.parametrize("limit", [1, 2, 7, 50, None])
async def test_pages_of_any_size_add_up_to_all_that_is_found(spilled: CatalogFixture, limit: int | None) -> None:
    tables = [table(f"order_{number:02}") for number in range(30) if number % 3]

    assert await found(spilled, "ord", limit=limit) == [namespace("orders"), namespace("db", "order_7"), *tables]
    assert await found(spilled, "db.ord", kind="table", limit=limit) == tables
    assert await found(spilled, "ORDER-7", kind="namespace", limit=limit) == [namespace("db", "order_7")]
    assert await found(spilled, "ord", kind="view", limit=limit) == []
    assert await found(spilled, "item 07", limit=limit) == []


async def test_a_page_ends_after_so_many_segments(spilled: CatalogFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "MAX_SEGMENTS", 2)

    page = await search(spilled.session(), SearchQuery.parse("nothing"))

    assert (page.results, page.scanned < 30) == ([], True)
    assert page.next_page_token is not None
    assert await found(spilled, "item", kind="table") == [table(f"item_{number:02}") for number in range(0, 30, 3)]


async def test_a_page_ends_after_so_many_checks(spilled: CatalogFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "MAX_JUDGED", 3)

    page = await search(spilled.session(), SearchQuery.parse("ord"))

    assert len(page.results) == 3
    assert len(await found(spilled, "ord")) == 22


async def test_the_names_of_transactions_are_found_once_they_have_committed() -> None:
    scenario = await built()
    await scenario.commits("a1", "z1")

    names = [each["name"] for query in ("a1", "b2", "m", "y2", "z1") for each in await found(scenario.fixture, query)]

    assert names == ["a1", "m", "z1"]


async def test_a_type_that_a_later_version_stored_is_not_shown(spilled: CatalogFixture) -> None:
    index = (await spilled.session().state.head()).index
    key = next(key for key in index.edits if key.startswith("relation\n"))
    head = await spilled.session().state.head()
    stored: JsonObject = {**index.to_json(), "embedded": {**index.edits, key: {"type": "stream"}}}
    document: JsonObject = {**head.document, "index": stored}
    await spilled.store.put(spilled.catalog.paths.manifest, dumps(document), ANY)

    name = key.rpartition("\n")[2]
    assert name.startswith(("order_", "item_"))
    assert await found(spilled, name) == []


@pytest.mark.parametrize("position", [[], ["relation\ndb\nx", 1], ["tombstone\ndb\nx"], [7], "relation\n", None])
async def test_a_token_of_another_listing_is_refused(spilled: CatalogFixture, position: JsonValue) -> None:
    token = encode_token(position)
    with pytest.raises(BadRequest, match="another listing"):
        await search(spilled.session(), SearchQuery.parse("x"), token=token)


async def test_a_token_of_a_search_for_tables_leads_to_no_namespaces(spilled: CatalogFixture) -> None:
    page = await search(spilled.session(), SearchQuery.parse("ord"), kind="table", limit=1)
    with pytest.raises(BadRequest, match="another listing"):
        await search(spilled.session(), SearchQuery.parse("ord"), kind="namespace", token=page.next_page_token)


async def test_a_page_over_a_hundred_thousand_names_keeps_to_its_budget() -> None:
    fixture = CountingFixture(CountingStore(MemoryStore()))
    builder = RegistryBuilder(
        fixture.catalog.mounts[0].root, fixture.catalog.paths, fixture.runtime, fixture.settings.spill
    )
    objects: dict[str, bytes] = {}
    for name in dict.fromkeys(name for name, _ in spread(100_000)):
        objects |= builder.namespace(name)
    for name, each in spread(100_000):
        builder.table(name, each)
    for key, body in (objects | dict(builder.registry())).items():
        await fixture.session().state.create(key, body)

    token: str | None = None
    scanned = pages = 0
    while pages == 0 or token is not None:
        session = fixture.another().session()
        with fixture.store.measure() as measured:
            page = await search(session, SearchQuery.parse("nothing"), token=token)
        assert measured.calls <= 1 + MAX_SEGMENTS
        assert 0 < page.scanned <= 1_500 * MAX_SEGMENTS
        token, scanned, pages = page.next_page_token, scanned + page.scanned, pages + 1
    assert scanned >= 100_100
    assert [each["name"] for each in await found(fixture, "db099.table 00999")] == ["table_00999"]
