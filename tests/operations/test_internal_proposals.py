"""Registry commits of the catalog itself are proposed as those of requests are: one that still holds is what it would
change on the later HEAD (docs/design/registry.md#proposals)."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import NoReturn

import pytest

from arco_catalog.iceberg.errors import CatalogError
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.create import create_table
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.transaction import commit_transaction
from arco_catalog.planning.collection import expire
from arco_catalog.planning.purge import begin, give_up, release
from arco_catalog.planning.upkeep_settings import PurgeSettings
from arco_catalog.protocol import internal_commits
from arco_catalog.protocol.catalog import Session, Settings
from arco_catalog.protocol.internal_commits import Change, change_registry, settle_decided
from arco_catalog.protocol.lookup import carry_out, entries_in, relation_entry
from arco_catalog.protocol.prepared_commit import PreparedCommit
from arco_catalog.protocol.reservations import Reservation
from arco_catalog.protocol.transaction_coordinator import TransactionCoordinator
from arco_catalog.state.entries import PendingTransaction, RelationEntry
from arco_catalog.state.index import Edits, Index
from arco_catalog.state.locations import Location
from arco_catalog.state.needs import Needs, Steps
from arco_catalog.state.proposal import Proposal
from arco_catalog.state.reads import Reads, recorded
from arco_catalog.state.registry import Operation, RegistryState
from arco_catalog.state.spilling import Limits
from arco_catalog.state.tombstone import Tombstone
from tests.operations.test_proposals import REQUESTS
from tests.simulation.clients import build_from_nothing
from tests.support.declared_index import DeclaredIndex, declaring
from tests.support.registry_versions import raise_version
from tests.support.scripted_store import ScriptedStore
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.request_bodies import schema

SETTINGS = Settings("wh", allow_location_overlap=True, purge=PurgeSettings(undrop_window_ms=0))
PLACE = Location.parse("memory:///wh/warehouse/place")
RELEASE = "01RELEASE"


async def prepared(limits: Limits | None = None) -> CatalogFixture:
    """A catalog with tables, dropped tables, and intents of a transaction that committed."""
    settings = SETTINGS if limits is None else replace(SETTINGS, spill=limits)
    fixture = CatalogFixture(ScriptedStore(), settings=settings)
    await fixture.namespace("db")
    await fixture.namespace("empty")
    await raise_version(fixture.session().state)
    for name in ("t", "u", "dropped", "purged", "purging"):
        await fixture.table(name)
    await drop_table(fixture.session(), NS, "dropped", purge=False)
    for name in ("purged", "purging"):
        await drop_table(fixture.session(), NS, name, purge=True)
    await purge_step(fixture, "purging", lambda index, stone: begin(index, stone, 1, stone.purge_after_ms))
    reserved = await reservation(fixture)
    await reserved.add(())
    await reserved.mark_leaving([PLACE.normal], RELEASE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionCoordinator, "settle_intents", nothing)
        await place(fixture, "intended", "intended too")
    return fixture


async def nothing(self: object) -> None:
    """A process that dies before this step."""


async def entry_of_t(fixture: CatalogFixture) -> RelationEntry:
    session = fixture.session()
    found = await relation_entry(session.state, (await session.state.head()).index, NS, "t")
    assert found is not None
    return found


async def reservation(fixture: CatalogFixture, place: Location = PLACE) -> Reservation:
    """One of the table t."""
    return Reservation(fixture.session(), NS, "t", (await entry_of_t(fixture)).entity, [place])


async def add_location(fixture: CatalogFixture) -> None:
    await (await reservation(fixture, Location.parse("memory:///wh/warehouse/more"))).add(())


async def mark_leaving(fixture: CatalogFixture) -> None:
    await (await reservation(fixture)).mark_leaving([PLACE.normal], "01LATER")


async def remove_leaving(fixture: CatalogFixture) -> None:
    await (await reservation(fixture)).remove_leaving(RELEASE, ())


async def tombstone(fixture: CatalogFixture, name: str) -> Tombstone:
    state = fixture.session().state
    found = entries_in(state, (await state.head()).index, "tombstone\n")
    [stone] = [Tombstone(entry) async for _, entry in found if entry["name"] == name]
    return stone


async def purge_step(
    fixture: CatalogFixture, name: str, step: Callable[[Index, Tombstone], Steps[Edits | None]]
) -> None:
    stone = await tombstone(fixture, name)
    await change_registry(fixture.session(), "step", {}, lambda head: step(head.index, stone))


async def place(fixture: CatalogFixture, *names: str) -> None:
    """A transaction that creates tables."""
    changes = [(NS, name, build_from_nothing("tester")) for name in names]
    await commit_transaction(fixture.session({}), changes)


async def settle(fixture: CatalogFixture) -> None:
    head = await fixture.session().state.head()
    found = {str(entry["transaction"]) for entry in head.index.edits.values() if entry and "transaction" in entry}
    await settle_decided(fixture.session(), dict.fromkeys(found, True))


async def stage(fixture: CatalogFixture) -> None:
    """Marks the location of t as shared."""
    location = Location.of_normal((await entry_of_t(fixture)).locations[0]).uri
    body: JsonObject = {"name": "staged", "schema": schema("x"), "stage-create": True, "location": f"{location}/in"}
    await create_table(fixture.session(body), NS, body)


Run = Callable[[CatalogFixture], Awaitable[object]]
INTERNAL: Mapping[str, Run] = {
    "place intents": lambda fixture: place(fixture, "new", "other"),
    "settle intents": settle,
    "add a location": add_location,
    "mark as leaving": mark_leaving,
    "remove what leaves": remove_leaving,
    "begin a purge": lambda fixture: purge_step(
        fixture, "purged", lambda index, stone: begin(index, stone, 1, stone.purge_after_ms)
    ),
    "begin a purge by the anti-join": lambda fixture: purge_step(
        fixture, "purged", lambda index, stone: begin(index, stone, 1, stone.purge_after_ms, anti_join=True)
    ),
    "renew a purge": lambda fixture: purge_step(
        fixture, "purging", lambda index, stone: begin(index, stone, 2, stone.purge_after_ms)
    ),
    "give a purge up": lambda fixture: purge_step(
        fixture, "purging", lambda index, stone: give_up(index, stone, stone.fence)
    ),
    "release a purged table": lambda fixture: purge_step(
        fixture, "purging", lambda index, stone: release(index, stone, stone.fence, 7)
    ),
    "collect a tombstone": lambda fixture: purge_step(fixture, "dropped", expire),
    "share a location": stage,
}


@dataclass
class PlannedChange:
    """A change that was planned and not made."""

    session: Session
    change: Change
    proposal: Proposal

    async def again(self, head: RegistryState) -> Edits | None:
        """The changes of the index by the same plan on another HEAD; None if it fails there, or changes nothing."""
        try:
            found = await self.change(head)
        except (CatalogError, PendingTransaction):
            return None
        return None if found is None else found.edits


class NotMade(Exception):
    """The change was taken before it was made."""


async def plan_only(fixture: CatalogFixture, run: Run) -> PlannedChange:
    """Plans a registry commit of the catalog itself on HEAD, with an index that refuses undeclared lookups."""
    found: list[PlannedChange] = []
    watched: list[DeclaredIndex] = []

    def declared(steps: Steps[Edits | None], lookups: list[Needs]) -> Steps[Edits | None]:
        return recorded(declaring(steps, watched[0]) if watched else steps, lookups)

    async def change_head(session: Session, kind: str, change: Change, **more: object) -> NoReturn:
        head = await session.state.head()
        watched.append(DeclaredIndex(head.index))
        made = await change(replace(head, index=watched[0]))
        watched.clear()
        assert made is not None
        assert made.lookups is not None
        proposal = Proposal.of(
            head,
            Operation(session.runtime.ulid(), kind, {}, None),
            made.edits,
            Reads.of(head, made.lookups),
            base=head.sequence,
            written_ms=0,
        )
        found.append(PlannedChange(session, change, Proposal.parse(proposal.body, "proposal")))
        raise NotMade

    async def must_propose(self: PreparedCommit) -> None:
        self.must_propose = True

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(internal_commits, "change_head", change_head)
        patch.setattr(internal_commits, "recorded", declared)
        patch.setattr(PreparedCommit, "put_and_read_bell", must_propose)
        with pytest.raises(NotMade):
            await run(fixture)
    return found[0]


EVERY = {**REQUESTS, **INTERNAL}
HOLD_AFTER = {
    ("place intents", "renew a purge"),
    ("settle intents", "create new"),
    ("add a location", "create other"),
    ("begin a purge", "add a location"),
    ("renew a purge", "settle intents"),
    ("release a purged table", "begin a purge"),
}
FAIL_AFTER = {
    ("place intents", "create new"),
    ("settle intents", "settle intents"),
    ("add a location", "rename t to new"),
    ("add a location", "remove what leaves"),
    ("remove what leaves", "mark as leaving"),
    ("begin a purge", "begin a purge"),
    ("renew a purge", "give a purge up"),
    ("release a purged table", "renew a purge"),
    ("collect a tombstone", "restore dropped"),
    ("share a location", "drop t"),
}


@pytest.mark.parametrize("limits", [None, Limits(embedded=64, segment=512, least=64)], ids=["small", "spilled"])
async def test_one_that_still_holds_is_what_it_would_change(limits: Limits | None) -> None:
    held: set[tuple[str, str]] = set()
    failed: set[tuple[str, str]] = set()
    for later, make in EVERY.items():
        fixture = await prepared(limits)
        plans = {name: await plan_only(fixture.another(), run) for name, run in INTERNAL.items()}
        await make(fixture.another())
        for name, planned in plans.items():
            head = await planned.session.state.head()
            if not await carry_out(planned.session.state, head.index, planned.proposal.still_holds(head)):
                failed.add((name, later))
                continue
            held.add((name, later))
            assert await planned.again(head) == planned.proposal.changes_on(head), (name, later)
    assert held >= HOLD_AFTER
    assert failed >= FAIL_AFTER
