"""A dropped table is purged when the time to undo the drop has passed: all of it, and nothing else
(docs/design/purge.md)."""

import asyncio
import json

import pytest

from arco_catalog.iceberg.errors import BadRequest, CommitFailed, NoSuchTable
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.generic_tables import GenericTable, create_generic_table, drop_generic_table
from arco_catalog.operations.load import load_table
from arco_catalog.operations.tasks import retry_task
from arco_catalog.operations.undrop import undrop
from arco_catalog.planning.upkeep_settings import PurgeMode, PurgeSettings
from arco_catalog.protocol.catalog import Settings
from arco_catalog.protocol.lookup import entries_in
from arco_catalog.state.fields import texts
from arco_catalog.state.index import location_key, released_key
from arco_catalog.state.locations import Location
from arco_catalog.state.purge_progress import Progress
from arco_catalog.state.task import Status, Task
from arco_catalog.state.task_log import append_task
from arco_catalog.state.tombstone import DROPPED, PURGED, PURGING, task_key
from arco_catalog.upkeep.collection.collect import collect
from arco_catalog.upkeep.purge import deletion
from arco_catalog.upkeep.purge.removal import checksum_beside
from arco_catalog.upkeep.purge.worker import task_worker
from storage_backends import ANY, Found
from tests.support.scripted_store import Nth, Rule, delete, lost, put
from tests.support.table_files import append, commit_files, key_of, write
from tests.upkeep.purge.conftest import DAY_MS, Purges
from tools.support.catalog_fixture import NS
from tools.support.request_bodies import set_property

PLACE = "memory:///wh/warehouse/place"


def details(task: Task) -> JsonObject:
    report = json.loads(str(task.document["result_extended"]))
    assert isinstance(report, dict)
    return report


async def filled(purges: Purges, name: str = "t", snapshots: int = 3) -> None:
    state = await purges.table(name)
    for number in range(snapshots):
        state = await append(purges.fixture, state, f"{number}-a.parquet", f"{number}-b.parquet", name=name)
    await purges.fixture.commit(set_property("a", "1"), name)


async def test_every_file_is_deleted_and_the_task_has_the_count(purges: Purges) -> None:
    await filled(purges)
    task = await purges.purge()
    assert purges.files() == []
    assert (task.status, task.attempts) == (Status.SUCCESS, 0)
    report = details(task)
    # Six data files, three manifests, three manifest lists, five metadata files.
    assert (report["files_deleted"], report["outside"], report["left_behind"]) == (17, 0, 0)
    assert report["bytes_deleted"] == 6 * 10 + 3 * 99
    assert await purges.hints() == []
    assert (await purges.tombstone()).state == PURGED
    assert await purges.run() == 0


async def test_nothing_is_deleted_before_the_time_to_undo_has_passed(purges: Purges) -> None:
    await filled(purges)
    before = purges.files()
    await purges.drop()
    purges.runtime.ms += DAY_MS - 1
    assert await purges.run() == 0
    assert purges.files() == before
    await undrop(purges.fixture.session(), NS, "t")
    purges.window_passes()
    await purges.run()
    assert purges.files() == before
    await load_table(purges.fixture.session(), NS, "t")


async def test_a_file_of_a_partition_with_many_slashes_is_deleted(purges: Purges) -> None:
    """Engines encode slashes of a partition's value, so the name of its folder has none."""
    table = await purges.table()
    await append(purges.fixture, table, "url=a%2Fb%2Fc%2Fd%2Fe%2Ff%2Fg%2Fh%2Fi/f.parquet")
    task = await purges.purge()
    assert task.status is Status.SUCCESS
    assert purges.files() == []


async def test_a_purge_that_was_undone_ends_and_reports_it(purges: Purges) -> None:
    await filled(purges)
    await purges.drop()
    task = str((await purges.tombstone()).task)
    await undrop(purges.fixture.session(), NS, "t")
    purges.window_passes()
    await purges.run()
    ended = await purges.task(task)
    assert (ended.status, ended.summary) == (
        Status.SUCCESS,
        "Nothing was deleted: the drop was undone, a restore of the catalog took the purge back, or the table is "
        "purged already",
    )
    assert await purges.hints() == []


