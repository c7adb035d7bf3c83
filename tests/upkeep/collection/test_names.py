"""Pointers that no name leads to, and tombstones that leave the index (docs/design/collection.md#rule-2)."""

import pytest

from arco_catalog.cli.gc import as_text
from arco_catalog.iceberg.errors import AlreadyExists, CatalogError
from arco_catalog.iceberg.json import dumps, loads
from arco_catalog.operations.commit import commit_view
from arco_catalog.operations.create import create_view
from arco_catalog.operations.drop import drop_table, drop_view
from arco_catalog.operations.load import load_table
from arco_catalog.operations.notifications import notify
from arco_catalog.operations.register import register_view
from arco_catalog.operations.undrop import undrop
from arco_catalog.planning.answers import TableState
from arco_catalog.planning.collection import Kind
from arco_catalog.planning.notifications import Event, Notification
from arco_catalog.protocol.catalog import Settings
from arco_catalog.protocol.lookup import entries_in
from arco_catalog.upkeep.purge.worker import task_worker
from storage_backends import ABSENT, ANY, Found
from tests.support.scripted_store import DOWN, Rule, put, swap
from tests.upkeep.collection.conftest import PATHS, Collections
from tools.support.catalog_fixture import NS
from tools.support.request_bodies import set_property, view_request


async def dying_create(collections: Collections) -> None:
    collections.store.rules = [Rule(swap("/core/manifest.json"), fails=DOWN)]
    with pytest.raises(CatalogError):
        await collections.fixture.another().table("u")
    collections.store.rules = []


async def entries(collections: Collections, kind: str = "") -> list[str]:
    state = collections.fixture.another().session().state
    return [key async for key, _ in entries_in(state, (await state.head()).index, kind)]


async def test_a_create_that_never_committed_leaves_nothing(collections: Collections) -> None:
    await dying_create(collections)
    assert len(collections.listed(PATHS.pointers)) == 2
    collections.days(8)
    counts = await collections.collected()
    assert counts[Kind.POINTER] == 1
    assert counts[Kind.METADATA_FILE] == 1
    assert len(collections.listed(PATHS.pointers)) == 1
    assert len(collections.listed("wh/warehouse")) == 1
    assert await collections.codes() == []
    await collections.commit()


async def test_a_young_create_is_left_alone(collections: Collections) -> None:
    await dying_create(collections)
    collections.days(6)
    assert await collections.collected() == {}
    assert len(collections.listed(PATHS.pointers)) == 2


async def test_a_pointer_of_a_name_that_comes_while_it_is_read_stays(collections: Collections) -> None:
    """The registry is read again after the fence."""
    await dying_create(collections)
    collections.days(8)
    taken = collections.store

    async def undo() -> None:  # as if the swap of that create had been on its way for a week
        [commit] = collections.listed(PATHS.registry_commits)[-1:]
        found = await taken.get(commit)
        assert isinstance(found, Found)
        await taken.put(PATHS.manifest, found.body, ANY)

    collections.store.rules = [Rule(put("/core/commits/"), first=undo, times=1)]
    await collections.collect()
    assert len(collections.listed(PATHS.pointers)) == 2
    await load_table(collections.fixture.another().session(), NS, "u")


async def test_a_plain_drop_is_forgotten_after_a_month_and_its_files_stay(collections: Collections) -> None:
    made = await collections.commit()
    await drop_table(collections.fixture.session(), NS, "t", purge=False)
    files = collections.listed("wh/warehouse")
    collections.days(29)
    await collections.collect()
    assert len(await entries(collections, "tombstone\n")) == 1
    collections.days(2)
    assert (await collections.collected())[Kind.TOMBSTONE] == 1
    assert await entries(collections) == ["namespace\n\ndb"]
    collections.days(8)
    assert (await collections.collected())[Kind.POINTER] == 1
    collections.days(8)
    await collections.collect()
    assert collections.listed("wh/warehouse") == files
    assert made.metadata_location.removeprefix("memory:///") in files
    assert await collections.codes() == []


async def test_the_order_of_notifications_outlives_the_tombstone(collections: Collections) -> None:
    """What is late stays late, also for who drops the name twice before the collector comes."""
    external = Collections(Settings("wh", external=True))
    document = loads((await collections.fixture.table("u")).metadata)
    assert isinstance(document, dict)
    body = dumps({**document, "location": "memory:///wh/warehouse/f"})
    await external.store.put("wh/warehouse/f/1.metadata.json", body, ABSENT)

    async def tell(event: Event, at: int) -> None:
        notification = Notification(event, at, str(document["table-uuid"]), "memory:///wh/warehouse/f/1.metadata.json")
        await notify(external.fixture.another().session(), NS, "f", notification)

    await tell(Event.CREATE, 10)
    await tell(Event.DROP, 20)
    await tell(Event.CREATE, 30)
    await tell(Event.DROP, 40)
    external.days(31)
    assert (await external.collected())[Kind.TOMBSTONE] == 2
    assert await entries(external, "tombstone\n") == []
    assert await external.codes() == []

    for event in (Event.UPDATE, Event.DROP):
        with pytest.raises(AlreadyExists, match=r"newer timestamp has been admitted for table db\.f: 40"):
            await tell(event, 40)
    await tell(Event.UPDATE, 41)
    await load_table(external.fixture.another().session(), NS, "f")
    assert await external.codes() == []


