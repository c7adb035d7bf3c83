"""Before its first delete a purge checks every other table for references to files at the place, however many there
are, and whatever happens to them meanwhile (docs/design/purge.md#rule-15)."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.load import load_table
from arco_catalog.operations.transaction import commit_transaction
from arco_catalog.planning.answers import TableState
from arco_catalog.protocol.transaction_coordinator import TransactionCoordinator
from arco_catalog.state.file_directories import read_shard, shard_of
from arco_catalog.state.task import Status
from arco_catalog.state.tombstone import DROPPED
from arco_catalog.tasks.execution import Sessions
from arco_catalog.upkeep.purge import other_table, sharing
from arco_catalog.upkeep.purge.other_table import OtherTable, TableRead, read_table
from arco_catalog.upkeep.purge.worker import task_worker
from storage_backends import ANY
from tests.support.followed import follow
from tests.support.scripted_store import Call, Match, Nth, Rule, get
from tests.support.table_files import append, commit_files, key_of
from tests.upkeep.purge.conftest import DAY_MS, Purges
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.request_bodies import set_property

OTHERS = 10
"""Tables beside the one that is purged, where there are many."""
MANIFESTS = 20
"""Of a table beside the one that is purged, where there are many."""
CUT_AT = 4
"""The manifest list of another table, counted in each worker, that it has no time left to read."""


@pytest.fixture
async def beside() -> Purges:
    """A table with a file, and a neighbour `n` that has taken it."""
    purges = Purges()
    await purges.fixture.namespace("db")
    await append(purges.fixture, await purges.table(), "a.parquet")
    await commit_files(purges.fixture, await purges.table("n"), [taken(purges)], name="n")
    return purges


@pytest.fixture
async def many() -> Purges:
    """A table with a file, and many others that took nothing."""
    purges = Purges()
    await purges.fixture.namespace("db")
    await append(purges.fixture, await purges.table(), "a.parquet")
    for number in range(OTHERS):
        name = f"n{number}"
        await append(purges.fixture, await purges.table(name), "b.parquet", name=name)
    return purges


@pytest.fixture(autouse=True)
def one_table_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a worker can be stopped between two of them."""
    monkeypatch.setattr(sharing, "READ_AT_ONCE", 1)


def taken(purges: Purges) -> str:
    [file] = [key for key in purges.files() if key.endswith("a.parquet")]
    return f"memory:///{file}"


async def now(fixture: CatalogFixture, name: str = "n") -> TableState:
    return await load_table(fixture.another().session(deadline_ms=DAY_MS), NS, name)


async def led_to(purges: Purges, kind: str, name: str = "n") -> str:
    """The key of a table's metadata file, its manifest list, or its manifest."""
    table = await now(purges.fixture, name)
    if kind == "metadata file":
        return key_of(table.metadata_location)
    folder = key_of(table.metadata_location).rpartition("/")[0]
    [key] = [key for key in purges.files(folder) if key.endswith(".avro") and ("/snap-" in key) == (kind != "manifest")]
    return key


async def rewritten(purges: Purges, *, keeps: str) -> None:
    """What an engine does that rewrites the manifests of `n`, and expires what was before."""
    table = await now(purges.fixture)
    folder = key_of(table.metadata_location).rpartition("/")[0]
    before = [key for key in purges.files(folder) if key.endswith(".avro")]
    fixture = purges.fixture.patient()
    await commit_files(fixture, table, [keeps], name="n")
    await fixture.commit({"requirements": [], "updates": [{"action": "remove-snapshots", "snapshot-ids": [1]}]}, "n")
    for key in before:
        await purges.store.delete(key)


def behind_the_look_at(key: str, step: Callable[[], Awaitable[object]]) -> Rule:
    return Rule(get(key), then=step, times=1)


@pytest.mark.parametrize("kind", ["metadata file", "manifest list"])
async def test_a_neighbour_whose_manifests_are_rewritten_during_the_check_keeps_its_files(
    beside: Purges, kind: str
) -> None:
    file, read = taken(beside), await led_to(beside, kind)

    async def rewrite() -> None:
        await rewritten(beside, keeps=file)

    due = await beside.make_due()
    beside.store.rules = [behind_the_look_at(read, rewrite)]
    await beside.run()

    task = await beside.task(due)
    assert key_of(file) in beside.files()
    assert task.status is Status.FAILURE
    assert f"has the file {file}" in str(task.summary)
    assert (await beside.tombstone()).state == DROPPED


