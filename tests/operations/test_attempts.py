"""An attempt changes its write set and nothing else, keyed or not (docs/design/idempotency.md#markers,
docs/design/commit.md)."""

import asyncio

import pytest

from arco_catalog.iceberg.errors import AlreadyExists, CommitStateUnknown, KeyInProgress
from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps, loads
from arco_catalog.operations.commit import commit_view
from arco_catalog.operations.create import create_view
from arco_catalog.operations.drop import drop_table, drop_view
from arco_catalog.operations.load import load_table, load_view
from arco_catalog.operations.register import register_table
from arco_catalog.operations.rename import rename_table
from arco_catalog.operations.transaction import commit_transaction
from arco_catalog.planning.answers import Document
from arco_catalog.protocol import evidence
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state import pointer as pointer_module
from arco_catalog.state import registry as registry_module
from arco_catalog.state.marker import Slot, WriteSet
from arco_catalog.state.pointer import Pointer
from storage_backends import (
    ABSENT,
    Applied,
    Outcome,
)
from tests.support.fake_runtime import FakeRuntime
from tests.support.scripted_store import DOWN, Rule, ScriptedStore, Step, get, lost, put, swap
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.request_bodies import schema, set_property, view_request

POINTERS = "wh/_catalog/iceberg_pointers/"
MANIFEST = "wh/_catalog/core/manifest.json"
MARKERS = "wh/_catalog/iceberg_idempotency/"
TRANSACTIONS = "wh/_catalog/transactions/"


class Script(ScriptedStore):
    """A store in which one compare-and-swap is preceded by what others do, and a later one lands unheard."""

    def __init__(self) -> None:
        self.clock = FakeRuntime()
        super().__init__(self.clock.now_ms)

    def script(self, watched: str, meanwhile: Step, *, unheard: bool = False) -> None:
        """The next compare-and-swap of what lies in `watched` comes behind `meanwhile`. With `unheard`, the first that
        lands is not answered."""
        first = Rule(swap(watched), first=meanwhile, times=1)
        last = Rule(swap(watched))

        def lose(outcome: Outcome) -> Outcome:
            if not isinstance(outcome, Applied):
                return outcome
            self.rules.remove(last)
            return lost(outcome)

        last.answers = lose
        self.rules = [first, last] if unheard else [first]

    @property
    def puts(self) -> list[str]:
        return [call.key for call in self.calls if call.method == "put"]


@pytest.fixture
def store() -> Script:
    return Script()


@pytest.fixture
async def fixture(store: Script) -> CatalogFixture:
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
    fixture: CatalogFixture, store: Script, keyed: bool, body: JsonObject
) -> None:
    await fixture.table("t")
    store.script(POINTERS, replaced_by_others(fixture), unheard=True)

    answer = await fixture.commit(body, key=fixture.key() if keyed else None)

    now = await load_table(fixture.another().session(), NS, "t")
    assert answer.metadata_location == now.metadata_location
    assert (await pointer_of(fixture, now.entity)).sequence == 2


async def test_each_slot_of_a_marker_holds_an_attempt_of_its_own(fixture: CatalogFixture, store: Script) -> None:
    """An id in two slots would be searched at the later one, and missed at the earlier one."""
    await fixture.table("t")
    store.script(POINTERS, replaced_by_others(fixture))
    key = fixture.key()

    await fixture.commit(set_property("a", "1"), key=key)

    first, second, final = await slots_of(fixture, key)
    assert first.attempt != second.attempt == final.attempt
    assert final.final
    assert not set(first.write_set.pointers) & set(second.write_set.pointers)


