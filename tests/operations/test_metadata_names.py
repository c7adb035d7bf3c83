"""What metadata files are called, and what becomes of a name that is taken (docs/design/store.md,
docs/design/README.md#what-was-rejected)."""

import pytest
from pyiceberg.catalog import MetastoreCatalog

from arco_catalog.iceberg.files import is_metadata_file_name
from arco_catalog.iceberg.json import JsonObject, loads
from arco_catalog.operations.commit import commit_view
from arco_catalog.operations.create import create_view
from arco_catalog.operations.load import load_table
from arco_catalog.operations.register import register_table
from arco_catalog.operations.transaction import commit_transaction
from arco_catalog.planning.answers import TableState
from arco_catalog.protocol.catalog import Settings
from arco_catalog.upkeep.reconcile import reconcile
from storage_backends.memory import MemoryStore
from tests.operations.test_transactions import creation
from tools.support.catalog_fixture import NS, CatalogFixture, state
from tools.support.request_bodies import set_property, view_request


@pytest.fixture
async def fixture() -> CatalogFixture:
    made = CatalogFixture(MemoryStore())
    await made.namespace("db")
    return made


def number(file: TableState) -> int:
    """The version number that PyIceberg finds in the name, -1 where it finds none."""
    assert is_metadata_file_name(file.metadata_location.rpartition("/")[2])
    return MetastoreCatalog._parse_metadata_version(file.metadata_location)


async def test_pyiceberg_finds_number_and_uuid_in_what_tables_and_views_are_written_to(fixture: CatalogFixture) -> None:
    made = await fixture.table("t", properties={"write.metadata.compression-codec": "gzip"})
    changed = await fixture.commit(set_property("p", "1"), "t")
    body = view_request()
    view = state(await create_view(fixture.session(body), NS, body))
    later = state(await commit_view(fixture.session(), NS, "v", set_property("a", "2")))

    assert [number(file) for file in (made, changed, view, later)] == [0, 1, 0, 1]


async def test_pyiceberg_finds_number_and_uuid_in_what_a_transaction_writes(fixture: CatalogFixture) -> None:
    await fixture.table("t")

    await commit_transaction(fixture.session(), [(NS, "t", set_property("p", "1")), creation("w")])

    assert [number(await load_table(fixture.session(), NS, name)) for name in ("t", "w")] == [1, 0]


async def test_tables_of_one_transaction_that_share_a_folder_write_a_file_each() -> None:
    fixture = CatalogFixture(MemoryStore(), settings=Settings("wh", allow_location_overlap=True))
    await fixture.namespace("db")
    shared = "memory:///wh/warehouse/shared-metadata"
    for name in "ab":
        await fixture.table(name, properties={"write.metadata.path": shared, "who": name})

    await commit_transaction(fixture.session(), [(NS, name, set_property("by", name)) for name in "ab"])

    for name in "ab":
        properties = document(await load_table(fixture.another().session(), NS, name))["properties"]
        assert isinstance(properties, dict)
        assert (properties["who"], properties["by"]) == (name, name)


async def test_a_table_whose_files_have_names_of_an_earlier_version_is_loaded_changed_and_walked(
    fixture: CatalogFixture,
) -> None:
    new = document(await fixture.table("t"))
    old = "00041-01KAN0Y7Q2M3C4D5E6F7G8H9JK-2.metadata.json"
    store = fixture.store
    assert isinstance(store, MemoryStore)
    [key] = store.keys("wh/warehouse/")
    folder = f"memory:///{key.rpartition('/')[0]}"
    await fixture.session().files.create(
        f"{folder}/{old}", (await load_table(fixture.session(), NS, "t")).metadata, packed=False
    )
    await register_table(fixture.session(), NS, "t", f"{folder}/{old}", overwrite=True)

    changed = await fixture.commit(set_property("p", "1"), "t")

    assert number(changed) == 42
    assert document(changed)["table-uuid"] == new["table-uuid"]
    assert (await reconcile(fixture.another().session())).unreadable == []


def document(state: TableState) -> JsonObject:
    body = loads(state.metadata)
    assert isinstance(body, dict)
    return body
