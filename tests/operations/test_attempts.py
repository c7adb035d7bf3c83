"""An attempt changes its write set and nothing else, keyed or not (docs/design/idempotency.md#markers,
docs/design/commit.md)."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from arco_catalog.iceberg.errors import AlreadyExists, CommitStateUnknown
from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps, loads
from arco_catalog.operations.commit import commit_view
from arco_catalog.operations.create import create_view
from arco_catalog.operations.drop import drop_table, drop_view
from arco_catalog.operations.load import load_table, load_view
from arco_catalog.operations.register import register_table
from arco_catalog.operations.rename import rename_table
from arco_catalog.operations.transaction import commit_transaction
from arco_catalog.planning.answers import Document
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state import pointer as pointer_module
from arco_catalog.state import registry as registry_module
from arco_catalog.state.marker import Slot, WriteSet
from arco_catalog.state.pointer import Pointer
from storage_backends import (
    ABSENT,
    Applied,
    Found,
    Matches,
    Outcome,
    StoreUnavailable,
    Unchanged,
    Unknown,
    Version,
    When,
)
from storage_backends.base import Missing
from storage_backends.memory import MemoryStore
from tests.support.catalog_fixture import NS, CatalogFixture, schema, set_property
from tests.support.fake_runtime import FakeRuntime
from tests.support.views import view_request

POINTERS = "wh/_catalog/iceberg_pointers/"
MANIFEST = "wh/_catalog/core/manifest.json"
MARKERS = "wh/_catalog/iceberg_idempotency/"
TRANSACTIONS = "wh/_catalog/transactions/"

Step = Callable[[], Awaitable[object]]


@dataclass
class Scripted(MemoryStore):
    """A store in which one compare-and-swap is preceded by what others do, and a later one lands unheard."""

    watched: str = ""
    """What the compare-and-swaps that count begin with; nothing counts while this is empty."""
    meanwhile: list[Step] = field(default_factory=list)
    """What happens before each of the next ones."""
    unheard: list[bool] = field(default_factory=list)
    """Whether the answers to those that land get lost, one after the other."""
    before_get: dict[str, list[Step]] = field(default_factory=dict)
    """What happens before the next reads of keys that begin so."""
    puts: list[str] = field(default_factory=list)
    down: str = ""
    """The end of keys whose writes fail."""

    def __post_init__(self) -> None:
        super().__init__(now_ms=self.clock.now_ms)

    clock: FakeRuntime = field(default_factory=FakeRuntime)

    async def get(self, key: str, if_changed_from: Version | None = None) -> Found | Unchanged | Missing:
        for prefix, steps in self.before_get.items():
            if steps and key.startswith(prefix):
                await steps.pop(0)()
        return await super().get(key, if_changed_from)

    async def put(self, key: str, body: bytes, when: When) -> Outcome:
        self.puts.append(key)
        if self.down and key.endswith(self.down):
            raise StoreUnavailable("down")
        counts = bool(self.watched) and key.startswith(self.watched) and isinstance(when, Matches)
        if counts and self.meanwhile:
            step, watched = self.meanwhile.pop(0), self.watched
            self.watched = ""
            await step()
            self.watched = watched
        outcome = await super().put(key, body, when)
        if counts and isinstance(outcome, Applied) and self.unheard and self.unheard.pop(0):
            return Unknown("the answer was lost")
        return outcome


@pytest.fixture
def store() -> Scripted:
    return Scripted()


@pytest.fixture
async def fixture(store: Scripted) -> CatalogFixture:
    made = CatalogFixture(store, store.clock, Settings("wh", in_progress_ms=0))
    await made.namespace("db")
    return made


def as_object(value: JsonValue) -> JsonObject:
    assert isinstance(value, dict)
    return value


async def pointer_of(fixture: CatalogFixture, entity: str) -> Pointer:
    found = await fixture.another().session().state.pointer(entity)
    assert found is not None
    return found


async def slots_of(fixture: CatalogFixture, key: str) -> list[Slot]:
    """Everything in a key's marker, whatever request it is bound to."""
    marker = fixture.another().session(key=key).marker()
    assert marker is not None
    return list(await marker.read_on())


def replaced_by_others(fixture: CatalogFixture, name: str = "t") -> Step:
    """Another process drops the table, and makes a new one of the name."""
    other = fixture.another()

    async def step() -> None:
        await drop_table(other.session(), NS, name, purge=False)
        await other.table(name)

    return step


