"""Notifications of another catalog in the simulated world: whatever goes wrong, a table stands where the latest one
that was admitted says (docs/design/polaris.md#notifications)."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field, replace

from arco_catalog.iceberg.errors import (
    AlreadyExists,
    BadRequest,
    CatalogError,
    CommitStateUnknown,
    KeyInProgress,
    NoSuchTable,
    Refusal,
    Unavailable,
)
from arco_catalog.iceberg.json import JsonObject, dumps, loads
from arco_catalog.operations.load import load_table
from arco_catalog.operations.notifications import notify
from arco_catalog.planning.notifications import Event, Notification
from arco_catalog.planning.upkeep_settings import Retention
from arco_catalog.state.entries import find_relation
from arco_catalog.state.followed import FollowedTable
from arco_catalog.state.index import tombstones_of
from arco_catalog.state.paths import Paths
from arco_catalog.state.registry import RegistryState
from arco_catalog.upkeep.collection.collect import collect
from storage_backends import ABSENT, StoreError, StoreUnavailable, Version
from tests.simulation import history
from tests.simulation.clients import EAGER
from tests.simulation.world import DIED, World
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.request_bodies import uuid7

NAME = "t"
UUID = "6e9d1c5e-0a6b-4f2e-9d2c-0f6a0c1b2d3e"
OTHER = "11111111-2222-4333-8444-555555555555"
MANIFEST = Paths("wh").manifest
UNDROP_MS, RUN_MS = 60_000, 12_000
"""How long a drop can be undone, in place of a month, and how long one collection may take."""
TOLD = (Event.CREATE, Event.UPDATE, Event.DROP, Event.UPDATE, Event.UPDATE)
"""What the other catalog tells, in the order of its times."""

Standing = tuple[int, str | None]
"""The time of the last notification, and the metadata file; None for a table that was dropped."""


def file_of(at: int) -> str:
    """Where the metadata of this time lies."""
    return f"memory:///wh/warehouse/t/metadata/{at}.metadata.json"


@dataclass
class Followers:
    """Processes that are told at once, in no order, and who watches where the table stands."""

    world: World
    stood: list[Standing] = field(default_factory=lambda: [(-1, None)])

    def __post_init__(self) -> None:
        self.world.observe(self._see)

    def fixture(self, process: str) -> CatalogFixture:
        """The external catalog, as a process serves it."""
        of = self.world.process(process)
        return CatalogFixture(
            of.store, of.runtime, replace(EAGER, external=True, retention=Retention(undrop_ms=UNDROP_MS))
        )

    def _see(self, event: history.Event) -> None:
        if event.key != MANIFEST:
            return
        index = RegistryState.parse(self.world.snapshot()[MANIFEST], Version(""), "HEAD").index
        live = find_relation(index, NS, NAME)
        dropped = [FollowedTable.of(stone) for _, stone in index.scan(tombstones_of(NS, NAME))]
        followed = None if live is None else FollowedTable.of(live.json)
        before, file = self.stood[-1]
        times = [each.notified for each in (followed, *dropped) if each is not None]
        last = max(times, default=before)  # what was collected tells nothing any more
        standing = last, None if followed is None else followed.metadata.location
        if standing != (before, file):
            assert last > before or (not times and file is None), f"{standing} came after {self.stood[-1]}"
            assert followed is None or followed.notified == last, f"a table came back that was dropped at {last}"
            assert live is None or live.uuid == UUID, f"the name follows {live.uuid}"
            self.stood.append(standing)

    async def set_up(self) -> None:
        """The files, which their owner has written."""
        fixture = CatalogFixture(self.world.process("setup", skew_ms=0).store, self.world.runtime, EAGER)
        await fixture.namespace(*NS)
        document = loads((await fixture.table("like")).metadata)
        assert isinstance(document, dict)
        for at in range(len(TOLD)):
            body: JsonObject = {**document, "table-uuid": UUID, "location": "memory:///wh/warehouse/t"}
            await fixture.store.put(file_of(at).removeprefix("memory:///"), dumps(body), ABSENT)

    async def send(self, process: str, said: Notification) -> Refusal | None:
        """One notification, sent again under its key until there is a definite answer. Returns the refusal, if it is
        one."""
        key = uuid7(self.world.runtime.now_ms(), self.world.runtime)
        for tries in range(40):
            session = self.fixture(process).session({"at": said.at}, key=key, path=f"/notify/{said.at}")
            try:
                if await self.world.process(process).run(notify(session, NS, NAME, said)) is not DIED:
                    return None
                process += "+"
            except (CommitStateUnknown, KeyInProgress, Unavailable, StoreUnavailable):
                pass
            except Refusal as refusal:
                return refusal
            await self.world.runtime.sleep(min(30.0, 2.0**tries) * self.world.runtime.random())
        raise AssertionError(f"{said.at} never got a definite answer")

    async def tell(self, at: int, process: str) -> None:
        """One notification, whose answer must be so."""
        match await self.send(process, Notification(TOLD[at], at, UUID, file_of(at))):
            case None:
                assert self.told(at) in self.stood, f"{at} was admitted, and the table never stood there"
                return
            case AlreadyExists():
                assert self.stood[-1][0] > at, f"{at} was refused, and nothing later was admitted"
            case refusal:
                assert isinstance(refusal, NoSuchTable), f"{at} was told {refusal!r}"
                assert TOLD[at] is Event.DROP
        assert self.told(at) not in self.stood, f"{at} was refused, and made"

    async def mistake(self, process: str) -> None:
        """Drops of another table, by times from the second notification to after the last one: whatever has the name
        stays as it is."""
        runtime = self.world.runtime
        for _ in range(3):
            await runtime.sleep(0.5 * runtime.random())
            at = 1 + int(len(TOLD) * runtime.random())
            refusal = await self.send(process, Notification(Event.DROP, at, OTHER, file_of(at)))
            is_refused = isinstance(refusal, BadRequest | AlreadyExists | NoSuchTable)
            assert is_refused, f"another table was dropped: {refusal!r}"

    async def collect(self, process: str) -> None:
        """Collects again and again, until what was dropped can't be restored any more."""
        for _ in range(4):
            await self.world.runtime.sleep(UNDROP_MS / 1000 * self.world.runtime.random())
            session = self.fixture(process).session(deadline_ms=RUN_MS)
            with suppress(StoreError, CatalogError):
                if await self.world.process(process).run(collect(session, delete=True)) is DIED:
                    process += "+"

    def told(self, at: int) -> Standing:
        """Where the table stands by one notification."""
        return at, None if TOLD[at] is Event.DROP else file_of(at)

    async def read(self, process: str) -> None:
        """Loads the table again and again: it must have stood at that file since the load began."""
        for _ in range(6):
            await self.world.runtime.sleep(0.2 * self.world.runtime.random())
            before = len(self.stood) - 1
            try:
                loaded = await self.world.process(process).run(load_table(self.fixture(process).session(), NS, NAME))
            except NoSuchTable:
                seen: str | None = None
            except (Unavailable, StoreUnavailable):
                continue
            else:
                if loaded is DIED:
                    return
                seen = loaded.metadata_location
            assert seen in [file for _, file in self.stood[before:]], f"{seen} was shown, of {self.stood[before:]}"


