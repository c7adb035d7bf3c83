"""Intents on names are removed after any crash, and decide nothing about a name while they are undecided
(docs/design/transaction.md)."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from arco_catalog.iceberg.errors import (
    CatalogError,
    CommitFailed,
    CommitStateUnknown,
    KeyInProgress,
    NamespaceNotEmpty,
    NoSuchTable,
    Unavailable,
)
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations import transaction
from arco_catalog.operations.commit import commit_table
from arco_catalog.operations.create import create_table
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.load import load_table, require_table
from arco_catalog.operations.namespaces import drop_namespace
from arco_catalog.operations.receipts import receipts
from arco_catalog.operations.register import register_table
from arco_catalog.operations.rename import rename_table
from arco_catalog.operations.transaction import TableChange, commit_transaction
from arco_catalog.operations.undrop import undrop
from arco_catalog.planning.answers import Document
from arco_catalog.planning.name_intents import pending_transactions
from arco_catalog.protocol import lapsed, transaction_coordinator
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.decisions import read_decision
from arco_catalog.state.transaction import LEASE_MS
from arco_catalog.upkeep.reconcile import reconcile
from storage_backends import ANY, Found
from tests.operations.test_transactions import change, creation, transact
from tests.support.fake_runtime import FakeRuntime
from tests.support.scripted_store import DOWN, Rule, ScriptedStore, put
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.request_bodies import schema, set_property

Step = Callable[[], Awaitable[object]]
NEW_COLUMN: JsonObject = {
    "requirements": [],
    "updates": [
        {"action": "add-schema", "schema": schema("x", "y")},
        {"action": "set-current-schema", "schema-id": -1},
    ],
}
OLD_SCHEMA: JsonObject = {
    "requirements": [{"type": "assert-current-schema-id", "current-schema-id": 0}],
    "updates": [{"action": "set-properties", "updates": {"p": "1"}}],
}


@pytest.fixture
def clock() -> FakeRuntime:
    return FakeRuntime()


@pytest.fixture
def store(clock: FakeRuntime) -> ScriptedStore:
    return ScriptedStore(clock.now_ms)


@pytest.fixture
async def fixture(store: ScriptedStore, clock: FakeRuntime) -> CatalogFixture:
    made = CatalogFixture(store, clock)
    await made.namespace("db")
    await made.table("a")
    await made.table("b")
    return made


async def waiting(fixture: CatalogFixture) -> list[str]:
    """The transactions on which HEAD waits."""
    return [*pending_transactions((await fixture.another().session().state.head()).index)]


async def intent_on(fixture: CatalogFixture, name: str) -> str | None:
    """The transaction whose intent is on a table, decided or not."""
    pointer = await fixture.another().session().state.pointer((await load_table(fixture.session(), NS, name)).entity)
    assert pointer is not None
    return pointer.intent


async def status(fixture: CatalogFixture, of: str) -> str:
    decision = await read_decision(fixture.another().session().state, of)
    assert decision is not None
    return decision.status


async def dies_before_its_decision(fixture: CatalogFixture, *changes: TableChange, key: str | None = None) -> None:
    """A transaction whose process dies when all is laid."""

    async def die(self: object, standing: object) -> None:
        raise CommitStateUnknown("died", "internal")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transaction_coordinator.TransactionCoordinator, "swap", die)
        with pytest.raises(CommitStateUnknown):
            await transact(fixture.another(), [*changes], key)


async def dies_after_its_decision(fixture: CatalogFixture, *changes: TableChange, key: str | None = None) -> None:
    """A transaction whose process dies when it has committed: nothing is settled, and no final slot is put."""

    async def die(self: object, *_: object) -> None:
        raise CommitStateUnknown("died", "internal")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("arco_catalog.protocol.commit_loop.CommitLoop.follow_up", die)
        with pytest.raises(CommitStateUnknown):
            await transact(fixture.another(), [*changes], key)


# Who aborts cleans up.


async def test_a_request_that_is_refused_after_an_aborted_attempt_leaves_no_intents(
    fixture: CatalogFixture, store: ScriptedStore
) -> None:
    other = fixture.another()

    async def move_on() -> None:
        await other.commit(NEW_COLUMN, name="a")

    store.rules = [Rule(put("/iceberg_pointers/", b'"intent"'), first=move_on, times=1)]
    with pytest.raises(CommitFailed, match="current schema changed"):
        await transact(fixture, [change("a", OLD_SCHEMA), change("b", OLD_SCHEMA), creation("c"), creation("d")])

    assert await waiting(fixture) == []
    assert [await intent_on(fixture, name) for name in "ab"] == [None, None]
    for name in "cd":
        with pytest.raises(NoSuchTable):
            await require_table(fixture.session(), NS, name)


async def test_a_transaction_that_was_aborted_before_its_decision_takes_its_names_back(
    fixture: CatalogFixture, store: ScriptedStore, clock: FakeRuntime
) -> None:
    """It wakes up behind its lease, when another has aborted it and changed what its requirements ask for."""
    other = fixture.another()

    async def abort() -> None:
        clock.ms += LEASE_MS
        await other.commit(NEW_COLUMN, name="a")

    store.rules = [Rule(put("/transactions/", b'"committed"'), first=abort, times=1)]
    session = fixture.session(deadline_ms=10 * LEASE_MS)
    with pytest.raises(CommitFailed, match="current schema changed"):
        await commit_transaction(session, [change("a", OLD_SCHEMA), change("b", OLD_SCHEMA), creation("c")])

    assert await waiting(fixture) == []
    assert await intent_on(fixture, "b") is None


@pytest.mark.parametrize(
    ("at", "saying"), [("/iceberg_pointers/", b'"intent"'), ("/transactions/", b'"committed"')], ids=["lay", "decide"]
)
async def test_a_coordinator_that_loses_the_store_for_one_write_aborts_without_delaying_others(
    fixture: CatalogFixture, store: ScriptedStore, at: str, saying: bytes
) -> None:
    store.rules = [Rule(put(at, saying), fails=DOWN, times=1)]
    with pytest.raises((Unavailable, CommitStateUnknown)):
        await transact(fixture, [change("a", OLD_SCHEMA), creation("c")])

    assert await waiting(fixture) == []
    began = fixture.runtime.now_ms()
    await fixture.another().commit(set_property("p", "2"), name="a")
    await fixture.another().table("c")
    assert fixture.runtime.now_ms() - began < 1_000


async def test_who_aborts_by_lease_takes_the_names_of_the_dead_away(
    fixture: CatalogFixture, clock: FakeRuntime
) -> None:
    await dies_before_its_decision(fixture, *[change(name, set_property("p", "1")) for name in "ab"], creation("c"))
    assert len(await waiting(fixture)) == 1
    clock.ms += LEASE_MS

    await fixture.commit(set_property("q", "1"), name="a")

    assert await waiting(fixture) == []


async def test_who_aborts_by_rank_takes_the_names_of_the_dead_away(fixture: CatalogFixture, clock: FakeRuntime) -> None:
    store, key = fixture.store, fixture.key()
    assert isinstance(store, ScriptedStore)

    async def what_was_sent_beside_it_lands() -> None:
        await asyncio.sleep(0)

    changes = [change(name, set_property("p", "1")) for name in "ab"]
    store.rules = [Rule(put("/transactions/"), first=what_was_sent_beside_it_lands, fails=DOWN, times=1)]
    with pytest.raises(KeyInProgress):
        await transact(fixture, changes, key)  # it claims, and so has the smaller rank
    clock.ms += fixture.settings.in_progress_ms
    await dies_before_its_decision(fixture, change("a", set_property("p", "2")), creation("c"))

    assert await transact(fixture.another(), changes, key) == Document(204)

    assert await waiting(fixture) == []


async def test_a_takeover_that_is_refused_leaves_no_intents_of_those_before_it(
    fixture: CatalogFixture, clock: FakeRuntime
) -> None:
    """The one before it died between its names and its tables, so that nothing else leads to what it left."""
    key, changes = fixture.key(), [change("a", OLD_SCHEMA), creation("c")]

    async def die_half_way(self: transaction_coordinator.TransactionCoordinator) -> None:
        assert self.names_commit is not None
        assert await self.place_on_names(self.names_commit)
        raise CommitStateUnknown("died", "internal")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transaction_coordinator.TransactionCoordinator, "place_intents", die_half_way)
        with pytest.raises(CommitStateUnknown):
            await transact(fixture.another(), changes, key)
    (dead,) = await waiting(fixture)
    await fixture.commit(NEW_COLUMN, name="a")
    clock.ms += fixture.settings.in_progress_ms

    with pytest.raises(CommitFailed, match="current schema changed"):
        await transact(fixture.another(), changes, key)

    assert await waiting(fixture) == []
    assert await status(fixture, dead) == "aborted"


async def test_who_finds_that_the_dead_had_committed_settles_its_names(fixture: CatalogFixture) -> None:
    key, changes = fixture.key(), [change("a", OLD_SCHEMA), creation("c")]
    await dies_after_its_decision(fixture, *changes, key=key)
    assert len(await waiting(fixture)) == 1

    assert await transact(fixture.another(), changes, key) == Document(204)

    assert await waiting(fixture) == []
    await require_table(fixture.another().session(), NS, "c")


# The reconciler settles intents that no request settles.


async def test_the_reconciler_settles_what_is_decided_or_past_its_lease(
    fixture: CatalogFixture, clock: FakeRuntime
) -> None:
    await dies_after_its_decision(fixture, creation("c"), creation("d"))
    await dies_before_its_decision(fixture, creation("e"), creation("f"))
    clock.ms += LEASE_MS
    await dies_before_its_decision(fixture, creation("g"), creation("h"))
    _, lapsed_one, young = await waiting(fixture)

    await reconcile(fixture.another().session())

    assert await waiting(fixture) == [young]
    assert [await status(fixture, each) for each in (lapsed_one, young)] == ["aborted", "pending"]
    for name in "cd":
        await require_table(fixture.another().session(), NS, name)
    for name in "efgh":
        with pytest.raises(NoSuchTable):
            await require_table(fixture.another().session(), NS, name)
    clock.ms += LEASE_MS
    await reconcile(fixture.another().session())
    assert await waiting(fixture) == []


async def test_a_dry_run_of_the_reconciler_settles_nothing(fixture: CatalogFixture, clock: FakeRuntime) -> None:
    await dies_before_its_decision(fixture, creation("c"), creation("d"))
    clock.ms += LEASE_MS
    (dead,) = await waiting(fixture)

    await reconcile(fixture.another().session(), dry=True)

    assert await waiting(fixture) == [dead]
    assert await status(fixture, dead) == "pending"


async def test_one_run_settles_so_many_and_the_oldest_first(
    fixture: CatalogFixture, clock: FakeRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lapsed, "AT_ONCE", 2)
    for number in range(5):
        await dies_before_its_decision(fixture, creation(f"x{number}"), creation(f"y{number}"))
    clock.ms += LEASE_MS
    all_of_them = await waiting(fixture)

    assert await lapsed.settle_lapsed(fixture.another().session(), limit=3) == 3
    assert await waiting(fixture) == all_of_them[3:]
    assert await lapsed.settle_lapsed(fixture.another().session(), should_stop=lambda: True) == 0
    assert await lapsed.settle_lapsed(fixture.another().session()) == 2
    assert await waiting(fixture) == []


async def test_a_decision_that_cannot_be_read_keeps_no_other_from_being_settled(
    fixture: CatalogFixture, clock: FakeRuntime
) -> None:
    await dies_before_its_decision(fixture, creation("c"), creation("d"))
    await dies_before_its_decision(fixture, creation("e"), creation("f"))
    clock.ms += LEASE_MS
    unreadable, _ = await waiting(fixture)
    await fixture.store.put(fixture.catalog.paths.transaction(unreadable), b"no JSON", ANY)
    session = fixture.another().session()

    assert await lapsed.settle_lapsed(session) == 1

    assert await waiting(fixture) == [unreadable]
    assert session.stats.dropped_writes == 1


async def test_a_head_that_is_corrupt_by_then_does_not_end_the_run(
    fixture: CatalogFixture, store: ScriptedStore, clock: FakeRuntime
) -> None:
    await dies_before_its_decision(fixture, creation("c"), creation("d"))
    clock.ms += LEASE_MS
    session = fixture.another().session()

    async def corrupt() -> None:
        await store.put(fixture.catalog.paths.manifest, b"no JSON", ANY)

    store.rules = [Rule(put("/transactions/"), then=corrupt, times=1)]

    assert await lapsed.settle_lapsed(session) == 0

    assert session.stats.dropped_writes == 1


async def test_names_whose_transaction_is_gone_are_free(fixture: CatalogFixture) -> None:
    await dies_before_its_decision(fixture, creation("c"), creation("d"))
    (gone,) = await waiting(fixture)
    await fixture.store.delete(fixture.catalog.paths.transaction(gone))

    await reconcile(fixture.another().session())

    assert await waiting(fixture) == []


async def test_head_stays_bounded_though_coordinators_die_and_no_reconciler_runs(
    fixture: CatalogFixture, clock: FakeRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transaction, "CROWDED", 4)
    highest = 0
    for number in range(12):
        clock.ms += LEASE_MS
        await dies_before_its_decision(fixture, creation(f"x{number}"), creation(f"y{number}"))
        highest = max(highest, len(await waiting(fixture)))
    assert highest <= 4 + 1


async def test_intents_inside_their_lease_do_not_delay_other_commits(
    fixture: CatalogFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transaction, "CROWDED", 2)
    for number in range(4):
        await dies_before_its_decision(fixture, creation(f"x{number}"), creation(f"y{number}"))

    assert await transact(fixture, [creation("c"), creation("d")]) == Document(204)

    assert len(await waiting(fixture)) == 4


# What is undecided is no reason for a definite no.


FILE = "memory:///wh/warehouse/old/kept.metadata.json"
"""A metadata file of a table that was dropped."""


def create_c(session: Session) -> Awaitable[object]:
    return create_table(session, NS, {"name": "c", "schema": schema("x")})


def stage_c(session: Session) -> Awaitable[object]:
    return create_table(session, NS, {"name": "c", "schema": schema("x"), "stage-create": True})


def create_c_by_commit(session: Session) -> Awaitable[object]:
    namespace, name, body = creation("c")
    return commit_table(session, namespace, name, body)


def create_beside_it(session: Session) -> Awaitable[object]:
    place = "memory:///wh/warehouse/held/inside"
    return create_table(session, NS, {"name": "z", "schema": schema("x"), "location": place})


def move_into_it(session: Session) -> Awaitable[object]:
    place = "memory:///wh/warehouse/held/inside"
    moved: JsonObject = {"requirements": [], "updates": [{"action": "set-location", "location": place}]}
    return commit_table(session, NS, "a", moved)


def drop_c(session: Session) -> Awaitable[object]:
    return drop_table(session, NS, "c", purge=False)


def rename_c(session: Session) -> Awaitable[object]:
    return rename_table(session, (NS, "c"), (NS, "z"))


def rename_to_c(session: Session) -> Awaitable[object]:
    return rename_table(session, (NS, "a"), (NS, "c"))


def undrop_c(session: Session) -> Awaitable[object]:
    return undrop(session, NS, "c")


def transact_c(session: Session) -> Awaitable[object]:
    return commit_transaction(session, [creation("c"), creation("z")])


def register_c(session: Session) -> Awaitable[object]:
    return register_table(session, NS, "c", FILE, overwrite=False)


def register_over_c(session: Session) -> Awaitable[object]:
    return register_table(session, NS, "c", FILE, overwrite=True)


MEETING: list[Callable[[Session], Awaitable[object]]] = [
    create_c,
    stage_c,
    create_c_by_commit,
    create_beside_it,
    move_into_it,
    drop_c,
    rename_c,
    rename_to_c,
    undrop_c,
    transact_c,
    register_c,
    register_over_c,
]
UNDONE = {"drop_c": NoSuchTable, "rename_c": NoSuchTable}
"""What follows once the transaction is aborted, where that is not success."""


async def crowded_name(fixture: CatalogFixture) -> None:
    """A dead transaction that would create `c`, which was dropped before, at a place of its own."""
    await fixture.table("c")
    await drop_table(fixture.session(), NS, "c", purge=False)
    old = await fixture.table("old", location="memory:///wh/warehouse/old")
    await fixture.store.put("wh/warehouse/old/kept.metadata.json", old.metadata, ANY)
    await drop_table(fixture.session(), NS, "old", purge=False)
    await dies_before_its_decision(fixture, creation("c", "memory:///wh/warehouse/held"), creation("d"))


@pytest.mark.parametrize("meet", MEETING)
@pytest.mark.parametrize("keyed", [False, True])
async def test_a_client_that_meets_a_dead_coordinator_retries_and_succeeds(
    fixture: CatalogFixture, clock: FakeRuntime, meet: Callable[[Session], Awaitable[object]], keyed: bool
) -> None:
    """Its deadline is shorter than the lease. No answer is false, and a client that retries after a second, as
    Retry-After requires, succeeds once the lease has ended."""
    await crowded_name(fixture)
    key = fixture.key() if keyed else None
    began, expected = clock.ms, UNDONE.get(meet.__name__)
    with pytest.raises(KeyInProgress if keyed else Unavailable, match="under way, and not decided yet"):
        await meet(fixture.session(key=key))
    report: object = None
    for _ in range(4):
        clock.ms += 1_000
        try:
            report = await meet(fixture.another().session(key=key))
        except KeyInProgress:  # what its first try began is taken over when it is old enough
            continue
        except CatalogError as error:
            report = type(error)
        break

    assert report == expected if expected is not None else report is not None and not isinstance(report, type)
    assert clock.ms - began <= LEASE_MS + 1_000
    assert await waiting(fixture) == []


async def test_a_namespace_that_may_yet_get_a_table_is_neither_empty_nor_full(
    fixture: CatalogFixture, clock: FakeRuntime
) -> None:
    for name in "ab":
        await drop_table(fixture.session(), NS, name, purge=False)
    await dies_before_its_decision(fixture, creation("c"), creation("d"))

    with pytest.raises(Unavailable, match="under way"):
        await drop_namespace(fixture.session(), NS)

    clock.ms += LEASE_MS
    assert await drop_namespace(fixture.another().session(), NS) == Document(204)


async def test_a_namespace_with_a_table_is_full_whatever_is_decided(fixture: CatalogFixture) -> None:
    await dies_before_its_decision(fixture, creation("A"), creation("B"))  # they sort before what is there
    began = fixture.runtime.now_ms()

    with pytest.raises(NamespaceNotEmpty):
        await drop_namespace(fixture.session(), NS)

    assert fixture.runtime.now_ms() == began


async def test_a_table_commit_that_waited_in_vain_has_failed_and_may_be_made_anew(
    fixture: CatalogFixture, clock: FakeRuntime
) -> None:
    """Of a commit 409 is true: it lost to another. Its client reads again and commits again, under another key."""
    await dies_before_its_decision(fixture, *[change(name, set_property("p", "1")) for name in "ab"])
    key = fixture.key()
    for process in (fixture, fixture.another()):
        with pytest.raises(CommitFailed, match="under way"):
            await process.commit(set_property("q", "1"), name="a", key=key)

    clock.ms += LEASE_MS
    await fixture.commit(set_property("q", "1"), name="a", key=fixture.key())


async def test_receipts_of_a_name_that_is_not_decided_are_those_of_no_table(fixture: CatalogFixture) -> None:
    await dies_before_its_decision(fixture, creation("c"), creation("d"))
    with pytest.raises(NoSuchTable):
        await receipts(fixture.session(), NS, "c")


# Leases end, and what has ended is aborted before anybody acts on it.


async def test_a_lease_ends_for_a_coordinator_that_is_alive_too(
    fixture: CatalogFixture, store: ScriptedStore, clock: FakeRuntime
) -> None:
    """Who acts on an expired transaction aborts it first: its coordinator, waking up, must find that it can't commit
    any more, and so begins again on top of what was done meanwhile."""
    other, seen = fixture.another(), list[str]()

    async def past_the_lease() -> None:
        clock.ms += LEASE_MS
        (sleeping,) = await waiting(fixture)
        await other.commit(set_property("q", "other"), name="a")
        seen.append(await status(fixture, sleeping))

    store.rules = [Rule(put("/transactions/", b'"committed"'), first=past_the_lease, times=1)]
    changes = [change("a", set_property("p", "mine")), creation("c")]
    assert await commit_transaction(fixture.session(deadline_ms=10 * LEASE_MS), changes) == Document(204)

    assert seen == ["aborted"]
    listed = await receipts(fixture.session(), NS, "a")
    assert len(listed) == 3
    body = (await load_table(fixture.another().session(), NS, "a")).metadata
    assert b'"p":"mine"' in body
    assert b'"q":"other"' in body


async def test_an_abort_by_lease_is_a_write_of_its_own(fixture: CatalogFixture, clock: FakeRuntime) -> None:
    await dies_before_its_decision(fixture, *[change(name, set_property("p", "1")) for name in "ab"])
    dead = await intent_on(fixture, "a")
    assert dead is not None
    clock.ms += LEASE_MS
    await fixture.commit(set_property("q", "1"), name="a")
    found = await fixture.store.get(fixture.catalog.paths.transaction(dead))
    assert isinstance(found, Found)
    assert b'"status":"aborted"' in found.body
