"""A backup holds one consistent state of a catalog, whatever was written while it was made
(docs/recovery.md#backups)."""

import asyncio
import json
import random
import tarfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from arco_catalog.iceberg.errors import AlreadyExists, BadRequest, CatalogError, NoSuchTable
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.generic_tables import GenericTable, create_generic_table
from arco_catalog.operations.governance import (
    govern_namespace,
    govern_relation,
    namespace_governance,
    relation_governance,
)
from arco_catalog.operations.history import history
from arco_catalog.operations.inspect import inspect_relation
from arco_catalog.operations.load import load_table
from arco_catalog.operations.register import register_table
from arco_catalog.operations.semantic_models import create_semantic_model
from arco_catalog.operations.transaction import commit_transaction
from arco_catalog.operations.undrop import undrop
from arco_catalog.planning.answers import TableState
from arco_catalog.planning.upkeep_settings import PurgeSettings
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state.fields import sequence
from arco_catalog.state.registry import RegistryState
from arco_catalog.state.spilling import Limits
from arco_catalog.tasks.worker import Worker
from arco_catalog.upkeep.fsck.check import check
from arco_catalog.upkeep.fsck.examination import Examination
from arco_catalog.upkeep.purge.deletion import Deletion
from arco_catalog.upkeep.purge.worker import task_worker
from arco_catalog.upkeep.reconcile import reconcile
from arco_catalog.upkeep.recovery import archive as archives
from arco_catalog.upkeep.recovery.archive import Archive, ArchiveWriter
from arco_catalog.upkeep.recovery.backup import CatalogBackup, backup
from arco_catalog.upkeep.recovery.unpack import restore_backup
from storage_backends import ABSENT, Found, Unchanged
from storage_backends.memory import MemoryStore
from storage_backends.s3.store import S3Store
from tests.support.fake_runtime import FakeRuntime
from tests.support.followed import follow
from tests.support.scripted_store import Rule, ScriptedStore
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.request_bodies import set_property
from tools.support.s3_servers import S3Server

HOUR_MS = 60 * 60_000


def a_catalog(settings: Settings | None = None) -> CatalogFixture:
    clock = FakeRuntime()
    return CatalogFixture(MemoryStore(now_ms=clock.now_ms), clock, settings or Settings("wh"))


def clock_of(fixture: CatalogFixture) -> FakeRuntime:
    assert isinstance(fixture.runtime, FakeRuntime)
    return fixture.runtime


async def backed_up(fixture: CatalogFixture, file: Path) -> JsonObject:
    """Makes a backup by a process of its own."""
    writer = ArchiveWriter(file)
    writer.begin({"id": "01", "of": "memory:", "made_ms": fixture.runtime.now_ms(), "realm": False, "prefix": "wh/"})
    try:
        return await backup(fixture.another().session(deadline_ms=24 * HOUR_MS), None, writer)
    finally:
        writer.abandon()


async def restored(file: Path, of: CatalogFixture, warehouse: str = "wh") -> CatalogFixture:
    """A catalog elsewhere, made out of an archive. The files of tables are the same."""
    clock = FakeRuntime()
    clock.ms = of.runtime.now_ms()
    assert isinstance(of.store, MemoryStore)
    elsewhere = CatalogFixture(MemoryStore(now_ms=clock.now_ms), clock, Settings(warehouse))
    await restore_backup(elsewhere.session(), await Archive.opened(file), dry=False)
    for key in of.store.keys("wh/warehouse/"):
        found = await of.store.get(key)
        assert isinstance(found, Found)
        await elsewhere.store.put(key, found.body, ABSENT)
    clock.ms += HOUR_MS
    return elsewhere


def names_in(folder: Path) -> list[str]:
    return [each.name for each in folder.iterdir()]


async def codes(fixture: CatalogFixture) -> list[str]:
    return [f"{each.code} {each.where}" async for each in check(Examination(fixture.another().session()))]


async def property_of(fixture: CatalogFixture, table: str, name: str) -> str | None:
    """A property of a table; None if there is no such table, or it has none."""
    try:
        answer = await load_table(fixture.another().session(), NS, table)
    except NoSuchTable:
        return None
    assert isinstance(answer, TableState)
    value = json.loads(answer.metadata)["properties"].get(name)
    assert value is None or isinstance(value, str)
    return value