KINDS = ["metadata file", "manifest list", "manifest"]


async def waiting(purges: Purges, missing: str) -> str:
    """Purges `t`, which waits for the file that the live table `n` misses. Returns the task."""
    task = await purges.purge()
    assert task.status is Status.RETRY_SCHEDULED
    assert f"memory:///{missing} is gone" in str(task.summary)
    assert "db.n (entity" in str(task.summary)
    assert key_of(taken(purges)) in purges.files()
    return task.id


@pytest.mark.parametrize("kind", KINDS)
async def test_a_file_that_a_live_table_misses_holds_a_purge_back_for_the_time_to_undo_a_drop(
    beside: Purges, kind: str
) -> None:
    missing = await led_to(beside, kind)
    await beside.store.delete(missing)
    task = await waiting(beside, missing)
    beside.runtime.ms += DAY_MS // 2
    assert await beside.run() == 0
    assert key_of(taken(beside)) in beside.files()

    beside.window_passes()
    await beside.run()

    ended = await beside.task(task)
    assert ended.status is Status.SUCCESS
    unread = json.loads(str(ended.document["result_extended"]))["unread"]
    assert [name.partition(" ")[0] for name in unread] == ["db.n"]
    assert f"memory:///{missing} is gone" in str(unread)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_file_that_is_restored_in_time_keeps_what_it_names(beside: Purges, kind: str) -> None:
    missing = await led_to(beside, kind)
    body = (await beside.store.get(missing)).body  # type: ignore[union-attr]
    await beside.store.delete(missing)
    task = await waiting(beside, missing)
    await beside.store.put(missing, body, ANY)
    beside.window_passes()
    await beside.run()
    ended = await beside.task(task)
    assert ended.status is Status.FAILURE
    assert f"has the file {taken(beside)}" in str(ended.summary)
    assert key_of(taken(beside)) in beside.files()


@pytest.mark.parametrize("folder", ["memory:///wh/warehouse/db/never", "its own"])
async def test_a_client_that_names_files_that_never_were_delays_purges_once(purges: Purges, folder: str) -> None:
    """However many tables it makes, and however often: the time is counted from the first that the purge met."""
    await append(purges.fixture, await purges.table(), "a.parquet")
    await name_nothing(purges, "n0", folder)
    task = await purges.purge()
    assert task.status is Status.RETRY_SCHEDULED
    await name_nothing(purges, "n1", folder)
    purges.window_passes()
    await purges.run()
    ended = await purges.task(task.id)
    assert ended.status is Status.SUCCESS
    unread = json.loads(str(ended.document["result_extended"]))["unread"]
    assert {name.partition(" ")[0] for name in unread} == {"db.n0", "db.n1"}


async def name_nothing(purges: Purges, name: str, folder: str) -> None:
    """A table with a snapshot that names a missing manifest list."""
    made = await purges.table(name)
    place = made.metadata_location.rpartition("/")[0] if folder == "its own" else folder
    added: JsonObject = {
        "snapshot-id": 1,
        "sequence-number": 1,
        "timestamp-ms": purges.runtime.now_ms(),
        "manifest-list": f"{place}/never.avro",
        "summary": {"operation": "append"},
        "schema-id": 0,
    }
    await purges.fixture.commit({"requirements": [], "updates": [{"action": "add-snapshot", "snapshot": added}]}, name)


async def test_a_live_table_whose_pointer_is_gone_is_not_taken_for_one_without_files(beside: Purges) -> None:
    pointer = beside.fixture.session().state.paths.pointer((await now(beside.fixture)).entity)
    await beside.store.delete(pointer)
    task = await beside.purge()
    assert task.status is Status.FAILURE
    assert f"the pointer {pointer} of a table is gone" in str(task.summary)
    assert key_of(taken(beside)) in beside.files()


async def test_a_table_that_follows_another_catalogs_does_not_count_as_one_whose_pointer_is_gone(
    purges: Purges,
) -> None:
    await append(purges.fixture, await purges.table(), "a.parquet")
    await follow(purges.fixture, await purges.table("like"))

    assert (await purges.purge()).status is Status.SUCCESS


