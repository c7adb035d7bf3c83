"""Metadata never grows beyond what can be read again."""

import gzip

import pytest

from arco_catalog.iceberg.errors import MetadataTooLarge
from arco_catalog.iceberg.json import JsonObject, dumps, loads
from arco_catalog.operations.commit import commit_table
from arco_catalog.operations.load import load_table
from arco_catalog.operations.register import register_table
from arco_catalog.planning.answers import TableState
from arco_catalog.protocol.catalog import Settings
from storage_backends import ABSENT
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.request_bodies import set_property

LIMIT = 100_000


@pytest.fixture
async def fixture() -> CatalogFixture:
    """A catalog that accepts small metadata only, with the table `db.t`."""
    fixture = CatalogFixture(settings=Settings("wh", max_metadata_bytes=LIMIT))
    await fixture.namespace()
    await fixture.table()
    return fixture


async def test_a_commit_that_would_outgrow_the_limit_changes_nothing(fixture: CatalogFixture) -> None:
    before = await load_table(fixture.session(), NS, "t")

    with pytest.raises(MetadataTooLarge, match=r"The metadata of db\.t would be .* more than this catalog accepts"):
        await commit_table(fixture.session(), NS, "t", set_property("a", "x" * LIMIT))

    assert await load_table(fixture.another().session(), NS, "t") == before


async def test_a_table_that_another_setting_let_grow_is_refused_with_file_and_limit(fixture: CatalogFixture) -> None:
    roomy = CatalogFixture(store=fixture.store)
    grown = await commit_table(roomy.session(), NS, "t", set_property("a", "x" * LIMIT))
    assert isinstance(grown, TableState)

    for attempt in (
        load_table(fixture.session(), NS, "t"),
        commit_table(fixture.session(), NS, "t", set_property("b", "c")),
    ):
        with pytest.raises(MetadataTooLarge) as refused:
            await attempt
        assert grown.metadata_location in refused.value.message
        assert f"{LIMIT:,}" in refused.value.message


@pytest.mark.parametrize("packed", [False, True])
async def test_a_file_beyond_the_limit_is_not_registered(fixture: CatalogFixture, packed: bool) -> None:
    table = await load_table(fixture.session(), NS, "t")
    document = loads(table.metadata)
    assert isinstance(document, dict)
    wanted: JsonObject = {**document, "location": "memory:///wh/warehouse/u", "properties": {"a": "x" * LIMIT}}
    body = dumps(wanted)
    await fixture.store.put("wh/warehouse/u/1.metadata.json", gzip.compress(body) if packed else body, ABSENT)

    with pytest.raises(MetadataTooLarge, match=r"1\.metadata\.json is larger than 100,000 bytes"):
        await register_table(fixture.session(), NS, "u", "memory:///wh/warehouse/u/1.metadata.json", overwrite=False)