async def test_the_task_of_an_earlier_drop_does_not_purge_a_later_one(purges: Purges) -> None:
    await filled(purges)
    before = purges.files()
    await purges.drop()
    await undrop(purges.fixture.session(), NS, "t")
    purges.runtime.ms += DAY_MS // 2
    await purges.drop()
    purges.runtime.ms += DAY_MS // 2
    await purges.run()
    assert purges.files() == before
    purges.runtime.ms += DAY_MS // 2
    await purges.run()
    assert purges.files() == []


async def test_a_plain_drop_deletes_nothing(purges: Purges) -> None:
    await filled(purges)
    before = purges.files()
    await purges.drop(purge=False)
    purges.window_passes()
    assert await purges.run() == 0
    assert purges.files() == before


async def test_with_purges_off_the_drop_is_a_plain_one() -> None:
    purges = Purges(Settings("wh", purge=PurgeSettings(mode=PurgeMode.OFF)))
    await purges.fixture.namespace("db")
    await filled(purges)
    await purges.drop()
    assert (await purges.tombstone()).task is None
    assert await purges.hints() == []


async def test_a_table_that_keeps_its_files_is_not_dropped_with_purge(purges: Purges) -> None:
    await purges.table(properties={"gc.enabled": "false"})
    with pytest.raises(CommitFailed, match=r"gc\.enabled=false"):
        await purges.drop()
    await load_table(purges.fixture.session(), NS, "t")
    assert await purges.hints() == []
    await purges.drop(purge=False)


async def test_the_name_can_be_used_again_at_once_and_the_new_table_stays(purges: Purges) -> None:
    await filled(purges)
    await purges.drop()
    await filled(purges)
    kept = purges.files()
    purges.window_passes()
    await purges.run()
    left = purges.files()
    assert left
    assert {*left} < {*kept}
    assert len(left) == 17
    await load_table(purges.fixture.session(), NS, "t")


async def test_neighbours_stay_and_so_does_what_lies_elsewhere(purges: Purges) -> None:
    await filled(purges, "neighbour")
    neighbours = purges.files()
    outside = await write(purges.store, "memory:///wh/warehouse/elsewhere/data.parquet")
    await filled(purges)
    state = await load_table(purges.fixture.session(), NS, "t")
    await commit_files(purges.fixture, state, [outside])
    task = await purges.purge()
    assert purges.files() == sorted([*neighbours, key_of(outside)])
    assert details(task)["outside"] == 1


@pytest.mark.parametrize("name", ["dt=2026%2F01%2F02/f.parquet", "a b%20c/f#1?.parquet", "%2e%2e/f.parquet", "ü/é"])
async def test_files_of_any_name_inside_the_table_go(purges: Purges, name: str) -> None:
    await append(purges.fixture, await purges.table(), name)
    await purges.purge()
    assert purges.files() == []


async def test_a_path_that_steps_out_of_the_table_is_not_followed(purges: Purges) -> None:
    state = await purges.table()
    place = state.metadata_location.rpartition("/metadata/")[0]
    kept = key_of(await write(purges.store, f"{place.rpartition('/')[0]}/x.parquet"))
    await commit_files(purges.fixture, state, [f"{place}/data/../../x.parquet"])
    assert (await purges.purge()).status is Status.FAILURE
    assert purges.files() == [kept]


async def test_what_lies_elsewhere_is_counted_and_stays(purges: Purges) -> None:
    state = await purges.table()
    place = state.metadata_location.rpartition("/metadata/")[0]
    await commit_files(purges.fixture, state, [f"{place}-not/y", "no uri"])
    assert details(await purges.purge())["outside"] == 2


@pytest.mark.parametrize("name", ["x" * 5_000, "x" * 1_020])
async def test_a_name_that_no_object_can_have_is_counted_and_all_others_go(purges: Purges, name: str) -> None:
    await append(purges.fixture, await purges.table(), "a.parquet")
    state = await load_table(purges.fixture.session(), NS, "t")
    place = state.metadata_location.rpartition("/metadata/")[0]
    others = [await write(purges.store, f"{place}/data/{number}.parquet") for number in range(9)]
    await commit_files(purges.fixture, state, [*others[:4], f"{place}/data/{name}", *others[4:]])
    task = await purges.purge()
    assert purges.files() == []
    assert (task.status, task.attempts, details(task)["outside"]) == (Status.SUCCESS, 0, 1)


