"""A catalog that is dropped before its last purge has ended: what stays is said (docs/design/collection.md)."""

import logging

import pytest

from arco_catalog.iceberg.errors import NamespaceNotEmpty
from arco_catalog.operations.management.catalogs import end_catalog
from arco_catalog.operations.namespaces import drop_namespace
from arco_catalog.operations.purge import executor
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


async def test_a_catalog_is_not_dropped_while_a_table_is_being_purged(
    purges: Purges, monkeypatch: pytest.MonkeyPatch
) -> None:
    await dropped(purges, "t")
    purges.window_passes()

    async def refuse(*_: object) -> None:
        with pytest.raises(NamespaceNotEmpty, match=r"db\.t is being purged"):
            await end_catalog(purges.fixture.another().session())
        refused.append(True)

    refused: list[bool] = []
    monkeypatch.setattr(executor, "wait_for_delegate", refuse)
    await purges.run()
    assert refused
    await end_catalog(purges.fixture.another().session())


async def test_no_purge_begins_in_a_catalog_that_was_dropped(purges: Purges) -> None:
    await dropped(purges, "t")
    left = purges.files()
    await end_catalog(purges.fixture.another().session())
    purges.window_passes()
    await purges.run()
    assert purges.files() == left
