"""Several tables change together, or not at all (docs/design/transaction.md)."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace

import pytest

from arco_catalog.iceberg.errors import (
    AlreadyExists,
    BadRequest,
    CommitFailed,
    CommitStateUnknown,
    KeyInProgress,
    NamespaceNotEmpty,
    NoSuchTable,
    Unavailable,
)
from arco_catalog.iceberg.json import JsonObject, loads
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.listing import Paging, list_relations
from arco_catalog.operations.load import load_table, require_table
from arco_catalog.operations.namespaces import drop_namespace
from arco_catalog.operations.receipts import entities_named, receipts
from arco_catalog.operations.rename import rename_table
from arco_catalog.operations.transaction import TableChange, commit_transaction
from arco_catalog.planning.answers import Document
from arco_catalog.protocol import transaction_coordinator
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.decisions import abort_if_undecided, read_decision, resolve_for_read, wait_for_decision
from arco_catalog.protocol.internal_commits import settle_decided
from arco_catalog.state.entries import find_relation
from arco_catalog.state.transaction import LEASE_MS, Decision, encode
from arco_catalog.upkeep.purge.other_table import has_name
from storage_backends import ABSENT, ANY, StoreDenied, StoreUnavailable, Unknown, When
from storage_backends.base import Outcome
from storage_backends.memory import MemoryStore
from tests.support.fake_runtime import FakeRuntime
from tests.support.scripted_store import DOWN, Rule, ScriptedStore, get, put
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.request_bodies import creation_updates, set_property
from tools.support.wrapped_stores import CountingStore, DelayingStore


@pytest.fixture
def clock() -> FakeRuntime:
    return FakeRuntime()


@pytest.fixture
async def fixture(clock: FakeRuntime) -> CatalogFixture:
    made = CatalogFixture(ScriptedStore(clock.now_ms), clock)
    await made.namespace("db")
    await made.table("a")
    await made.table("b")
    return made


def scripted(fixture: CatalogFixture) -> ScriptedStore:
    assert isinstance(fixture.store, ScriptedStore)
    return fixture.store


def change(name: str, body: JsonObject) -> TableChange:
    return NS, name, body


def both(value: str) -> list[TableChange]:
    return [change("a", set_property("p", value)), change("b", set_property("p", value))]


def creation(name: str, location: str | None = None) -> TableChange:
    updates = creation_updates()
    if location is not None:
        updates.append({"action": "set-location", "location": location})
    return change(name, {"requirements": [{"type": "assert-create"}], "updates": updates})


async def transact(fixture: CatalogFixture, changes: list[TableChange], key: str | None = None) -> object:
    return await commit_transaction(fixture.session([body for _, _, body in changes], key=key, path="/tx"), changes)


async def value(fixture: CatalogFixture, name: str) -> object:
    document = loads((await load_table(fixture.another().session(), NS, name)).metadata)
    assert isinstance(document, dict)
    found = document["properties"]
    assert isinstance(found, dict)
    return found.get("p")


def fails(name: str) -> TableChange:
    unmet: JsonObject = {"type": "assert-current-schema-id", "current-schema-id": 7}
    return change(name, {"requirements": [unmet], "updates": [{"action": "set-properties", "updates": {"p": "x"}}]})


async def test_all_tables_change_and_each_has_its_receipt(fixture: CatalogFixture) -> None:
    assert await transact(fixture, both("1")) == Document(204)
    assert [await value(fixture, name) for name in "ab"] == ["1", "1"]
    for name in "ab":
        assert [entry["state"] for entry in await receipts(fixture.session(), NS, name)] == [
            "committed",
            "committed",
        ]


async def test_if_one_requirement_fails_nothing_changes(fixture: CatalogFixture) -> None:
    key = fixture.key()
    for process in (fixture, fixture.another()):
        with pytest.raises(CommitFailed, match="current schema changed"):
            await transact(process, [*both("1")[:1], fails("b")], key)
    assert [await value(fixture, name) for name in "ab"] == [None, None]


async def test_a_missing_table_fails_all_of_it(fixture: CatalogFixture) -> None:
    with pytest.raises(NoSuchTable, match=r"Table does not exist: db\.nothing"):
        await transact(fixture, [*both("1"), change("nothing", set_property("p", "1"))])
    assert await value(fixture, "a") is None


async def test_a_transaction_is_replayed_under_its_key(fixture: CatalogFixture) -> None:
    key = fixture.key()
    await transact(fixture, both("1"), key)
    await fixture.commit(set_property("p", "2"), name="a")
    assert await transact(fixture.another(), both("1"), key) == Document(204)
    assert [await value(fixture, name) for name in "ab"] == ["2", "1"]


async def test_a_table_is_named_once_and_not_too_many_are(fixture: CatalogFixture) -> None:
    with pytest.raises(BadRequest, match=r"only once: db\.a"):
        await transact(fixture, [*both("1"), change("a", set_property("q", "1"))])
    small = CatalogFixture(fixture.store, fixture.runtime, replace(fixture.settings, max_transaction_tables=1))
    with pytest.raises(BadRequest, match="at most 1"):
        await transact(small, both("1"))


async def test_one_table_is_a_plain_commit_and_none_is_nothing(fixture: CatalogFixture) -> None:
    assert await transact(fixture, both("1")[:1]) == Document(204)
    assert await value(fixture, "a") == "1"
    assert await transact(fixture, []) == Document(204)


async def test_a_table_whose_part_changes_nothing_gets_no_file(fixture: CatalogFixture) -> None:
    before = (await load_table(fixture.session(), NS, "b")).metadata_location
    holds: JsonObject = {"type": "assert-current-schema-id", "current-schema-id": 0}
    await transact(fixture, [*both("1")[:1], change("b", {"requirements": [holds], "updates": []})])
    assert (await load_table(fixture.session(), NS, "b")).metadata_location == before
    assert len(await receipts(fixture.session(), NS, "b")) == 1
    await fixture.commit(set_property("p", "3"), name="b")


async def test_created_tables_come_with_the_rest_or_not_at_all(fixture: CatalogFixture) -> None:
    with pytest.raises(CommitFailed):
        await transact(fixture, [creation("c"), creation("d"), fails("a")])
    for name in "cd":
        with pytest.raises(NoSuchTable):
            await require_table(fixture.session(), NS, name)
    await transact(fixture, [creation("c"), creation("d"), *both("1")])
    assert [await value(fixture, name) for name in "abcd"] == ["1", "1", None, None]
    listed = await list_relations(fixture.another().session(), NS, "table", Paging(None, None))
    assert len(listed.items) == 4
    await fixture.commit(set_property("p", "2"), name="c")
    assert await value(fixture, "c") == "2"


async def test_a_created_table_needs_a_free_name_and_a_free_place(fixture: CatalogFixture) -> None:
    with pytest.raises(CommitFailed, match="table already exists"):
        await transact(fixture, [creation("a"), *both("1")[1:]])
    shared = "memory:///wh/warehouse/shared"
    with pytest.raises(BadRequest, match="overlaps"):
        await transact(fixture, [creation("c", shared), creation("d", f"{shared}/inside")])


async def test_a_transaction_that_is_refused_reserves_no_location(fixture: CatalogFixture) -> None:
    place = "memory:///wh/warehouse/elsewhere"
    moved: JsonObject = {"requirements": [], "updates": [{"action": "set-location", "location": place}]}
    for refused in (fails("b"), creation("b")):
        with pytest.raises((CommitFailed, AlreadyExists)):
            await transact(fixture, [change("a", moved), refused])

    assert await transact(fixture, [change("b", moved), creation("c")]) == Document(204)


async def test_two_transactions_over_the_same_tables_in_opposite_order_both_commit(fixture: CatalogFixture) -> None:
    other = fixture.another()
    await asyncio.gather(transact(fixture, both("1")), transact(other, both("2")[::-1]))
    assert await value(fixture, "a") == await value(fixture, "b")
    for name in "ab":
        assert len(await receipts(fixture.session(), NS, name)) == 3


async def break_at(fixture: CatalogFixture, part: str, changes: list[TableChange], key: str | None = None) -> None:
    """A transaction whose process loses the store when it writes a key that holds `part`."""
    assert isinstance(fixture.store, ScriptedStore)
    fixture.store.rules = [Rule(put(part), fails=DOWN)]
    with pytest.raises((CommitStateUnknown, KeyInProgress, StoreUnavailable)):
        await transact(fixture.another(), changes, key)
    fixture.store.rules = []


async def pending_with_intents(fixture: CatalogFixture, changes: list[TableChange], key: str | None = None) -> None:
    """A transaction whose process dies between its intents and its decision."""

    async def die(self: object, standing: object) -> None:
        raise CommitStateUnknown("died", "internal")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transaction_coordinator.TransactionCoordinator, "swap", die)
        with pytest.raises(CommitStateUnknown):
            await transact(fixture.another(), changes, key)


async def test_a_reader_inside_the_lease_sees_the_old_state(fixture: CatalogFixture) -> None:
    await pending_with_intents(fixture, both("1"))
    assert [await value(fixture, name) for name in "ab"] == [None, None]


async def test_a_commit_waits_for_the_lease_and_then_goes_on_over_the_old_state(
    fixture: CatalogFixture, clock: FakeRuntime
) -> None:
    await pending_with_intents(fixture, both("1"))
    with pytest.raises(CommitFailed, match="under way"):
        await fixture.commit(set_property("q", "1"), name="a", key=fixture.key())
    clock.ms += LEASE_MS
    await fixture.commit(set_property("q", "1"), name="a")
    assert [await value(fixture, name) for name in "ab"] == [None, None]
    await transact(fixture, both("2"))
    assert [await value(fixture, name) for name in "ab"] == ["2", "2"]


async def test_an_older_transaction_aborts_a_younger_one_that_it_meets(
    fixture: CatalogFixture, clock: FakeRuntime
) -> None:
    key = fixture.key()
    await break_at(fixture, "/transactions/", both("1"), key)  # claims, and so has the smaller rank
    clock.ms += 1000
    await pending_with_intents(fixture, both("2"))
    clock.ms += fixture.settings.in_progress_ms
    assert await transact(fixture, both("1"), key) == Document(204)
    assert [await value(fixture, name) for name in "ab"] == ["1", "1"]


async def pending_on(fixture: CatalogFixture, name: str) -> str:
    """The transaction whose intent is on a table."""
    entity = (await load_table(fixture.session(), NS, name)).entity
    pointer = await fixture.session().state.pointer(entity)
    assert pointer is not None
    assert pointer.intent is not None
    return pointer.intent


async def test_who_began_before_a_transaction_aborts_it_at_once(fixture: CatalogFixture, clock: FakeRuntime) -> None:
    older = clock.ulid()
    await pending_with_intents(fixture, both("1"))
    transaction, before = await pending_on(fixture, "a"), clock.ms

    assert await wait_for_decision(fixture.session(), transaction, older) is False

    decision = await read_decision(fixture.session().state, transaction)
    assert decision is not None
    assert (decision.status, clock.ms) == ("aborted", before)


@pytest.mark.parametrize("who", ["the same", "younger", "without rank"])
async def test_who_did_not_begin_before_a_transaction_leaves_it_alone(
    fixture: CatalogFixture, clock: FakeRuntime, who: str
) -> None:
    await pending_with_intents(fixture, both("1"))
    transaction = await pending_on(fixture, "a")
    begun = await read_decision(fixture.session().state, transaction)
    assert begun is not None
    rank = {"the same": begun.rank, "younger": clock.ulid(), "without rank": None}[who]

    with pytest.raises(Unavailable, match="under way"):
        await wait_for_decision(fixture.session(), transaction, rank)

    decision = await read_decision(fixture.session().state, transaction)
    assert decision is not None
    assert decision.status == "pending"


async def test_a_plan_that_no_longer_stands_is_made_again_as_another_transaction(fixture: CatalogFixture) -> None:
    """The first one's object was written beside the look that found HEAD moved; without intents it means nothing."""
    await fixture.another().table("d")

    assert await transact(fixture, [creation("c"), *both("1")]) == Document(204)

    assert [await value(fixture, name) for name in "abc"] == ["1", "1", None]
    assert isinstance(fixture.store, MemoryStore)
    begun = [key for key in fixture.store.keys("wh/_catalog/") if "/transactions/" in key]
    state = fixture.session().state
    decisions = [await read_decision(state, key.rpartition("/")[2].removesuffix(".json")) for key in begun]
    assert sorted(decision.status for decision in decisions if decision) == ["committed", "pending"]