async def test_files_that_an_engine_deleted_are_no_obstacle(purges: Purges) -> None:
    await filled(purges)
    await purges.drop()
    metadata = [key for key in purges.files() if key.endswith(".metadata.json")]
    for key in purges.files():
        if not key.endswith("b.parquet"):
            await purges.store.delete(key)
    purges.window_passes()
    await purges.run()
    task = await purges.task(str((await purges.tombstone()).task))
    assert task.status is Status.SUCCESS
    report = details(task)
    assert (report["left_behind"], report["gone"]) == (3, 5)
    assert sorted(texts(report, "gone_examples")) == sorted(f"memory:///{key}" for key in metadata)


@pytest.mark.parametrize(
    ("missing", "left"), [("/snap-", ["avro", "parquet", "parquet"]), ("-m0.avro", ["parquet", "parquet"])]
)
async def test_manifests_and_their_lists_that_are_gone_are_reported(
    purges: Purges, missing: str, left: list[str]
) -> None:
    """Files that only they named stay, as unreferenced files."""
    await filled(purges)
    await purges.drop()
    [gone, *_] = [key for key in purges.files() if missing in key]
    await purges.store.delete(gone)
    purges.window_passes()
    await purges.run()
    task = await purges.task(str((await purges.tombstone()).task))
    assert task.status is Status.SUCCESS
    report = details(task)
    assert (report["gone"], report["gone_examples"]) == (1, [f"memory:///{gone}"])
    assert sorted(file.rpartition("/")[2].partition(".")[2] for file in texts(report, "left_behind_examples")) == left


async def test_the_metadata_of_a_lost_try_goes_too(purges: Purges) -> None:
    await filled(purges)
    purges.store.rules = [Rule(put("/iceberg_pointers/"), made=False, fails=RuntimeError("the process died"), times=1)]
    before = {*purges.files()}
    with pytest.raises(RuntimeError):
        await purges.fixture.commit(set_property("a", "2"))
    assert len({*purges.files()} - before) == 1
    await purges.purge()
    assert purges.files() == []


async def test_unreferenced_files_are_reported_and_left(purges: Purges) -> None:
    state = await purges.table()
    stray = await write(purges.store, state.metadata_location.replace("/metadata/", "/data/stray-"))
    assert details(await purges.purge()) == {
        "files_deleted": 1,
        "bytes_deleted": 0,
        "outside": 0,
        "gone": 0,
        "gone_examples": [],
        "left_behind": 1,
        "left_behind_examples": [stray],
    }


async def test_a_manifest_that_cannot_be_read_fails_the_purge_and_what_it_names_is_not_forgotten(
    purges: Purges,
) -> None:
    await append(purges.fixture, await purges.table(), "a")
    [manifest] = [key for key in purges.files() if key.endswith("-m0.avro")]
    before = purges.files()
    await write(purges.store, f"memory:///{manifest}", b"damaged")
    task = await purges.purge()
    assert task.status is Status.FAILURE
    assert "can't be read" in str(task.summary)
    assert purges.files() == before
    assert (await purges.tombstone()).state == PURGING


