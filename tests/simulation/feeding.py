"""The event feed in the simulated world: two sequencers and two consumers, who are killed, beside changes that are
drawn from the seed. The feed is held against what the store held in each instant (docs/design/events.md)."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count

from arco_catalog.iceberg.errors import CatalogError
from arco_catalog.iceberg.json import JsonObject, loads
from arco_catalog.operations.commit import commit_table
from arco_catalog.operations.create import create_table
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.feed import NoSuchFeed, read_feed
from arco_catalog.operations.namespaces import create_namespace, drop_namespace
from arco_catalog.operations.rename import rename_table
from arco_catalog.operations.transaction import TableChange, commit_transaction
from arco_catalog.operations.undrop import undrop
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state.entries import has_pointer
from arco_catalog.state.feed import FeedRecord
from arco_catalog.state.fields import objects, optional_text, text
from arco_catalog.state.paths import Paths, commit_key
from arco_catalog.state.pointer import Pointer
from arco_catalog.state.registry import RegistryState
from arco_catalog.tasks.feed_stats import FeedStats
from arco_catalog.upkeep.feed.sequencer import Sequencer
from arco_catalog.upkeep.reconcile import reconcile
from storage_backends import StoreError, Version
from tests.simulation.clients import EAGER, build_from_nothing
from tests.simulation.explore import Scenario
from tests.simulation.history import Event
from tests.simulation.world import DIED, Process, World
from tests.support.registry_versions import raise_version
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.request_bodies import schema, set_property

PATHS = Paths("wh")
TRANSACTIONS = PATHS.transaction("").removesuffix(".json")
TABLES = ("a", "b", "c")
NAMES = (*TABLES, "d", "e")
CHANGES = 6
"""What each writer does."""
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
    _head: str | None = None

    def see(self, event: Event) -> None:
        """One applied write or delete."""
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
        for operation in objects(head.document, "operations"):
            self.operations.append((head.sequence, text(operation, "id")))
            if operation.get("kind") == "drop-table":
                entity = text(operation, "entity")
                self.before_drops.append((entity, self.files[entity][-1], text(operation, "id")))
        self.named = set()
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
        self.got: Counter[str] = Counter()
        self.writing = True
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
        fixture = self.fixture(self.world.process("setup", skew_ms=0))
        await fixture.namespace(*NS)
        if proposals:
            await raise_version(fixture.session().state)
        for name in TABLES:
            await fixture.table(name)
        self.truth._see_head()
        self.world.observe(self.truth.see)

    def draw(self, names: Sequence[str], number: int) -> list[str]:
        """So many of the names, in any order."""
        left = [*names]
        return [left.pop(int(self.random() * len(left))) for _ in range(number)]

    # Writers

    async def write(self, name: str, changes: int = CHANGES) -> None:
        """One writer's changes, one after the other. Whatever comes of them is right here."""
        for _ in range(changes):
            process = self.world.process(name, self._skew(name))
            with suppress(CatalogError, StoreError):
                if await process.run(self._change(self.fixture(process))) is DIED:
                    name += "+"
            await self.world.runtime.sleep(2 * self.random())

    def _skew(self, name: str) -> int | None:
        """Some machines are hours off."""
        return {"w1": 3 * 3_600_000, "w2": -5 * 3_600_000, "s2": 40 * 3_600_000}.get(name.rstrip("+"))

    async def _change(self, fixture: CatalogFixture) -> None:
        number, drawn = next(self._numbers), self.random()
        body: JsonObject = set_property("by", str(number))
        first, second, third = self.draw(NAMES, 3)
        path = f"/{number}"
        if drawn < 0.4:
            await commit_table(fixture.session(body, path=path), NS, first, body)
        elif drawn < 0.6:
            changes: list[TableChange] = [(NS, each, body) for each in self.draw(TABLES, 2)]
            if drawn > 0.5:
                changes.append((NS, self.draw(("d", "e"), 1)[0], build_from_nothing(str(number))))
            await commit_transaction(fixture.session({"number": number}, path=path), changes)
        elif drawn < 0.7:
            await rename_table(fixture.session({}, path=path), (NS, second), (NS, third))
        elif drawn < 0.78:
            await drop_table(fixture.session({}, path=path), NS, first, purge=False)
        elif drawn < 0.84:
            await undrop(fixture.session({}, path=path), NS, first)
        elif drawn < 0.94:
            made: JsonObject = {"name": first, "schema": schema("x")}
            await create_table(fixture.session(made, path=path), NS, made)
        elif drawn < 0.97:
            await create_namespace(fixture.session({}, path=path), (f"n{number % 3}",), {})
        else:
            await drop_namespace(fixture.session({}, path=path), (f"n{number % 3}",))

    # Sequencers and consumers

    async def sequence(self, name: str) -> None:
        """A sequencer, and those that follow it when it dies, until the writers have ended."""
        sequencer = Sequencer()
        while self.writing:
            process = self.world.process(name, self._skew(name))
            with suppress(CatalogError, StoreError):
                stats = FeedStats()
                if await process.run(sequencer.run(self.fixture(process).session(), stats)) is DIED:
                    name += "+"
                    sequencer = Sequencer()
                self.got["lost segments"] += stats.lost_segments
            if self.random() < 0.2:
                sequencer = Sequencer()
            await self.world.runtime.sleep(3 * self.random())

    async def consume(self, name: str) -> None:
        """A consumer, who remembers what it got and its token."""
        got, token = self.read.setdefault(name, []), None
        while self.writing:
            process = self.world.process(name)
            limit = 1 + int(5 * self.random())
            with suppress(NoSuchFeed, StoreError):
                page = await process.run(read_feed(self.fixture(process).session().state, token, limit))
                if page is DIED:
                    name += "+"
                else:
                    got += page.records
                    token = page.token
            await self.world.runtime.sleep(1.5 * self.random())

    # Judgement

    async def end(self, *, exact: bool = True) -> None:
        """Lets everything land, lets a week pass, reconciles, enters the rest, and judges the feed."""
        self.writing = False
        await self.world.settle()
        process = self.world.process("last", skew_ms=0)
        fixture = self.fixture(process)
        await self.world.runtime.sleep(WEEK_S)
        await reconcile(fixture.session(deadline_ms=600_000))
        stats = FeedStats()
        await Sequencer().run(fixture.session(deadline_ms=600_000), stats)
        assert stats.is_end, "the last run did not reach the end"
        assert stats.failed == 0, stats.reasons
        page = await read_feed(fixture.session().state, None, 100_000)
        assert page.is_end
        self.judge(page.records, exact=exact)
        for name, got in self.read.items():
            assert got == page.records[: len(got)], f"{name} got something else than the feed has"
        self.got["records"] += len(page.records)
        again = FeedStats()
        await Sequencer().run(fixture.another().session(deadline_ms=600_000), again)
        assert again.records == 0, "another run entered something"

    def judge(self, records: Sequence[FeedRecord], *, exact: bool) -> None:
        """The feed has each change once, after its predecessor."""
        assert [record.number for record in records] == [*range(1, len(records) + 1)]
        assert not [record for record in records if record.kind == "gap"], "there is a gap"
        ids = [record.id for record in records if record.id]
        assert len(ids) == len({*ids}), "a change entered twice"
        self._judge_registry(records)
        self._judge_files(records)
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
            of_entity = by_entity[entity]
            assert of_entity, f"nothing of {entity} entered"
            entered = [record.file.location for record in of_entity if record.file is not None]
            start = files.index(entered[0]) if of_entity[0].kind == "begin" else 0
            assert entered == files[start:], f"{entity}: {entered} entered, and {files[start:]} happened"
            self.got["commits"] += len(entered)
            if of_entity[0].kind == "commit":
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
        files = {record.file.location: record.number for record in records if record.file is not None}
        undone = {record.entity for record in records if record.details.get("kind") == "undrop"}
        for entity, location, drop in self.truth.before_drops:
            if drop in numbers and location in files and entity not in undone:
                assert files[location] < numbers[drop], f"{location} entered after the drop of {entity}"
                self.got["drops"] += 1