@pytest.mark.parametrize("keyed", [False, True])
async def test_a_commit_to_a_view_that_was_made_anew_sees_itself_there(
    fixture: CatalogFixture, store: Script, keyed: bool
) -> None:
    view = view_request("v")
    await create_view(fixture.session(view), NS, view)
    other = fixture.another()

    async def replaced() -> None:
        await drop_view(other.session(), NS, "v")
        await create_view(other.session(view), NS, view)

    store.script(POINTERS, replaced, unheard=True)
    body = set_property("a", "1")

    await commit_view(fixture.session(body, key=fixture.key() if keyed else None), NS, "v", body)

    now = await load_view(fixture.another().session(), NS, "v")
    assert (await pointer_of(fixture, now.entity)).sequence == 2


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("overwrite", [False, True])
async def test_what_takes_a_table_away_marks_the_one_that_it_took(
    fixture: CatalogFixture, store: Script, keyed: bool, overwrite: bool
) -> None:
    first = await fixture.table("t")
    await load_table(fixture.session(), NS, "t")
    made: list[str] = []

    async def replaced() -> None:
        await replaced_by_others(fixture)()
        made.append((await load_table(fixture.another().session(), NS, "t")).entity)

    store.script(MANIFEST, replaced, unheard=True)
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
    fixture: CatalogFixture, store: Script
) -> None:
    """The first plan replaces the table; it is dropped meanwhile, so what commits replaces nothing."""
    first = await fixture.table("t")
    elsewhere = {**as_object(loads(first.metadata)), "location": "memory:///wh/warehouse/elsewhere"}
    await store.put("wh/warehouse/elsewhere/v1.json", dumps(elsewhere), ABSENT)

    async def dropped() -> None:
        await drop_table(fixture.another().session(), NS, "t", purge=False)

    store.script(MANIFEST, dropped)
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
    fixture: CatalogFixture, store: Script, keyed: bool
) -> None:
    for name in ("t", "u"):
        await fixture.table(name)
        await load_table(fixture.session(), NS, name)
    store.script(POINTERS, replaced_by_others(fixture))
    changes = [(NS, name, ADD_A_SCHEMA) for name in ("t", "u")]

    await commit_transaction(fixture.session(key=fixture.key() if keyed else None), changes)

    for name in ("t", "u"):
        now = as_object(loads((await load_table(fixture.another().session(), NS, name)).metadata))
        schemas = now["schemas"]
        assert isinstance(schemas, list)
        assert len(schemas) == 2


@pytest.mark.parametrize("keyed", [False, True])
async def test_a_rename_of_a_table_that_was_made_anew_is_made_once(
    fixture: CatalogFixture, store: Script, keyed: bool
) -> None:
    await fixture.table("t")
    store.script(MANIFEST, replaced_by_others(fixture), unheard=True)
    session = fixture.session(key=fixture.key() if keyed else None)

    assert await rename_table(session, (NS, "t"), (NS, "u")) == Document(204)
    await load_table(fixture.another().session(), NS, "u")


# A claim that was cancelled may have landed.


async def test_a_request_goes_on_from_a_claim_of_its_own_that_was_cancelled_and_landed(store: Script) -> None:
    """Its slot lands, and is not acknowledged; the first object of the transaction is answered with silence."""
    fixture = CatalogFixture(store, store.clock)
    await fixture.namespace("db")
    for name in ("t", "u"):
        await fixture.table(name)
    began_ms, key = store.clock.ms, fixture.key()

    async def until_the_slot_is_there() -> None:
        for _ in range(20):
            await asyncio.sleep(0)

    store.rules = [
        Rule(put(MARKERS), then=asyncio.Event().wait, times=1),
        Rule(put(TRANSACTIONS), then=until_the_slot_is_there, answers=lost, times=1),
    ]
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


async def test_a_takeover_has_its_slot_before_it_fences(fixture: CatalogFixture, store: Script) -> None:
    """Fenced first, an attempt could read again, see its next slot empty, and commit behind the answer to come."""
    await fixture.table("t")
    key, body = fixture.key(), set_property("a", "1")
    await left_in_progress(fixture, key, body)
    store.calls.clear()

    await fixture.another().commit(body, key=key)

    slots = [place for place, put in enumerate(store.puts) if put.startswith(MARKERS) and put.endswith("/1.json")]
    fences = [place for place, put in enumerate(store.puts) if put.startswith(POINTERS)]
    assert len(fences) == 2  # the fence, and the commit
    assert slots
    assert slots[0] < fences[0]


async def test_a_takeover_of_a_registry_operation_has_its_slot_before_it_fences(
    fixture: CatalogFixture, store: Script
) -> None:
    key = fixture.key()
    session = fixture.session({"name": "u", "schema": schema("x")}, key=key, path="/create/u")
    marker = session.marker()
    assert marker is not None
    assert await marker.put(Slot("died", WriteSet(registry=1), marker.identity.to_json(), None))
    store.calls.clear()

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


async def forgotten_commit(
    fixture: CatalogFixture, store: Script, monkeypatch: pytest.MonkeyPatch
) -> tuple[str, JsonObject]:
    """A commit without a final slot that its pointer no longer remembers: its key and body."""
    monkeypatch.setattr(pointer_module, "RECENT_MOVES", 3)
    await fixture.table("t")
    key, body = fixture.key(), set_property("a", "mine")
    store.rules = [Rule(put("/1.json"), fails=DOWN)]
    await fixture.commit(body, key=key)
    store.rules = []
    for value in "12345":
        await fixture.commit(set_property("a", value))
    return key, body