@pytest.mark.parametrize("codec", ["none", "gzip"])
async def test_a_metadata_file_that_cannot_be_read_fails_the_purge_before_it_begins(purges: Purges, codec: str) -> None:
    """A file that is damaged is not taken for one that is gone, whose names nothing can tell."""
    made = await purges.table(properties={"write.metadata.compression-codec": codec})
    await purges.fixture.commit(set_property("a", "b"))
    first = key_of(made.metadata_location)
    found = await purges.store.get(first)
    assert isinstance(found, Found)
    await purges.store.put(first, found.body[: len(found.body) // 2], ANY)
    before = purges.files()

    task = await purges.purge()

    assert task.status is Status.FAILURE, task.document
    assert "can't be read" in str(task.summary)
    assert purges.files() == before


@pytest.mark.parametrize("stage", ["pending", "committed"])
async def test_a_receipt_that_cannot_be_read_fails_the_purge_before_it_begins(purges: Purges, stage: str) -> None:
    """It alone knows what was current before: metadata logs are cut."""
    await purges.table(properties={"write.metadata.previous-versions-max": "1"})
    for number in range(5):
        await purges.fixture.commit(set_property("a", str(number)))
    before, receipts = purges.files(), await receipts_of(purges, "/00002-")
    damaged = receipts[stage]
    if stage == "committed":  # which is read where the pending one was collected
        await purges.store.delete(receipts["pending"])
    await purges.store.put(damaged, b"damaged", ANY)

    task = await purges.purge()

    assert task.status is Status.FAILURE, task.document
    assert "can't be followed" in str(task.summary)
    assert damaged in str(task.summary)
    assert purges.files() == before
    assert (await purges.tombstone()).state == DROPPED
    # As in fsck: without the receipt the metadata file is read.
    for key in receipts.values():
        await purges.store.delete(key)
    await retry_task(purges.fixture.session(), task.id, purges.runtime)
    await purges.run()
    assert (await purges.task(task.id)).status is Status.SUCCESS
    assert purges.files() == []


async def receipts_of(purges: Purges, file: str) -> dict[str, str]:
    """The keys of the receipts of a metadata file, by their stage."""
    found: dict[str, str] = {}
    for key in purges.files("wh/_catalog/events/"):
        receipt = await purges.store.get(key)
        assert isinstance(receipt, Found)
        if file in str(json.loads(receipt.body)["metadata_location"]):
            found["pending" if "/pending/" in key else "committed"] = key
    return found


async def test_locations_are_refused_while_they_are_purged_whatever_may_overlap(trusting: Purges) -> None:
    refused: list[str] = []

    async def create_there() -> None:
        with pytest.raises(BadRequest) as raised:
            await trusting.fixture.patient().table("u", location=f"{PLACE}/inner")
        refused.append(raised.value.message)

    await append(trusting.fixture, await trusting.table(location=PLACE), "a")
    trusting.store.rules = [Rule(delete("/data/"), first=create_there, times=1)]
    assert (await trusting.purge()).status is Status.SUCCESS
    assert len(refused) == 1
    assert "whose files are being deleted" in refused[0]
    await trusting.table("u", location=PLACE)


async def test_a_purge_that_has_begun_is_not_undone(purges: Purges) -> None:
    met: list[str] = []

    async def undo() -> None:
        with pytest.raises(CommitFailed) as raised:
            await undrop(purges.fixture.another().session(deadline_ms=DAY_MS), NS, "t")
        met.append(raised.value.message)

    await filled(purges)
    purges.store.rules = [Rule(delete("/data/"), first=undo, times=1)]
    await purges.purge()
    assert met == [
        "db.t cannot be restored: a purge of it has begun. It can be if the purge fails before it deletes a file"
    ]
    with pytest.raises(NoSuchTable, match="was purged"):
        await undrop(purges.fixture.session(), NS, "t")


async def test_after_the_purge_the_registry_holds_nothing_of_it_but_the_tombstone(purges: Purges) -> None:
    entity = (await purges.table(location=PLACE)).entity
    task = await purges.purge()
    index = (await purges.fixture.session().state.head()).index
    for key in (location_key(PLACE, entity), released_key(PLACE, entity), task_key(task.id)):
        assert index.get(key) is None


async def test_a_delete_of_unknown_outcome_is_sent_again(purges: Purges) -> None:
    await filled(purges)
    purges.store.rules = [Rule(delete("/warehouse/"), made=False, answers=lost, times=3)]
    assert (await purges.purge()).status is Status.SUCCESS
    assert purges.files() == []


async def test_a_worker_whose_time_is_up_leaves_the_rest_to_the_next_at_once(
    purges: Purges, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deletion, "READ_AT_ONCE", 1)
    monkeypatch.setattr(deletion, "AT_ONCE", 2)
    await filled(purges, snapshots=8)
    lists = [key for key in purges.files() if "/snap-" in key]
    manifests = [key for key in purges.files() if key.endswith("-m0.avro")]
    data = [key for key in purges.files() if "/data/0-" in key or "/data/1-" in key]
    for key in (manifests[0], lists[1], manifests[1], *data):
        await purges.store.delete(key)
    await purges.drop()
    tombstone = await purges.tombstone()
    purges.window_passes()
    done: list[int] = []
    for _ in range(30):
        running = asyncio.create_task(task_worker(purges.fixture.another().catalog).run_due(lambda: False))

        async def stop(stopped: asyncio.Task[int] = running) -> None:
            stopped.cancel()

        purges.store.rules = [Rule(Nth(9, delete("/warehouse/")), first=stop)]
        await asyncio.wait([running])
        task = await purges.task(str(tombstone.task))
        if task.status is Status.SUCCESS:
            break
        assert (running.cancelled(), task.status) == (True, Status.RETRY_SCHEDULED)
        done.append(Progress.parse(task.checkpoint).files)

    assert purges.files() == []
    assert (task.status, task.attempts) == (Status.SUCCESS, 0)
    report = details(task)  # files without a reference are not missed
    assert (report["gone"], report["gone_examples"]) == (2, [f"memory:///{key}" for key in (lists[1], manifests[0])])
    assert done == sorted(done)
    assert len({*done}) > 1


async def test_a_drop_whose_writer_died_behind_the_commit_is_purged(purges: Purges) -> None:
    await filled(purges)
    purges.store.rules = [Rule(put("/tasks/", b"SUBMITTED"), made=False, fails=RuntimeError("died"), times=1)]
    with pytest.raises(RuntimeError):
        await purges.drop()
    purges.window_passes()
    assert await purges.run() == 1
    assert purges.files() == []


async def test_a_drop_that_failed_leaves_a_hint_alone(purges: Purges) -> None:
    await filled(purges)
    before = purges.files()
    purges.store.rules = [Rule(put("/manifest.json"), made=False, fails=RuntimeError("died"), times=1)]
    with pytest.raises(RuntimeError):
        await purges.drop()
    purges.store.rules = []
    assert len(await purges.hints()) == 1
    purges.window_passes()
    assert await purges.run() == 0
    assert (await purges.hints(), purges.files()) == ([], before)
    await load_table(purges.fixture.session(), NS, "t")


@pytest.mark.parametrize("dropped", [False, True])
async def test_the_advice_about_a_table_of_another_format_is_not_a_purge_on_spark(*, dropped: bool) -> None:
    purges = Purges(Settings("wh", allow_location_overlap=True, purge=PurgeSettings(trust_locations=True)))
    await purges.fixture.namespace("db")
    session = purges.fixture.session
    await append(purges.fixture, await purges.table(location=f"{PLACE}/inner"), "a")
    await create_generic_table(session(), NS, GenericTable("g", "delta", PLACE, None, {}))
    if dropped:
        await drop_generic_table(session(), NS, "g")
    task = await purges.purge()
    assert task.status is Status.FAILURE
    assert task.summary is not None
    assert "overlaps the location of db.g (entity " in task.summary
    assert task.summary.endswith(f"`arco tasks retry {task.id}`")
    assert "--spark" not in task.summary
    if not dropped:
        await drop_generic_table(session(), NS, "g")

    purges.runtime.ms += 60 * DAY_MS
    await collect(purges.fixture.another().session(deadline_ms=DAY_MS), delete=True)
    await retry_task(session(), task.id, purges.runtime)
    await purges.run()

    assert (await purges.task(task.id)).status is Status.SUCCESS
    assert purges.files() == []


async def test_a_location_that_another_holds_is_not_purged_here(trusting: Purges) -> None:
    await append(trusting.fixture, await trusting.table("outer", location=PLACE), "a", name="outer")
    await append(trusting.fixture, await trusting.table("t", location=f"{PLACE}/inner"), "b")
    before = trusting.files()
    task = await trusting.purge()
    assert task.status is Status.FAILURE
    assert task.summary is not None
    assert "overlaps the location of db.outer (entity " in task.summary
    assert f"`arco tasks run {task.id} --spark`" in task.summary
    assert trusting.files() == before
    assert (await trusting.tombstone()).state == DROPPED
    await undrop(trusting.fixture.session(), NS, "t")


async def test_a_location_that_another_had_when_it_was_dropped_is_not_purged_here(trusting: Purges) -> None:
    was = await trusting.table("was", location=PLACE)
    await trusting.drop("was", purge=False)
    await trusting.table("t", location=PLACE)
    before = trusting.files()
    assert f"db.was (entity {was.entity}), which was dropped" in str((await trusting.purge()).summary)
    assert trusting.files() == before


async def test_of_two_dropped_tables_that_overlap_each_prevents_the_purge_of_the_other(trusting: Purges) -> None:
    """So to drop the other is no advice."""
    await append(trusting.fixture, await trusting.table("outer", location=PLACE), "a", name="outer")
    await append(trusting.fixture, await trusting.table("t", location=f"{PLACE}/inner"), "b")
    before = trusting.files()
    first, other = await trusting.purge(), await trusting.purge("outer")
    await retry_task(trusting.fixture.session(), first.id, trusting.runtime)
    await trusting.run()
    first = await trusting.task(first.id)
    assert (first.status, other.status) == (Status.FAILURE, Status.FAILURE)
    assert "To drop that table too does not help" in str(first.summary)
    assert trusting.files() == before


async def test_a_file_that_another_table_took_is_kept_with_all_others(purges: Purges) -> None:
    await filled(purges)
    [taken, *_] = [key for key in purges.files() if key.endswith(".parquet")]
    other = await purges.table("other")
    await commit_files(purges.fixture, other, [f"memory:///{taken}"], name="other")
    before = purges.files()
    task = await purges.purge()
    assert task.status is Status.FAILURE
    assert f"db.other (entity {other.entity}) has the file memory:///{taken}: drop that table" in str(task.summary)
    assert purges.files() == before
    tombstone = await purges.tombstone()
    assert (tombstone.state, tombstone.fence) == (DROPPED, 2)
    await undrop(purges.fixture.session(), NS, "t")
    await load_table(purges.fixture.session(), NS, "t")


async def test_a_table_is_purged_by_a_retry_once_the_table_that_used_its_files_is_purged(purges: Purges) -> None:
    await filled(purges)
    [taken, *_] = [key for key in purges.files() if key.endswith(".parquet")]
    await commit_files(purges.fixture, await purges.table("other"), [f"memory:///{taken}"], name="other")
    task = await purges.purge()
    assert f"drop that table with purge, and when it is purged run `arco tasks retry {task.id}`" in str(task.summary)
    assert (await purges.purge("other")).status is Status.SUCCESS
    await retry_task(purges.fixture.session(), task.id, purges.runtime)
    await purges.run()
    assert (await purges.task(task.id)).status is Status.SUCCESS
    assert purges.files() == []


async def test_a_place_that_was_given_back_is_free_again(purges: Purges) -> None:
    state = await append(purges.fixture, await purges.table(location=PLACE), "a")
    other = await purges.table("other")
    await commit_files(purges.fixture, other, [f"{PLACE}/data/a"], name="other")
    await purges.purge()
    state_now = purges.fixture.session().state
    index = (await state_now.head()).index
    holds = [entry async for key, entry in entries_in(state_now, index, "location\n") if PLACE in key]
    assert holds == []
    assert index.get(released_key(PLACE, state.entity)) is not None


def test_the_checksum_of_a_local_file_lies_beside_it() -> None:
    file = Location.of_file("file:///lake/t/data/a.parquet")
    assert file is not None
    assert checksum_beside(file).uri == "file:///lake/t/data/.a.parquet.crc"


async def store_phase(purges: Purges, task: str, phase: str) -> None:
    """Stores a version of a purge with a checkpoint that another version of the program wrote."""
    stored = await purges.task(task)
    other = stored.renewed(record=purges.runtime.ulid(), checkpoint={"deleting": True, "phase": phase})
    assert await append_task(purges.fixture.session().state, other) is not None


async def test_a_purge_in_a_phase_that_this_version_does_not_know_is_left_and_others_are_done(
    purges: Purges, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("newer", "t"):
        await filled(purges, name)
        await purges.drop(name)
    newer = str((await purges.tombstone("newer")).task)
    await store_phase(purges, newer, "backups")
    files = [key for key in purges.files() if "/newer" in key]
    purges.window_passes()
    await purges.run()
    assert purges.files() == files
    assert (await purges.tombstone("t")).state == PURGED
    assert (await purges.task(newer)).status is Status.SUBMITTED
    assert "has the unknown phase 'backups': if another version of the program wrote it, run that one" in caplog.text
