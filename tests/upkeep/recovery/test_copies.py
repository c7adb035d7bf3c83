"""A catalog that is restored beside its living original deletes nothing (docs/recovery.md#copies)."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import NoReturn

import pytest

from arco_catalog.iceberg.errors import CatalogError
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.adopt import adopt
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.history import history
from arco_catalog.operations.load import load_table
from arco_catalog.operations.undrop import undrop
from arco_catalog.planning.answers import TableState
from arco_catalog.planning.upkeep_settings import PurgeSettings
from arco_catalog.protocol.catalog import Settings
from arco_catalog.protocol.copies import CatalogIsCopy
from arco_catalog.state.fields import sequence
from arco_catalog.state.restoration import Restoration
from arco_catalog.state.task_log import all_hints, append_task, read_task
from arco_catalog.upkeep.collection.collect import collect
from arco_catalog.upkeep.collection.entities import Entities
from arco_catalog.upkeep.collection.run import Run
from arco_catalog.upkeep.fsck.check import check
from arco_catalog.upkeep.fsck.examination import Examination
from arco_catalog.upkeep.purge.worker import task_worker
from arco_catalog.upkeep.reconcile import reconcile
from arco_catalog.upkeep.recovery.archive import Archive
from arco_catalog.upkeep.recovery.unpack import restore_backup
from storage_backends import ANY, Found
from tests.support.fake_runtime import ShortSleeps
from tests.support.scripted_store import DOWN, Call, Rule, ScriptedStore
from tests.support.table_files import append
from tests.upkeep.recovery.test_backup import backed_up
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.request_bodies import set_property

DAY_MS = 24 * 60 * 60_000
AT_ONCE = PurgeSettings(undrop_window_ms=0)


def an_original() -> tuple[CatalogFixture, ScriptedStore, ShortSleeps]:
    clock = ShortSleeps()
    store = ScriptedStore(clock.now_ms)
    return CatalogFixture(store, clock, Settings("wh", purge=AT_ONCE)), store, clock


def fixture_beside(original: CatalogFixture) -> CatalogFixture:
    """Another place in the store, which may use the same files."""
    settings = Settings("copy", purge=AT_ONCE)
    return CatalogFixture(original.store, original.runtime, settings, allowed=("memory:///wh/warehouse",))


async def copied(original: CatalogFixture, file: Path) -> CatalogFixture:
    """A copy beside the original, of a backup made now."""
    await backed_up(original, file)
    copy = fixture_beside(original)
    await restore_backup(copy.session(), await Archive.opened(file), dry=False)
    return copy


async def loads(fixture: CatalogFixture, name: str = "t") -> bool:
    try:
        return isinstance(await load_table(fixture.another().session(), NS, name), TableState)
    except CatalogError:
        return False


def data_files(store: ScriptedStore, prefix: str = "wh/warehouse/") -> list[str]:
    return [key for key in store.keys(prefix) if key.endswith(".parquet")]


async def collected(fixture: CatalogFixture) -> None:
    await collect(fixture.another().session(deadline_ms=DAY_MS), delete=True)


def during_the_backup(store: ScriptedStore, work: Callable[[], Awaitable[object]]) -> None:
    """Runs this once when the backup has read the pointers, and is about to read HEAD."""
    pointers = 0

    def is_first_read_of_head(call: Call) -> bool:
        nonlocal pointers
        pointers += call.method == "get" and "iceberg_pointers" in call.key
        return pointers > 0 and call.method == "get" and call.key.endswith("core/manifest.json")

    store.rules = [Rule(is_first_read_of_head, first=work, times=1)]


async def with_a_commit_during_the_backup(tmp_path: Path) -> tuple[CatalogFixture, ScriptedStore, ShortSleeps, Path]:
    """A catalog and its backup: that has the pending receipt of a commit that its pointers do not show."""
    original, store, clock = an_original()
    await original.namespace(*NS)
    await original.table("t")
    await original.commit(set_property("a", "1"))
    during_the_backup(store, lambda: original.another().commit(set_property("a", "2")))
    file = tmp_path / "backup.tar.gz"
    await backed_up(original, file)
    store.rules = []
    return original, store, clock, file


@pytest.mark.parametrize("adopted", [False, True])
async def test_a_collection_in_a_copy_keeps_the_current_metadata_file_of_the_original(
    tmp_path: Path, adopted: bool
) -> None:
    original, _, clock, file = await with_a_commit_during_the_backup(tmp_path)
    copy = fixture_beside(original)
    await restore_backup(copy.session(), await Archive.opened(file), dry=False)
    await reconcile(copy.another().session())
    if adopted:
        assert await adopt(copy.another().session()) == "memory:///wh"
    clock.ms += 8 * DAY_MS
    if adopted:
        await collected(copy)
    else:
        with pytest.raises(CatalogIsCopy, match="arco adopt"):
            await collected(copy)
    assert await loads(original)
    assert await loads(copy)


async def test_a_collection_in_a_catalog_restored_in_place_keeps_the_tries_of_before(tmp_path: Path) -> None:
    original, store, clock, file = await with_a_commit_during_the_backup(tmp_path)
    files = {key for key in store.keys("wh/warehouse/") if key.endswith("metadata.json")}
    for key in store.keys("wh/_catalog/"):
        await store.delete(key)
    report = await restore_backup(original.another().session(), await Archive.opened(file), dry=False)
    assert [each.get("copy_of") for each in sequence(report, "registries") if isinstance(each, dict)] == [None]
    clock.ms += 8 * DAY_MS
    await collected(original)
    assert files <= {*store.keys("wh/warehouse/")}


async def test_what_was_written_after_the_restore_is_collected(tmp_path: Path) -> None:
    original, store, clock = an_original()
    await original.namespace(*NS)
    await original.table("t")
    copy = await copied(original, tmp_path / "backup.tar.gz")
    await adopt(copy.another().session())
    clock.ms += DAY_MS
    before = {*store.keys("wh/warehouse/")}
    store.rules = [Rule(lambda call: call.method == "put" and "copy/_catalog/iceberg_pointers" in call.key, fails=DOWN)]
    with pytest.raises(CatalogError):
        await copy.another().commit(set_property("a", "1"))
    store.rules = []
    [lost] = {*store.keys("wh/warehouse/")} - before
    clock.ms += 9 * DAY_MS
    await collected(copy)
    assert lost not in store.keys("wh/warehouse/")


async def test_a_drop_with_purge_in_a_copy_is_a_plain_drop(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    original, store, clock = an_original()
    await original.namespace(*NS)
    await append(original, await original.table("t"), "a.parquet", name="t")
    copy = await copied(original, tmp_path / "backup.tar.gz")
    files = data_files(store)
    await drop_table(copy.another().session(), NS, "t", purge=True)
    assert "memory:///wh" in caplog.text
    clock.ms += DAY_MS
    await task_worker(copy.another().catalog).run_until_idle()
    assert data_files(store) == files
    await undrop(copy.another().session(), NS, "t")
    assert await loads(copy)


async def test_a_drop_with_purge_in_an_adopted_copy_purges(tmp_path: Path) -> None:
    original, store, clock = an_original()
    await original.namespace(*NS)
    await append(original, await original.table("t"), "a.parquet", name="t")
    copy = await copied(original, tmp_path / "backup.tar.gz")
    await adopt(copy.another().session())
    await drop_table(copy.another().session(), NS, "t", purge=True)
    clock.ms += DAY_MS
    await task_worker(copy.another().catalog).run_until_idle()
    assert data_files(store) == []


async def test_commits_to_a_copy_remove_no_old_metadata_file(tmp_path: Path) -> None:
    original, store, _ = an_original()
    await original.namespace(*NS)
    cleans: JsonObject = {
        "write.metadata.delete-after-commit.enabled": "true",
        "write.metadata.previous-versions-max": "1",
    }
    await original.table("t", properties=cleans)
    await original.commit(set_property("a", "1"))
    copy = await copied(original, tmp_path / "backup.tar.gz")
    files = {key for key in store.keys("wh/warehouse/") if key.endswith("metadata.json")}
    for value in "23456":
        await copy.another().commit(set_property("a", value))
    assert files <= {*store.keys("wh/warehouse/")}


async def a_purge_that_fails_before_its_first_delete(
    original: CatalogFixture, store: ScriptedStore, clock: ShortSleeps, file: Path
) -> None:
    """Drops t with purge. The purge starts, the backup is made, a neighbour's missing pointer fails it."""
    await original.namespace(*NS)
    await append(original, await original.table("t"), "a.parquet", "b.parquet", name="t")
    neighbour = await append(original, await original.table("n"), "c.parquet", name="n")
    await drop_table(original.session(), NS, "t", purge=True)
    clock.ms += 2_000
    missing = original.session().state.paths.pointer(neighbour.entity)
    found = await store.get(missing)
    assert isinstance(found, Found)

    async def back_up_and_lose_the_pointer() -> None:
        await backed_up(original, file)
        await store.delete(missing)

    def is_read(call: Call) -> bool:
        return call.method == "get" and call.key == missing

    store.rules = [Rule(is_read, first=back_up_and_lose_the_pointer, times=1)]
    await task_worker(original.another().catalog).run_until_idle()
    store.rules = []
    await store.put(missing, found.body, ANY)


