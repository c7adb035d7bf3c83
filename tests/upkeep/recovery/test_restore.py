"""Lost records are restored where their content is proven; else the operator has to choose (docs/recovery.md)."""

from dataclasses import dataclass

import pytest

from arco_catalog.iceberg.errors import AlreadyExists, BadRequest, CommitFailed
from arco_catalog.iceberg.json import JsonObject, dumps
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.generic_tables import GenericTable, create_generic_table
from arco_catalog.operations.governance import govern_relation
from arco_catalog.operations.init import init_catalog
from arco_catalog.operations.load import load_table
from arco_catalog.operations.namespaces import create_namespace, drop_namespace, update_properties
from arco_catalog.operations.register import register_table
from arco_catalog.operations.semantic_models import create_semantic_model
from arco_catalog.operations.undrop import undrop
from arco_catalog.planning.answers import TableState
from arco_catalog.protocol.decisions import read_decision
from arco_catalog.protocol.evidence import fence_registry, mark_dropped
from arco_catalog.state.fields import mapping, objects, sequence, text
from arco_catalog.state.lost_head import HeadLost
from arco_catalog.state.paths import commit_key
from arco_catalog.state.pointer import Pointer
from arco_catalog.state.registry import Operation, RegistryState
from arco_catalog.state.transaction import Decision, encode
from arco_catalog.upkeep.reconcile import reconcile
from arco_catalog.upkeep.recovery.restore import Choices, restore
from storage_backends import ABSENT, ANY, Found, Version
from tests.support.fake_runtime import FakeRuntime
from tests.support.followed import follow
from tests.support.scripted_store import Rule, ScriptedStore, get, swap
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.request_bodies import set_property

STATE = "wh/_catalog/"
MANIFEST = f"{STATE}core/manifest.json"
COMMITS = f"{STATE}core/commits/"


@dataclass
class Catalog:
    """A catalog in memory, and what operators do to it."""

    fixture: CatalogFixture

    @property
    def store(self) -> ScriptedStore:
        assert isinstance(self.fixture.store, ScriptedStore)
        return self.fixture.store

    async def body(self, key: str) -> bytes:
        found = await self.store.get(key)
        assert isinstance(found, Found)
        return found.body

    async def head(self) -> RegistryState:
        return RegistryState.parse(await self.body(MANIFEST), Version(""), MANIFEST)

    async def pointer(self, entity: str) -> Pointer:
        key = self.pointer_key(entity)
        return Pointer.parse(await self.body(key), Version(""), key)

    def pointer_key(self, entity: str) -> str:
        return f"{STATE}iceberg_pointers/{entity}.json"

    async def restore(self, choices: Choices | None = None, *, dry: bool = False) -> JsonObject:
        return await restore(self.fixture.another().session(), choices or Choices(), dry=dry)

    def kept(self) -> list[str]:
        return [*self.store.keys(f"{STATE}recovery/")]


@pytest.fixture
async def lived() -> Catalog:
    clock = FakeRuntime()
    made = Catalog(CatalogFixture(ScriptedStore(clock.now_ms), clock))
    await made.fixture.namespace(*NS)
    return made


def candidates(found: object) -> list[JsonObject]:
    assert isinstance(found, dict)
    return [each for each in sequence(found, "candidates") if isinstance(each, dict)]


# HEAD


async def test_a_head_without_evidence_of_its_last_change_needs_a_choice(lived: Catalog) -> None:
    await create_namespace(lived.fixture.session(), ("later",), {})
    head = await lived.head()
    await lived.store.delete(MANIFEST)

    requests = await lived.restore()
    assert requests["ok"] is False
    found = candidates(requests["head"])
    assert [[each["kind"] for each in sequence(one, "operations") if isinstance(each, dict)] for one in found] == [
        ["create-namespace"],
        ["create-namespace"],
    ]
    assert MANIFEST not in lived.store.keys("")
    done = await lived.restore(Choices(head=head.id))

    assert done["ok"] is True
    assert (await lived.head()).document == head.document


