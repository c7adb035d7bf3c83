"""A create that is planned again, on a registry that has moved meanwhile, writes nothing over what it wrote before."""

import pytest

from arco_catalog.operations.load import load_table
from arco_catalog.operations.namespaces import update_properties
from tools.support.catalog_fixture import NS, CatalogFixture


@pytest.mark.parametrize("keyed", [False, True])
async def test_a_create_whose_namespace_moves_meanwhile_lies_where_the_namespace_does_now(keyed: bool) -> None:
    fixture = CatalogFixture()
    await fixture.namespace("db")
    other = fixture.another()
    await fixture.table("seen")  # this process remembers HEAD
    moved = "memory:///wh/warehouse/moved"
    await update_properties(other.session(), NS, [], {"location": moved})

    created = await fixture.table("t", key=fixture.key() if keyed else None)

    assert created.metadata_location.startswith(f"{moved}/t-")
    assert (await load_table(fixture.another().session(), NS, "t")).metadata_location == created.metadata_location