async def a_lived_in_catalog(fixture: CatalogFixture) -> None:
    await fixture.namespace(*NS)
    for name in ("a", "b", "old", "gone"):
        made = await fixture.table(name, key=fixture.key())
        clock_of(fixture).ms += 1_000
        await fixture.commit(set_property("p", name), name, key=fixture.key())
    await commit_transaction(
        fixture.session({}, key=fixture.key(), path="/transactions"),
        [(NS, "a", set_property("q", "1")), (NS, "b", set_property("q", "1"))],
    )
    await follow(fixture, made)
    for name in ("a", "old"):
        await govern_relation(fixture.session(), NS, name, "table", {"arco.owner": name, "arco.column.1.tag.pii": "x"})
    await govern_namespace(fixture.session(), NS, {"arco.owner": "ada"})
    await create_semantic_model(fixture.session(), NS, "m", {"version": "0.1.1", "semantic_model": "{}"})
    await create_generic_table(fixture.session(), NS, GenericTable("g", "delta", None, "what it is", {}))
    for name in ("gone", "old"):
        await drop_table(fixture.session(), NS, name, purge=False)
    await register_table(fixture.session(), NS, "r", made.metadata_location, overwrite=False)
    await reconcile(fixture.session())


async def test_a_catalog_made_of_a_backup_is_what_was_backed_up(tmp_path: Path) -> None:
    fixture = a_catalog(Settings("wh", spill=Limits(embedded=900, segment=800, least=200)))
    await a_lived_in_catalog(fixture)
    clock_of(fixture).ms += 60_000

    made = await backed_up(fixture, tmp_path / "b.tar.gz")
    elsewhere = await restored(tmp_path / "b.tar.gz", fixture)

    assert await codes(elsewhere) == []
    for name in ("a", "b", "r", "old", "g"):
        here = await inspect_relation(fixture.another().session(), NS, name)
        there = await inspect_relation(elsewhere.another().session(), NS, name)
        assert here == there
    [held] = sequence(made, "registries")
    assert isinstance(held, dict)
    assert (held["pointers"], held["pointers_missing"], held["pointers_read_again"]) == (5, [], 0)
    kinds = [operation["kind"] async for operation in history(elsewhere.session())]
    assert kinds[0] == "restore"
    assert kinds[1:] == [operation["kind"] async for operation in history(fixture.session())]
    await undrop(elsewhere.session(), NS, "old")
    for name in ("a", "old"):
        there = await relation_governance(elsewhere.session(), NS, name, "table")
        assert there == {"arco.owner": name, "arco.column.1.tag.pii": "x"}
    assert await namespace_governance(elsewhere.session(), NS) == {"arco.owner": "ada"}
    await elsewhere.commit(set_property("p", "2"), "a")
    assert await property_of(elsewhere, "a", "p") == "2"


async def test_an_answer_is_remembered_by_the_restored_catalog(tmp_path: Path) -> None:
    fixture = a_catalog()
    await fixture.namespace(*NS)
    await fixture.table("a")
    key = fixture.key()
    done = await fixture.commit(set_property("p", "1"), "a", key=key)
    await backed_up(fixture, tmp_path / "b.tar.gz")
    elsewhere = await restored(tmp_path / "b.tar.gz", fixture)

    again = await elsewhere.commit(set_property("p", "1"), "a", key=key)

    assert again.metadata_location == done.metadata_location


