"""Consistent cuts in the simulated world, beside commits, transactions, creates, renames and drops, which are drawn
from the seed (docs/design/resolve.md#rule-5). Each cut that is accepted must be what its names meant at one instant
between the beginning of the request and its end."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count

from arco_catalog.iceberg.errors import CatalogError, Unavailable
from arco_catalog.iceberg.json import JsonObject, loads
from arco_catalog.operations import cut
from arco_catalog.operations.commit import commit_table
from arco_catalog.operations.create import create_table
from arco_catalog.operations.cut import CurrentRelation
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.rename import rename_table
from arco_catalog.operations.transaction import TableChange, commit_transaction
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.entries import find_relation
from arco_catalog.state.paths import Paths
from arco_catalog.state.pointer import Pointer
from arco_catalog.state.registry import RegistryState
from storage_backends import StoreError, Version
from tests.simulation.clients import EAGER, build_from_nothing
from tests.simulation.explore import Scenario
from tests.simulation.history import Event
from tests.simulation.world import DIED, Process, World
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.request_bodies import schema, set_property

PATHS = Paths("wh")
TRANSACTIONS = PATHS.transaction("").removesuffix(".json")
TABLES = ("a", "b", "c")
NAMES = (*TABLES, "d", "e")
CHANGES = 4
"""What each writer does."""
CUTS = 5
"""How often each reader wants a cut."""
SETTLED_S = 5.0
"""So long after its intents are settled, a decision is deleted."""

Meaning = tuple[str | None, ...]
"""The metadata locations of the tables with `NAMES` at an instant, None for a name without a table."""


@dataclass
class Judge:
    """Knows what the names meant at each instant, and counts what readers got."""

    world: World
    meanings: list[Meaning] = field(default_factory=list)
    got: Counter[str] = field(default_factory=Counter)

    def see(self, event: Event) -> None:
        """One applied write or delete."""
        if event.key == PATHS.manifest or event.key.startswith((PATHS.pointers, TRANSACTIONS)):
            self.meanings.append(self.meaning())

    def meaning(self) -> Meaning:
        """What the names mean now."""
        body = self.world.peek(PATHS.manifest)
        assert body is not None
        head = RegistryState.parse(body, Version("now"), PATHS.manifest)
        return tuple(self._location(head, name) for name in NAMES)

    def _location(self, head: RegistryState, name: str) -> str | None:
        entry = find_relation(head.index, NS, name)
        if entry is None or (entry.transaction is not None and not self.has_committed(entry.transaction)):
            return None
        body = self.world.peek(PATHS.pointer(entry.entity))
        assert body is not None
        pointer = Pointer.parse(body, Version("now"), name)
        if pointer.intent is not None:
            pointer = pointer.resolved(self.has_committed(pointer.intent))
        return pointer.metadata.location

    def has_committed(self, transaction: str) -> bool:
        """Whether a transaction has committed by now."""
        body = self.world.peek(PATHS.transaction(transaction))
        found = None if body is None else loads(body)
        return isinstance(found, dict) and found["status"] == "committed"

    def accept(self, since: int, names: Sequence[str], found: Meaning) -> None:
        """A reader was answered with a cut of these names, by a request that began when so many meanings were known."""
        places = [NAMES.index(name) for name in names]
        meant = {tuple(meaning[place] for place in places) for meaning in self.meanings[since - 1 :]}
        assert found in meant, f"a cut of {names} that was never true: {found}"
        self.got["cuts"] += 1
        self.got["reads"] += len(names)
        self.got["of changes"] += len(meant) > 1


class CuttingClients:
    """Processes that change tables, and that read cuts of them."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.judge = Judge(world)
        self._fixtures: dict[str, CatalogFixture] = {}
        self._numbers = count(1)

    def fixture(self, process: Process) -> CatalogFixture:
        """The catalog as this process serves it, with all that it remembers."""
        if process.name not in self._fixtures:
            self._fixtures[process.name] = CatalogFixture(process.store, process.runtime, EAGER)
        return self._fixtures[process.name]

    async def set_up(self) -> None:
        fixture = self.fixture(self.world.process("setup", skew_ms=0))
        await fixture.namespace(*NS)
        for name in TABLES:
            await fixture.table(name)
        self.judge.meanings.append(self.judge.meaning())
        self.world.observe(self.judge.see)

    def draw(self, names: Sequence[str], number: int) -> list[str]:
        """So many of the names, in any order."""
        random, left = self.world.runtime.random, [*names]
        return [left.pop(int(random() * len(left))) for _ in range(number)]

    async def write(self, name: str) -> None:
        """One writer's changes, one after the other. Whatever comes of them is right here."""
        for _ in range(CHANGES):
            process = self.world.process(name)
            with suppress(CatalogError, StoreError):
                if await process.run(self._change(self.fixture(process))) is DIED:
                    name += "+"
            await self.world.runtime.sleep(0.3 * self.world.runtime.random())

    async def _change(self, fixture: CatalogFixture) -> None:
        number, drawn = next(self._numbers), self.world.runtime.random()
        body: JsonObject = set_property("by", str(number))
        first, second, third = self.draw(NAMES, 3)
        if drawn < 0.25:
            await commit_table(fixture.session(body, path=f"/{number}"), NS, first, body)
        elif drawn < 0.7:
            changes: list[TableChange] = [(NS, each, body) for each in self.draw(TABLES, 2)]
            if drawn > 0.5:
                changes.append((NS, self.draw(("d", "e"), 1)[0], build_from_nothing(str(number))))
            whole: JsonObject = {"number": number}
            await commit_transaction(fixture.session(whole, path=f"/{number}"), changes)
        elif drawn < 0.9:
            await rename_table(fixture.session({}, path=f"/{number}"), (NS, second), (NS, third))
        elif drawn < 0.95:
            await drop_table(fixture.session({}, path=f"/{number}"), NS, first, purge=False)
        else:
            made: JsonObject = {"name": first, "schema": schema("x")}
            await create_table(fixture.session(made, path=f"/{number}"), NS, made)

    async def transact(self, name: str, times: int) -> None:
        """One writer's transactions over the first two tables, one after the other."""
        for _ in range(times):
            process, body = self.world.process(name), set_property("by", str(next(self._numbers)))
            changes: list[TableChange] = [(NS, each, body) for each in TABLES[:2]]
            session = self.fixture(process).session(body, path="/transactions")
            with suppress(CatalogError, StoreError):
                if await process.run(commit_transaction(session, changes)) is DIED:
                    name += "+"

    async def rename_back_and_forth(self, name: str, table: str, to: str, times: int) -> None:
        """Renames a table, commits to it under its other name, and renames it back, again and again."""
        process = self.world.process(name)
        fixture = self.fixture(process)
        for _ in range(times):
            for step in (
                lambda: rename_table(fixture.session({}), (NS, table), (NS, to)),
                lambda: fixture.commit(set_property("by", str(next(self._numbers))), to),
                lambda: rename_table(fixture.session({}), (NS, to), (NS, table)),
                lambda: fixture.commit(set_property("by", str(next(self._numbers))), table),
            ):
                with suppress(CatalogError, StoreError):
                    await process.run(_awaited(step))

    async def read(self, name: str, *names: str) -> None:
        """One reader's cuts, one after the other."""
        for _ in range(CUTS):
            process = self.world.process(name)
            wanted = names or self.draw(NAMES, 2 + int(2 * self.world.runtime.random()))
            since = len(self.judge.meanings)
            try:
                found = await process.run(read(self.fixture(process).session(), wanted))
            except Unavailable:
                self.judge.got["given up"] += 1
            except (CatalogError, StoreError):
                self.judge.got["failed"] += 1
            else:
                if found is DIED:
                    name += "+"
                else:
                    self.judge.accept(since, wanted, found)
            await self.world.runtime.sleep(0.2 * self.world.runtime.random())

    async def collect_decisions(self) -> None:
        """Deletes decisions some time after nothing has their intents any more, as a collection may."""
        since: dict[str, float] = {}
        for _ in range(40):
            await self.world.runtime.sleep(self.world.runtime.random())
            for key in self.world.keys(TRANSACTIONS):
                transaction, body = key.removeprefix(TRANSACTIONS).removesuffix(".json"), self.world.peek(key)
                is_needed = any(
                    transaction.encode() in stored.body
                    for other, stored in self.world.stored().items()
                    if other == PATHS.manifest or other.startswith(PATHS.pointers)
                )
                if body is None or b'"pending"' in body or is_needed:
                    since.pop(key, None)
                elif self.world.loop.time() - since.setdefault(key, self.world.loop.time()) > SETTLED_S:
                    self.world.lose(key)


