"""Files with an empty level in their names: an object store has another object at the name without it
(docs/design/purge.md#rule-26)."""

import json

from arco_catalog.operations.tasks import retry_task
from arco_catalog.planning.upkeep_settings import PurgeSettings
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state.task import Status
from arco_catalog.state.tombstone import PURGED
from storage_backends import Cursor, Page
from tests.support.scripted_store import ScriptedStore
from tests.support.table_files import append, commit_files, key_of, write
from tests.upkeep.purge.conftest import Purges


class MarkedStore(ScriptedStore):
    """Lists markers of folders, too, as a bucket does in which PyArrow has made some."""

    markers: tuple[str, ...] = ()

    async def list(self, prefix: str, after: Cursor | None = None) -> Page:
        page = await super().list(prefix, after)
        others = tuple(marker for marker in self.markers if marker.startswith(prefix))
        return Page(page.entries, page.after, page.now_ms, page.in_order, others)


async def test_a_purge_leaves_the_object_that_has_the_name_without_the_level(purges: Purges) -> None:
    state = await purges.table()
    place = state.metadata_location.partition("/metadata/")[0]
    strange = key_of(await write(purges.store, f"{place}/data/x.parquet"))
    sound = key_of(await write(purges.store, f"{place}/data/y.parquet"))
    await commit_files(purges.fixture, state, [f"{place}/data//x.parquet", f"{place}/data/y.parquet"])

    task = await purges.purge()

    assert task.status is Status.FAILURE
    assert "1 files of the table were not deleted" in str(task.summary)
    assert f"{place}/data//x.parquet" in str(task.summary)
    assert purges.files() == [strange]
    assert sound not in purges.files()
    assert (await purges.tombstone()).state == PURGED


async def test_a_purge_that_is_tried_again_fails_again(purges: Purges) -> None:
    state = await purges.table()
    place = state.metadata_location.partition("/metadata/")[0]
    await commit_files(purges.fixture, state, [f"{place}/data/{each}/x.parquet" for each in ("/", ".", "..")])
    failed = await purges.purge()

    await retry_task(purges.fixture.session(), failed.id, purges.runtime)
    await purges.run()

    task = await purges.task(failed.id)
    assert task.status is Status.FAILURE
    assert "3 files of the table were not deleted" in str(task.summary)


async def test_markers_of_folders_are_counted_as_left_behind() -> None:
    purges = Purges(Settings("wh", purge=PurgeSettings(whole_location=True)))
    purges.store = store = MarkedStore(purges.runtime.now_ms)
    purges.fixture = type(purges.fixture)(store, purges.runtime, purges.fixture.settings)
    await purges.fixture.namespace("db")
    state = await append(purges.fixture, await purges.table(), "a")
    place = state.metadata_location.partition("/metadata/")[0]
    store.markers = (f"{key_of(place)}/data/", f"{key_of(place)}/data//b")

    task = await purges.purge()

    assert task.status is Status.SUCCESS
    details = json.loads(str(task.document["result_extended"]))
    assert (details["left_behind"], details["left_behind_examples"]) == (2, [f"{place}/data/", f"{place}/data//b"])
    assert str(task.summary).endswith("; 2 other objects are left at the locations")


async def test_of_many_markers_all_are_counted_and_few_are_named() -> None:
    purges = Purges()
    purges.store = store = MarkedStore(purges.runtime.now_ms)
    purges.fixture = type(purges.fixture)(store, purges.runtime, purges.fixture.settings)
    await purges.fixture.namespace("db")
    place = (await purges.table()).metadata_location.partition("/metadata/")[0]
    store.markers = tuple(f"{key_of(place)}/data//{number}" for number in range(5_000))
    details = json.loads(str((await purges.purge()).document["result_extended"]))
    assert (details["left_behind"], len(details["left_behind_examples"])) == (5_000, 20)
