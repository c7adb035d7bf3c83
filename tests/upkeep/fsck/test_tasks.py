"""A check of tasks, their hints, and the tombstones that wait for them (docs/design/tasks.md)."""

import pytest

from arco_catalog.iceberg.json import JsonObject, dumps, loads
from arco_catalog.operations.tasks import retry_task
from arco_catalog.operations.undrop import undrop
from arco_catalog.planning.upkeep_settings import PurgeSettings
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state.fields import mapping
from arco_catalog.state.task import Status
from arco_catalog.state.tombstone import PURGED, PURGING
from arco_catalog.upkeep.fsck.check import check
from arco_catalog.upkeep.fsck.codes import Code
from arco_catalog.upkeep.fsck.examination import Examination
from arco_catalog.upkeep.fsck.findings import Finding
from storage_backends import ABSENT, ANY, Found
from tests.support.table_files import append, write
from tests.upkeep.purge.conftest import Purges
from tools.support.catalog_fixture import NS

HOUR_MS = 3_600_000
TASKS = "wh/_catalog/tasks/"
HEAD = "wh/_catalog/core/manifest.json"


async def found(purges: Purges) -> list[Finding]:
    """What a check by another process finds."""
    return [finding async for finding in check(Examination(purges.fixture.another().session()))]


async def codes(purges: Purges) -> list[Code]:
    """The codes of that."""
    return [finding.code for finding in await found(purges)]


async def mend(purges: Purges) -> list[Code]:
    """Carries out the repairs of all findings. Returns what was mended."""
    mended = []
    for finding in await found(purges):
        if finding.repair is not None and await finding.repair(purges.fixture.another().session()):
            mended.append(finding.code)
    return mended


@pytest.fixture
async def waiting() -> Purges:
    """A dropped table that waits for its purge, an hour after the drop."""
    return await dropped(Purges())


@pytest.fixture
async def ended() -> Purges:
    """A purge that has succeeded, an hour after its end."""
    made = await dropped(Purges())
    made.window_passes()
    await made.run()
    made.runtime.ms += HOUR_MS + 1
    return made


@pytest.fixture
async def failed() -> Purges:
    """A purge that failed when it may have deleted files, an hour after its end."""
    made = await dropped(Purges(Settings("wh", purge=PurgeSettings(trust_locations=True))))
    [manifest] = [key for key in made.files() if key.endswith("-m0.avro")]
    await write(made.store, f"memory:///{manifest}", b"damaged")
    made.window_passes()
    await made.run()
    made.runtime.ms += HOUR_MS + 1
    return made


async def dropped(made: Purges) -> Purges:
    """A catalog with a table that was dropped, with a purge, an hour ago."""
    await made.fixture.namespace("db")
    await append(made.fixture, await made.table(), "a")
    await made.drop()
    made.runtime.ms += HOUR_MS + 1
    return made


async def body(purges: Purges, key: str) -> bytes:
    there = await purges.store.get(key)
    assert isinstance(there, Found)
    return there.body


def versions(purges: Purges) -> list[str]:
    """The versions of the one task, in their order."""
    keys = [key for key in purges.store.keys(TASKS) if "/open/" not in key]
    return sorted(keys, key=lambda key: int(key.rpartition("/")[2].removesuffix(".json")))


async def edit_index(purges: Purges, key_part: str, changes: JsonObject | None) -> None:
    """Changes the one entry of HEAD whose key holds this, or takes it away; in HEAD's commit, too."""
    document = loads(await body(purges, HEAD))
    assert isinstance(document, dict)
    entries = mapping(mapping(document, "index"), "embedded")
    [key] = [key for key in entries if key_part in key]
    left: JsonObject = {each: entry for each, entry in entries.items() if each != key}
    if changes is not None:
        left[key] = {**mapping(entries, key), **changes}
    changed = dumps({**document, "index": {"embedded": left}})
    await purges.store.put(HEAD, changed, ANY)
    await purges.store.put(f"wh/_catalog/core/commits/{document['id']}.json", changed, ANY)


async def test_nothing_is_wrong_with_a_purge_at_any_time(waiting: Purges, ended: Purges) -> None:
    assert await codes(waiting) == []
    assert (await ended.tombstone()).state == PURGED
    assert await codes(ended) == []
    assert len(versions(ended)) > 5


async def test_nothing_is_wrong_with_a_drop_that_was_undone_before_its_task_is_due(waiting: Purges) -> None:
    await undrop(waiting.fixture.session(), NS, "t")

    assert await codes(waiting) == []


async def test_a_task_that_waits_without_a_hint_is_reported_and_mended(waiting: Purges) -> None:
    [hint] = waiting.store.keys(f"{TASKS}open/")
    await waiting.store.delete(hint)

    assert await codes(waiting) == [Code.HINT_MISSING]
    assert await mend(waiting) == [Code.HINT_MISSING]
    assert waiting.store.keys(f"{TASKS}open/") == [hint]
    assert await codes(waiting) == []


async def test_a_task_that_only_the_registry_names_is_reported_and_mended(waiting: Purges) -> None:
    for key in waiting.store.keys(TASKS):
        await waiting.store.delete(key)

    assert await codes(waiting) == [Code.HINT_MISSING]
    assert await mend(waiting) == [Code.HINT_MISSING]
    assert await codes(waiting) == []
    waiting.window_passes()
    assert await waiting.run() == 1
    assert (await waiting.tombstone()).state == PURGED


async def test_a_hint_is_not_missed_before_the_task_is_ten_minutes_old() -> None:
    purges = Purges()
    await purges.fixture.namespace("db")
    await purges.table()
    await purges.drop()
    [hint] = purges.store.keys(f"{TASKS}open/")
    await purges.store.delete(hint)

    assert await codes(purges) == []