@pytest.mark.parametrize("kind", ["metadata file", "manifest list", "manifest"])
async def test_what_is_gone_of_a_dropped_table_is_no_obstacle(beside: Purges, kind: str) -> None:
    missing = await led_to(beside, kind)
    await beside.store.delete(missing)
    await beside.drop("n", purge=False)
    assert (await beside.purge()).status is Status.SUCCESS


async def test_a_table_that_is_dropped_and_emptied_during_the_check_is_no_obstacle(beside: Purges) -> None:
    lists = await led_to(beside, "manifest list")

    async def emptied() -> None:
        await drop_table(beside.fixture.another().session(deadline_ms=DAY_MS), NS, "n", purge=False)
        await beside.store.delete(lists)

    read = await led_to(beside, "metadata file")
    due = await beside.make_due()
    beside.store.rules = [behind_the_look_at(read, emptied)]
    await beside.run()
    assert (await beside.task(due)).status is Status.SUCCESS


async def test_the_files_of_an_open_transaction_are_checked_too(many: Purges, monkeypatch: pytest.MonkeyPatch) -> None:
    """The transaction has laid its intents, and is not decided."""
    file = taken(many)

    async def dies(self: object, standing: object) -> None:
        raise RuntimeError("died")

    fixture, table = InTransactions(many.store, many.runtime, many.fixture.settings), await now(many.fixture, "n1")
    with monkeypatch.context() as patch:
        patch.setattr(TransactionCoordinator, "swap", dies)
        with pytest.raises(RuntimeError, match="died"):
            await commit_files(fixture, table, [file], name="n1")

    task = await many.purge()

    assert task.status is Status.FAILURE
    assert "db.n1" in str(task.summary)
    assert f"has the file {file}" in str(task.summary)


class InTransactions(CatalogFixture):
    """A fixture that commits to `n2`, too, in one transaction."""

    async def commit(self, body: JsonObject, name: str = "t", key: str | None = None) -> TableState:
        changes = [(NS, name, body), (NS, "n2", set_property("a", "1"))]
        await commit_transaction(self.session([each for _, _, each in changes], path="/tx"), changes)
        return await now(self, name)


async def cut(purges: Purges, number: int = CUT_AT, match: Match | None = None) -> None:
    """A worker whose time is over when it is about to make so many calls that match, by default reads of the manifest
    lists of other tables."""
    running = asyncio.create_task(task_worker(purges.fixture.another().catalog).run_due(lambda: False))

    async def stop() -> None:
        running.cancel()

    purges.store.rules = [Rule(Nth(number, match or others_list), first=stop)]
    await asyncio.wait([running])
    purges.store.rules = []


def others_list(call: Call) -> bool:
    return get("/snap-")(call) and "/t-" not in call.key


async def test_a_purge_that_has_many_tables_to_ask_ends_however_often_its_worker_is_stopped(many: Purges) -> None:
    task = await many.make_due()
    runs = 0
    while (ended := await many.task(task)).status is not Status.SUCCESS and runs < 3 * OTHERS:
        await cut(many)
        runs += 1

    assert (ended.status, ended.attempts) == (Status.SUCCESS, 0), ended.document
    assert runs > OTHERS // CUT_AT
    assert not [key for key in many.files() if key.endswith("a.parquet")]


@pytest.fixture
async def long(monkeypatch: pytest.MonkeyPatch) -> Purges:
    """A table with a file, and a neighbour `n` with so many manifests that no worker has time to read all of them, and
    a file outside of its location."""
    monkeypatch.setattr(other_table, "PARTIAL_AFTER_MS", 0)
    purges = Purges()
    await purges.fixture.namespace("db")
    await append(purges.fixture, await purges.table(), "a.parquet")
    table = await commit_files(purges.fixture, await purges.table("n"), ["memory:///wh/elsewhere/b.parquet"], name="n")
    for number in range(MANIFESTS - 1):
        table = await append(purges.fixture, table, f"{number}.parquet", name="n")
    return purges


async def cut_at_manifest(purges: Purges, number: int = CUT_AT) -> Sequence[str]:
    """A worker whose time is over when it is about to read so many manifests of `n`. Returns the manifests that it
    read."""
    read = len(purges.store.calls)
    await cut(purges, number, others_manifest)
    return [call.key for call in purges.store.calls[read:] if others_manifest(call)][: number - 1]