async def test_a_takeover_closes_a_pending_transaction_and_commits_its_own(
    fixture: CatalogFixture, clock: FakeRuntime
) -> None:
    key = fixture.key()
    await pending_with_intents(fixture, both("1"), key)
    clock.ms += fixture.settings.in_progress_ms
    assert await transact(fixture, both("1"), key) == Document(204)
    assert [await value(fixture, name) for name in "ab"] == ["1", "1"]
    for name in "ab":
        assert len(await receipts(fixture.session(), NS, name)) == 2


async def test_what_is_decided_counts_for_everybody_before_it_is_settled(fixture: CatalogFixture) -> None:
    async def die(self: object) -> None:
        raise StoreUnavailable("died")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transaction_coordinator.TransactionCoordinator, "settle_intents", die)
        await transact(fixture.another(), [creation("c"), *both("1")])
    assert [await value(fixture, name) for name in "abc"] == ["1", "1", None]
    await fixture.commit(set_property("q", "1"), name="a")
    await fixture.commit(set_property("q", "1"), name="c")
    with pytest.raises(NamespaceNotEmpty):
        await drop_namespace(fixture.session(), NS)
    with pytest.raises(AlreadyExists):
        await fixture.table("c")
    await drop_table(fixture.session(), NS, "b", purge=False)
    assert [await value(fixture, name) for name in "ac"] == ["1", None]


