"""Drawn programs over a catalog and a copy of it that was restored beside it: commits, lost tries, drops, purges and
collections in both (docs/recovery.md#copies). The copy removes no file, and the original stays whole."""

import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from arco_catalog.iceberg.errors import CatalogError, NoSuchTable
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.undrop import undrop
from arco_catalog.planning.upkeep_settings import PurgeSettings
from arco_catalog.protocol.catalog import Settings
from arco_catalog.protocol.copies import CatalogIsCopy
from arco_catalog.upkeep.collection.collect import collect
from arco_catalog.upkeep.purge.worker import task_worker
from arco_catalog.upkeep.reconcile import reconcile
from arco_catalog.upkeep.recovery.archive import Archive, ArchiveWriter
from arco_catalog.upkeep.recovery.backup import backup
from arco_catalog.upkeep.recovery.unpack import restore_backup
from storage_backends import StoreError
from tests.support.fake_runtime import ShortSleeps
from tests.support.scripted_store import DOWN, Call, Rule, ScriptedStore
from tests.support.table_files import append
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.request_bodies import set_property

DAY_MS = 24 * 60 * 60_000
FILES = "wh/warehouse/"
NAMES = ("a", "b", "c")
CLEANS = {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "1"}
PURGE = PurgeSettings(undrop_window_ms=0)


