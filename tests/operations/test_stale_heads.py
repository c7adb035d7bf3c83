"""A process whose cached HEAD is older than the retention of pointers reads HEAD again before it calls one missing."""

import pytest

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.load import load_table
from arco_catalog.operations.transaction import commit_transaction
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.request_bodies import set_property


@pytest.fixture
async def idle() -> CatalogFixture:
    """A process that cached HEAD before the table was dropped, its pointer deleted, and its name used again."""
    busy = CatalogFixture()
    await busy.namespace("db")
    for name in ("t", "u"):
        await busy.table(name)
    dropped = (await load_table(busy.session(), NS, "t")).entity
    idle = busy.another()
    await idle.session().state.head()
    await drop_table(busy.session(), NS, "t", purge=False)
    await busy.store.delete(busy.session().state.paths.pointer(dropped))
    await busy.table("t")
    return idle


@pytest.mark.parametrize("keyed", [False, True])
async def test_a_commit_to_a_name_that_was_used_again_is_made(idle: CatalogFixture, keyed: bool) -> None:
    committed = await idle.commit(set_property("a", "1"), key=idle.key() if keyed else None)
    assert (await load_table(idle.another().session(), NS, "t")).metadata_location == committed.metadata_location


async def test_a_transaction_over_a_name_that_was_used_again_is_made(idle: CatalogFixture) -> None:
    changes: list[tuple[tuple[str, ...], str, JsonObject]] = [(NS, name, set_property("a", "1")) for name in ("t", "u")]
    await commit_transaction(idle.session(), changes)
    for name in ("t", "u"):
        assert b'"a"' in (await load_table(idle.another().session(), NS, name)).metadata


async def test_a_pointer_that_the_newest_head_needs_is_reported_missing(idle: CatalogFixture) -> None:
    named = (await load_table(idle.another().session(), NS, "t")).entity
    await idle.store.delete(idle.session().state.paths.pointer(named))
    with pytest.raises(InternalError, match="arco restore"):
        await idle.commit(set_property("a", "1"))
