"""The event feed in the simulated world: two sequencers and two consumers, who are killed, beside changes that are
drawn from the seed. The feed is held against what the store held in each instant (docs/design/events.md)."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from arco_catalog.iceberg.errors import BadRequest, CatalogError
from arco_catalog.iceberg.json import JsonObject, dumps, loads
from arco_catalog.operations.commit import commit_table, commit_view
from arco_catalog.operations.create import create_table, create_view
from arco_catalog.operations.drop import drop_table, drop_view
from arco_catalog.operations.feed import NoSuchFeed, read_feed
from arco_catalog.operations.namespaces import create_namespace, drop_namespace
from arco_catalog.operations.register import register_table, register_view
from arco_catalog.operations.rename import rename_table, rename_view
from arco_catalog.operations.transaction import TableChange, commit_transaction
from arco_catalog.operations.undrop import undrop
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state import feed_cursors
from arco_catalog.state.entries import has_pointer
from arco_catalog.state.feed import FeedRecord
from arco_catalog.state.feed_cursors import entities_of
from arco_catalog.state.fields import objects, optional_text, text
from arco_catalog.state.paths import Paths, commit_key
from arco_catalog.state.pointer import Pointer
from arco_catalog.state.registry import RegistryState
from arco_catalog.tasks.feed_stats import FeedStats
from arco_catalog.upkeep.collection.collect import collect
from arco_catalog.upkeep.feed import commit_chain, sequencer
from arco_catalog.upkeep.feed.sequencer import Sequencer
from arco_catalog.upkeep.purge.worker import task_worker
from arco_catalog.upkeep.reconcile import reconcile
from arco_catalog.upkeep.recovery.archive import Archive, ArchiveWriter
from arco_catalog.upkeep.recovery.backup import backup
from arco_catalog.upkeep.recovery.unpack import restore_backup
from storage_backends import ANY, StoreError, Version
from tests.simulation.bucket import Stored
from tests.simulation.clients import EAGER, build_from_nothing
from tests.simulation.collecting import RETENTION, SETTINGS
from tests.simulation.explore import Scenario
from tests.simulation.history import Event
from tests.simulation.world import DIED, Process, World
from tests.support.registry_versions import raise_version
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.request_bodies import schema, set_property, view_request

PATHS = Paths("wh")
_BASE = "base_metadata_location"
TRANSACTIONS = PATHS.transaction("").removesuffix(".json")
TABLES = ("a", "b", "c")
NAMES = (*TABLES, "d", "e")
VIEWS = ("v", "w")
CHANGES = 6
"""What each writer does."""
COLLECTING = replace(SETTINGS, retention=replace(RETENTION, receipts_ms=60_000))
KEEPING_RECEIPTS = replace(SETTINGS, retention=replace(RETENTION, receipts_ms=3_600_000, undrop_ms=20_000))
WEEK_S = 7 * 24 * 3_600.0


@dataclass
class Truth:
    """What happened, by what was stored in each instant: the operations of the registry, in the order of HEADs, and the
    files of each table in the order in which they became current."""

    world: World
    operations: list[tuple[int, str]] = field(default_factory=list)
    """The sequence numbers of commits, and the ids of their operations."""
    files: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    before_drops: list[tuple[str, str, str]] = field(default_factory=list)
    """Files that were current when a table was dropped: the entity, the location, and the id of the drop."""
    named: set[str] = field(default_factory=set)
    tables: set[str] = field(default_factory=set)
    views: set[str] = field(default_factory=set)
    registered: set[str] = field(default_factory=set)
    """Tables and views whose first file is none of their own commits."""
    _head: str | None = None
    _heads: dict[str, tuple[str | None, int, list[str]]] = field(default_factory=dict)
    """By ids of HEADs their parents, sequence numbers and operations."""

    def chain(self) -> list[tuple[int, str]]:
        """The operations in the history of the present HEAD."""
        found: list[tuple[int, str]] = []
        at = self._head
        while at is not None and at in self._heads:
            at, sequence, operations = self._heads[at]
            found += [(sequence, name) for name in operations]
        return found

    def see(self, event: Event) -> None:
        """One applied write or delete."""
        if self.world.peek(PATHS.manifest) is None:
            return  # all is lost, or not yet restored
        if event.key == PATHS.manifest:
            self._see_head()
        elif event.key.startswith((PATHS.pointers, TRANSACTIONS)):
            self._see_files()

    def _see_head(self) -> None:
        body = self.world.peek(PATHS.manifest)
        assert body is not None
        head = RegistryState.parse(body, Version("now"), PATHS.manifest)
        if head.id == self._head:
            return
        self._head = head.id
        assert head.id is not None
        operations = objects(head.document, "operations")
        self._heads[head.id] = (
            optional_text(head.document, "parent"),
            head.sequence,
            [text(each, "id") for each in operations],
        )
        for operation in operations:
            self.operations.append((head.sequence, text(operation, "id")))
            kind, dropped = text(operation, "kind"), optional_text(operation, "replaced")
            if kind in ("drop-table", "drop-view"):
                dropped = text(operation, "entity")
            if kind in ("register-table", "register-view"):
                self.registered.add(text(operation, "entity"))
            if dropped is not None:
                self.before_drops.append((dropped, self.files[dropped][-1], text(operation, "id")))
        for key, entry in head.index.edits.items():
            if entry is not None and key.startswith(("relation\n", "tombstone\n")) and has_pointer(entry):
                transaction = optional_text(entry, "transaction")
                if transaction is None or self._has_committed(transaction):
                    self.named.add(text(entry, "entity"))
        self._see_files()

    def _see_files(self) -> None:
        for entity in self._existing():
            body = self.world.peek(PATHS.pointer(entity))
            if body is None:
                continue
            pointer = Pointer.parse(body, Version("now"), entity)
            (self.views if pointer.document["type"] == "view" else self.tables).add(entity)
            if pointer.intent is not None:
                pointer = pointer.resolved(self._has_committed(pointer.intent))
            location = pointer.metadata.location
            if self.files[entity][-1:] != [location]:
                self.files[entity].append(location)

    def _existing(self) -> set[str]:
        body = self.world.peek(PATHS.manifest)
        assert body is not None
        head = RegistryState.parse(body, Version("now"), PATHS.manifest)
        for key, entry in head.index.edits.items():
            if entry is None or not key.startswith("relation\n") or "transaction" not in entry:
                continue
            if self._has_committed(text(entry, "transaction")):
                self.named.add(text(entry, "entity"))
        return self.named

    def _has_committed(self, transaction: str) -> bool:
        body = self.world.peek(PATHS.transaction(transaction))
        found = None if body is None else loads(body)
        return isinstance(found, dict) and found["status"] == "committed"


class FeedClients:
    """Processes that change the catalog, that fill its feed, and that read it."""

    def __init__(self, world: World, settings: Settings = EAGER) -> None:
        self.world = world
        self.truth = Truth(world)
        self.read: dict[str, list[FeedRecord]] = {}
        """What consumers got, by their names."""
        self.tokens: dict[str, str | None] = {}
        self.got: Counter[str] = Counter()
        self.writing = True
        self.loses = False
        """Whether a history is lost, after a consumer may have read it."""
        self.only_tables = False
        """Whether no views and no registrations are drawn."""
        self.purges = False
        """Whether some drops purge."""
        self.drawn = (0.0, 1.0)
        """From which numbers changes are drawn."""
        self.slowness = 1.0
        """How many times longer than usual sequencers and consumers pause."""
        self.paused = False
        """Whether no sequencer begins a step."""
        self._stepping: set[str] = set()
        self._set_back = ""
        """The pointer that was set back last."""
        self._settings = settings
        self._fixtures: dict[str, CatalogFixture] = {}
        self._numbers = count(1)

    def fixture(self, process: Process) -> CatalogFixture:
        """The catalog as this process serves it, with all that it remembers."""
        if process.name not in self._fixtures:
            self._fixtures[process.name] = CatalogFixture(process.store, process.runtime, self._settings)
        return self._fixtures[process.name]

    def random(self) -> float:
        return self.world.runtime.random()

    async def set_up(self, *, proposals: bool = False) -> None:
        await self.make(proposals=proposals)
        self.world.observe(self.truth.see)

    async def make(self, *, proposals: bool = False) -> None:
        """Makes the catalog, with its first tables."""
        fixture = self.fixture(self.world.process("setup", skew_ms=0))
        await fixture.namespace(*NS)
        if proposals:
            await raise_version(fixture.session().state)
        for name in TABLES:
            await fixture.table(name)
        self.truth._see_head()

    def draw(self, names: Sequence[str], number: int) -> list[str]:
        """So many of the names, in any order."""
        left = [*names]
        return [left.pop(int(self.random() * len(left))) for _ in range(number)]

    # Writers

    async def write(self, name: str, changes: int, pause_s: float) -> None:
        """One writer's changes, one after the other. Whatever comes of them is right here."""
        for _ in range(changes):
            process = self.world.process(name, self._skew(name))
            with suppress(CatalogError, StoreError):
                if await process.run(self._change(self.fixture(process))) is DIED:
                    name += "+"
            await self.world.runtime.sleep(pause_s * self.random())

    def _skew(self, name: str) -> int | None:
        """Some machines are hours off."""
        return {"w1": 3 * 3_600_000, "w2": -5 * 3_600_000, "s2": 40 * 3_600_000}.get(name.rstrip("+"))

    async def _change(self, fixture: CatalogFixture) -> None:
        least, above = self.drawn
        number, drawn = next(self._numbers), least + (above - least) * self.random()
        body: JsonObject = set_property("by", str(number))
        first, second, third = self.draw(NAMES, 3)
        path = f"/{number}"
        if drawn < 0.34:
            await commit_table(fixture.session(body, path=path), NS, first, body)
        elif drawn < 0.4 and not self.only_tables:
            await self._change_view(fixture, path, body)
        elif drawn < 0.4:
            await commit_table(fixture.session(body, path=path), NS, first, body)
        elif drawn < 0.6:
            changes: list[TableChange] = [(NS, each, body) for each in self.draw(TABLES, 2)]
            if drawn > 0.5:
                changes.append((NS, self.draw(("d", "e"), 1)[0], build_from_nothing(str(number))))
            await commit_transaction(fixture.session({"number": number}, path=path), changes)
        elif drawn < 0.7:
            await rename_table(fixture.session({}, path=path), (NS, second), (NS, third))
        elif drawn < 0.78:
            purge = self.purges and self.random() < 0.5
            await drop_table(fixture.session({}, path=path), NS, first, purge=purge)
        elif drawn < 0.84:
            await undrop(fixture.session({}, path=path), NS, first)
        elif drawn < 0.87 and not self.only_tables:
            await self._register(fixture, path, first)
        elif drawn < 0.94:
            made: JsonObject = {"name": first, "schema": schema("x")}
            await create_table(fixture.session(made, path=path), NS, made)
        elif drawn < 0.97:
            await create_namespace(fixture.session({}, path=path), (f"n{number % 3}",), {})
        else:
            await drop_namespace(fixture.session({}, path=path), (f"n{number % 3}",))

    async def _register(self, fixture: CatalogFixture, path: str, name: str) -> None:
        """Registers a metadata file that some table had, also in place of a table."""
        [entity] = self.draw(sorted(entity for entity in self.truth.tables if self.truth.files[entity]), 1)
        [location] = self.draw(self.truth.files[entity][-2:], 1)
        replaces = self.random() < 0.5
        await register_table(fixture.session({}, path=path), NS, name, location, overwrite=replaces)

    async def _change_view(self, fixture: CatalogFixture, path: str, body: JsonObject) -> None:
        """Creates, replaces, drops, renames or registers a view."""
        (name, other), drawn = self.draw(VIEWS, 2), self.random()
        files = [
            files[-1] for entity, files in sorted(self.truth.files.items()) if entity in self.truth.views and files
        ]
        if drawn < 0.4:
            made = view_request(name)
            await create_view(fixture.session(made, path=path), NS, made)
        elif drawn < 0.7:
            await commit_view(fixture.session(body, path=path), NS, name, body)
        elif drawn < 0.8:
            await drop_view(fixture.session({}, path=path), NS, name)
        elif drawn < 0.9:
            await rename_view(fixture.session({}, path=path), (NS, name), (NS, other))
        elif files:
            [location] = self.draw(files, 1)
            await register_view(fixture.session({}, path=path), NS, name, location, overwrite=self.random() < 0.5)

    async def writers(self, number: int, changes: int = CHANGES, pause_s: float = 2.0, name: str = "w") -> None:
        """So many writers at once."""
        async with asyncio.TaskGroup() as group:
            for each in range(1, number + 1):
                group.create_task(self.write(f"{name}{each}", changes, pause_s))

    async def restore(self, before: Mapping[str, Stored]) -> None:
        """Sets HEAD, or the pointer of a table, back to what it was, by a write of an operator."""
        fixture = self.fixture(self.world.process("operator", skew_ms=0))
        if self.random() < 0.4:
            await fixture.store.put(PATHS.manifest, before[PATHS.manifest].body, ANY)
            return
        keys = self.draw(sorted(key for key in before if key.startswith(PATHS.pointers)), 1)
        if self._set_back in before and self.random() < 0.6:
            keys = [self._set_back]  # once more, to another state
        for key in keys:
            self._set_back = key
            old = Pointer.parse(before[key].body, Version("old"), key)
            now = self.world.peek(key)
            assert now is not None
            sequence = Pointer.parse(now, Version("now"), key).sequence + 2_000
            made = {name: value for name, value in old.document.items() if name != "intent"}
            body = dumps({**made, "id": fixture.runtime.ulid(), "sequence": sequence}, sort_keys=True)
            await fixture.store.put(key, body, ANY)

    async def collect(self, name: str, times: int = 4) -> None:
        """Collects again and again, until the writers have ended."""
        for _ in range(times):
            await self.world.runtime.sleep(80 * self.random())
            process = self.world.process(name)
            session = self.fixture(process).session(deadline_ms=12_000)
            with suppress(CatalogError, StoreError):
                if await process.run(collect(session, delete=True)) is DIED:
                    name += "+"

    async def purge(self, name: str) -> None:
        """Executes purges, until the writers have ended."""
        for _ in range(12):
            await self.world.runtime.sleep(25 * self.random())
            process = self.world.process(name)
            with suppress(CatalogError, StoreError):
                if await process.run(task_worker(self.fixture(process).catalog).run_until_idle()) is DIED:
                    name += "+"

    async def back_up(self, file: Path) -> None:
        """Writes a backup while clients write, and again if it fails."""
        fixture = self.fixture(self.world.process("operator", skew_ms=0))
        for _ in range(20):
            writer = ArchiveWriter(file)
            writer.begin({"id": "01", "of": "memory:", "made_ms": 0, "realm": False, "prefix": "wh/"})
            try:
                await backup(fixture.session(deadline_ms=600_000), None, writer)
            except (CatalogError, StoreError):
                writer.abandon()
            else:
                return
            await self.world.runtime.sleep(1.0)
        raise AssertionError("no backup")

    @asynccontextmanager
    async def stopped(self) -> AsyncGenerator[None, None]:
        """Stops all clients, who start again afterwards. Sequencers, which are in no step meanwhile, go on with what
        they remember, or not."""
        self.paused = True
        while self._stepping:
            await self.world.runtime.sleep(0.1)
        await self.world.settle()
        kept = {
            name: fixture for name, fixture in self._fixtures.items() if name.startswith("s") and self.random() < 0.5
        }
        self._fixtures = {}
        yield
        self._fixtures |= kept
        self.truth._see_head()
        self.paused = False

    def lose(self) -> None:
        """Loses all of the catalog's state."""
        self.world.lose(PATHS.state)

    async def lose_and_restore(self, file: Path) -> None:
        """Loses all of the catalog's state, and restores it."""
        async with self.stopped():
            self.lose()
            fixture = self.fixture(self.world.process("restorer", skew_ms=0))
            await restore_backup(fixture.session(deadline_ms=600_000), await Archive.opened(file), dry=False)

    async def all(self, *writing: Coroutine[None, None, None]) -> None:
        """Lets two sequencers and two consumers work until the writers have ended."""

        async def write() -> None:
            async with asyncio.TaskGroup() as group:
                for each in writing:
                    group.create_task(each)
            self.writing = False

        async with asyncio.TaskGroup() as group:
            group.create_task(write())
            for name in ("s1", "s2"):
                group.create_task(self.sequence(name))
            for name in ("c1", "c2"):
                group.create_task(self.consume(name))

    # Sequencers and consumers

    async def sequence(self, name: str) -> None:
        """A sequencer, and those that follow it when it dies, until the writers have ended."""
        sequencer = Sequencer()
        while self.writing:
            process = self.world.process(name, self._skew(name))
            if self.paused:
                await self.world.runtime.sleep(0.1)
                continue
            self._stepping.add(process.name)
            with suppress(CatalogError, StoreError):
                stats = FeedStats()
                if await process.run(sequencer.run(self.fixture(process).session(), stats)) is DIED:
                    name += "+"
                    sequencer = Sequencer()
                self.got["lost segments"] += stats.lost_segments
            self._stepping.discard(process.name)
            if self.random() < 0.2:
                sequencer = Sequencer()
            await self.world.runtime.sleep(3 * self.slowness * self.random())

    async def consume(self, name: str) -> None:
        """A consumer, who remembers what it got and its token."""
        got, who = self.read.setdefault(name, []), name
        self.tokens[who] = None
        while self.writing:
            process = self.world.process(name)
            limit = 1 + int(5 * self.random())
            with suppress(NoSuchFeed, StoreError):
                state = self.fixture(process).session().state
                try:
                    page = await process.run(read_feed(state, self.tokens[who], limit))
                except BadRequest:  # its place is gone with a history
                    assert self.loses
                    got.clear()
                    self.tokens[who] = None
                    continue
                if page is DIED:
                    name += "+"
                else:
                    got += page.records
                    self.tokens[who] = page.token
            await self.world.runtime.sleep(1.5 * self.slowness * self.random())

    # Judgement

    async def end(self, *, collected: bool = False, restored: bool = False, late: bool = False) -> None:
        """Lets everything land, lets a week pass unless receipts are `collected`, reconciles, enters the rest, and
        judges the feed: all of it, or where the first part is collected, what the first consumer got."""
        self.writing = False
        await self.world.settle()
        fixture = self.fixture(self.world.process("last", skew_ms=0))
        if not collected:
            await self.world.runtime.sleep(WEEK_S)
        await reconcile(fixture.session(deadline_ms=600_000))
        stats = FeedStats()
        await Sequencer().run(fixture.session(deadline_ms=600_000), stats)
        assert stats.is_end, "the last run did not reach the end"
        assert stats.failed == 0, stats.reasons
        state = fixture.session(deadline_ms=600_000).state
        for name, token in self.tokens.items():
            try:
                page = await read_feed(state, token, 100_000)
            except BadRequest:
                assert self.loses
                self.read[name].clear()
                page = await read_feed(state, None, 100_000)
            assert page.is_end
            self.read[name] += page.records
        records = self.read["c1"]
        kept = (await read_feed(state, None, 100_000)).records
        assert collected or len(kept) == len(records)
        for name, got in self.read.items():
            assert got == records, f"{name} got something else than c1"
        assert kept == records[-len(kept) :], "the feed has something else than consumers got"
        self.got["records"] += len(records)
        self.got["collected"] += len(records) - len(kept)
        again = FeedStats()
        await Sequencer().run(fixture.another().session(deadline_ms=600_000), again)
        assert again.records == 0, "another run entered something"
        self.judge_numbers(records, has_gaps=late)
        if late:
            self.judge_late(records)
        elif restored:
            self.judge_restored(records)
        else:
            self.judge(records, collected=collected)

    def judge_numbers(self, records: Sequence[FeedRecord], *, has_gaps: bool) -> None:
        """There is nothing twice, and no gap unless it `has_gaps`."""
        assert [record.number for record in records] == [*range(1, len(records) + 1)]
        assert has_gaps or not [record for record in records if record.kind == "gap"], "there is a gap"
        ids = [record.id for record in records if record.id]
        assert len(ids) == len({*ids}), "a change entered twice"

    def judge_late(self, records: Sequence[FeedRecord]) -> None:
        """What is missing is missing at a gap of its table or of the registry."""
        gaps = {record.entity for record in records if record.kind == "gap"}
        operations = {record.id for record in records if record.kind == "operation"}
        start = next(record for record in records if record.kind == "begin").details["sequence"]
        assert isinstance(start, int)
        missing = {name for sequence, name in self.truth.operations if sequence > start} - operations
        assert not missing or None in gaps, f"operations {missing} are missing without a gap"
        for entity, files in self.truth.files.items():
            entered = [record.file.location for record in records if record.entity == entity and record.file]
            lost = {*files[int(entity in self.truth.registered) :]} - {*entered}
            begun = next((record for record in records if record.kind == "begin" and record.entity == entity), None)
            if begun is not None and begun.file is not None:
                lost -= {*files[: files.index(begun.file.location)]}
            assert not lost or gaps & {entity, None}, f"{lost} of {entity} are missing without a gap"
        self.got["gaps"] += len(gaps)

    def judge_restored(self, records: Sequence[FeedRecord]) -> None:
        """Each change happened, and follows the one before it or a record of a restore; and all that is in the chains
        of the present state entered."""
        entered = {record.id for record in records if record.kind == "operation"}
        assert entered <= {name for _, name in self.truth.operations}
        begun = next(record for record in records if record.kind == "begin" and record.entity is None)
        start = begun.details["sequence"]
        assert isinstance(start, int)
        missing = {name for sequence, name in self.truth.chain() if sequence > start} - entered
        assert not missing, f"{missing} are in the registry's history, and not in the feed"
        last: dict[str, str] = {}
        for record in records:
            if record.entity is not None and record.file is not None:
                if record.kind == "commit":
                    before = record.details.get("previous_metadata_location", record.details.get(_BASE))
                    is_first = record.entity not in last and record.entity in self.truth.registered
                    assert is_first or before == last.get(record.entity), f"{record} follows another file"
                last[record.entity] = record.file.location
        files = {record.file.location for record in records if record.file is not None}
        for entity, location in last.items():
            assert location == self.truth.files[entity][-1], f"{entity} ends with {location}"
        assert files <= {file for of_entity in self.truth.files.values() for file in of_entity}
        self.got["restored"] += sum(record.kind == "restored" for record in records)

    def judge(self, records: Sequence[FeedRecord], *, collected: bool) -> None:
        """The feed has each change, after its predecessor."""
        self._judge_registry(records)
        self._judge_files(records)
        if not collected:
            self._judge_receipts(records)
        self._judge_drops(records)

    def _judge_registry(self, records: Sequence[FeedRecord]) -> None:
        begun = next(record for record in records if record.kind == "begin" and record.entity is None)
        start = begun.details["sequence"]
        assert isinstance(start, int)
        entered = [record.id for record in records if record.kind == "operation"]
        expected = [name for sequence, name in self.truth.operations if sequence > start]
        assert entered == expected, f"operations {entered} entered, and {expected} happened"

    def _judge_files(self, records: Sequence[FeedRecord]) -> None:
        """Each table has all files after its beginning, in their order, and after its creation."""
        by_entity: defaultdict[str, list[FeedRecord]] = defaultdict(list)
        for record in records:
            if record.entity is not None and record.kind in ("commit", "begin"):
                by_entity[record.entity].append(record)
        assert {*by_entity} <= {entity for entity, files in self.truth.files.items() if files}
        for entity, files in self.truth.files.items():
            of_entity, first = by_entity[entity], int(entity in self.truth.registered)
            if not of_entity and len(files) <= first:
                continue
            assert of_entity, f"nothing of {entity} entered"
            entered = [record.file.location for record in of_entity if record.file is not None]
            start = files.index(entered[0]) if of_entity[0].kind == "begin" else first
            assert entered == files[start:], f"{entity}: {entered} entered, and {files[start:]} happened"
            self.got["commits"] += len(entered)
            if of_entity[0].kind == "begin":
                later = [record for record in records if record.kind == "operation" and entity in entities_of(record)]
                assert not later, f"{entity} began before it was created by {later}"
            else:
                made = min(record.number for record in records if _creates(record, entity))
                assert made < of_entity[0].number, f"{entity} has a commit before it was created"

    def _judge_receipts(self, records: Sequence[FeedRecord]) -> None:
        """What entered as a commit has a receipt, and each receipt entered, unless it is older than the feed."""
        keys = {str(record.details["commit_key"]) for record in records if record.kind == "commit"}
        stored = {key.rpartition("/")[2].removesuffix(".json") for key in self.world.keys(PATHS.events)
                  if "/iceberg/committed/" in key}  # fmt: skip
        begun = {record.entity: record.file.location for record in records
                 if record.kind == "begin" and record.entity is not None and record.file is not None}  # fmt: skip
        older = {
            commit_key(entity, file)
            for entity, location in begun.items()
            for file in self.truth.files[entity][: self.truth.files[entity].index(location) + 1]
        }
        assert keys == stored - older, "the feed and the receipts differ"
        assert all("attempt" in record.details for record in records if record.kind == "commit")

    def _judge_drops(self, records: Sequence[FeedRecord]) -> None:
        """What was current when a table was dropped entered before the drop, unless that was undone soon."""
        numbers = {record.id: record.number for record in records}
        files = {(record.entity, record.file.location): record.number for record in records if record.file is not None}
        undone = {record.entity for record in records if record.details.get("kind") == "undrop"}
        for entity, location, drop in self.truth.before_drops:
            if drop in numbers and (entity, location) in files and entity not in undone:
                assert files[entity, location] < numbers[drop], f"{location} entered after the drop of {entity}"
                self.got["drops"] += 1