async def test_a_catalog_without_its_head_is_not_taken_for_a_new_one(lived: Catalog) -> None:
    fixture = lived.fixture
    await fixture.table("t")
    await create_namespace(fixture.session(), ("later",), {})
    head = await lived.body(MANIFEST)
    await lived.store.delete(MANIFEST)

    for server in (fixture, fixture.another()):
        with pytest.raises(HeadLost, match="arco restore"):
            await create_namespace(server.session(), ("another",), {})
        with pytest.raises(HeadLost):
            await load_table(server.session(), NS, "t")
        with pytest.raises(HeadLost):
            await init_catalog(server.session())
        with pytest.raises(HeadLost):
            await fence_registry(server.session())

    assert MANIFEST not in lived.store.keys("")
    assert (await lived.restore(Choices(head=RegistryState.parse(head, None, MANIFEST).id)))["ok"] is True
    await load_table(fixture.session(), NS, "t")


async def test_commits_that_raced_to_be_the_first_make_no_head(lived: Catalog) -> None:
    await lived.store.delete(MANIFEST)  # one commit was made, which is built on none: so was one that lost

    await create_namespace(lived.fixture.another().session(), ("db",), {})

    assert (await lived.head()).sequence == 1


async def test_a_head_that_is_made_after_the_read_is_found() -> None:
    clock = FakeRuntime()
    store = ScriptedStore(clock.now_ms)
    fixture = CatalogFixture(store, clock)

    async def others() -> None:
        store.rules = []
        await create_namespace(fixture.session(), ("a",), {})
        await create_namespace(fixture.session(), ("b",), {})

    store.rules = [Rule(get(MANIFEST), then=others, times=1)]

    assert (await fixture.another().session().state.head()).sequence == 2


async def test_the_stored_answer_of_a_key_is_evidence(lived: Catalog) -> None:
    fixture = lived.fixture
    await create_namespace(fixture.session({}, key=fixture.key(), path="/namespaces"), ("later",), {})
    before = await lived.body(MANIFEST)
    await lived.store.delete(MANIFEST)

    report = await lived.restore()

    assert (report["ok"], await lived.body(MANIFEST)) == (True, before)


async def test_of_two_commits_with_one_proven_operation_the_one_with_all_of_them_was_head(lived: Catalog) -> None:
    """Two processes have each made a commit of the proposals that they found: one of them found one more."""
    fixture, parent = lived.fixture, await lived.head()
    for name in ("a", "b"):
        await create_namespace(fixture.session({}, key=fixture.key(), path="/namespaces"), (name,), {})
    second = await lived.head()
    first = RegistryState.parse(await lived.body(f"{COMMITS}{second.document['parent']}.json"), None, COMMITS)
    made = [Operation.parse(each) for head in (first, second) for each in objects(head.document, "operations")]
    for head in (first, second):
        await lived.store.delete(f"{COMMITS}{head.id}.json")
    both, one = (
        parent.successor(commit=f"0{name}", at_ms=parent.at_ms, edits={}, operations=operations)
        for name, operations in (("both", made), ("one", made[:1]))
    )
    for commit in (both, one):
        await lived.store.put(f"{COMMITS}{commit.id}.json", commit.body, ABSENT)
    await lived.store.delete(MANIFEST)

    report = await lived.restore()

    assert (report["ok"], await lived.body(MANIFEST)) == (True, both.body)


async def test_an_answer_that_changed_nothing_does_not_tell(lived: Catalog) -> None:
    """Two set the same property at once. One had no key and won; the other found nothing left to do, and its commit
    was never HEAD, though its attempt has a final answer."""
    fixture = lived.fixture

    async def win() -> None:
        await update_properties(fixture.another().session(), NS, [], {"p": "1"})

    lived.store.rules = [Rule(swap(MANIFEST), first=win, times=1)]
    loser = fixture.another().session({}, key=fixture.key(), path="/properties")
    await update_properties(loser, NS, [], {"p": "1"})
    truth = await lived.head()
    await lived.store.delete(MANIFEST)

    report = await lived.restore()

    found = candidates(report["head"])
    assert len(found) == 3, "HEAD of before, the winner's commit and the loser's"
    assert mapping(report, "head")["chosen"] is None
    assert truth.id in [each["commit"] for each in found]


