"""A purge reads of the other tables only those that have changed since another purge read them
(docs/design/purge.md#rule-27)."""

import asyncio

import pytest

from arco_catalog.iceberg.json import dumps, loads
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.load import load_table
from arco_catalog.planning.answers import TableState
from arco_catalog.planning.upkeep_settings import PurgeSettings
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state import file_directories
from arco_catalog.state.file_directories import DirectorySet, FileDirectories
from arco_catalog.state.task import Status
from arco_catalog.upkeep.purge import sharing
from arco_catalog.upkeep.purge.worker import task_worker
from storage_backends import ANY, Found
from storage_backends.memory import MemoryStore
from tests.support.fake_runtime import FakeRuntime
from tests.support.scripted_store import Rule, get
from tests.support.table_files import append, commit_files
from tests.upkeep.purge.conftest import DAY_MS, Purges
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.request_bodies import set_property
from tools.support.wrapped_stores import CountingStore

NEIGHBOURS = 300
SEGMENTS = 30
"""Calls at most to read a registry of so many tables, which is read several times."""


async def tables(purges: Purges, *names: str) -> None:
    """Tables with a file each."""
    for name in names:
        await append(purges.fixture, await purges.table(name), "a.parquet", name=name)


async def load(purges: Purges, name: str) -> TableState:
    return await load_table(purges.fixture.another().session(deadline_ms=DAY_MS), NS, name)


def a_file_of(purges: Purges, name: str) -> str:
    [file] = [key for key in purges.files(f"wh/warehouse/db/{name}-") if key.endswith("a.parquet")]
    return f"memory:///{file}"


def manifest_lists(purges: Purges, name: str) -> int:
    """How often a manifest list of a table was read."""
    return len([call for call in purges.store.calls if get("/snap-")(call) and f"/db/{name}-" in call.key])


def shards(purges: Purges) -> list[str]:
    return [*purges.store.keys("wh/_catalog/operational/file-directories/")]