async def property_of(fixture: CatalogFixture) -> JsonValue:
    metadata = as_object(loads((await load_table(fixture.session(), NS, "t")).metadata))
    return as_object(metadata["properties"])["a"]


async def test_what_a_pointer_no_longer_remembers_is_in_progress_as_long_as_its_slot_is_young(
    store: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    fixture = CatalogFixture(store, store.clock)
    await fixture.namespace("db")
    key, body = await forgotten_commit(fixture, store, monkeypatch)
    before = await slots_of(fixture, key)

    with pytest.raises(KeyInProgress):
        await fixture.another().commit(body, key=key)

    assert await slots_of(fixture, key) == before
    assert await property_of(fixture) == "5"


async def test_what_a_pointer_no_longer_remembers_is_unknown_behind_a_fence_and_has_no_final_slot(
    fixture: CatalogFixture, store: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, body = await forgotten_commit(fixture, store, monkeypatch)
    before = len(await slots_of(fixture, key))
    entity = (await load_table(fixture.session(), NS, "t")).entity
    sequence = (await pointer_of(fixture, entity)).sequence

    with pytest.raises(CommitStateUnknown, match="too many later changes have removed the evidence"):
        await fixture.another().commit(body, key=key)

    slots = await slots_of(fixture, key)
    assert len(slots) == before + 1
    assert not any(slot.final for slot in slots)
    assert (await pointer_of(fixture, entity)).sequence == sequence + 1
    assert await property_of(fixture) == "5"


async def test_a_takeover_fences_everything_before_it_calls_an_outcome_unknown(
    fixture: CatalogFixture, store: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pointer of the first slot is gone; the attempt of the second has committed."""
    await fixture.table("t")
    key, body = fixture.key(), set_property("a", "mine")
    await fixture.commit(body)
    entity = (await load_table(fixture.session(), NS, "t")).entity
    pointer = await pointer_of(fixture, entity)
    marker = fixture.session(body, key=key, path="/commit/t").marker()
    assert marker is not None
    gone = WriteSet(pointers={"gone": 1})
    assert await marker.put(Slot("died", gone, marker.identity.to_json(), None))
    committed = WriteSet(pointers={entity: pointer.sequence - 1})

    first = await evidence.fence(fixture.session(), {"died": gone, pointer.recent[0]: committed})
    assert first == pointer.recent[0]
    with pytest.raises(CommitStateUnknown, match="no longer"):
        await evidence.fence(fixture.session(), {"died": gone, "other": committed})
    assert (await pointer_of(fixture, entity)).sequence == pointer.sequence + 2


async def test_an_attempt_that_was_fenced_is_ruled_out_however_often_the_pointer_moves_then(
    fixture: CatalogFixture, store: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A takeover loses its compare-and-swap to so many commits that the dead attempt would be forgotten."""
    monkeypatch.setattr(pointer_module, "RECENT_MOVES", 4)
    await fixture.table("t")
    key, body = fixture.key(), set_property("a", "mine")
    await left_in_progress(fixture, key, body)
    others = fixture.another()

    async def move() -> None:
        for value in "12":
            await others.commit(set_property("a", value))

    fenced: list[object] = []

    async def before_each_swap() -> None:
        fenced.append(None)
        if len(fenced) in (2, 3):  # the first compare-and-swap is the fence
            store.rules = []
            await move()
            store.rules = [rule]

    rule = Rule(swap(POINTERS), first=before_each_swap)
    store.rules = [rule]
    await fixture.another().commit(body, key=key)
    assert await property_of(fixture) == "mine"


async def test_what_the_history_of_the_registry_no_longer_reaches_is_unknown(
    fixture: CatalogFixture, store: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry_module, "RECENT_COMMITS", 2)
    key = fixture.key()
    store.rules = [Rule(put("/1.json"), fails=DOWN)]
    await fixture.table("u", key=key)
    store.rules = []
    for name in "abcde":
        await fixture.namespace(name)
    for commit in store.keys("wh/_catalog/core/commits/")[:-1]:
        await store.delete(commit)

    with pytest.raises(CommitStateUnknown, match="no longer reaches back"):
        await fixture.another().table("u", key=key)

    assert not any(slot.final for slot in await slots_of(fixture, key))


async def test_the_next_slot_is_read_again_after_a_fresher_view(fixture: CatalogFixture, store: Script) -> None:
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

    store.rules = [Rule(get(MANIFEST), first=meanwhile, times=1)]
    with pytest.raises(AlreadyExists):
        await stale.table("u", key=key)

    head = await fixture.another().session().state.head()
    assert head.index.get("relation\ndb\nu") is None
