"""A catalog that is dropped before its last purge has ended is refused, or lists the purges that it cancels
(docs/design/collection.md#dropped-catalogs)."""

import pytest

from arco_catalog.iceberg.errors import NamespaceNotEmpty
from arco_catalog.operations.management.catalog_drops import end_catalog
from arco_catalog.operations.namespaces import drop_namespace
from arco_catalog.operations.tasks import ListedTask, find_task, retry_task, tasks
from arco_catalog.state.catalog_state import CATALOG_STATE, CatalogState
from arco_catalog.state.realm import CatalogEntry
from arco_catalog.state.task import Status
from arco_catalog.upkeep.purge import executor
from storage_backends import StoreDenied
from tests.support.scripted_store import Rule
from tests.upkeep.purge.conftest import DAY_MS, Purges
from tools.support.catalog_fixture import NS


def entry(entity: str = "01A") -> CatalogEntry:
    return CatalogEntry.new(entity=entity, name="wh", properties={"owner": "ann"}, at_ms=0, root="wh")


async def dropped(purges: Purges, *names: str) -> None:
    for name in names:
        await purges.table(name)
        await purges.drop(name)
    await drop_namespace(purges.fixture.session(), NS)


async def end(purges: Purges, *, cancel: bool = False, entity: str = "01A") -> list[str]:
    session = purges.fixture.another().session(deadline_ms=DAY_MS)
    return [*await end_catalog(session, entry(entity), cancel_purges=cancel)]


async def fail_at_the_first_delete(purges: Purges) -> str:
    """Lets a purge fail for good after its first delete. Returns the task."""
    purges.window_passes()
    purges.store.rules = [Rule(lambda call: "delete" in call.method, fails=StoreDenied("no"))]
    task = str((await purges.tombstone("t")).task)
    for _ in range(60):
        purges.runtime.ms += 3_600_000
        await purges.run()
    purges.store.rules = []
    assert (await purges.task(task)).status is Status.FAILURE
    return task


async def test_a_drop_is_refused_that_would_forget_purges_and_names_their_tables(purges: Purges) -> None:
    await dropped(purges, "t", "u")
    with pytest.raises(NamespaceNotEmpty) as refused:
        await end(purges)
    text, task = str(refused.value), (await purges.tombstone("t")).task
    assert f"db.t is purged by task {task} after " in text
    assert "db.u is purged by task" in text
    assert "arco catalogs drop wh --cancel-purges" in text


async def test_purges_are_cancelled_by_name_and_delete_nothing(purges: Purges) -> None:
    await dropped(purges, "t", "u")
    left = purges.files()
    assert await end(purges, cancel=True) == ["db.t", "db.u"]
    assert (await purges.tombstone("t")).task is None
    purges.window_passes()
    await purges.run()
    assert purges.files() == left


async def test_a_drop_that_is_sent_again_names_the_purges_that_the_first_one_cancelled(purges: Purges) -> None:
    await dropped(purges, "t")
    assert await end(purges, cancel=True) == ["db.t"]
    assert await end(purges) == ["db.t"]


async def test_a_catalog_whose_purges_have_ended_is_closed_and_remembers_its_entry(purges: Purges) -> None:
    await dropped(purges, "t", "u")
    purges.window_passes()
    await purges.run()
    assert await end(purges) == []
    state = CatalogState.of((await purges.fixture.another().session().state.head()).index)
    assert state.is_closed
    assert state.catalog == entry().json


async def test_a_drop_by_an_id_that_the_catalog_had_before_it_was_restored_is_too_late(purges: Purges) -> None:
    await dropped(purges)
    await end(purges)
    head = await purges.fixture.another().session().state.head()
    assert CatalogState(CatalogState(head.index.get(CATALOG_STATE) or {}).reopened(None)).former == ("01A",)


async def test_cancelling_purges_is_not_advised_beside_one_that_has_begun(purges: Purges) -> None:
    await dropped(purges, "t")
    await fail_at_the_first_delete(purges)
    await purges.fixture.namespace(*NS)
    await dropped(purges, "u")
    for cancel in (False, True):
        with pytest.raises(NamespaceNotEmpty, match=r"db\.u is purged by task") as refused:
            await end(purges, cancel=cancel)
        assert "--cancel-purges" not in str(refused.value)


async def test_a_catalog_is_not_dropped_while_a_table_is_being_purged(
    purges: Purges, monkeypatch: pytest.MonkeyPatch
) -> None:
    await dropped(purges, "t")
    purges.window_passes()

    async def refuse(*_: object) -> None:
        for cancel in (False, True):
            with pytest.raises(NamespaceNotEmpty, match=r"db\.t is being purged by task"):
                await end(purges, cancel=cancel)
        refused.append(True)

    refused: list[bool] = []
    monkeypatch.setattr(executor, "wait_for_delegate", refuse)
    await purges.run()
    assert refused
    assert await end(purges) == []


async def test_a_drop_names_the_command_that_retries_a_purge_that_failed_half_way(purges: Purges) -> None:
    await dropped(purges, "t")
    task = await fail_at_the_first_delete(purges)
    with pytest.raises(NamespaceNotEmpty, match=rf"purge of db\.t has failed.*arco tasks retry {task} --warehouse wh"):
        await end(purges, cancel=True)
    await retry_task(purges.fixture.another().session(), task, purges.runtime)
    await purges.run()
    assert await end(purges) == []


async def test_a_purge_that_failed_half_way_is_listed_as_stuck(purges: Purges) -> None:
    await dropped(purges, "t")
    task = await fail_at_the_first_delete(purges)
    session = purges.fixture.another().session()
    [listed] = [each async for each in tasks(session)]
    assert isinstance(listed, ListedTask)
    assert (listed.task.id, listed.is_stuck) == (task, True)
    await retry_task(session, task, purges.runtime)
    await purges.run()
    found = await find_task(purges.fixture.another().session(), task)
    assert found is not None
    assert not found.is_stuck


async def test_no_purge_begins_in_a_catalog_that_was_dropped(purges: Purges) -> None:
    await dropped(purges, "t")
    left = purges.files()
    await end(purges, cancel=True)
    purges.window_passes()
    await purges.run()
    assert purges.files() == left