APPEND: JsonObject = {
    "requirements": [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None}],
    "updates": [
        {
            "action": "add-snapshot",
            "snapshot": {
                "snapshot-id": 11,
                "sequence-number": 1,
                "timestamp-ms": FakeRuntime().ms,
                "manifest-list": "memory:///wh/warehouse/db/t/metadata/snap-11.avro",
                "summary": {"operation": "append"},
                "schema-id": 0,
            },
        },
        {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 11},
    ],
}
ADD_A_SCHEMA: JsonObject = {
    "requirements": [],
    "updates": [
        {"action": "add-schema", "schema": schema("x", "y")},
        {"action": "set-current-schema", "schema-id": -1},
    ],
}


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("body", [APPEND, ADD_A_SCHEMA, set_property("a", "1")])
async def test_a_commit_whose_name_came_to_mean_another_table_sees_itself_there(
    fixture: CatalogFixture, store: Scripted, keyed: bool, body: JsonObject
) -> None:
    await fixture.table("t")
    store.watched, store.meanwhile, store.unheard = POINTERS, [replaced_by_others(fixture)], [True]

    answer = await fixture.commit(body, key=fixture.key() if keyed else None)

    now = await load_table(fixture.another().session(), NS, "t")
    assert answer.metadata_location == now.metadata_location
    assert (await pointer_of(fixture, now.entity)).sequence == 2


async def test_each_slot_of_a_marker_holds_an_attempt_of_its_own(fixture: CatalogFixture, store: Scripted) -> None:
    """An id that stood in two slots would be looked for where the later one says, and missed where the earlier does."""
    await fixture.table("t")
    store.watched, store.meanwhile = POINTERS, [replaced_by_others(fixture)]
    key = fixture.key()

    await fixture.commit(set_property("a", "1"), key=key)

    first, second, final = await slots_of(fixture, key)
    assert first.attempt != second.attempt == final.attempt
    assert final.final
    assert not set(first.write_set.pointers) & set(second.write_set.pointers)


@pytest.mark.parametrize("keyed", [False, True])
async def test_a_commit_to_a_view_that_was_made_anew_sees_itself_there(
    fixture: CatalogFixture, store: Scripted, keyed: bool
) -> None:
    view = view_request("v")
    await create_view(fixture.session(view), NS, view)
    other = fixture.another()

    async def replaced() -> None:
        await drop_view(other.session(), NS, "v")
        await create_view(other.session(view), NS, view)

    store.watched, store.meanwhile, store.unheard = POINTERS, [replaced], [True]
    body = set_property("a", "1")

    await commit_view(fixture.session(body, key=fixture.key() if keyed else None), NS, "v", body)

    now = await load_view(fixture.another().session(), NS, "v")
    assert (await pointer_of(fixture, now.entity)).sequence == 2


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("overwrite", [False, True])
async def test_what_takes_a_table_away_marks_the_one_that_it_took(
    fixture: CatalogFixture, store: Scripted, keyed: bool, overwrite: bool
) -> None:
    first = await fixture.table("t")
    await load_table(fixture.session(), NS, "t")
    made: list[str] = []

    async def replaced() -> None:
        await replaced_by_others(fixture)()
        made.append((await load_table(fixture.another().session(), NS, "t")).entity)

    store.watched, store.meanwhile, store.unheard = MANIFEST, [replaced], [True]
    session = fixture.session(key=fixture.key() if keyed else None)
    if overwrite:
        elsewhere = {**as_object(loads(first.metadata)), "location": "memory:///wh/warehouse/elsewhere"}
        await store.put("wh/warehouse/elsewhere/v1.json", dumps(elsewhere), ABSENT)
        await register_table(session, NS, "t", "memory:///wh/warehouse/elsewhere/v1.json", True)
    else:
        assert await drop_table(session, NS, "t", purge=False) == Document(204)

    (second,) = made
    tombstone = (await pointer_of(fixture, second)).dropped_by
    assert tombstone is not None
    assert tombstone != (await pointer_of(fixture, first.entity)).dropped_by