async def test_a_commit_that_two_collections_meet_is_not_read_as_aborted(fixture: CatalogFixture) -> None:
    """One collection settles and deletes the decision, the other creates it again as aborted, between two reads of one
    reader."""

    async def die(self: object) -> None:
        raise StoreUnavailable("died")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transaction_coordinator.TransactionCoordinator, "settle_intents", die)
        await transact(fixture.another(), both("1"))
    session = fixture.session()
    entity = (await load_table(session, NS, "a")).entity
    read = await session.state.pointer(entity)
    assert read is not None
    assert read.intent is not None
    settled = read.settled(session.runtime.ulid(), committed=True)
    await session.state.move_pointer(settled, read.version)
    await fixture.store.delete(session.state.paths.transaction(read.intent), ANY)
    assert await abort_if_undecided(session.state, session.runtime, read.intent) is False

    assert (await resolve_for_read(fixture.another().session().state, read)).metadata == settled.metadata


async def listed(session: Session, entity: str) -> bool:
    items = (await list_relations(session, NS, "table", Paging(None, None))).items
    return any(isinstance(item, dict) and item["name"] == "c" for item in items)


async def named(session: Session, entity: str) -> bool:
    with suppress(NoSuchTable):
        return bool(await entities_named(session, NS, "c"))
    return False