async def read(session: Session, names: Sequence[str]) -> Meaning:
    """What these names mean at one instant, by the catalog."""
    found = await cut.read_cut(session, [(NS, name) for name in names])
    states = (found[NS, name] for name in names)
    return tuple(each.pointer.metadata.location if isinstance(each, CurrentRelation) else None for each in states)


async def _awaited(step: Callable[[], Awaitable[object]]) -> None:
    await step()


async def cuts_beside_drawn_changes(world: World) -> None:
    """Three writers and two readers, and a collection of decisions."""
    clients = CuttingClients(world)
    await clients.set_up()
    async with asyncio.TaskGroup() as group:
        for number in (1, 2, 3):
            group.create_task(clients.write(f"w{number}"))
        for number in (1, 2):
            group.create_task(clients.read(f"r{number}"))
        group.create_task(clients.collect_decisions())
    await world.settle()
    COUNTED.update(clients.judge.got)


async def cuts_beside_renames_back_and_forth(world: World) -> None:
    """A table that gets back its name between two reads, with commits under both of its names."""
    clients = CuttingClients(world)
    await clients.set_up()
    async with asyncio.TaskGroup() as group:
        group.create_task(clients.rename_back_and_forth("w1", "a", "d", 6))
        for number in (1, 2, 3):
            group.create_task(clients.read(f"r{number}", "a", "b"))
    await world.settle()
    COUNTED.update(clients.judge.got)


async def cuts_beside_transactions(world: World) -> None:
    """Transactions that follow each other, and readers that want both of their tables."""
    clients = CuttingClients(world)
    await clients.set_up()
    async with asyncio.TaskGroup() as group:
        for number in (1, 2):
            group.create_task(clients.transact(f"w{number}", 5))
        for number in (1, 2, 3, 4):
            group.create_task(clients.read(f"r{number}", "a", "b"))
        group.create_task(clients.collect_decisions())
    await world.settle()
    COUNTED.update(clients.judge.got)


COUNTED: Counter[str] = Counter()
"""What readers got in all runs of this process."""
SCENARIOS: Sequence[Scenario] = (
    cuts_beside_drawn_changes,
    cuts_beside_renames_back_and_forth,
    cuts_beside_transactions,
)