async def test_the_mark_of_a_drop_is_evidence(lived: Catalog) -> None:
    await lived.fixture.table("t")
    await drop_table(lived.fixture.session(), NS, "t", purge=False)
    before = await lived.body(MANIFEST)
    await lived.store.delete(MANIFEST)

    report = await lived.restore()

    assert (report["ok"], await lived.body(MANIFEST)) == (True, before)


async def test_the_mark_of_a_drop_is_evidence_when_the_one_before_marks_the_pointer_last(lived: Catalog) -> None:
    fixture = lived.fixture
    table = await fixture.table("t")
    await drop_table(fixture.session(), NS, "t", purge=False)
    first = (await lived.pointer(table.entity)).drops[0]
    await undrop(fixture.session(), NS, "t")
    await drop_table(fixture.session(), NS, "t", purge=False)
    second = (await lived.pointer(table.entity)).drops[0]
    key = lived.pointer_key(table.entity)
    marked: JsonObject = {
        **(await lived.pointer(table.entity)).document,
        "dropped": {"operation": second},
    }  # by version 0.1
    await lived.store.put(key, dumps(marked), ANY)
    await mark_dropped(fixture.another().session(), table.entity, first)  # by a server that was slow
    before = await lived.body(MANIFEST)
    await lived.store.delete(MANIFEST)

    report = await lived.restore()

    assert (report["ok"], await lived.body(MANIFEST)) == (True, before)
    assert (await lived.pointer(table.entity)).drops == (first, second)


async def test_a_head_that_is_damaged_is_kept_aside(lived: Catalog) -> None:
    fixture = lived.fixture
    await fixture.table("t", key=fixture.key())
    before = await lived.body(MANIFEST)
    await lived.store.put(MANIFEST, before[:100], ANY)

    planned = await lived.restore(dry=True)
    assert (await lived.body(MANIFEST), lived.kept()) == (before[:100], [])
    done = await lived.restore()

    assert mapping(planned, "head")["chosen"] == mapping(done, "head")["chosen"]
    assert await lived.body(MANIFEST) == before
    [kept] = lived.kept()
    assert mapping(done, "head")["kept"] == kept
    assert await lived.body(kept) == before[:100]


async def test_a_readable_head_is_replaced_only_with_replace(lived: Catalog) -> None:
    older = await lived.body(MANIFEST)
    await create_namespace(lived.fixture.session(), ("later",), {})
    newer = await lived.body(MANIFEST)
    commit = RegistryState.parse(newer, None, "").id
    await lived.store.put(MANIFEST, older, ANY)

    assert mapping(await lived.restore(), "head")["found"] == "live"
    with pytest.raises(BadRequest, match="--replace"):
        await lived.restore(Choices(head=commit))
    await lived.restore(Choices(head=commit, replace=True))

    assert await lived.body(MANIFEST) == newer
    assert [await lived.body(key) for key in lived.kept()] == [older]


async def test_a_commit_that_does_not_exist_is_refused(lived: Catalog) -> None:
    await lived.store.delete(MANIFEST)
    with pytest.raises(BadRequest, match="does not exist"):
        await lived.restore(Choices(head="01KAN0Y7Q2M3C4D5E6F7G8H9JK"))


