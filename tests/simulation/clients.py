"""Clients of a simulated catalog: they send, send again, and tell the auditor what they were told."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from arco_catalog.iceberg.errors import CommitStateUnknown, KeyInProgress, NoSuchTable, Refusal, Unavailable
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.commit import commit_table
from arco_catalog.operations.create import create_table
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.load import load_table
from arco_catalog.operations.rename import rename_table
from arco_catalog.operations.transaction import TableChange, commit_transaction
from arco_catalog.operations.undrop import undrop
from arco_catalog.planning.answers import Answer
from arco_catalog.protocol.access import ALLOW_ALL
from arco_catalog.protocol.catalog import Session, Settings
from arco_catalog.protocol.operation_request import IdempotencyKey, OperationRequest
from arco_catalog.state.key_settings import Dialect
from arco_catalog.upkeep.reconcile import reconcile
from storage_backends import StoreUnavailable
from tests.simulation.auditor import Ask, Auditor
from tests.simulation.world import DIED, Process, World
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.request_bodies import creation_updates, schema, uuid7

EAGER = Settings("wh", request_ms=90_000, in_progress_ms=500, duplicate_timeout_ms=400)
"""Takeovers come long before deadlines, so what they overtake is still alive: they are to be safe at any age."""
AS_DEPLOYED = Settings("wh")

Perform = Callable[[Session], Awaitable[Answer]]


class SimulatedClients:
    """The catalog's processes in one world, and the requests that clients make of them."""

    def __init__(self, world: World, settings: Settings = EAGER) -> None:
        self.world = world
        self.auditor = Auditor(world)
        self._settings = settings
        self._fixtures: dict[str, CatalogFixture] = {}

    def fixture(self, process: Process) -> CatalogFixture:
        """The catalog as this process serves it, with all that it remembers."""
        if process.name not in self._fixtures:
            self._fixtures[process.name] = CatalogFixture(process.store, process.runtime, self._settings)
        return self._fixtures[process.name]

    async def set_up(self, *tables: str) -> None:
        """The namespace and these tables, before anything can go wrong."""
        fixture = self.fixture(self.world.process("setup", skew_ms=0))
        await fixture.namespace("db")
        for name in tables:
            await fixture.table(name)

    async def warm(self, name: str, table: str = "t") -> None:
        """Lets a process see a table, and remember it; nothing depends on whether it does."""
        process = self.world.process(name)
        try:
            await process.run(load_table(self.fixture(process).session(), NS, table))
        except StoreUnavailable:
            return

    def key(self) -> str:
        """A fresh idempotency key."""
        return uuid7(self.world.runtime.now_ms(), self.world.runtime)

    async def send(self, ask: Ask, perform: Perform, body: JsonObject, process: str, key: str | None) -> Answer | None:
        """One client's way to an answer: under a key it sends again, to another process where one has died, until it
        gets a definite one; without a key it takes what it gets. Returns the answer if it was yes."""
        name = process
        for tries in range(40):
            worker = self.world.process(name)
            try:
                answer = await worker.run(self._once(worker, ask, perform, body, key))
            except Refusal as refusal:
                self.auditor.refused(ask, refusal)
                return None
            except (CommitStateUnknown, KeyInProgress):
                answer = None
            except Unavailable as unavailable:
                if key is None:
                    self.auditor.undone(ask, unavailable)
                    return None
                answer = None
            if answer is DIED:
                name += "+"
            elif answer is not None:
                self.auditor.answered(ask)
                return answer
            if key is None:
                self.auditor.asks.pop(ask.principal)  # nobody asks again: any outcome is right, and stays unknown
                return None
            await self.world.runtime.sleep(min(30.0, 2.0**tries) * self.world.runtime.random())
        raise AssertionError(f"{ask.principal} never got a definite answer")

    async def _once(self, process: Process, ask: Ask, perform: Perform, body: JsonObject, key: str | None) -> Answer:
        fixture = self.fixture(process)
        parsed = None if key is None else IdempotencyKey.parse(key, Dialect.ICEBERG)
        deadline = process.runtime.now_ms() + self._settings.request_ms
        call = OperationRequest("POST", f"/{ask.kind}", "", body, ask.principal, {"kind": "AdminApi"}, deadline, parsed)
        return await perform(fixture.catalog.session(call, ALLOW_ALL))

    # Requests.

    async def commit(
        self, principal: str, *processes: str, to: str = "t", needs: int | None = 0, key: bool = True
    ) -> None:
        """A commit that requires a current schema and leaves a property of its own, sent by each process at once."""
        requirements: JsonObject = {"type": "assert-current-schema-id", "current-schema-id": needs}
        body: JsonObject = {
            "requirements": [] if needs is None else [requirements],
            "updates": [{"action": "set-properties", "updates": {"by": principal}}],
        }
        ask = self.auditor.ask(Ask(principal, "commit", (to,), needs_schema=needs))
        await self._all(ask, lambda session: commit_table(session, NS, to, body), body, processes, key)

    async def change_schema(self, principal: str, process: str, *, to: int, table: str = "t") -> None:
        """A foreign commit that breaks requirements (schema 1), or restores them (schema 0)."""
        columns = ("x",) if to == 0 else ("x", "y")
        body: JsonObject = {
            "requirements": [],
            "updates": [
                {"action": "add-schema", "schema": schema(*columns)},
                {"action": "set-current-schema", "schema-id": to},
                {"action": "set-properties", "updates": {"by": principal}},
            ],
        }
        ask = self.auditor.ask(Ask(principal, "schema", (table,)))
        await self._all(ask, lambda session: commit_table(session, NS, table, body), body, (process,), keyed=True)

    async def create(self, principal: str, *processes: str, name: str = "t", key: bool = True) -> None:
        """A create, sent by each process at once."""
        body: JsonObject = {"name": name, "schema": schema("x"), "properties": {"by": principal}}
        ask = self.auditor.ask(Ask(principal, "create", (name,)))
        await self._all(ask, lambda session: create_table(session, NS, body), body, processes, key)

    async def drop(self, principal: str, *processes: str, name: str = "t", key: bool = True) -> None:
        """A drop, sent by each process at once."""
        ask = self.auditor.ask(Ask(principal, "drop", (name,)))
        await self._all(ask, lambda session: drop_table(session, NS, name, purge=False), {}, processes, key)
        if ask.succeeded:
            self.auditor.drop_was_answered(ask)

    async def undrop(self, principal: str, *processes: str, name: str = "t", key: bool = True) -> None:
        """Brings back what was dropped under a name, sent by each process at once."""
        ask = self.auditor.ask(Ask(principal, "undrop", (name,), undoes=True))
        await self._all(ask, lambda session: undrop(session, NS, name), {}, processes, key)

    async def rename(self, principal: str, *processes: str, name: str = "t", to: str = "u", key: bool = True) -> None:
        """A rename, sent by each process at once."""
        ask = self.auditor.ask(Ask(principal, "rename", (name,), other_name=to))
        await self._all(ask, lambda session: rename_table(session, (NS, name), (NS, to)), {}, processes, key)

    async def transact(
        self,
        principal: str,
        *processes: str,
        tables: tuple[str, ...] = ("a", "b"),
        creates: tuple[str, ...] = (),
        needs: int | None = 0,
        key: bool = True,
    ) -> None:
        """A transaction that leaves a property of its own on each table, and creates others."""
        requirement: JsonObject = {"type": "assert-current-schema-id", "current-schema-id": needs}
        part: JsonObject = {
            "requirements": [] if needs is None else [requirement],
            "updates": [{"action": "set-properties", "updates": {"by": principal}}],
        }
        changes: list[TableChange] = [(NS, name, part) for name in tables]
        changes += [(NS, name, build_from_nothing(principal)) for name in creates]
        body: JsonObject = {"table-changes": [{"name": name, **change} for _, name, change in changes]}
        ask = self.auditor.ask(Ask(principal, "transaction", (*tables, *creates), needs_schema=needs))
        await self._all(ask, lambda session: commit_transaction(session, changes), body, processes, key)

    async def read(self, process: str, *tables: str, times: int = 4) -> None:
        """A reader who loads these tables one after the other, again and again."""
        reader = self.world.process(process)
        for _ in range(times):
            for table in tables:
                since = self.world.loop.time()
                try:
                    told = await reader.run(load_table(self.fixture(reader).session(), NS, table))
                except (NoSuchTable, StoreUnavailable):
                    continue
                if told is DIED:
                    return
                self.auditor.read(told.entity, told.metadata_location, since)
            await self.world.runtime.sleep(self.world.runtime.random())

    async def _all(self, ask: Ask, perform: Perform, body: JsonObject, processes: tuple[str, ...], keyed: bool) -> None:
        key = self.key() if keyed else None
        async with asyncio.TaskGroup() as senders:
            for process in processes:
                senders.create_task(self.send(ask, perform, body, process, key))

    async def reconcile(self, process: str, times: int = 3) -> None:
        """A reconciler that walks again and again, beside everything else; when it dies, another goes on."""
        name = process
        for _ in range(times):
            walker = self.world.process(name)
            with suppress(StoreUnavailable, CommitStateUnknown, Unavailable):
                if await walker.run(reconcile(self.fixture(walker).session(), concurrency=4)) is DIED:
                    name += "+"
            await self.world.runtime.sleep(3.0 * self.world.runtime.random())

    async def close(self) -> None:
        """Lets everything land that is under way, and audits the end; a last walk mends whatever others left."""
        await self.world.settle()
        self.auditor.close(reconciled=False)
        last = self.world.process("last walk")
        stats = await last.run(reconcile(self.fixture(last).session(deadline_ms=600_000)))
        assert stats is not DIED
        assert stats.unreadable == []
        self.auditor.close(reconciled=True)


def build_from_nothing(principal: str) -> JsonObject:
    """A commit that creates a table."""
    return {
        "requirements": [{"type": "assert-create"}],
        "updates": [
            *creation_updates(),
            {"action": "set-properties", "updates": {"by": principal}},
        ],
    }