def _creates(record: FeedRecord, entity: str) -> bool:
    """Whether an operation may have created a table."""
    tables = objects(record.details, "tables") if record.details.get("kind") == "lay-names" else []
    made = {optional_text(table, "entity") for table in tables}
    return record.kind == "operation" and (record.entity == entity or entity in made)


async def a_feed_beside_drawn_changes(world: World) -> None:
    """Three writers, two sequencers and two consumers."""
    await _run(world, writers=3)


async def a_feed_beside_proposals(world: World) -> None:
    """The same in a registry in which processes commit each other's changes, with commit objects of edits."""
    await _run(world, writers=3, proposals=True)


async def _run(world: World, writers: int, *, proposals: bool = False) -> None:
    clients = FeedClients(world)
    await clients.set_up(proposals=proposals)

    async def write() -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(1, writers + 1):
                group.create_task(clients.write(f"w{number}"))
        clients.writing = False

    async with asyncio.TaskGroup() as group:
        group.create_task(write())
        for name in ("s1", "s2"):
            group.create_task(clients.sequence(name))
        for name in ("c1", "c2"):
            group.create_task(clients.consume(name))
    await clients.end()
    COUNTED.update(clients.got)


COUNTED: Counter[str] = Counter()
"""What was counted in all runs of this process."""
SCENARIOS: Sequence[Scenario] = (a_feed_beside_drawn_changes, a_feed_beside_proposals)