async def notifications_in_any_order(world: World) -> None:
    """The last one is admitted, whatever came before it, and nothing older comes after."""
    followers = Followers(world)
    await followers.set_up()
    async with asyncio.TaskGroup() as processes:
        for at in range(len(TOLD)):
            processes.create_task(followers.tell(at, f"p{at % 3 + 1}"))
        processes.create_task(followers.mistake("p2"))
        processes.create_task(followers.read("reader"))
    await world.settle()
    assert followers.stood[-1] == followers.told(len(TOLD) - 1)


async def notifications_that_come_after_a_collection(world: World) -> None:
    """What was dropped does not come back by a notification that was late, however late it was."""
    followers = Followers(world)
    await followers.set_up()
    await followers.tell(0, "p1")
    await followers.tell(2, "p1")
    async with asyncio.TaskGroup() as processes:
        processes.create_task(followers.collect("collector"))
        processes.create_task(_later(followers, 1, "p2"))
        processes.create_task(_later(followers, 3, "p3"))
    await world.settle()
    assert followers.stood[-1] == followers.told(3)


async def _later(followers: Followers, at: int, process: str) -> None:
    """Tells it around the time in which a tombstone goes."""
    runtime = followers.world.runtime
    await runtime.sleep(2 * UNDROP_MS / 1000 * runtime.random())
    await followers.tell(at, process)