def others_manifest(call: Call) -> bool:
    return get("-m0.avro")(call) and "/t-" not in call.key


async def test_a_purge_beside_a_table_that_no_worker_has_time_to_read_whole_ends(long: Purges) -> None:
    task = await long.make_due()
    read = list[str]()
    while (ended := await long.task(task)).status is Status.RETRY_SCHEDULED or not read:
        read += await cut_at_manifest(long)
        assert len(read) < 2 * MANIFESTS, "manifests are read again by each worker"

    assert (ended.status, ended.attempts) == (Status.SUCCESS, 0), ended.document
    assert len({*read}) == len(read) == MANIFESTS
    assert not [key for key in long.files() if key.endswith("a.parquet")]


async def test_a_table_that_several_workers_read_is_recorded_whole(long: Purges) -> None:
    task = await long.make_due()
    for _ in range(MANIFESTS):
        await cut_at_manifest(long)
    assert (await long.task(task)).status is Status.SUCCESS
    entity = (await now(long.fixture)).entity
    entry = (await read_shard(long.fixture.session().state, shard_of(entity)))[entity]
    assert entry.directories == ("memory:///wh/elsewhere",)


async def test_a_file_that_the_last_of_several_workers_finds_prevents_the_purge(long: Purges) -> None:
    await commit_files(long.fixture, await now(long.fixture), [taken(long)], name="n")
    task = await long.make_due()
    for _ in range(MANIFESTS):
        await cut_at_manifest(long)
    ended = await long.task(task)
    assert ended.status is Status.FAILURE
    assert f"has the file {taken(long)}" in str(ended.summary)


async def test_a_table_that_took_a_file_after_a_part_of_it_was_read_prevents_the_purge(long: Purges) -> None:
    task = await long.make_due()
    await cut_at_manifest(long)
    fixture = long.fixture.patient()
    await commit_files(fixture, await now(long.fixture), [taken(long)], name="n")
    await long.run()
    ended = await long.task(task)
    assert ended.status is Status.FAILURE
    assert f"has the file {taken(long)}" in str(ended.summary)


async def test_a_table_whose_manifests_are_rewritten_after_a_part_was_read_is_read_anew(long: Purges) -> None:
    file, task = taken(long), await long.make_due()
    await cut_at_manifest(long)
    await rewritten(long, keeps=file)
    await long.run()
    ended = await long.task(task)
    assert ended.status is Status.FAILURE
    assert f"has the file {file}" in str(ended.summary)


@pytest.mark.parametrize("stored", [b"garbage", None])
async def test_a_damaged_table_that_no_worker_has_time_to_read_whole_is_read_and_named(
    long: Purges, stored: bytes | None
) -> None:
    damaged = min(key for key in long.files() if key.endswith("-m0.avro") and "/t-" not in key)
    if stored is None:
        await long.store.delete(damaged)
    else:
        await long.store.put(damaged, stored, ANY)
    task = await long.make_due()
    for _ in range(2 * MANIFESTS):
        await cut_at_manifest(long)
        long.window_passes()  # for which the purge waits beside a missing file
    ended = await long.task(task)
    assert ended.status is Status.SUCCESS
    assert damaged in str(json.loads(str(ended.document["result_extended"]))["unread"])


async def test_a_worker_that_stops_before_the_first_table_was_read_counts_as_lost(many: Purges) -> None:
    task = await many.make_due()
    for _ in range(12):
        await cut(many, 1)
    assert (await many.task(task)).status is Status.FAILURE


async def test_a_table_that_has_changed_since_an_earlier_worker_read_it_is_read_again(many: Purges) -> None:
    task = await many.make_due()
    await cut(many, OTHERS)
    requests = [name for name in (f"n{number}" for number in range(OTHERS)) if await was_checked(many, task, name)]
    assert 0 < len(requests) < OTHERS
    await commit_files(many.fixture, await now(many.fixture, requests[0]), [taken(many)], name=requests[0])

    await many.run()

    ended = await many.task(task)
    assert ended.status is Status.FAILURE
    assert f"db.{requests[0]} (entity" in str(ended.summary)
    assert taken(many)