async def loaded(session: Session, entity: str) -> bool:
    with suppress(NoSuchTable):
        return bool(await load_table(session, NS, "c"))
    return False


async def required(session: Session, entity: str) -> bool:
    with suppress(NoSuchTable):
        await require_table(session, NS, "c")
        return True
    return False


READERS_OF_NAMES = (loaded, required, listed, named, has_name)


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("exists", READERS_OF_NAMES)
async def test_a_name_whose_decision_is_collected_between_two_reads_is_there(
    fixture: CatalogFixture, exists: Callable[[Session, str], Awaitable[bool]], cached: bool, closed: bool
) -> None:
    """A collection settles the name and deletes the decision when a reader has read HEAD; another collection may have
    created the decision as aborted by then."""

    async def die(self: object) -> None:
        raise StoreUnavailable("died")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transaction_coordinator.TransactionCoordinator, "settle_intents", die)
        await transact(fixture.another(), [creation("c"), creation("d")])
    (key,) = scripted(fixture).keys(fixture.session().state.paths.transactions)
    transaction = key.rpartition("/")[2].removesuffix(".json")
    entity = find_relation((await fixture.another().session().state.head()).index, NS, "c")
    assert entity is not None

    async def collect() -> None:
        session = fixture.another().session()
        await settle_decided(session, {transaction: True})
        await fixture.store.delete(key, ANY)
        if closed:
            await abort_if_undecided(session.state, session.runtime, transaction)

    reader = fixture.another()
    if cached:
        await reader.session().state.head()
    scripted(fixture).rules = [Rule(get("/transactions/"), first=collect, times=1)]

    assert await exists(reader.session(), entity.entity)


async def test_an_intent_on_a_name_that_is_aborted_leaves_the_name_free(
    fixture: CatalogFixture, clock: FakeRuntime
) -> None:
    await pending_with_intents(fixture, [creation("c"), *both("1")])
    with pytest.raises(NoSuchTable):
        await require_table(fixture.session(), NS, "c")
    listed = await list_relations(fixture.another().session(), NS, "table", Paging(None, None))
    assert len(listed.items) == 2
    clock.ms += LEASE_MS
    await fixture.table("c")
    await require_table(fixture.session(), NS, "c")


async def test_a_name_of_which_nothing_is_decided_is_not_given_to_another(
    fixture: CatalogFixture, clock: FakeRuntime
) -> None:
    await pending_with_intents(fixture, [creation("c"), *both("1")])
    with pytest.raises(Unavailable, match="under way"):
        await rename_table(fixture.session(), (NS, "c"), (NS, "d"))
    clock.ms += LEASE_MS
    with pytest.raises(NoSuchTable):
        await rename_table(fixture.session(), (NS, "c"), (NS, "d"))


async def test_a_name_of_which_nothing_is_decided_is_neither_taken_nor_free(
    fixture: CatalogFixture, clock: FakeRuntime
) -> None:
    await pending_with_intents(fixture, [creation("c"), *both("1")])
    with pytest.raises(Unavailable, match="under way"):
        await rename_table(fixture.session(), (NS, "a"), (NS, "c"))
    clock.ms += LEASE_MS
    await rename_table(fixture.session(), (NS, "a"), (NS, "c"))
    await require_table(fixture.another().session(), NS, "c")