async def test_a_resent_overwrite_leaves_no_mark_on_what_another_dropped(
    fixture: CatalogFixture, store: Scripted
) -> None:
    """The first plan replaces the table; it is dropped meanwhile, so what commits replaces nothing."""
    first = await fixture.table("t")
    elsewhere = {**as_object(loads(first.metadata)), "location": "memory:///wh/warehouse/elsewhere"}
    await store.put("wh/warehouse/elsewhere/v1.json", dumps(elsewhere), ABSENT)

    async def dropped() -> None:
        await drop_table(fixture.another().session(), NS, "t", purge=False)

    store.watched, store.meanwhile = MANIFEST, [dropped]
    key = fixture.key()
    await register_table(fixture.session(key=key), NS, "t", "memory:///wh/warehouse/elsewhere/v1.json", True)
    mark = (await pointer_of(fixture, first.entity)).dropped_by
    (*_, final) = (slot for slot in store.puts if slot.startswith(MARKERS))
    await store.delete(final)  # as if it had not been written: then the evidence answers

    await register_table(fixture.another().session(key=key), NS, "t", "memory:///wh/warehouse/elsewhere/v1.json", True)

    assert mark is not None
    assert (await pointer_of(fixture, first.entity)).dropped_by == mark


@pytest.mark.parametrize("keyed", [False, True])
async def test_a_transaction_over_a_table_that_was_made_anew_is_applied_once(
    fixture: CatalogFixture, store: Scripted, keyed: bool
) -> None:
    for name in ("t", "u"):
        await fixture.table(name)
        await load_table(fixture.session(), NS, name)
    store.watched, store.meanwhile = POINTERS, [replaced_by_others(fixture)]
    changes = [(NS, name, ADD_A_SCHEMA) for name in ("t", "u")]

    await commit_transaction(fixture.session(key=fixture.key() if keyed else None), changes)

    for name in ("t", "u"):
        now = as_object(loads((await load_table(fixture.another().session(), NS, name)).metadata))
        schemas = now["schemas"]
        assert isinstance(schemas, list)
        assert len(schemas) == 2


@pytest.mark.parametrize("keyed", [False, True])
async def test_a_rename_of_a_table_that_was_made_anew_is_made_once(
    fixture: CatalogFixture, store: Scripted, keyed: bool
) -> None:
    await fixture.table("t")
    store.watched, store.meanwhile, store.unheard = MANIFEST, [replaced_by_others(fixture)], [True]
    session = fixture.session(key=fixture.key() if keyed else None)

    assert await rename_table(session, (NS, "t"), (NS, "u")) == Document(204)
    await load_table(fixture.another().session(), NS, "u")


# A claim that was cancelled may have landed.


class SlowClaims(Scripted):
    """Slots land, and are acknowledged late; the first object of a transaction is answered with silence, once."""

    slow = False
    silent = False

    async def put(self, key: str, body: bytes, when: When) -> Outcome:
        outcome = await super().put(key, body, when)
        if self.slow and key.startswith(MARKERS):
            self.slow = False
            await asyncio.Event().wait()
        if self.silent and key.startswith(TRANSACTIONS):
            self.silent = False
            for _ in range(20):  # until the slot is there
                await asyncio.sleep(0)
            return Unknown("silence")
        return outcome


async def test_a_request_goes_on_from_a_claim_of_its_own_that_was_cancelled_and_landed() -> None:
    store = SlowClaims()
    fixture = CatalogFixture(store, store.clock)
    await fixture.namespace("db")
    for name in ("t", "u"):
        await fixture.table(name)
    began_ms, key = store.clock.ms, fixture.key()
    store.slow = store.silent = True

    changes = [(NS, name, set_property("a", "1")) for name in ("t", "u")]
    await commit_transaction(fixture.session(key=key), changes)

    assert store.clock.ms - began_ms < 1_000  # no waiting for a takeover of its own attempt
    own, second, final = await slots_of(fixture, key)
    assert own.attempt != second.attempt == final.attempt
    assert final.final


async def test_a_slot_that_names_something_else_is_no_echo_of_a_claim(fixture: CatalogFixture) -> None:
    """A takeover fences what the stored slot names: who believed that it had stored another would never be fenced."""
    session = fixture.session(key=fixture.key())
    first, second = session.marker(), session.marker()
    assert first is not None
    assert second is not None

    assert await first.put(Slot("same", WriteSet(pointers={"a": 1}), first.identity.to_json(), None))
    assert not await second.put(Slot("same", WriteSet(pointers={"b": 1}), first.identity.to_json(), None))


# Takeovers.