def _creates(record: FeedRecord, entity: str) -> bool:
    """Whether an operation may have created a table."""
    tables = objects(record.details, "tables") if record.details.get("kind") == "lay-names" else []
    made = {optional_text(table, "entity") for table in tables}
    return record.kind == "operation" and (record.entity == entity or entity in made)


async def a_feed_beside_drawn_changes(world: World) -> None:
    """Three writers, two sequencers and two consumers."""
    clients = FeedClients(world)
    await clients.set_up()
    await clients.all(clients.writers(3))
    await clients.end()
    COUNTED.update(clients.got)


async def a_feed_beside_proposals(world: World) -> None:
    """A registry in which processes commit each other's changes, with commit objects of edits."""
    clients = FeedClients(world)
    await clients.set_up(proposals=True)
    await clients.all(clients.writers(3))
    await clients.end()
    COUNTED.update(clients.got)


async def a_feed_beside_collections(world: World) -> None:
    """Receipts, registry commits and segments are collected after a minute; everybody is faster than that."""
    clients = FeedClients(world, COLLECTING)
    clients.slowness = 6.0
    clients.purges = True
    await clients.set_up()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(feed_cursors, "MAX_BEHIND", 4)
        await clients.all(clients.writers(3, changes=9, pause_s=30.0), clients.collect("g1"), clients.purge("p1"))
    await clients.end(collected=True)
    COUNTED.update(clients.got)