class UncountedRenewals(FakeRuntime):
    """A clock on which no sleep ends: a purge alone does not pause, and renewals of its lease, which are due while a
    thread works, are not counted."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.Event().wait()


class CountedCatalog:
    """A catalog whose purges begin at once, and whose calls are counted."""

    def __init__(self) -> None:
        runtime = UncountedRenewals()
        self.store = CountingStore(MemoryStore(runtime.now_ms))
        self.fixture = CatalogFixture(self.store, runtime, Settings("wh", purge=PurgeSettings(undrop_window_ms=0)))

    async def table(self, name: str) -> None:
        await append(self.fixture, await self.fixture.table(name), "a.parquet", name=name)

    async def purge(self, name: str) -> int:
        """The calls of the purge of a table with one file."""
        await self.table(name)
        await drop_table(self.fixture.session(), NS, name, purge=True)
        with self.store.measure() as measured:
            assert await task_worker(self.fixture.another().catalog).run_due(lambda: False) == 1
        return measured.calls


async def test_a_second_purge_beside_300_unchanged_tables_lists_pointers_and_reads_shards() -> None:
    counted = CountedCatalog()
    await counted.fixture.namespace("db")
    alone = await counted.purge("t0")
    for number in range(NEIGHBOURS):
        await counted.table(f"n{number}")
    first = await counted.purge("t1")
    assert first > alone + 4 * NEIGHBOURS  # pointer, metadata file, manifest list, manifest
    assert await counted.purge("t2") <= alone + file_directories.SHARDS + SEGMENTS
    await counted.fixture.commit(set_property("a", "1"), "n7")
    assert await counted.purge("t3") <= alone + file_directories.SHARDS + SEGMENTS + 8  # that table and its shard


async def test_a_table_that_has_taken_a_file_since_it_was_recorded_prevents_the_purge(purges: Purges) -> None:
    await tables(purges, "t", "u", "n")
    assert (await purges.purge("u")).status is Status.SUCCESS
    await commit_files(purges.fixture, await load(purges, "n"), [a_file_of(purges, "t")], name="n")
    task = await purges.purge("t")
    assert task.status is Status.FAILURE
    assert "db.n (entity" in str(task.summary)


async def test_a_table_that_had_taken_a_file_when_it_was_recorded_prevents_the_purge(purges: Purges) -> None:
    await tables(purges, "t", "u", "n")
    await commit_files(purges.fixture, await load(purges, "n"), [a_file_of(purges, "t")], name="n")
    assert (await purges.purge("u")).status is Status.SUCCESS
    task = await purges.purge("t")
    assert task.status is Status.FAILURE
    assert f"has the file {a_file_of(purges, 't')}" in str(task.summary)


async def test_an_unchanged_table_is_not_read_again(purges: Purges) -> None:
    await tables(purges, "t", "u", "v", "n")
    assert (await purges.purge("u")).status is Status.SUCCESS
    read = manifest_lists(purges, "n")
    assert (await purges.purge("v")).status is Status.SUCCESS
    assert manifest_lists(purges, "n") == read > 0


@pytest.mark.parametrize(
    "body",
    [
        b"garbage",
        b"[]",
        b'{"version":2,"tables":{}}',
        b'{"version":1,"tables":{"ENTITY":{"pointer":7,"locations":[],"directories":[]}}}',
        b'{"version":1,"tables":{"ENTITY":{"pointer":"VERSION","locations":[]}}}',
        b'{"version":1,"tables":{"ENTITY":{"pointer":"VERSION","locations":[],"directories":[7]}}}',
        b'{"version":1,"tables":{"ENTITY":{"pointer":"VERSION","locations":[],"directories":"s3://b/x"}}}',
        b'{"version":1,"tables":{"ENTITY":{"pointer":"VERSION","locations":[],"directories":[],"widened":1}}}',
    ],
)
async def test_a_damaged_shard_is_ignored(purges: Purges, body: bytes) -> None:
    await tables(purges, "t", "u", "n")
    neighbour = await load(purges, "n")
    await commit_files(purges.fixture, neighbour, [a_file_of(purges, "t")], name="n")
    pointer = await purges.fixture.session().state.pointer(neighbour.entity)
    assert pointer is not None
    key = purges.fixture.session().state.paths.file_directories(file_directories.shard_of(neighbour.entity))
    filled = body.replace(b"ENTITY", neighbour.entity.encode()).replace(b"VERSION", str(pointer.version).encode())
    await purges.store.put(key, filled, ANY)
    assert (await purges.purge("u")).status is Status.SUCCESS
    assert (await purges.purge("t")).status is Status.FAILURE
    stored = await purges.store.get(key)
    assert isinstance(stored, Found)
    assert (stored.body == filled) is (b'"version":2' in body)  # that of a later version stays


async def test_a_table_that_has_other_locations_than_when_it_was_recorded_is_read(purges: Purges) -> None:
    await tables(purges, "u", "v", "n")
    assert (await purges.purge("u")).status is Status.SUCCESS
    for key in shards(purges):
        found = await purges.store.get(key)
        assert isinstance(found, Found)
        document = loads(found.body)
        assert isinstance(document, dict)
        for entry in document["tables"].values():  # type: ignore[union-attr]
            entry["locations"] = ["memory:///elsewhere"]  # type: ignore[index, call-overload]
        await purges.store.put(key, dumps(document), ANY)
    read = manifest_lists(purges, "n")
    assert (await purges.purge("v")).status is Status.SUCCESS
    assert manifest_lists(purges, "n") > read


KINDS = ["metadata file", "/snap-", "-m0.avro"]
"""Files of a table that a purge reads."""


async def a_file_of_kind(purges: Purges, name: str, kind: str) -> str:
    """The key of the current metadata file, of the manifest list, or of the first manifest of a table."""
    if kind == "metadata file":
        return (await load(purges, name)).metadata_location.removeprefix("memory:///")
    return min(key for key in purges.files(f"wh/warehouse/db/{name}-") if kind in key)


def reads_of(purges: Purges, name: str) -> list[str]:
    """The objects of a table that were read: its files and its pointer."""
    return [call.key for call in purges.store.calls if get(f"/db/{name}-")(call)]


@pytest.mark.parametrize("damage", ["garbage", "missing"])
@pytest.mark.parametrize("kind", KINDS)
async def test_of_a_damaged_table_that_has_not_changed_only_the_damaged_file_is_read(
    purges: Purges, kind: str, damage: str
) -> None:
    await tables(purges, "t", "u", "n")
    for number in range(5):
        await commit_files(purges.fixture, await load(purges, "n"), [f"memory:///f{number}"], name="n")
    key = await a_file_of_kind(purges, "n", kind)
    if damage == "garbage":
        await purges.store.put(key, b"garbage", ANY)
    else:
        await purges.drop("n", purge=False)
        await purges.store.delete(key)
    first = await purges.purge("t")
    purges.store.calls.clear()
    second = await purges.purge("u")
    assert reads_of(purges, "n") == [key]
    for task in (first, second):
        assert task.status is Status.SUCCESS
        assert ("db.n" in str(task.document["result_extended"])) is (damage == "garbage")


@pytest.mark.parametrize("kind", KINDS)
async def test_a_damaged_table_is_read_again_when_its_file_is_restored(purges: Purges, kind: str) -> None:
    await tables(purges, "t", "u", "n")
    await commit_files(purges.fixture, await load(purges, "n"), [a_file_of(purges, "t")], name="n")
    pointer = await load(purges, "n")
    damaged = await a_file_of_kind(purges, "n", kind)
    keys = [key for key in purges.files("wh/warehouse/db/n-") if kind in key] if kind != "metadata file" else [damaged]
    bodies = {key: (await purges.store.get(key)).body for key in keys}  # type: ignore[union-attr]
    for key in keys:
        await purges.store.put(key, b"garbage", ANY)
    assert (await purges.purge("u")).status is Status.SUCCESS
    for key, body in bodies.items():
        await purges.store.put(key, body, ANY)
    task = await purges.purge("t")
    assert task.status is Status.FAILURE
    assert f"has the file {a_file_of(purges, 't')}" in str(task.summary)
    assert (await load(purges, "n")).metadata_location == pointer.metadata_location


async def test_a_file_that_is_restored_while_its_table_is_read_is_not_recorded_as_damaged(purges: Purges) -> None:
    await tables(purges, "t", "u", "n")
    taken = a_file_of(purges, "t")
    await commit_files(purges.fixture, await load(purges, "n"), [taken], name="n")
    keys = [key for key in purges.files("wh/warehouse/db/n-") if "/snap-" in key]
    bodies = {key: (await purges.store.get(key)).body for key in keys}  # type: ignore[union-attr]
    for key in keys:
        await purges.store.put(key, b"garbage", ANY)

    async def restore() -> None:
        for key, body in bodies.items():
            await purges.store.put(key, body, ANY)

    purges.store.rules = [Rule(get(keys[-1]), then=restore, times=1)]
    assert (await purges.purge("u")).status is Status.SUCCESS
    task = await purges.purge("t")
    assert task.status is Status.FAILURE
    assert f"has the file {taken}" in str(task.summary)


async def test_a_table_with_too_many_damaged_files_is_read_again(purges: Purges) -> None:
    await tables(purges, "t", "u", "n")
    for number in range(file_directories.MAX_UNREAD_FILES):
        await commit_files(purges.fixture, await load(purges, "n"), [f"memory:///f{number}"], name="n")
    damaged = [key for key in purges.files("wh/warehouse/db/n-") if "/snap-" in key]
    for key in damaged:
        await purges.store.put(key, b"garbage", ANY)
    for name in ("t", "u"):
        purges.store.calls.clear()
        assert "db.n" in str((await purges.purge(name)).document["result_extended"])
        assert {*damaged} <= {*reads_of(purges, "n")}


async def test_entries_of_tables_that_are_no_more_are_removed(purges: Purges, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_directories, "SHARDS", 1)
    await tables(purges, "t", "u", "n", "o")
    entity = (await load(purges, "n")).entity
    assert (await purges.purge("t")).status is Status.SUCCESS
    state = purges.fixture.session().state
    assert entity in await file_directories.read_shard(state, 0)
    await purges.drop("n", purge=False)
    await purges.store.delete(state.paths.pointer(entity))
    await purges.fixture.commit(set_property("a", "1"), "o")
    assert (await purges.purge("u")).status is Status.SUCCESS
    assert entity not in await file_directories.read_shard(purges.fixture.session().state, 0)


async def test_a_worker_that_is_stopped_has_recorded_what_it_read_before(
    purges: Purges, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharing, "READ_AT_ONCE", 1)
    monkeypatch.setattr("arco_catalog.upkeep.purge.known_directories.WRITE_AFTER_TABLES", 1)
    await tables(purges, "t", "n1", "n2")
    [damaged] = [key for key in purges.files("wh/warehouse/db/n2-") if "/snap-" in key]
    await purges.store.delete(damaged)
    assert (await purges.purge("t")).status is Status.RETRY_SCHEDULED
    assert shards(purges)


def test_of_many_directories_the_deepest_are_replaced_by_those_around_them() -> None:
    directories = DirectorySet()
    for number in range(10_000):
        directories.add(f"s3://b/lake/day={number % 100}/hour={number}")
    for number in range(10):
        directories.add(f"s3://b/other/{number}")
    entry = directories.entry("7", ["s3://b/own"])
    assert entry == FileDirectories("7", ("s3://b/own",), ("s3://b/lake", "s3://b/other"), widened=True)
    assert entry.may_reach(["s3://b/lake/day=3/hour=3"])
    assert entry.may_reach(["s3://b/other"])
    assert entry.may_reach(["s3://b"])
    assert not entry.may_reach(["s3://b/lake2", "s3://c/lake"])
    assert FileDirectories.parse(entry.to_json()) == entry


def test_a_directory_that_is_not_widened_stands_for_the_files_directly_in_it() -> None:
    entry = FileDirectories("7", (), ("s3://b/lake",))
    assert not entry.may_reach(["s3://b/lake/t"])
    assert entry.may_reach(["s3://b/lake"])
    assert entry.may_reach(["s3://b"])


def test_a_table_in_too_many_buckets_is_not_recorded() -> None:
    directories = DirectorySet()
    for number in range(file_directories.MAX_DIRECTORIES + 1):
        directories.add(f"s3://bucket-{number}/a/b")
    assert directories.entry("7", []) is None