async def test_a_takeover_has_its_slot_before_it_fences(fixture: CatalogFixture, store: Scripted) -> None:
    """Fenced first, an attempt could read again, see its next slot empty, and commit behind the answer to come."""
    await fixture.table("t")
    key, body = fixture.key(), set_property("a", "1")
    await left_in_progress(fixture, key, body)
    store.puts.clear()

    await fixture.another().commit(body, key=key)

    slots = [place for place, put in enumerate(store.puts) if put.startswith(MARKERS) and put.endswith("/1.json")]
    fences = [place for place, put in enumerate(store.puts) if put.startswith(POINTERS)]
    assert len(fences) == 2  # the fence, and the commit
    assert slots
    assert slots[0] < fences[0]


async def test_a_takeover_of_a_registry_operation_has_its_slot_before_it_fences(
    fixture: CatalogFixture, store: Scripted
) -> None:
    key = fixture.key()
    session = fixture.session({"name": "u", "schema": schema("x")}, key=key, path="/create/u")
    marker = session.marker()
    assert marker is not None
    assert await marker.put(Slot("died", WriteSet(registry=1), marker.identity.to_json(), None))
    store.puts.clear()

    await fixture.another().table("u", key=key)

    slot = next(place for place, put in enumerate(store.puts) if put.endswith("/1.json"))
    fence = next(place for place, put in enumerate(store.puts) if put == MANIFEST)
    assert slot < fence


async def left_in_progress(fixture: CatalogFixture, key: str, body: JsonObject) -> None:
    """An attempt that claimed its slot for the table `t`, and died."""
    session = fixture.session(body, key=key, path="/commit/t")
    marker = session.marker()
    assert marker is not None
    entity = (await load_table(fixture.session(), NS, "t")).entity
    write_set = WriteSet(pointers={entity: (await pointer_of(fixture, entity)).sequence})
    assert await marker.put(Slot("died", write_set, marker.identity.to_json(), None))


@pytest.mark.parametrize("in_progress_ms", [0, 25_000])
async def test_what_a_pointer_no_longer_remembers_is_unknown_and_leaves_the_marker_as_it_is(
    store: Scripted, monkeypatch: pytest.MonkeyPatch, in_progress_ms: int
) -> None:
    monkeypatch.setattr(pointer_module, "RECENT_MOVES", 3)
    fixture = CatalogFixture(store, store.clock, Settings("wh", in_progress_ms=in_progress_ms))
    await fixture.namespace("db")
    await fixture.table("t")
    key, body = fixture.key(), set_property("a", "mine")
    store.down = "/1.json"
    await fixture.commit(body, key=key)
    store.down = ""
    for value in "12345":
        await fixture.commit(set_property("a", value))
    before = len(await slots_of(fixture, key))

    with pytest.raises(CommitStateUnknown, match="Too much has happened"):
        await fixture.another().commit(body, key=key)

    assert not any(slot.final for slot in await slots_of(fixture, key))
    assert len(await slots_of(fixture, key)) == before
    assert (
        as_object(as_object(loads((await load_table(fixture.session(), NS, "t")).metadata))["properties"])["a"] == "5"
    )


async def test_what_the_history_of_the_registry_no_longer_reaches_is_unknown(
    fixture: CatalogFixture, store: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry_module, "RECENT_COMMITS", 2)
    key = fixture.key()
    store.down = "/1.json"
    await fixture.table("u", key=key)
    store.down = ""
    for name in "abcde":
        await fixture.namespace(name)
    for commit in store.keys("wh/_catalog/core/commits/")[:-1]:
        await store.delete(commit)

    with pytest.raises(CommitStateUnknown, match="no longer reaches back"):
        await fixture.another().table("u", key=key)

    assert not any(slot.final for slot in await slots_of(fixture, key))


async def test_the_next_slot_is_looked_at_again_after_a_fresher_view(fixture: CatalogFixture, store: Scripted) -> None:
    """Behind the back of one who holds a claim the same request is taken over, refused for good and undone: HEAD as it
    is read after that is no base to create on."""
    stale, key = fixture.another(), fixture.key()
    await stale.table("other")  # what it remembers of HEAD is out of date from here on
    await fixture.table("u")

    async def meanwhile() -> None:
        for _ in range(20):  # until the claim beside this read has landed
            await asyncio.sleep(0)
        with pytest.raises(AlreadyExists):
            await fixture.table("u", key=key)
        await drop_table(fixture.session(), NS, "u", purge=False)

    store.before_get[MANIFEST] = [meanwhile]
    with pytest.raises(AlreadyExists):
        await stale.table("u", key=key)

    head = await fixture.another().session().state.head()
    assert head.index.get("relation\ndb\nu") is None