async def test_an_undrop_while_the_tombstone_is_taken_wins(collections: Collections) -> None:
    await collections.commit()
    await drop_table(collections.fixture.session(), NS, "t", purge=False)
    collections.days(31)

    async def restore() -> None:
        await undrop(collections.fixture.another().session(), NS, "t")

    collections.store.rules = [Rule(put("/core/commits/"), first=restore, times=1)]
    await collections.collect()
    collections.store.rules = []
    collections.days(8)
    await collections.collect()
    await load_table(collections.fixture.another().session(), NS, "t")
    await collections.commit()
    assert await collections.codes() == []


async def test_a_commit_without_a_receipt_is_receipted_before_its_tombstone_goes(collections: Collections) -> None:
    collections.store.rules = [Rule(put("/committed/"), fails=DOWN)]
    made = await collections.commit()
    collections.store.rules = []
    await drop_table(collections.fixture.session(), NS, "t", purge=False)
    for _ in range(4):
        collections.days(31)
        await collections.collect()
    assert collections.listed(PATHS.pointers) == []
    assert made.metadata_location.removeprefix("memory:///") in collections.listed()


async def test_a_view_that_can_not_be_restored_takes_its_files_with_it(collections: Collections) -> None:
    body = view_request("v", {})
    await create_view(collections.fixture.session(body), NS, body)
    change = set_property("n", "1")
    await commit_view(collections.fixture.session(change), NS, "v", change)
    tables = [key for key in collections.listed("wh/warehouse") if "/t-" in key]
    await drop_view(collections.fixture.session(), NS, "v")
    collections.days(31)
    await collections.collect()
    assert len(collections.listed("wh/warehouse")) == 3
    collections.days(8)
    assert (await collections.collected())[Kind.METADATA_FILE] == 2
    assert collections.listed("wh/warehouse") == tables
    assert await collections.codes() == []


async def test_the_file_of_a_dropped_view_that_another_view_registered_stays_and_is_counted(
    collections: Collections,
) -> None:
    body = view_request("v", {})
    made = await create_view(collections.fixture.session(body), NS, body)
    assert isinstance(made, TableState)
    await drop_view(collections.fixture.session(), NS, "v")
    await register_view(collections.fixture.session(), NS, "w", made.metadata_location)
    collections.days(31)
    await collections.collect()
    collections.days(8)

    found = await collections.collect()

    assert (found.kinds[Kind.POINTER].count, found.files_left, found.to_json()["files_left"]) == (1, 1, 1)
    assert "1 metadata files of dropped views were left" in as_text(found, delete=True)
    assert (await collections.collect()).files_left == 0
    assert await collections.codes() == []


async def test_what_was_purged_leaves_the_index_after_a_month(collections: Collections) -> None:
    await drop_table(collections.fixture.session(), NS, "t", purge=True)
    collections.days(1.1)
    await task_worker(collections.fixture.another().catalog).run_due(lambda: False)
    collections.days(29)
    await collections.collect()
    assert len(await entries(collections, "tombstone\n")) == 1
    collections.days(2)
    counts = await collections.collected()
    assert counts[Kind.TOMBSTONE] == 1
    assert counts[Kind.TASK] == 1
    for _ in range(2):
        collections.days(8)
        await collections.collect()
    assert collections.listed(PATHS.pointers) == []
    assert collections.listed(PATHS.tasks) == []
    assert await collections.codes() == []


async def test_the_tombstone_of_a_purge_that_failed_stays_with_its_task(collections: Collections) -> None:
    await drop_table(collections.fixture.session(), NS, "t", purge=True)
    collections.days(1.1)
    collections.store.rules = [Rule(put("/tasks/", b'"RUNNING"'), fails=DOWN)]
    for _ in range(30):
        await task_worker(collections.fixture.another().catalog).run_due(lambda: False)
        collections.days(1)
    collections.store.rules = []
    collections.days(60)
    await collections.collect()
    assert len(await entries(collections, "tombstone\n")) == 1
    assert collections.listed(PATHS.tasks) != []