async def test_a_concurrent_write_is_not_overwritten(lived: Catalog) -> None:
    fixture = lived.fixture
    await fixture.table("t", key=fixture.key())
    await lived.store.put(MANIFEST, b"{", ANY)

    async def meddle() -> None:
        await lived.store.put(MANIFEST, b"other", ANY)

    lived.store.rules = [Rule(swap(MANIFEST), first=meddle, times=1)]

    with pytest.raises(CommitFailed, match="stop all writers"):
        await lived.restore()
    assert await lived.body(MANIFEST) == b"other"


# Pointers


async def test_a_pointer_is_restored_with_the_fields_of_its_table(lived: Catalog) -> None:
    fixture = lived.fixture
    made = await fixture.table("t")
    await fixture.commit(set_property("p", "1"), key=fixture.key())
    before = await lived.pointer(made.entity)
    await lived.store.delete(lived.pointer_key(made.entity))

    report = await lived.restore()

    after = await lived.pointer(made.entity)
    assert report["ok"] is True
    assert after.metadata == before.metadata
    assert after.base == before.base
    assert set(before.recent) <= set(after.recent)
    await fixture.another().commit(set_property("p", "2"), key=fixture.key())


async def test_a_commit_without_evidence_needs_a_choice(lived: Catalog) -> None:
    fixture = lived.fixture
    made = await fixture.table("t")
    last = await fixture.commit(set_property("p", "1"))
    [committed] = [key for key in lived.store.keys(f"{STATE}events/") if "committed" in key and _is_of(key, last)]
    await lived.store.delete(committed)  # its writer died before it wrote that
    await lived.store.delete(lived.pointer_key(made.entity))

    report = await lived.restore()
    [pointer] = sequence(report, "pointers")
    assert isinstance(pointer, dict)
    assert (report["ok"], pointer["chosen"]) == (False, None)
    offered = {text(each, "metadata_location") for each in candidates(pointer)}
    assert offered == {made.metadata_location, last.metadata_location}
    await lived.restore(Choices(pointers={made.entity: last.metadata_location}))

    assert (await lived.pointer(made.entity)).metadata.location == last.metadata_location


def _is_of(key: str, state: TableState) -> bool:
    return commit_key(state.entity, state.metadata_location) in key


async def test_the_pointer_of_a_dropped_table_is_marked_again(lived: Catalog) -> None:
    fixture = lived.fixture
    made = await fixture.table("t")
    await drop_table(fixture.session(), NS, "t", purge=False)
    before = await lived.pointer(made.entity)
    await lived.store.delete(lived.pointer_key(made.entity))

    await lived.restore()

    assert (await lived.pointer(made.entity)).dropped_by == before.dropped_by
    await undrop(fixture.another().session(), NS, "t")


async def test_a_registered_table_begins_where_it_was_registered(lived: Catalog) -> None:
    fixture = lived.fixture
    made = await fixture.table("t")
    await drop_table(fixture.session(), NS, "t", purge=False)
    await register_table(fixture.session(), NS, "r", made.metadata_location, overwrite=False)
    entity = next(
        key.rpartition("/")[2].removesuffix(".json")
        for key in lived.store.keys(f"{STATE}iceberg_pointers/")
        if made.entity not in key
    )
    await lived.store.delete(lived.pointer_key(entity))

    report = await lived.restore()

    assert report["ok"] is True
    assert (await lived.pointer(entity)).registered_from == made.metadata_location
    stats = await reconcile(fixture.another().session())
    assert (stats.unreadable, stats.missing) == ([], [])


async def test_an_undecided_transaction_over_a_lost_pointer_is_aborted(lived: Catalog) -> None:
    fixture = lived.fixture
    made = await fixture.table("t")
    clock = fixture.runtime
    transaction, move = clock.ulid(), clock.ulid()
    member: JsonObject = {"entity": made.entity, "version": "1", "metadata_location": "x"}
    pending = Decision.pending(transaction=transaction, rank=transaction, move=move, members=[member])
    await lived.store.put(f"{STATE}transactions/{transaction}.json", encode(pending.document), ABSENT)
    await lived.store.delete(lived.pointer_key(made.entity))

    await lived.restore(dry=True)
    state = fixture.session().state
    undecided = await read_decision(state, transaction)
    assert undecided is not None
    assert undecided.status == "pending"
    report = await lived.restore()

    decided = await read_decision(state, transaction)
    assert decided is not None
    assert decided.status == "aborted"
    [pointer] = sequence(report, "pointers")
    assert isinstance(pointer, dict)
    assert pointer["aborted_transactions"] == [transaction]


