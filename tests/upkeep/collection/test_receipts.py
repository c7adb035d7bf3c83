"""Old receipts, and the floors behind which walks write none (docs/design/collection.md#rule-5)."""

from contextlib import suppress

import pytest

from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.lineage import receive_event
from arco_catalog.operations.load import load_table
from arco_catalog.planning.collection import Kind
from arco_catalog.planning.upkeep_settings import DAY_MS
from arco_catalog.state.floors import read_floors
from arco_catalog.upkeep.collection.run import Run
from arco_catalog.upkeep.purge.worker import task_worker
from arco_catalog.upkeep.reconcile import reconcile
from storage_backends import ABSENT, Found
from tests.state.test_lineage import EVENT
from tests.support.scripted_store import DOWN, Nth, Rule, delete, put
from tests.upkeep.collection.conftest import PATHS, Collections
from tools.support.catalog_fixture import NS


def committed(collections: Collections) -> list[str]:
    return [key for key in collections.listed(PATHS.events) if "/committed/" in key]


async def old_commits(collections: Collections) -> None:
    """Three commits and the create, all older than receipts are kept, without pending receipts."""
    for _ in range(3):
        await collections.commit()
    collections.days(8)
    await collections.collect()
    assert len(collections.listed(PATHS.events)) == 4
    collections.days(90)


async def forget_walks(collections: Collections) -> None:
    """Everything that the reconciler remembers is lost."""
    for key in collections.listed(f"{PATHS.operational}reconciler/"):
        await collections.store.delete(key)


async def test_receipts_go_after_ninety_days_but_for_that_of_the_current_file(collections: Collections) -> None:
    await old_commits(collections)
    assert (await collections.collected())[Kind.COMMITTED_RECEIPT] == 3
    assert len(committed(collections)) == 1
    assert await collections.codes() == []


async def test_no_walk_writes_again_what_was_collected(collections: Collections) -> None:
    await old_commits(collections)
    await collections.collect()
    await forget_walks(collections)
    stats = await reconcile(collections.fixture.another().session(deadline_ms=DAY_MS))
    assert (stats.missing_count, stats.unreadable, stats.incomplete) == (0, [], 0)
    assert len(committed(collections)) == 1
    await collections.commit()
    assert len(committed(collections)) == 2


async def test_the_floor_is_there_before_the_first_receipt_goes(collections: Collections) -> None:
    await old_commits(collections)
    collections.store.rules = [Rule(Nth(2, delete("/events/")), fails=DOWN)]
    with suppress(type(DOWN)):
        await collections.collect()
    collections.store.rules = []
    await forget_walks(collections)
    before = committed(collections)
    await collections.reconcile()
    assert committed(collections) == before
    [floor] = (await read_floors(collections.fixture.session().state)).values()
    assert floor > 0


async def test_a_receipt_whose_pending_one_is_there_stays(collections: Collections) -> None:
    """Else the pending one would look like that of a lost try, and its file would go."""
    made = await collections.commit()
    bodies = await pending(collections)
    await collections.commit()
    collections.days(8)
    await collections.collect()
    collections.days(90)
    for key, body in bodies.items():  # as if they had been on their way all the time
        await collections.store.put(key, body, ABSENT)
    await collections.collect()
    assert len(committed(collections)) == 1 + len(bodies)
    collections.days(8)
    assert (await collections.collected())[Kind.PENDING_RECEIPT] == len(bodies)
    await collections.collect()
    assert len(committed(collections)) == 1
    assert made.metadata_location.removeprefix("memory:///") in collections.listed()


async def pending(collections: Collections) -> dict[str, bytes]:
    """The pending receipts that are there."""
    found = {key: await collections.store.get(key) for key in collections.listed(PATHS.events) if "/pending/" in key}
    return {key: each.body for key, each in found.items() if isinstance(each, Found)}