@pytest.mark.parametrize("adopted", [False, True])
async def test_a_restore_gives_back_a_purge_that_had_deleted_nothing(tmp_path: Path, adopted: bool) -> None:
    original, store, clock = an_original()
    file = tmp_path / "backup.tar.gz"
    await a_purge_that_fails_before_its_first_delete(original, store, clock, file)
    await undrop(original.another().session(), NS, "t")
    files = data_files(store)
    copy = fixture_beside(original)
    report = await restore_backup(copy.session(), await Archive.opened(file), dry=False)
    [registry] = sequence(report, "registries")
    assert isinstance(registry, dict)
    assert registry["purges_taken_back"] == 1
    if adopted:
        await adopt(copy.another().session())
    for _ in range(3):
        clock.ms += 400_000
        await task_worker(copy.another().catalog).run_until_idle()
    assert data_files(store) == files
    await undrop(copy.another().session(), NS, "t")
    assert await loads(copy)


async def test_a_purge_in_a_phase_that_this_version_does_not_know_counts_as_begun(tmp_path: Path) -> None:
    original, store, clock = an_original()
    file = tmp_path / "backup.tar.gz"

    async def back_up_a_later_phase() -> None:
        state = original.another().session().state
        [task] = [hint.task async for hint in all_hints(state)]
        stored = await read_task(state, task)
        assert stored is not None
        later = stored.task.renewed(record=clock.ulid(), checkpoint={"deleting": True, "phase": "backups"})
        assert await append_task(state, later) is not None
        await backed_up(original, file)

    await original.namespace(*NS)
    await append(original, await original.table("t"), "a.parquet", name="t")
    await drop_table(original.session(), NS, "t", purge=True)
    clock.ms += 2_000
    store.rules = [Rule(lambda call: "delete" in call.method, first=back_up_a_later_phase, times=1)]
    await task_worker(original.another().catalog).run_until_idle()
    copy = fixture_beside(original)
    report = await restore_backup(copy.session(), await Archive.opened(file), dry=False)
    [registry] = sequence(report, "registries")
    assert isinstance(registry, dict)
    assert registry["purges_taken_back"] == 0