async def was_checked(purges: Purges, task: str, name: str) -> bool:
    """Whether the checkpoint names the table as checked."""
    requests = (await purges.task(task)).checkpoint["asked"]
    assert isinstance(requests, dict)
    return (await now(purges.fixture, name)).entity <= str(requests["after"])


async def test_a_table_that_has_not_changed_is_not_read_again(many: Purges) -> None:
    await many.drop()
    many.window_passes()
    await cut(many, OTHERS)
    read = len([call for call in many.store.calls if others_list(call)])
    await many.run()
    assert len([call for call in many.store.calls if others_list(call)]) < read + 5


async def test_neighbours_that_change_between_any_two_workers_do_not_keep_a_purge_from_its_end(many: Purges) -> None:
    """No worker lives long enough to read them all."""
    task = await many.make_due()
    runs = 0
    while (ended := await many.task(task)).status is not Status.SUCCESS and runs < 3 * OTHERS:
        await cut(many)
        for number in range(OTHERS):
            await many.fixture.patient().commit(set_property("run", str(runs)), f"n{number}")
        runs += 1

    assert (ended.status, ended.attempts) == (Status.SUCCESS, 0), ended.document
    assert runs <= 2 * (OTHERS // (CUT_AT - 1) + 1)


async def test_what_took_a_file_behind_a_round_of_several_workers_is_found_by_the_next(many: Purges) -> None:
    task = await many.make_due()
    for _ in range(2):
        await cut(many)
    assert await was_checked(many, task, "n0")
    assert not await was_checked(many, task, "n9")
    fixture = many.fixture.patient()
    await commit_files(fixture, await now(many.fixture, "n0"), [taken(many)], name="n0")
    await many.run()
    assert "db.n0 (entity" in str((await many.task(task)).summary)


async def test_others_are_read_beside_each_other(many: Purges, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "READ_AT_ONCE", 16)
    under_way, at_once = 0, list[int]()
    read = read_table

    async def counted(*arguments: Any) -> TableRead:
        nonlocal under_way
        under_way += 1
        at_once.append(under_way)
        try:
            return await read(*arguments)
        finally:
            under_way -= 1

    monkeypatch.setattr(sharing, "read_table", counted)
    assert (await many.purge()).status is Status.SUCCESS
    assert max(at_once) == OTHERS


async def test_a_slow_table_delays_no_other(many: Purges, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read when all others are."""
    monkeypatch.setattr(sharing, "READ_AT_ONCE", 2)
    others_read, names = asyncio.Event(), list[str]()
    read = read_table

    async def slow_first(sessions: Sessions, other: OtherTable, *rest: Any) -> TableRead:
        names.append(other.name)
        if len(names) == 1:
            await others_read.wait()
        found = await read(sessions, other, *rest)
        if len(names) == OTHERS:
            others_read.set()
        return found

    monkeypatch.setattr(sharing, "read_table", slow_first)
    async with asyncio.timeout(20):
        assert (await many.purge()).status is Status.SUCCESS
    assert len({*names}) == OTHERS


@pytest.mark.parametrize("kind", ["metadata file", "manifest list", "manifest"])
async def test_a_neighbour_that_cannot_be_read_stops_only_its_own_purge(beside: Purges, kind: str) -> None:
    await beside.drop()
    await beside.table("third")
    damaged = await led_to(beside, kind)
    await beside.store.put(damaged, b"garbage", ANY)

    task = await beside.purge("third")

    assert task.status is Status.SUCCESS
    unread = json.loads(str(task.document["result_extended"]))["unread"]
    assert [name.partition(" ")[0] for name in unread] == ["db.n"]
    assert damaged in str(unread)
    await beside.drop("n")
    beside.window_passes()
    await beside.run()
    assert (await beside.task(str((await beside.tombstone("n")).task))).status is Status.FAILURE


async def test_of_a_damaged_neighbour_all_else_is_read(beside: Purges) -> None:
    damaged = await led_to(beside, "manifest list")
    await commit_files(beside.fixture, await now(beside.fixture), [taken(beside)], name="n")
    await beside.store.put(damaged, b"garbage", ANY)
    task = await beside.purge()
    assert task.status is Status.FAILURE
    assert f"has the file {taken(beside)}" in str(task.summary)