async def test_a_file_of_another_table_is_not_taken(lived: Catalog) -> None:
    fixture = lived.fixture
    made, other = await fixture.table("t"), await fixture.table("u")
    await lived.store.delete(lived.pointer_key(made.entity))

    report = await lived.restore(Choices(pointers={made.entity: other.metadata_location}))

    [pointer] = sequence(report, "pointers")
    assert isinstance(pointer, dict)
    assert report["ok"] is False
    assert "is of another table: its uuid is" in text(pointer, "error")
    assert lived.pointer_key(made.entity) not in lived.store.keys("")


async def test_an_unknown_entity_is_refused_before_head_is_restored(lived: Catalog) -> None:
    await lived.fixture.table("t")
    await lived.store.delete(MANIFEST)

    with pytest.raises(BadRequest, match="No table or view has the entity id"):
        await lived.restore(Choices(pointers={"01KAN0Y7Q2M3C4D5E6F7G8H9JK": "x"}))

    assert MANIFEST not in lived.store.keys("")
    assert (await lived.restore())["ok"] is True


async def test_a_readable_pointer_is_replaced_only_with_replace(lived: Catalog) -> None:
    fixture = lived.fixture
    made = await fixture.table("t")
    await fixture.commit(set_property("p", "1"))
    before = await lived.body(lived.pointer_key(made.entity))
    back = {made.entity: made.metadata_location}

    with pytest.raises(BadRequest, match="--replace"):
        await lived.restore(Choices(pointers=back))
    with pytest.raises(BadRequest, match="No table or view has the entity id"):
        await lived.restore(Choices(pointers={"01KAN0Y7Q2M3C4D5E6F7G8H9JK": "x"}))
    await lived.restore(Choices(pointers=back, replace=True))

    assert (await lived.pointer(made.entity)).metadata.location == made.metadata_location
    assert [await lived.body(key) for key in lived.kept()] == [before]
    await load_table(fixture.another().session(), NS, "t")


async def test_a_sound_catalog_is_left_as_it_is(lived: Catalog) -> None:
    fixture = lived.fixture
    await fixture.table("t")
    with pytest.raises(AlreadyExists):
        await fixture.table("t")
    await create_namespace(fixture.session(), ("later",), {})
    await drop_namespace(fixture.session(), ("later",))
    before = {key: await lived.body(key) for key in lived.store.keys("")}

    report = await lived.restore()

    assert report["ok"] is True
    assert {key: await lived.body(key) for key in lived.store.keys("")} == before


async def test_the_governance_of_a_table_is_not_lost_with_its_pointer(lived: Catalog) -> None:
    await lived.fixture.table("t")
    await govern_relation(lived.fixture.session(), NS, "t", "table", {"arco.owner": "ada"})
    for key in lived.store.keys("wh/_catalog/iceberg_pointers/"):
        await lived.store.delete(key)

    assert (await lived.restore())["ok"] is True

    state = await load_table(lived.fixture.another().session(), NS, "t")
    assert state.governance == {"arco.owner": "ada"}


async def test_what_has_no_pointer_can_not_lose_it(lived: Catalog) -> None:
    await create_generic_table(lived.fixture.session(), NS, GenericTable("g", "delta", None, None, {}))
    await follow(lived.fixture, await lived.fixture.table("like"))
    await create_semantic_model(lived.fixture.session(), NS, "m", {"version": "0.1.1", "semantic_model": "{}"})

    report = await lived.restore()

    assert (report["ok"], lived.kept()) == (True, [])