async def test_a_purge_that_had_deleted_files_waits_in_a_copy(tmp_path: Path) -> None:
    original, store, clock = an_original()
    await original.namespace(*NS)
    await append(original, await original.table("t"), "a.parquet", name="t")
    await drop_table(original.session(), NS, "t", purge=True)
    clock.ms += 2_000
    files = {key: await store.get(key) for key in store.keys("wh/warehouse/")}
    file = tmp_path / "backup.tar.gz"
    store.rules = [Rule(lambda call: "delete" in call.method, first=lambda: backed_up(original, file), times=1)]
    await task_worker(original.another().catalog).run_until_idle()
    store.rules = []
    assert data_files(store) == []
    copy = fixture_beside(original)
    await restore_backup(copy.session(), await Archive.opened(file), dry=False)
    for key, found in files.items():
        assert isinstance(found, Found)
        await store.put(key, found.body, ANY)  # the place has been used again
    for _ in range(3):
        clock.ms += DAY_MS
        await task_worker(copy.another().catalog).run_until_idle()
    assert {*store.keys("wh/warehouse/")} == {*files}
    await adopt(copy.another().session())
    clock.ms += DAY_MS
    await task_worker(copy.another().catalog).run_until_idle()
    assert data_files(store) == []


class NoRunner:
    """Stands for Spark's executors, and must get no batch."""

    def run_batches(self, run: Run, entities: Entities, batches: AsyncGenerator[object, None]) -> NoReturn:
        raise AssertionError("a batch was dealt out")