async def test_a_backup_that_was_cut_short_or_changed_is_refused(tmp_path: Path) -> None:
    fixture = a_catalog()
    await a_lived_in_catalog(fixture)
    await backed_up(fixture, tmp_path / "b.tar.gz")
    whole = (tmp_path / "b.tar.gz").read_bytes()
    cut, foreign, partial = tmp_path / "cut", tmp_path / "foreign", tmp_path / "partial"
    cut.write_bytes(whole[: len(whole) * 2 // 3])
    foreign.write_bytes(b"not a backup")
    with tarfile.open(tmp_path / "b.tar.gz") as source, tarfile.open(partial, "w:gz") as target:
        for place, info in enumerate(source):
            if place != 5:
                target.addfile(info, source.extractfile(info))

    for file in (cut, foreign, partial):
        with pytest.raises(BadRequest):
            await Archive.opened(file)


async def test_nothing_is_restored_over_a_catalog_and_a_run_that_was_stopped_goes_on(tmp_path: Path) -> None:
    fixture = a_catalog()
    await a_lived_in_catalog(fixture)
    await backed_up(fixture, tmp_path / "b.tar.gz")
    read = await Archive.opened(tmp_path / "b.tar.gz")
    with pytest.raises(AlreadyExists):
        await restore_backup(fixture.session(), read, dry=False)
    elsewhere = a_catalog()
    store = elsewhere.store
    assert isinstance(store, MemoryStore)
    assert (await restore_backup(elsewhere.session(), read, dry=True))["registries"] == []
    assert store.keys("") == []
    stopped = asyncio.ensure_future(restore_backup(elsewhere.session(), read, dry=False))
    for _ in range(10_000):
        await asyncio.sleep(0)
        if len(store.keys("")) > 10:
            break
    stopped.cancel()
    await asyncio.gather(stopped, return_exceptions=True)
    assert "wh/_catalog/core/manifest.json" not in store.keys("")

    await restore_backup(elsewhere.session(), read, dry=False)

    assert "wh/_catalog/core/manifest.json" in store.keys("")


async def test_on_s3_a_server_that_ran_on_shows_and_changes_what_was_restored(
    s3_server: S3Server, s3_bucket: str, tmp_path: Path
) -> None:
    """Versions are digests of bodies there: a restored pointer has its old version again, and HEAD a new one."""
    store = S3Store(s3_bucket, config=s3_server.config)
    fixture = CatalogFixture(store, settings=Settings("wh"), url=f"s3://{s3_bucket}")
    await fixture.namespace(*NS)
    backed = await fixture.table("a")
    paths = fixture.session().state.paths
    head, pointer = await store.get(paths.manifest), await store.get(paths.pointer(backed.entity))
    idle = fixture.another()
    await load_table(idle.session(), NS, "a")
    await backed_up(fixture, tmp_path / "b.tar.gz")
    await fixture.commit(set_property("p", "later"), "a")
    await fixture.table("later")
    page = await store.list("wh/_catalog/")
    await store.delete_many([entry.key for entry in page.entries])

    await restore_backup(fixture.another().session(), await Archive.opened(tmp_path / "b.tar.gz"), dry=False)

    assert isinstance(head, Found)
    assert isinstance(await store.get(paths.manifest, head.version), Found)
    assert isinstance(pointer, Found)
    assert isinstance(await store.get(paths.pointer(backed.entity), pointer.version), Unchanged)
    for server in (idle, fixture):
        shown = await load_table(server.session(), NS, "a")
        assert isinstance(shown, TableState)
        assert shown.metadata_location == backed.metadata_location
        with pytest.raises(NoSuchTable):
            await load_table(server.session(), NS, "later")
    for number, server in enumerate((fixture, idle)):
        await server.commit(set_property("p", str(number)), "a")
        assert await property_of(fixture, "a", "p") == str(number)
    assert await codes(fixture) == []
    await store.close()


async def test_an_archive_is_never_overwritten_and_a_failed_backup_leaves_none(tmp_path: Path) -> None:
    fixture = a_catalog()
    await a_lived_in_catalog(fixture)
    (tmp_path / "b.tar.gz").write_text("mine")
    with pytest.raises(FileExistsError):
        await backed_up(fixture, tmp_path / "b.tar.gz")
    await fixture.store.delete("wh/_catalog/core/manifest.json")
    with pytest.raises(CatalogError, match=r"manifest\.json is missing"):
        await backed_up(fixture, tmp_path / "c.tar.gz")
    assert names_in(tmp_path) == ["b.tar.gz"]


async def test_a_purge_that_had_not_begun_is_taken_back(tmp_path: Path) -> None:
    fixture = a_catalog(Settings("wh", purge=PurgeSettings(undrop_window_ms=HOUR_MS)))
    await a_lived_in_catalog(fixture)
    await drop_table(fixture.session(), NS, "a", purge=True)
    await backed_up(fixture, tmp_path / "b.tar.gz")

    elsewhere = await restored(tmp_path / "b.tar.gz", fixture)

    shown = await inspect_relation(elsewhere.session(), NS, "a")
    assert (shown["state"], shown["purge_task"], shown["purge_after_ms"]) == ("dropped", None, None)
    await undrop(elsewhere.session(), NS, "a")


async def test_a_purge_that_had_begun_goes_on_and_leaves_what_came_to_its_place_since(tmp_path: Path) -> None:
    """The original catalog has ended the purge, and another table was made at its place."""
    settings = Settings("wh", purge=PurgeSettings(undrop_window_ms=0, whole_location=True))
    fixture = a_catalog(settings)
    await fixture.namespace(*NS)
    made = await fixture.table("a")
    await drop_table(fixture.session(), NS, "a", purge=True)
    stopped = pytest.raises(RuntimeError, match="it is stopped")
    with pytest.MonkeyPatch.context() as patch, stopped:
        patch.setattr(Deletion, "_data", stops)  # its checkpoint is written
        patch.setattr(Worker, "_retry", raises)
        await task_worker(fixture.another().catalog).run_due(lambda: False)
    await backed_up(fixture, tmp_path / "b.tar.gz")
    place = made.metadata_location.partition("/metadata/")[0].removeprefix("memory:///")
    await fixture.store.put(f"{place}/data/of-another-table.parquet", b"new", ABSENT)

    elsewhere = await restored(tmp_path / "b.tar.gz", fixture)
    elsewhere = CatalogFixture(elsewhere.store, elsewhere.runtime, settings)
    for _ in range(3):
        await task_worker(elsewhere.another().catalog).run_due(lambda: False)
        clock_of(elsewhere).ms += HOUR_MS

    shown = await inspect_relation(elsewhere.session(), NS, "a")
    assert shown["state"] == "purged"
    assert isinstance(elsewhere.store, MemoryStore)
    assert [*elsewhere.store.keys(f"{place}/")] == [f"{place}/data/of-another-table.parquet"]


async def stops(*_: object) -> None:
    raise RuntimeError("it is stopped")


async def raises(worker: Worker, execution: object, executor: object, error: Exception) -> None:
    raise error


async def test_what_is_missing_in_the_catalog_is_reported_as_missing(tmp_path: Path) -> None:
    fixture = a_catalog()
    await fixture.namespace(*NS)
    made = await fixture.table("a")
    await fixture.store.delete(f"wh/_catalog/iceberg_pointers/{made.entity}.json")

    report = await backed_up(fixture, tmp_path / "b.tar.gz")

    [held] = sequence(report, "registries")
    assert isinstance(held, dict)
    assert held["pointers_missing"] == [made.entity]


async def test_the_archive_is_read_and_written_a_bounded_number_of_objects_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "AT_ONCE", 3)
    fixture = a_catalog()
    await a_lived_in_catalog(fixture)
    await backed_up(fixture, tmp_path / "b.tar.gz")

    sizes = [len(members) async for members in (await Archive.opened(tmp_path / "b.tar.gz")).objects()]

    assert max(sizes) == 3
    assert (tmp_path / "b.tar.gz").stat().st_mode & 0o777 == 0o600


# Beside live writers


MIXED = ("a", "b", "both", "both", "create", "drop")
SINGLE = ("a", "b", "a", "b", "create")  # what a transaction changes is read again, which hides what was read too early


@dataclass
class Writers:
    """Clients that keep writing, with the acknowledged results: a counter for each table, one of transactions over
    both, and the created names."""

    fixture: CatalogFixture
    chance: random.Random
    kinds: tuple[str, ...]
    done: dict[str, int] = field(default_factory=lambda: {"a": 0, "b": 0, "both": 0})
    made: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def step(self) -> None:
        """One request, by a process of its own; one at a time."""
        async with self.turn:
            await self._step()

    async def _step(self) -> None:
        what = self.chance.choice(self.kinds)
        fixture = self.fixture.another()
        clock_of(fixture).ms += self.chance.choice((1, 50, 7_000))
        key = fixture.key() if self.chance.random() < 0.5 else None
        if what == "create":
            name = f"n{len(self.made)}"
            await fixture.table(name, key=key)
            self.made.append(name)
        elif what == "drop":
            live = [name for name in self.made if name not in self.dropped]
            if live:
                await drop_table(fixture.session(), NS, live[0], purge=False)
                self.dropped.append(live[0])
        elif what == "both":
            value = set_property("q", str(self.done["both"] + 1))
            session = fixture.session({}, key=key, path="/transactions")
            await commit_transaction(session, [(NS, "a", value), (NS, "b", value)])
            self.done["both"] += 1
        else:
            await fixture.commit(set_property("p", str(self.done[what] + 1)), what, key=key)
            self.done[what] += 1


async def judge_a_backup_beside_writers(seed: int, folder: Path) -> int:
    """Makes a backup while others write, and judges the catalog made of it. Returns how many requests were made
    meanwhile."""
    chance = random.Random(seed)
    clock = FakeRuntime()
    store = ScriptedStore(clock.now_ms)
    fixture = CatalogFixture(store, clock)
    await fixture.namespace(*NS)
    for name in ("a", "b"):
        await fixture.table(name)
    writers = Writers(fixture, chance, MIXED if seed % 2 else SINGLE)
    for _ in range(10):
        await writers.step()
    before, made, dropped = dict(writers.done), [*writers.made], [*writers.dropped]
    store.rules = [Rule(lambda call: call.method == "get" and chance.random() < 0.2, first=writers.step, times=30)]
    file = folder / f"{seed}.tar.gz"
    await backed_up(fixture, file)
    store.rules = []
    elsewhere = await restored(file, fixture)
    await reconcile(elsewhere.session())
    clock_of(elsewhere).ms += HOUR_MS

    assert await codes(elsewhere) == []
    for name in ("a", "b"):
        value = int(await property_of(elsewhere, name, "p") or 0)
        assert before[name] <= value <= writers.done[name], f"{name} is at {value}: {before} to {writers.done}"
    both = [int(await property_of(elsewhere, name, "q") or 0) for name in ("a", "b")]
    assert both[0] == both[1], f"half of a transaction is in the backup: {both}"
    assert before["both"] <= both[0] <= writers.done["both"]
    for name in made:
        shown = await inspect_relation(elsewhere.another().session(), NS, name)
        assert name in dropped or name in writers.dropped or shown["state"] == "live"
        assert name not in dropped or shown["state"] == "dropped"
    await elsewhere.commit(set_property("p", "later"), "a", key=elsewhere.key())
    return sum(writers.done.values()) - sum(before.values())


@pytest.mark.parametrize("seed", range(12))
async def test_a_backup_beside_live_writers_is_consistent(seed: int, tmp_path: Path) -> None:
    assert await judge_a_backup_beside_writers(seed, tmp_path) > 0


def what_was_done_read_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Receipts, markers and tasks are read after the pointers."""
    original = CatalogBackup._add_listed
    later: list[tuple[CatalogBackup, str]] = []

    async def put_off(self: CatalogBackup, prefix: str, *more: Any, **named: Any) -> None:
        if prefix in (self.state.paths.markers, self.state.paths.events) and not named:
            later.append((self, prefix))
            return
        await original(self, prefix, *more, **named)
        if prefix == self.state.paths.pointers:
            while later:
                await original(*later.pop())

    monkeypatch.setattr(CatalogBackup, "_add_listed", put_off)


def transactions_torn(monkeypatch: pytest.MonkeyPatch) -> None:
    """No receipt of a commit during the backup is requested."""

    async def none(self: CatalogBackup) -> None:
        return None

    monkeypatch.setattr(CatalogBackup, "_members_of_new_transactions", none)


def what_was_made_since_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pointers of tables that are newer than the listing are not added."""

    async def nothing(self: CatalogBackup, head: RegistryState) -> list[str]:
        return []

    monkeypatch.setattr(CatalogBackup, "_add_missing_pointers", nothing)


@pytest.mark.parametrize("bug", [what_was_done_read_late, transactions_torn, what_was_made_since_left_out])
async def test_another_order_of_reading_is_found(
    bug: Callable[[pytest.MonkeyPatch], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def every() -> None:
        for seed in range(25):
            await judge_a_backup_beside_writers(seed, tmp_path)

    bug(monkeypatch)
    with pytest.raises((AssertionError, CatalogError)):
        await every()
