"""A table that borrows from a folder takes nothing more from it once the anti-join purges there, be its commit under
way or later (docs/design/purge.md#rule-16, docs/design/purge.md#rule-19)."""

import pytest

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.commit import commit_table
from arco_catalog.operations.load import load_table
from arco_catalog.operations.tasks import retry_task
from arco_catalog.operations.transaction import commit_transaction
from arco_catalog.state.tombstone import PURGING
from arco_catalog.upkeep.purge import executor
from arco_catalog.upkeep.purge.worker import task_worker
from tests.support.scripted_store import Rule, put
from tests.support.table_files import append
from tests.upkeep.purge.conftest import DAY_MS, Purges
from tests.upkeep.purge.test_anti_join import KnownFiles
from tests.upkeep.purge.test_borrowed import adding, place_of
from tools.support.catalog_fixture import NS
from tools.support.request_bodies import set_property

DIES = KnownFiles(fails=RuntimeError("the driver died"))


@pytest.fixture(name="borrowing")
async def a_dropped_table_and_a_borrower(purges: Purges) -> tuple[Purges, str]:
    """The folder from which `other` borrows, as its place to purge is the dropped table's; workers have refused it."""
    place = place_of(await append(purges.fixture, await purges.table(), "a"))
    await purges.table("other")
    await purges.fixture.commit(adding(f"{place}/metadata/snap-1.avro"), "other")
    task = await purges.purge()
    assert "takes files from" in str(task.summary)
    await retry_task(purges.fixture.session(), task.id, purges.runtime, anti_join=True)
    return purges, f"{place}/metadata/snap-2.avro"


async def begin(purges: Purges) -> None:
    """An anti-join that has begun, and dies before its first delete."""
    await task_worker(purges.fixture.another().catalog, anti_join=DIES).run_due(lambda: False)
    assert (await purges.tombstone()).state == PURGING


async def commit(purges: Purges, body: JsonObject) -> object:
    return await commit_table(purges.fixture.another().session(body, deadline_ms=DAY_MS), NS, "other", body)


async def test_a_commit_during_the_purge_is_refused_in_a_folder_that_is_borrowed_already(
    borrowing: tuple[Purges, str],
) -> None:
    purges, manifest_list = borrowing
    await begin(purges)
    with pytest.raises(BadRequest, match="are being deleted"):
        await commit(purges, adding(manifest_list, 2))
    await commit(purges, set_property("a", "1"))


async def test_so_is_a_transaction(borrowing: tuple[Purges, str]) -> None:
    purges, manifest_list = borrowing
    await purges.table("third")
    await begin(purges)
    changes = [(NS, "other", adding(manifest_list, 2)), (NS, "third", set_property("a", "1"))]
    with pytest.raises(BadRequest, match="are being deleted"):
        await commit_transaction(purges.fixture.another().session({}, deadline_ms=DAY_MS), changes)


async def commit_across_the_beginning(purges: Purges, manifest_list: str) -> None:
    """A commit that has read the registry, and swaps the pointer when the others have been read."""
    entity = (await load_table(purges.fixture.session(), NS, "other")).entity
    pointer = purges.fixture.session().state.paths.pointer(entity)

    async def begun() -> None:
        await begin(purges)

    purges.store.rules = [Rule(put(pointer), first=begun, times=1)]
    await commit(purges, adding(manifest_list, 2))


async def test_a_commit_that_was_under_way_at_the_beginning_is_refused(borrowing: tuple[Purges, str]) -> None:
    with pytest.raises(BadRequest, match="are being deleted"):
        await commit_across_the_beginning(*borrowing)


async def test_without_the_fence_that_commit_would_land(
    borrowing: tuple[Purges, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unfenced(*_: object) -> None:
        return None

    monkeypatch.setattr(executor._Purge, "_fence_borrowers", unfenced)
    await commit_across_the_beginning(*borrowing)
