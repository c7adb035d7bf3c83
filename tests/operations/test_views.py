"""Views are entities like tables: the same names, the same protocols."""

import pytest

from arco_catalog.iceberg.errors import AlreadyExists, CommitFailed, CommitStateUnknown, NoSuchTable, NoSuchView
from arco_catalog.iceberg.json import JsonObject, loads
from arco_catalog.operations.commit import commit_view
from arco_catalog.operations.create import create_view
from arco_catalog.operations.drop import drop_table, drop_view, unregister_table
from arco_catalog.operations.listing import Paging, list_relations
from arco_catalog.operations.load import load_table, load_view, require_view
from arco_catalog.operations.register import register_table, register_view
from arco_catalog.operations.rename import rename_table, rename_view
from arco_catalog.planning.answers import TableState
from tools.support.catalog_fixture import NS, CatalogFixture, state
from tools.support.request_bodies import set_property, view_request


async def make(fixture: CatalogFixture, name: str = "v", key: str | None = None) -> TableState:
    body = view_request(name, {"a": "1"})
    return state(await create_view(fixture.session(body, key=key, path="/views"), NS, body))


async def test_a_view_is_created_loaded_changed_and_dropped(fixture: CatalogFixture) -> None:
    made = await make(fixture)
    assert (await load_view(fixture.another().session(), NS, "v")).metadata == made.metadata
    body = set_property("a", "2")
    changed = state(await commit_view(fixture.session(body), NS, "v", body))
    assert changed.metadata_location.rpartition("/")[2].startswith("00001-")
    document = loads((await load_view(fixture.session(), NS, "v")).metadata)
    assert isinstance(document, dict)
    assert document["properties"] == {"a": "2"}
    await drop_view(fixture.session(), NS, "v")
    with pytest.raises(NoSuchView, match=r"View does not exist: db\.v"):
        await require_view(fixture.session(), NS, "v")


async def test_a_create_and_a_change_of_a_view_are_replayed(fixture: CatalogFixture) -> None:
    key = fixture.key()
    assert await make(fixture, key=key) == await make(fixture.another(), key=key)
    key, body = fixture.key(), set_property("a", "2")
    first = await commit_view(fixture.session(body, key=key), NS, "v", body)
    assert await commit_view(fixture.another().session(body, key=key), NS, "v", body) == first


async def test_tables_and_views_share_one_name_space(fixture: CatalogFixture) -> None:
    await make(fixture, "v")
    await fixture.table("t")
    with pytest.raises(AlreadyExists, match=r"View with same name already exists: db\.v"):
        await fixture.table("v")
    with pytest.raises(AlreadyExists, match=r"Table with same name already exists: db\.t"):
        await make(fixture, "t")
    with pytest.raises(AlreadyExists, match=r"View already exists: db\.v"):
        await make(fixture, "v")
    with pytest.raises(NoSuchTable):
        await load_table(fixture.session(), NS, "v")
    with pytest.raises(NoSuchView):
        await load_view(fixture.session(), NS, "t")
    with pytest.raises(NoSuchTable):
        await drop_table(fixture.session(), NS, "v", purge=False)


async def test_renames_of_views_tell_what_is_in_their_way(fixture: CatalogFixture) -> None:
    await make(fixture, "one")
    await make(fixture, "two")
    await fixture.table("t")
    with pytest.raises(AlreadyExists, match=r"Cannot rename db\.one to db\.two\. View already exists"):
        await rename_view(fixture.session(), (NS, "one"), (NS, "two"))
    with pytest.raises(AlreadyExists, match=r"Cannot rename db\.one to db\.t\. Table already exists"):
        await rename_view(fixture.session(), (NS, "one"), (NS, "t"))
    with pytest.raises(AlreadyExists, match=r"Cannot rename db\.t to db\.one\. View already exists"):
        await rename_table(fixture.session(), (NS, "t"), (NS, "one"))
    await rename_view(fixture.session(), (NS, "one"), (NS, "three"))
    assert [
        item["name"]
        for item in (await list_relations(fixture.session(), NS, "view", Paging(None, None))).items
        if isinstance(item, dict)
    ] == ["three", "two"]


async def test_a_dropped_view_is_registered_again(fixture: CatalogFixture) -> None:
    made = await make(fixture)
    await drop_view(fixture.session(), NS, "v")
    again = state(await register_view(fixture.session(), NS, "w", made.metadata_location))
    assert again.metadata == made.metadata
    with pytest.raises(AlreadyExists):
        await register_view(fixture.session(), NS, "w", made.metadata_location)


async def test_another_uuid_than_the_views_is_a_conflict(fixture: CatalogFixture) -> None:
    await make(fixture)
    unmet: JsonObject = {"type": "assert-view-uuid", "uuid": "00000000-0000-4000-8000-000000000000"}
    body: JsonObject = {"requirements": [unmet], "updates": []}
    with pytest.raises(CommitFailed, match="view UUID does not match"):
        await commit_view(fixture.session(body), NS, "v", body)


async def test_an_unregistered_table_is_gone_with_its_files_in_place(fixture: CatalogFixture) -> None:
    await fixture.table("t")
    last = await fixture.commit(set_property("a", "1"))
    key = fixture.key()
    report = await unregister_table(fixture.session(key=key), NS, "t")
    assert (report.metadata_location, report.metadata) == (last.metadata_location, last.metadata)
    assert await unregister_table(fixture.another().session(key=key), NS, "t") == report
    with pytest.raises(NoSuchTable):
        await fixture.commit(set_property("a", "2"))
    await register_table(fixture.session(), NS, "t", report.metadata_location, overwrite=False)
    assert (await load_table(fixture.session(), NS, "t")).metadata == last.metadata


async def test_an_unregistration_whose_table_cannot_be_read_back_is_not_reported_as_undone(
    fixture: CatalogFixture,
) -> None:
    table = await fixture.table("t")
    fixture.catalog.files.drop(table.metadata_location)
    await fixture.store.delete(table.metadata_location.removeprefix("memory:///"))
    with pytest.raises(CommitStateUnknown, match="was unregistered"):
        await unregister_table(fixture.session(), NS, "t")