@dataclass
class CopyProgram:
    """One program, drawn from a seed."""

    seed: int
    file: Path
    deletes_b: bool = False
    """Whether the backup was made when the purge of b was about to delete."""
    draw: random.Random = field(init=False)
    store: ScriptedStore = field(init=False)
    clock: ShortSleeps = field(init=False)

    def __post_init__(self) -> None:
        self.draw, self.clock = random.Random(self.seed), ShortSleeps()
        self.store = ScriptedStore(self.clock.now_ms)
        self.original = CatalogFixture(self.store, self.clock, Settings("wh", purge=PURGE))
        self.copy = CatalogFixture(
            self.store, self.clock, Settings("copy", purge=PURGE), allowed=(f"memory:///{FILES}",)
        )

    async def run_beside(self) -> None:
        """A copy beside the living original, in which both go on."""
        await self._prepare()
        await restore_backup(self.copy.session(), await Archive.opened(self.file), dry=False)
        await self._undo_drops(self.original)
        for _ in range(12):
            await self._step(self.original)
            before = self._files()
            await self._step(self.copy)
            gone = before - self._files()
            assert not gone, f"seed {self.seed}: the copy deleted {sorted(gone)}"
        await self._require_whole(self.original)

    async def run_in_place(self) -> None:
        """The original is lost, and restored at its place: what it had committed by then is still there."""
        await self._prepare()
        before = {key for key in self._files() if key.endswith("metadata.json")}
        before -= {key for key in before if self.deletes_b and "/b-" in key}  # that purge goes on
        survivor = self.original.another()
        for number in range(self.draw.randrange(1, 4)):  # moves that the backup does not have
            await survivor.commit(set_property("p", str(number)), "c")
            await survivor.namespace(f"later{number}")
        for key in self.store.keys("wh/_catalog/"):
            await self.store.delete(key)
        await restore_backup(self.original.another().session(), await Archive.opened(self.file), dry=False)
        await self._require_current(survivor)
        await reconcile(self.original.another().session(deadline_ms=DAY_MS))
        for _ in range(3):
            self.clock.ms += 9 * DAY_MS
            await collect(self.original.another().session(deadline_ms=DAY_MS), delete=True)
            await task_worker(self.original.another().catalog).run_until_idle()
        gone = before - self._files()
        assert not gone, f"seed {self.seed}: the restored catalog deleted {sorted(gone)}"

    # Steps

    async def _prepare(self) -> None:
        await self.original.namespace(*NS)
        for name in NAMES:
            made = await self.original.table(name, properties={**CLEANS} if name == "a" else {})
            await append(self.original, made, f"{name}.parquet", name=name)
        for _ in range(self.draw.randrange(4)):
            await self._commit(self.original, self.draw.choice(NAMES))
        if self.draw.random() < 0.5:
            await self._back_up_during_a_purge()
        else:
            await self._back_up_during_commits()

    async def _back_up_during_commits(self) -> None:
        """Commits come between the backup's reads of pointers and of HEAD."""
        pointers = 0

        def is_read_of_head(call: Call) -> bool:
            nonlocal pointers
            pointers += call.method == "get" and "iceberg_pointers" in call.key
            return pointers > 0 and call.method == "get" and call.key == "wh/_catalog/core/manifest.json"

        self.store.rules = [
            Rule(is_read_of_head, first=lambda: self._commit(self.original, self.draw.choice(NAMES[1:])), times=1)
        ]
        await self._back_up()

    async def _back_up_during_a_purge(self) -> None:
        """A purge starts, reads a neighbour's metadata, and fails before it deletes: meanwhile the backup is
        made. Or it is made at the first delete, which may fail."""
        await drop_table(self.original.another().session(), NS, "b", purge=True)
        self.clock.ms += 2_000
        if self.draw.random() < 0.5:
            neighbour = max(key for key in self._files() if "/c-" in key and key.endswith("metadata.json"))
            self._at_first(lambda call: "get" in call.method and call.key == neighbour, DOWN)
            await task_worker(self.original.another().catalog).run_due(lambda: False)  # a later try would delete
        else:
            self.deletes_b = True
            fails = DOWN if self.draw.random() < 0.5 else None
            self._at_first(lambda call: "delete" in call.method and FILES in call.key, fails)
            await task_worker(self.original.another().catalog).run_until_idle()
        self.store.rules = []
        if not self.file.exists():
            await self._back_up()

    def _at_first(self, match: Callable[[Call], bool], fails: Exception | None = None) -> None:
        self.store.rules = [Rule(match, first=self._back_up, fails=fails, times=1)]

    async def _back_up(self) -> None:
        writer = ArchiveWriter(self.file)
        writer.begin({"id": "01", "of": "memory:", "made_ms": self.clock.now_ms(), "realm": False, "prefix": "wh/"})
        try:
            await backup(self.original.another().session(deadline_ms=DAY_MS), None, writer)
        finally:
            writer.abandon()
            self.store.rules = []

    async def _undo_drops(self, fixture: CatalogFixture) -> None:
        for name in NAMES:
            await _attempt(undrop(fixture.another().session(), NS, name))

    async def _step(self, fixture: CatalogFixture) -> None:
        name = self.draw.choice(NAMES)
        copies = fixture is self.copy
        steps: list[Callable[[], Awaitable[object]]] = [
            lambda: self._commit(fixture, name),
            lambda: self._commit(fixture, "a"),
            lambda: self._lose_a_try(fixture, name),
            lambda: self._collect(fixture),
            lambda: self._collect(fixture),
            lambda: self._work(fixture),
            lambda: drop_table(fixture.another().session(), NS, name, purge=copies),
            lambda: undrop(fixture.another().session(), NS, name),
        ]
        self.clock.ms += self.draw.choice((1_000, 60_000, DAY_MS, 9 * DAY_MS))
        await _attempt(self.draw.choice(steps)())

    async def _commit(self, fixture: CatalogFixture, name: str) -> None:
        for _ in range(self.draw.randrange(1, 4)):
            await _attempt(fixture.another().commit(set_property("p", str(self.draw.random())), name))

    async def _lose_a_try(self, fixture: CatalogFixture, name: str) -> None:
        """The pointer's swap never reaches the store."""
        self.store.rules = [Rule(lambda call: call.method == "put" and "iceberg_pointers" in call.key, fails=DOWN)]
        try:
            await _attempt(fixture.another().commit(set_property("p", str(self.draw.random())), name))
        finally:
            self.store.rules = []

    async def _collect(self, fixture: CatalogFixture) -> None:
        try:
            await collect(fixture.another().session(deadline_ms=DAY_MS), delete=True)
        except CatalogIsCopy:
            assert fixture is self.copy

    async def _work(self, fixture: CatalogFixture) -> None:
        for _ in range(2):
            await task_worker(fixture.another().catalog).run_until_idle()
            self.clock.ms += 400_000

    # What is required

    def _files(self) -> set[str]:
        return {*self.store.keys(FILES)}

    async def _require_current(self, survivor: CatalogFixture) -> None:
        """A process that lived through the restore caches the restored HEAD, by which it judges rights, and commits."""
        state = survivor.session().state
        stored, cached = await state.head(), state.cached_head()
        assert cached is not None
        assert cached.version == stored.version, f"seed {self.seed}: a process judges by a HEAD of before the restore"
        await survivor.commit(set_property("survivor", "1"), "c")

    async def _require_whole(self, fixture: CatalogFixture) -> None:
        """Every table of the catalog can be committed to, after drops were undone that can be."""
        await self._undo_drops(fixture)
        for name in NAMES:
            with suppress(NoSuchTable):
                await fixture.another().commit(set_property("last", "1"), name)


async def _attempt(step: Awaitable[object]) -> None:
    """What a client is refused is no fault here."""
    try:
        await step
    except (CatalogError, StoreError):
        return
