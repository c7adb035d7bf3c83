"""Drops of an earlier version, which wrote `purging` and purged nothing: plain drops, whose files stay
(docs/design/purge.md)."""

from arco_catalog.operations.undrop import undrop
from arco_catalog.protocol.internal_commits import change_registry
from arco_catalog.state.index import Edits, location_key, released_key
from arco_catalog.state.needs import Steps, immediately
from arco_catalog.state.registry import RegistryState
from arco_catalog.state.task import Status
from arco_catalog.state.tombstone import DROPPED
from tests.support.table_files import append
from tests.upkeep.purge.conftest import Purges
from tools.support.catalog_fixture import NS

PLACE = "memory:///wh/warehouse/place"


async def dropped_by_an_earlier_version(purges: Purges) -> None:
    """Drops a table, and gives what that left the form of old."""
    made = await append(purges.fixture, await purges.table("old", location=PLACE), "a", name="old")
    await purges.drop("old", purge=False)
    tombstone = await purges.tombstone("old")

    def edit(head: RegistryState) -> Steps[Edits | None]:
        if head.index.get(location_key(PLACE, made.entity)) is not None:
            return immediately(None)
        return immediately(
            {
                tombstone.key: {**tombstone.json, "state": "purging"},
                location_key(PLACE, made.entity): {"entity": made.entity, "state": "purging"},
                released_key(PLACE, made.entity): None,
            }
        )

    await change_registry(purges.fixture.session(), "as of old", {}, edit)


async def test_an_earlier_tombstone_is_not_purged_and_can_be_undone(purges: Purges) -> None:
    await dropped_by_an_earlier_version(purges)
    before = purges.files()
    purges.window_passes()
    assert await purges.run() == 0
    assert (await purges.tombstone("old")).state == DROPPED
    await undrop(purges.fixture.another().session(), NS, "old")
    assert purges.files() == before


async def test_a_purge_of_its_place_waits_for_it_as_for_any_that_was_dropped(trusting: Purges) -> None:
    await dropped_by_an_earlier_version(trusting)
    await append(trusting.fixture, await trusting.table("t", location=f"{PLACE}/inner"), "b")
    before = trusting.files()
    task = await trusting.purge()
    assert task.status is Status.FAILURE
    assert "which was dropped" in str(task.summary)
    assert trusting.files() == before


async def test_once_restored_it_is_purged_as_any_other(purges: Purges) -> None:
    await dropped_by_an_earlier_version(purges)
    await undrop(purges.fixture.another().session(), NS, "old")
    assert (await purges.purge("old")).status is Status.SUCCESS
    assert purges.files() == []