async def a_feed_beside_restores(world: World) -> None:
    """No client writes while an operator sets HEAD or a pointer back to what it was; sequencers go on."""
    clients = FeedClients(world)
    clients.only_tables = world.seed % 4 != 0  # so that more happens to a table
    await clients.set_up()
    await Sequencer().run(clients.fixture(world.process("setup")).session(), FeedStats())  # what is before is not in it

    async def phases() -> None:
        instants = [world.stored()]
        for phase in range(5):
            await clients.writers(2, changes=3, name=f"w{phase}-")
            await world.settle()
            await world.runtime.sleep(4 * world.runtime.random())
            instants.append(world.stored())
            await clients.restore(instants[int(len(instants) * world.runtime.random())])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(commit_chain, "TURN", 1)  # so that a search ends with the first segment that it can
        patch.setattr(commit_chain, "WALK_ALONE", 2)
        patch.setattr(sequencer, "PAUSE_SHARE", 1.0)  # each search pauses after a turn
        await clients.all(phases())
    await clients.end(restored=True)
    COUNTED.update(clients.got)


async def a_feed_beside_transactions(world: World) -> None:
    """Transactions over the same tables, whose writers may die before they settle; sequencers look all the time."""
    clients = FeedClients(world)
    clients.slowness = 0.1
    clients.drawn = (0.4, 0.6)
    await clients.set_up()
    await clients.all(clients.writers(2, changes=3))
    await clients.end()
    COUNTED.update(clients.got)


