"""A catalog that is dropped before its last purge has ended: what stays is said (docs/design/collection.md)."""

import logging

import pytest

from arco_catalog.operations.management.catalogs import end_catalog
from arco_catalog.operations.namespaces import drop_namespace
from tests.operations.purge.conftest import Purges
from tools.support.catalog_fixture import NS


async def dropped(purges: Purges, *names: str) -> None:
    for name in names:
        await purges.table(name)
        await purges.drop(name)
    await drop_namespace(purges.fixture.session(), NS)


async def test_the_tables_are_named_whose_purge_has_yet_to_end(
    purges: Purges, caplog: pytest.LogCaptureFixture
) -> None:
    await dropped(purges, "t", "u")
    with caplog.at_level(logging.WARNING):
        await end_catalog(purges.fixture.another().session())
    [told] = [each.getMessage() for each in caplog.records if "is dropped before" in each.getMessage()]
    assert told == "catalog wh is dropped before 2 of its tables are purged, and their files stay: db.t, db.u"


async def test_nothing_is_said_where_all_purges_have_ended(purges: Purges, caplog: pytest.LogCaptureFixture) -> None:
    await dropped(purges, "t", "u")
    purges.window_passes()
    await purges.run()
    with caplog.at_level(logging.WARNING):
        await end_catalog(purges.fixture.another().session())
    assert [each.getMessage() for each in caplog.records if "is dropped before" in each.getMessage()] == []
