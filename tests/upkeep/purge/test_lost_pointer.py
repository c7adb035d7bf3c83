"""A purge whose table loses its pointer fails, and goes on when that was restored (docs/recovery.md)."""

import pytest

from arco_catalog.operations.tasks import retry_task
from arco_catalog.state.paths import Paths
from arco_catalog.state.task import Status
from arco_catalog.upkeep.recovery.restore import Choices, restore
from tests.support.scripted_store import DOWN, Nth, Rule, delete
from tests.support.table_files import append
from tests.upkeep.purge.conftest import Purges

PATHS = Paths("wh")


async def deletes_of(purges: Purges) -> int:
    """How many deletes the purge of the table takes."""
    twin = Purges()
    await twin.fixture.namespace("db")
    await append(twin.fixture, await twin.table(), "a")
    await twin.purge()
    return sum(call.method == "delete" and "wh/warehouse/" in call.key for call in twin.store.calls)


@pytest.mark.parametrize("cut_at", ["the first delete", "the end"])
async def test_a_purge_goes_on_when_the_pointer_of_its_table_was_restored(purges: Purges, cut_at: str) -> None:
    last = await deletes_of(purges)
    await append(purges.fixture, await purges.table(), "a")
    task = await purges.make_due()
    whenever = Nth(1 if cut_at == "the first delete" else last, delete("wh/warehouse/"))
    purges.store.rules = [Rule(whenever, fails=DOWN)]
    await purges.run()
    purges.store.rules = []
    if cut_at == "the end":
        for file in purges.files():
            await purges.store.delete(file)
    [pointer] = purges.store.keys(PATHS.pointers)
    await purges.store.delete(pointer)
    while (await purges.task(task)).status is not Status.FAILURE:
        purges.runtime.ms += 3_600_000
        await purges.run()
    assert "pointer" in str((await purges.task(task)).summary)

    report = await restore(purges.fixture.another().session(), Choices(), dry=False)
    assert report["ok"] is True
    await retry_task(purges.fixture.another().session(), task, purges.runtime)
    purges.runtime.ms += 1
    await purges.run()
    assert (await purges.task(task)).status is Status.SUCCESS
    assert purges.files() == []