async def test_a_collection_in_a_copy_is_refused_before_executors_get_a_batch(tmp_path: Path) -> None:
    original, _, _ = an_original()
    await original.namespace(*NS)
    copy = await copied(original, tmp_path / "backup.tar.gz")
    with pytest.raises(CatalogIsCopy):
        await collect(copy.another().session(deadline_ms=DAY_MS), delete=True, runner=NoRunner())


async def test_adoption_is_recorded_once(tmp_path: Path) -> None:
    original, _, _ = an_original()
    await original.namespace(*NS)
    copy = await copied(original, tmp_path / "backup.tar.gz")
    assert await adopt(original.another().session()) is None
    assert await adopt(copy.another().session(principal="operator")) == "memory:///wh"
    assert await adopt(copy.another().session()) is None
    restoration = (await copy.another().session().state.head()).restoration
    assert restoration is not None
    made_ms = restoration.adoption["at_ms"]
    assert restoration.adoption == {"by": "operator", "at_ms": made_ms, "copy_of": "memory:///wh"}
    shown = [each async for each in history(copy.another().session())]
    assert [each["kind"] for each in shown[:2]] == ["adopt", "restore"]


async def test_fsck_names_a_copy_and_its_original(tmp_path: Path) -> None:
    original, _, _ = an_original()
    await original.namespace(*NS)
    copy = await copied(original, tmp_path / "backup.tar.gz")
    found = [each async for each in check(Examination(copy.another().session()))]
    assert [(each.code.value, each.found) for each in found] == [
        ("catalog-copy", "the catalog is a copy, and the original is at memory:///wh")
    ]
    await adopt(copy.another().session())
    assert [each async for each in check(Examination(copy.another().session()))] == []


async def test_the_backup_of_a_version_that_did_not_record_its_place_makes_a_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, _, _ = an_original()
    await original.namespace(*NS)
    monkeypatch.setattr("arco_catalog.upkeep.recovery.backup.place_of", lambda session, root: None)
    copy = await copied(original, tmp_path / "backup.tar.gz")
    assert (await copy.another().session().state.head()).copy_of == "an unknown place"


@pytest.mark.parametrize(
    ("adopted", "place", "copy_of"),
    [
        (False, "copy", "memory:///wh"),
        (True, "copy", None),
        (False, "third", "memory:///copy, itself a copy of the one at memory:///wh"),
        (True, "third", "memory:///copy"),
    ],
)
async def test_a_restored_backup_of_a_copy_is_one_until_that_was_adopted(
    tmp_path: Path, adopted: bool, place: str, copy_of: str | None
) -> None:
    original, store, _, file = await with_a_commit_during_the_backup(tmp_path)
    copy = fixture_beside(original)
    await restore_backup(copy.session(), await Archive.opened(file), dry=False)
    if adopted:
        await adopt(copy.another().session())
    second = tmp_path / "second.tar.gz"
    await backed_up(copy.another(), second)
    for key in [*store.keys("copy/")]:
        await store.delete(key, ANY)

    settings = Settings(place, purge=AT_ONCE)
    restored = CatalogFixture(original.store, original.runtime, settings, allowed=("memory:///wh/warehouse",))
    await restore_backup(restored.session(), await Archive.opened(second), dry=False)

    assert (await restored.another().session().state.head()).copy_of == copy_of
    if copy_of is not None:
        with pytest.raises(CatalogIsCopy, match="memory:///"):
            await collected(restored)
    assert await loads(original)


def test_every_stored_field_of_a_restoration_is_read_again() -> None:
    restoration = Restoration(7, "memory:///wh").adopted("operator", 9)
    assert Restoration.parse(restoration.to_json()) == restoration
