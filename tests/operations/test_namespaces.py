"""Namespaces and listings."""

from dataclasses import replace

import pytest

from arco_catalog.iceberg.errors import (
    AlreadyExists,
    BadRequest,
    NamespaceNotEmpty,
    NoSuchNamespace,
    Unprocessable,
)
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.listing import ListingPage, Paging, list_namespaces, list_relations
from arco_catalog.operations.namespaces import (
    create_namespace,
    drop_namespace,
    load_namespace,
    require_namespace,
    update_properties,
)
from arco_catalog.planning.answers import Document
from tools.support.catalog_fixture import NS, CatalogFixture


async def test_a_namespace_comes_back_with_its_properties_and_a_location(fixture: CatalogFixture) -> None:
    answer = await create_namespace(fixture.session(), ("a",), {"owner": "me"})
    properties: JsonObject = {"owner": "me", "location": "memory:///wh/warehouse/a"}
    described: JsonObject = {"namespace": ["a"], "properties": properties}
    assert answer == Document(200, described)
    assert await load_namespace(fixture.another().session(), ("a",)) == described


async def test_a_namespace_is_made_once_and_inside_one_that_exists(fixture: CatalogFixture) -> None:
    with pytest.raises(AlreadyExists, match="Namespace already exists: db"):
        await create_namespace(fixture.session(), NS, {})
    with pytest.raises(NoSuchNamespace, match="Namespace does not exist: x"):
        await create_namespace(fixture.session(), ("x", "y"), {})
    await create_namespace(fixture.session(), ("db", "inner"), {})
    await require_namespace(fixture.session(), ("db", "inner"))


async def test_properties_that_are_so_already_make_no_registry_commit(fixture: CatalogFixture) -> None:
    before = await fixture.session().state.head()
    answer = await update_properties(fixture.session(), NS, ["never"], {})
    assert answer == Document(200, {"updated": [], "removed": [], "missing": ["never"]})
    assert (await fixture.session().state.head()).version == before.version


async def test_the_location_of_a_namespace_is_where_its_tables_go(fixture: CatalogFixture) -> None:
    await create_namespace(fixture.session(), ("a",), {"location": "memory:///wh/warehouse/chosen"})
    with pytest.raises(BadRequest, match="outside"):
        await create_namespace(fixture.session(), ("b",), {"location": "memory:///other"})
    with pytest.raises(BadRequest, match="outside"):
        await update_properties(fixture.session(), ("a",), [], {"location": "s3://x/y"})


async def test_a_namespace_whose_location_is_no_longer_allowed_can_still_change_other_properties(
    fixture: CatalogFixture,
) -> None:
    former = replace(fixture, allowed=("memory:///former",))
    await create_namespace(former.session(), ("a",), {"location": "memory:///former/a", "go": "1"})

    answer = await update_properties(fixture.session(), ("a",), ["go"], {"new": "2"})
    with pytest.raises(BadRequest, match="outside"):
        await update_properties(fixture.session(), ("a",), [], {"location": "memory:///former/b"})

    assert answer == Document(200, {"updated": ["new"], "removed": ["go"], "missing": []})
    described = await load_namespace(fixture.session(), ("a",))
    assert described["properties"] == {"new": "2", "location": "memory:///former/a"}


async def test_an_update_returns_its_changes_and_missing_keys(fixture: CatalogFixture) -> None:
    await create_namespace(fixture.session(), ("a",), {"keep": "1", "go": "2"})
    answer = await update_properties(fixture.session(), ("a",), ["go", "never", "go"], {"new": "3"})
    assert answer == Document(200, {"updated": ["new"], "removed": ["go"], "missing": ["never"]})
    described = await load_namespace(fixture.session(), ("a",))
    assert described["properties"] == {"keep": "1", "new": "3", "location": "memory:///wh/warehouse/a"}