async def test_a_file_whose_receipts_other_runs_collect_meanwhile_stays(
    collections: Collections, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has no committed receipt any more, and is not that of a lost try: its pending receipt is gone, too."""
    await collections.commit()
    bodies = await pending(collections)
    await collections.commit()
    collections.days(8)
    await collections.collect()
    collections.days(90)
    files = collections.listed("wh/warehouse/")
    for key, body in bodies.items():  # as if they had been on their way all the time
        await collections.store.put(key, body, ABSENT)
    collections.days(8)

    async def others() -> None:
        await collections.collect()
        await collections.collect()

    exists, ran = Run.exists, list[str]()

    async def after_others(self: Run, key: str) -> bool:
        if "/committed/" in key and not ran:
            ran.append(key)
            await others()
        return await exists(self, key)

    monkeypatch.setattr(Run, "exists", after_others)
    await collections.collect()

    assert ran
    assert len(committed(collections)) == 1
    assert collections.listed("wh/warehouse/") == files


async def test_a_pending_receipt_behind_the_floor_takes_no_file_with_it(collections: Collections) -> None:
    made = await collections.commit()
    bodies = await pending(collections)
    await collections.commit()
    collections.days(8)
    await collections.collect()
    collections.days(90)
    await collections.collect()
    for key, body in bodies.items():
        await collections.store.put(key, body, ABSENT)
    collections.days(8)
    assert Kind.METADATA_FILE not in await collections.collected()
    assert made.metadata_location.removeprefix("memory:///") in collections.listed()


async def test_a_table_that_can_not_be_walked_keeps_its_receipts(collections: Collections) -> None:
    await old_commits(collections)
    collections.store.rules = [Rule(put("/committed/"), fails=DOWN)]
    await collections.commit()
    assert Kind.COMMITTED_RECEIPT not in await collections.collected()
    assert len(committed(collections)) == 4


async def test_a_purge_finds_files_that_have_no_receipt_any_more(collections: Collections) -> None:
    await old_commits(collections)
    await collections.collect()
    await drop_table(collections.fixture.session(), NS, "t", purge=True)
    collections.days(1.1)
    await task_worker(collections.fixture.another().catalog).run_due(lambda: False)
    assert collections.listed("wh/warehouse") == []
    assert len(committed(collections)) <= 1


async def test_what_is_noted_of_entities_that_are_gone_goes(collections: Collections) -> None:
    await old_commits(collections)
    await collections.collect()
    await collections.reconcile()
    await drop_table(collections.fixture.session(), NS, "t", purge=False)
    for _ in range(12):
        collections.days(10)
        await collections.collect()
    assert await read_floors(collections.fixture.session().state) == {}
    assert committed(collections) == []
    assert collections.listed(PATHS.events) == []


async def test_the_current_table_still_loads(collections: Collections) -> None:
    await old_commits(collections)
    made = await collections.commit()
    await collections.collect()
    assert (await load_table(collections.fixture.another().session(), NS, "t")).metadata == made.metadata


async def test_lineage_events_go_with_their_age_alone(collections: Collections) -> None:
    await receive_event(collections.fixture.session(), EVENT, "spark")
    collections.days(89)
    await collections.reconcile()
    assert Kind.LINEAGE_EVENT not in await collections.collected()
    collections.days(1)
    await receive_event(collections.fixture.session(), EVENT, "spark")
    assert (await collections.collected(delete=False))[Kind.LINEAGE_EVENT] == 1
    assert (await collections.collected())[Kind.LINEAGE_EVENT] == 1
    assert len([key for key in collections.listed(PATHS.events) if PATHS.is_lineage_event(key)]) == 1
    assert await collections.codes() == []


async def test_damage_to_lineage_events_is_reported(collections: Collections) -> None:
    await receive_event(collections.fixture.session(), EVENT, "spark")
    (key,) = (key for key in collections.listed(PATHS.events) if PATHS.is_lineage_event(key))
    there = await collections.store.get(key)
    assert isinstance(there, Found)
    for body, code in (
        (b"nonsense", "receipt-unreadable"),
        (b'{"version":1,"event":{},"principal":"spark"}', "receipt-unreadable"),
        (there.body.replace(b"spark", b"flink"), "receipt-foreign"),
    ):
        await collections.store.delete(key)
        await collections.store.put(key, body, ABSENT)
        assert await collections.codes() == [code]