async def test_a_purge_that_succeeded_without_its_last_version_is_found_again_by_its_hint(ended: Purges) -> None:
    await ended.store.delete(versions(ended)[-1])

    assert await codes(ended) == [Code.HINT_MISSING]
    assert await mend(ended) == [Code.HINT_MISSING]
    assert await ended.run() == 1
    assert (await ended.task(str((await ended.tombstone()).task))).status is Status.SUCCESS


async def test_a_version_that_is_gone_is_a_gap(failed: Purges) -> None:
    await failed.store.delete(versions(failed)[2])

    assert await codes(failed) == [Code.TASK_GAP, Code.PURGE_FAILED]


async def test_the_first_versions_of_a_task_that_has_ended_may_be_collected(ended: Purges) -> None:
    for key in versions(ended)[:3]:
        await ended.store.delete(key)

    assert await codes(ended) == []


@pytest.mark.parametrize("place", [0, 2, -1])
async def test_a_version_that_is_cut_is_reported(failed: Purges, place: int) -> None:
    key = versions(failed)[place]
    whole = await body(failed, key)
    await failed.store.put(key, whole[: len(whole) // 2], ANY)

    assert Code.TASK_UNREADABLE in await codes(failed)


async def test_a_version_in_the_place_of_another_is_reported(failed: Purges) -> None:
    first, *_, last = versions(failed)
    await failed.store.put(last, await body(failed, first), ANY)

    assert await codes(failed) == [Code.TASK_FOREIGN]


async def test_a_status_that_cannot_follow_the_one_before_is_reported(failed: Purges) -> None:
    first = versions(failed)[0]
    await failed.store.put(first, (await body(failed, first)).replace(b"SUBMITTED", b"SUCCESS"), ANY)

    assert Code.TASK_FOREIGN in await codes(failed)


async def test_a_failed_task_may_be_submitted_again(failed: Purges) -> None:
    session = failed.fixture.session()
    await retry_task(session, str((await failed.tombstone()).task), failed.runtime)
    failed.runtime.ms += HOUR_MS

    assert await codes(failed) == []


async def test_a_purge_that_failed_half_way_is_reported(failed: Purges) -> None:
    [report] = await found(failed)

    assert (report.code, report.where) == (Code.PURGE_FAILED, f"{TASKS}{(await failed.tombstone()).task}/")
    assert "can't be read" in report.found
    assert report.repair is None


async def test_the_newest_versions_of_a_task_that_are_gone_are_reported_by_its_tombstone(failed: Purges) -> None:
    fence = (await failed.tombstone()).fence
    for key in versions(failed)[fence - 1 :]:
        await failed.store.delete(key)

    assert await codes(failed) == [Code.TASK_OLDER]


async def test_a_purge_that_has_begun_without_any_version_of_its_task_is_reported(failed: Purges) -> None:
    for key in versions(failed):
        await failed.store.delete(key)

    assert await codes(failed) == [Code.TASK_MISSING]


async def test_a_registry_that_does_not_know_of_the_end_of_a_purge_is_reported(waiting: Purges) -> None:
    before = await body(waiting, HEAD)
    waiting.window_passes()
    await waiting.run()
    await waiting.store.put(HEAD, before, ANY)

    assert Code.TOMBSTONE_OLDER in await codes(waiting)


async def test_a_hint_of_a_task_that_has_ended_is_reported_and_mended(ended: Purges) -> None:
    task = (await ended.tombstone()).task
    key = f"{TASKS}open/20990101T000000000Z-{task}"
    await ended.store.put(key, b"", ABSENT)
    assert await codes(ended) == []
    ended.runtime.ms += HOUR_MS + 1

    assert await codes(ended) == [Code.HINT_LEFT]
    assert await mend(ended) == [Code.HINT_LEFT]
    assert ended.store.keys(f"{TASKS}open/") == []


async def test_a_hint_that_leads_to_no_task_is_a_note(ended: Purges) -> None:
    await ended.store.put(f"{TASKS}open/20260101T000000000Z-0197", b"", ABSENT)
    ended.runtime.ms += HOUR_MS + 1

    assert await codes(ended) == [Code.HINT_STRAY]
    assert await mend(ended) == []


async def test_a_task_that_the_registry_does_not_name_is_a_note_once_it_is_due(waiting: Purges) -> None:
    await undrop(waiting.fixture.session(), NS, "t")
    waiting.window_passes()

    assert await codes(waiting) == [Code.TASK_STRAY]
    await waiting.run()
    assert await codes(waiting) == []


@pytest.mark.parametrize("name", ["x", "0197/x.json", "0197/01.json", "open/x"])
async def test_what_is_no_task_and_no_hint_is_reported(waiting: Purges, name: str) -> None:
    await waiting.store.put(TASKS + name, b"x", ABSENT)

    assert await codes(waiting) == [Code.OBJECT_UNKNOWN]


async def test_entries_of_purges_that_do_not_fit_are_reported(waiting: Purges, failed: Purges) -> None:
    """What no request can bring about, a hand that edits HEAD can."""
    assert (await failed.tombstone()).state == PURGING
    await edit_index(failed, "location\n", None)
    assert await codes(failed) == [Code.HOLD_MISSING, Code.PURGE_FAILED]
    await edit_index(failed, "tombstone\n", {"state": "purged"})
    assert Code.TASK_MISFIT in await codes(failed)
    await edit_index(waiting, "task\n", None)
    assert Code.TASK_MISFIT in await codes(waiting)


async def test_a_hold_of_a_purge_that_has_not_begun_is_reported(failed: Purges) -> None:
    await edit_index(failed, "tombstone\n", {"state": "dropped"})

    assert await codes(failed) == [Code.HOLD_STRAY]