async def test_a_key_may_not_be_set_and_removed_at_once(fixture: CatalogFixture) -> None:
    with pytest.raises(Unprocessable, match="both"):
        await update_properties(fixture.session(), NS, ["a"], {"a": "1"})


async def test_only_an_empty_namespace_is_dropped(fixture: CatalogFixture) -> None:
    await fixture.table("t")
    with pytest.raises(NamespaceNotEmpty, match="Namespace db is not empty"):
        await drop_namespace(fixture.session(), NS)
    await drop_table(fixture.session(), NS, "t", purge=False)
    await create_namespace(fixture.session(), ("db", "inner"), {})
    with pytest.raises(NamespaceNotEmpty):
        await drop_namespace(fixture.session(), NS)
    await drop_namespace(fixture.session(), ("db", "inner"))
    await drop_namespace(fixture.session(), NS)
    with pytest.raises(NoSuchNamespace):
        await drop_namespace(fixture.session(), NS)


async def everything(fixture: CatalogFixture, size: int) -> list[object]:
    token: str | None = ""
    seen: list[object] = []
    while token is not None:
        page: ListingPage = await list_relations(fixture.session(), NS, "table", Paging(token, size))
        assert len(page.items) <= size
        seen += page.items
        token = page.next_page_token
    return seen


@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
async def test_pages_of_any_size_add_up_to_the_listing(fixture: CatalogFixture, size: int) -> None:
    for name in ("c", "a", "b", "ü", "a b"):
        await fixture.table(name)
    whole = await list_relations(fixture.session(), NS, "table", Paging(None, None))
    assert whole.next_page_token is None
    assert await everything(fixture, size) == whole.items
    assert sorted(str(item) for item in whole.items) == sorted(
        str({"namespace": ["db"], "name": n}) for n in ("c", "a", "b", "ü", "a b")
    )


async def test_a_reader_of_pages_sees_the_state_of_the_first(fixture: CatalogFixture) -> None:
    for name in ("a", "b", "c"):
        await fixture.table(name)
    first = await list_relations(fixture.session(), NS, "table", Paging("", 1))
    await fixture.table("aa")
    await drop_table(fixture.session(), NS, "c", purge=False)
    other = fixture.another()
    rest = await list_relations(other.session(), NS, "table", Paging(first.next_page_token, 10))
    assert [item["name"] for item in rest.items if isinstance(item, dict)] == ["b", "c"]
    assert rest.next_page_token is None


async def test_namespaces_are_listed_level_by_level(fixture: CatalogFixture) -> None:
    for levels in (("a",), ("a", "b"), ("a", "c"), ("a", "b", "d")):
        await create_namespace(fixture.session(), levels, {})
    assert (await list_namespaces(fixture.session(), (), Paging(None, None))).items == [["a"], ["db"]]
    assert (await list_namespaces(fixture.session(), ("a",), Paging(None, None))).items == [["a", "b"], ["a", "c"]]
    with pytest.raises(NoSuchNamespace, match="Namespace does not exist: non-existing"):
        await list_namespaces(fixture.session(), ("non-existing",), Paging(None, None))


@pytest.mark.parametrize("token", ["x", "e30", "WyJhIl0", "💥", "WyIwMDAwMDAiLCJyZWxhdGlvblxuZGJcbmEiXQ"])
async def test_a_token_that_is_not_ours_or_no_longer_good_is_a_bad_request(fixture: CatalogFixture, token: str) -> None:
    with pytest.raises(BadRequest, match="page token"):
        await list_relations(fixture.session(), NS, "table", Paging(token, 1))


async def test_a_token_of_another_listing_is_a_bad_request(fixture: CatalogFixture) -> None:
    await fixture.table("a")
    await fixture.table("b")
    await fixture.namespace("other")
    first = await list_relations(fixture.session(), NS, "table", Paging("", 1))
    with pytest.raises(BadRequest, match="page token"):
        await list_relations(fixture.session(), ("other",), "table", Paging(first.next_page_token, 1))