async def test_a_drop_decides_what_it_meets_and_then_marks(fixture: CatalogFixture, clock: FakeRuntime) -> None:
    entity = (await load_table(fixture.session(), NS, "a")).entity
    await pending_with_intents(fixture, both("1"))
    clock.ms += LEASE_MS
    await drop_table(fixture.session(), NS, "a", purge=False)
    pointer = await fixture.session().state.pointer(entity)
    assert pointer is not None
    assert (pointer.intent, pointer.dropped_by is not None) == (None, True)
    assert await value(fixture, "b") is None


async def test_a_drop_does_not_read_the_decision_of_a_settled_intent(
    fixture: CatalogFixture, clock: FakeRuntime
) -> None:
    store = CountingStore(fixture.store)
    remembering = replace(fixture, store=store)
    await pending_with_intents(fixture, both("1"))
    await load_table(remembering.session(), NS, "a")
    clock.ms += LEASE_MS
    await fixture.commit(set_property("q", "1"), name="a")

    with store.measure() as measured:
        await drop_table(remembering.session(), NS, "a", purge=False)

    assert [key for _, key in measured.log if "/transactions/" in key] == []
    with pytest.raises(NoSuchTable):
        await require_table(fixture.session(), NS, "a")


async def test_a_transaction_that_a_takeover_closed_before_it_began_never_begins(fixture: CatalogFixture) -> None:
    session = fixture.session()
    closed = Decision.closed(transaction="T", move="m")
    await fixture.store.put(session.state.paths.transaction("T"), encode(closed.document), ABSENT)
    assert await abort_if_undecided(session.state, session.runtime, "T") is False
    assert await abort_if_undecided(session.state, session.runtime, "never heard of") is False


@pytest.mark.parametrize("tables", [2, 3, 10])
async def test_a_warm_transaction_keeps_to_its_budget(tables: int) -> None:
    store = CountingStore(DelayingStore(MemoryStore(), 0.004))
    fixture = CatalogFixture(store)
    await fixture.namespace("db")
    names = [f"t{number}" for number in range(tables)]
    for name in names:
        await fixture.table(name)
    with store.measure() as measured:
        await transact(fixture, [change(name, set_property("p", "1")) for name in names], fixture.key())
    assert measured.depth <= 4
    assert measured.calls <= 5 * tables + 5


async def test_created_tables_are_within_the_budget_too() -> None:
    store = CountingStore(DelayingStore(MemoryStore(), 0.004))
    fixture = CatalogFixture(store)
    await fixture.namespace("db")
    with store.measure() as measured:
        await transact(fixture, [creation(f"t{number}") for number in range(5)], fixture.key())
    assert measured.depth <= 4
    assert measured.calls <= 5 * 5 + 5


async def test_a_commit_is_reported_though_its_intents_could_not_be_settled_in_time() -> None:
    class Silent(MemoryStore):
        decided = False

        async def put(self, key: str, body: bytes, when: When) -> Outcome:
            if self.decided and "/iceberg_pointers/" in key:
                return Unknown("lost")
            self.decided = self.decided or ("/transactions/" in key and b'"committed"' in body)
            return await super().put(key, body, when)

    clock = FakeRuntime()
    fixture = CatalogFixture(Silent(clock.now_ms), clock)
    await fixture.namespace("db")
    changes: list[TableChange] = [(NS, name, set_property("a", "1")) for name in ("t", "u")]
    for _, name, _ in changes:
        await fixture.table(name)

    assert await commit_transaction(fixture.session({}, key=fixture.key()), changes) == Document(204)


async def test_a_denial_does_not_decide_the_writes_before_it() -> None:
    class Expiring(MemoryStore):
        outcomes: tuple[str, ...] = ()

        async def put(self, key: str, body: bytes, when: When) -> Outcome:
            if not key.endswith("/manifest.json") or not self.outcomes:
                return await super().put(key, body, when)
            outcome, *rest = self.outcomes
            self.outcomes = tuple(rest)
            if outcome == "denied":
                raise StoreDenied("the token expired")
            await super().put(key, body, when)
            return Unknown("lost")

    store = Expiring()
    fixture = CatalogFixture(store, FakeRuntime())
    await fixture.namespace("db")
    store.outcomes = ("lost", "denied")

    with pytest.raises(CommitStateUnknown):
        await fixture.table("t")
    assert (await load_table(fixture.another().session(), NS, "t")).entity