async def a_feed_beside_backups(world: World) -> None:
    """A backup is made while clients write and sequencers fill the feed; later all is lost, and restored from it."""
    clients = FeedClients(world)
    clients.loses = True
    await clients.set_up()
    await Sequencer().run(clients.fixture(world.process("setup")).session(), FeedStats())
    with TemporaryDirectory() as folder:
        file = Path(folder, "backup")

        async def phases() -> None:
            async with asyncio.TaskGroup() as group:
                group.create_task(clients.writers(3, name="w0-"))
                await world.runtime.sleep(8 * clients.random())
                group.create_task(clients.back_up(file))
            await clients.lose_and_restore(file)
            await clients.writers(2, changes=4, name="w1-")

        await clients.all(phases())
    await clients.end(restored=True)
    COUNTED.update(clients.got)


async def a_feed_that_is_filled_late(world: World) -> None:
    """Collections delete pointers, and half of the time receipts and registry commits, before a sequencer has read
    them."""
    clients = FeedClients(world, COLLECTING if world.seed % 2 else KEEPING_RECEIPTS)
    clients.purges, clients.slowness, clients.drawn = True, 100.0, (0.2, 0.9)
    await clients.set_up()
    await Sequencer().run(clients.fixture(world.process("setup")).session(), FeedStats())
    await clients.all(clients.writers(3, changes=9, pause_s=30.0), clients.collect("g1", 8), clients.purge("p1"))
    await clients.end(collected=True, late=True)
    COUNTED.update(clients.got)


COUNTED: Counter[str] = Counter()
"""What was counted in all runs of this process."""
SCENARIOS: Sequence[Scenario] = (
    a_feed_beside_drawn_changes,
    a_feed_beside_proposals,
    a_feed_beside_collections,
    a_feed_beside_restores,
    a_feed_beside_transactions,
    a_feed_beside_backups,
    a_feed_that_is_filled_late,
)
