"""A writer that loses one compare-and-swap of a pointer after another takes a turn, to which the others give way
(docs/design/commit.md#turns)."""

from functools import partial

import pytest

from arco_catalog.iceberg.errors import CommitFailed, Forbidden, KeyInProgress, Unavailable
from arco_catalog.iceberg.json import JsonObject, loads
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.load import load_table
from arco_catalog.operations.transaction import TableChange, commit_transaction
from arco_catalog.protocol.access import UnrestrictedAccess
from arco_catalog.protocol.pointer_turns import LOSSES, MAX_DELAY_S, MAX_TURN_MS, MAX_TURNS_MS
from arco_catalog.state.access import State
from arco_catalog.state.fields import mapping, objects
from arco_catalog.state.marker import Slot, WriteSet
from arco_catalog.state.pointer import Pointer, Turn
from arco_catalog.state.registry import RegistryState
from storage_backends import Applied, Outcome, PreconditionFailed
from tests.support.fake_runtime import FakeRuntime
from tests.support.scripted_store import Nth, Rule, ScriptedStore, get, lost, put, swap
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.request_bodies import append, set_property

POINTER = "iceberg_pointers"
MINE = set_property("mine", "yes")


@pytest.fixture
async def writer() -> CatalogFixture:
    clock = FakeRuntime()
    fixture = CatalogFixture(ScriptedStore(clock.now_ms), clock)
    await fixture.namespace("db")
    await fixture.table("t")
    return fixture


class Rival:
    """Another process that commits to the table, or takes turns there."""

    def __init__(self, writer: CatalogFixture) -> None:
        self._fixture = writer.another()
        self._commits = 0

    async def commit(self) -> None:
        self._commits += 1
        await self._fixture.commit(set_property("n", str(self._commits)))

    async def append(self, location: str) -> None:
        await self._fixture.commit(append(location, 1, None))

    async def append_and_take_turn(self, location: str) -> None:
        await self.append(location)
        await self.take_turn()

    async def take_turn(self, waited_ms: int = 0) -> None:
        state, pointer = self._fixture.session().state, await self.pointer()
        await state.move_pointer(pointer.reserved(Turn(self._fixture.runtime.ulid(), waited_ms)), pointer.version)

    async def pointer(self) -> Pointer:
        session = self._fixture.session()
        entry = await load_table(session, NS, "t")
        pointer = await session.state.pointer(entry.entity)
        assert pointer is not None
        return pointer


def store_of(writer: CatalogFixture) -> ScriptedStore:
    assert isinstance(writer.store, ScriptedStore)
    return writer.store


def clock_of(writer: CatalogFixture) -> FakeRuntime:
    assert isinstance(writer.runtime, FakeRuntime)
    return writer.runtime


async def metadata(writer: CatalogFixture) -> bytes:
    return (await load_table(writer.another().session(), NS, "t")).metadata


async def location_of(writer: CatalogFixture) -> str:
    document = loads(await metadata(writer))
    assert isinstance(document, dict)
    return str(document["location"])


async def rebasable_append(writer: CatalogFixture, summary: dict[str, str]) -> JsonObject:
    """A commit that appends a first snapshot, which has these fields in its summary, and requires the table's uuid."""
    body, document = append(await location_of(writer), 2, None), loads(await metadata(writer))
    assert isinstance(document, dict)
    added, ref = objects(body, "updates")
    snapshot = mapping(added, "snapshot")
    whole: JsonObject = {**snapshot, "summary": {**mapping(snapshot, "summary"), **summary}}
    uuid: JsonObject = {"type": "assert-table-uuid", "uuid": document["table-uuid"]}
    return {"requirements": [*objects(body, "requirements"), uuid], "updates": [{**added, "snapshot": whole}, ref]}


@pytest.mark.parametrize("keyed", [False, True])
async def test_after_some_losses_a_writer_reserves_the_next_move(writer: CatalogFixture, keyed: bool) -> None:
    rival, store = Rival(writer), store_of(writer)
    store.rules = [Rule(swap(POINTER), first=rival.commit, times=LOSSES)]
    before = len(store.calls)

    await writer.commit(MINE, key=writer.key() if keyed else None)

    turns = [b'"turn"' in call.body for call in store.calls[before:] if swap(POINTER)(call)]
    assert turns[-2:] == [True, False]
    assert sum(turns) == 1
    assert b'"mine"' in await metadata(writer)
    assert "turn" not in (await rival.pointer()).document


async def test_after_fewer_losses_it_takes_no_turn(writer: CatalogFixture) -> None:
    store = store_of(writer)
    store.rules = [Rule(swap(POINTER), first=Rival(writer).commit, times=LOSSES - 1)]

    await writer.commit(MINE)

    assert not [call for call in store.calls if put(POINTER, b'"turn"')(call)]


async def test_a_turn_that_is_lost_is_taken_again(writer: CatalogFixture) -> None:
    rival, store = Rival(writer), store_of(writer)
    store.rules = [Rule(swap(POINTER), first=rival.commit, times=LOSSES + 2)]

    await writer.commit(MINE)

    assert len([call for call in store.calls if put(POINTER, b'"turn"')(call)]) == 3
    assert b'"mine"' in await metadata(writer)


async def test_a_writer_gives_way_to_the_turn_of_another(writer: CatalogFixture) -> None:
    rival, store, outcomes = Rival(writer), store_of(writer), list[type[Outcome]]()

    def note(outcome: Outcome) -> Outcome:
        outcomes.append(type(outcome))
        return outcome

    store.rules = [
        Rule(swap(POINTER), first=rival.take_turn, times=1),
        Rule(swap(POINTER), answers=note),
        Rule(Nth(5, get(POINTER)), first=rival.commit),
    ]

    await writer.commit(MINE)

    assert outcomes == [PreconditionFailed, Applied]
    made = await metadata(writer)
    assert all(each in made for each in (b'"mine"', b'"n"'))


async def test_the_turn_of_a_dead_writer_is_passed_over(writer: CatalogFixture) -> None:
    clock, before_ms = clock_of(writer), clock_of(writer).ms
    store_of(writer).rules = [Rule(swap(POINTER), first=Rival(writer).take_turn, times=1)]

    await writer.commit(MINE)

    assert MAX_TURN_MS <= clock.ms - before_ms < MAX_TURN_MS + 200


@pytest.mark.parametrize(("waited_ms", "delay_ms"), [(0, 0), (400, 400), (9_000, 1_000 * MAX_DELAY_S)])
async def test_who_has_waited_less_goes_later(writer: CatalogFixture, waited_ms: int, delay_ms: float) -> None:
    rival, clock = Rival(writer), clock_of(writer)
    ended_ms: list[int] = []

    async def take_turn() -> None:
        await rival.take_turn(waited_ms)

    async def end() -> None:
        await rival.commit()
        ended_ms.append(clock.ms)

    store_of(writer).rules = [
        Rule(swap(POINTER), first=take_turn, times=1),
        Rule(Nth(5, get(POINTER)), first=end),
    ]

    await writer.commit(MINE)

    assert clock.ms - ended_ms[0] == pytest.approx(delay_ms, abs=1)


async def test_an_attempt_that_was_superseded_during_its_turn_commits_no_more(writer: CatalogFixture) -> None:
    """Its takeover has fenced the pointer before the turn was taken (docs/design/commit.md#rule-1)."""
    rival, store, key = Rival(writer), store_of(writer), writer.key()
    marker = writer.session(MINE, key=key, path="/commit/t").marker()
    assert marker is not None

    async def take_over() -> None:
        await marker.read_on()
        assert await marker.put(Slot("another", WriteSet(pointers={}), {}, None))

    store.rules = [
        Rule(swap(POINTER), first=rival.commit, times=LOSSES),
        Rule(put(POINTER, b'"turn"'), first=take_over),
    ]

    with pytest.raises(KeyInProgress):
        await writer.commit(MINE, key=key)

    store.rules = []
    assert b'"mine"' not in await metadata(writer)


async def test_a_caller_whose_rights_were_revoked_takes_no_turn(
    writer: CatalogFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    rival, store, refused = Rival(writer), store_of(writer), False

    async def judge(access: UnrestrictedAccess, state: State, head: RegistryState) -> None:
        if refused:
            raise Forbidden("revoked")

    async def commit_and_revoke() -> None:
        nonlocal refused
        await rival.commit()
        refused = True

    monkeypatch.setattr(UnrestrictedAccess, "judge", judge)
    store.rules = [
        Rule(swap(POINTER), first=rival.commit, times=LOSSES - 1),
        Rule(Nth(LOSSES, swap(POINTER)), first=commit_and_revoke),
    ]

    with pytest.raises(Forbidden):
        await writer.commit(MINE)

    assert not [call for call in store.calls if put(POINTER, b'"turn"')(call)]


async def test_rights_on_a_table_that_gets_the_name_meanwhile_are_judged_before_a_turn_there(
    writer: CatalogFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    rival, store, is_replaced = Rival(writer), store_of(writer), False
    turns_when_judged: list[int] = []

    async def judge(access: UnrestrictedAccess, state: State, head: RegistryState) -> None:
        if is_replaced:
            turns_when_judged.append(len([call for call in store.calls if put(POINTER, b'"turn"')(call)]))

    async def replace() -> None:
        nonlocal is_replaced
        await drop_table(writer.session(), NS, "t", purge=False)
        await writer.table("t")
        is_replaced = True

    async def take_turn() -> None:
        await rival.take_turn(9_000)

    monkeypatch.setattr(UnrestrictedAccess, "judge", judge)
    store.rules = [
        Rule(swap(POINTER), first=rival.commit, times=LOSSES - 1),
        Rule(Nth(LOSSES, swap(POINTER)), first=take_turn),
        Rule(Nth(2 * LOSSES + 2, get(POINTER)), first=replace),
    ]

    await writer.commit(MINE)

    assert turns_when_judged[0] == 1  # the rival's
    assert b'"mine"' in await metadata(writer)


async def test_a_writer_that_gets_no_turn_in_time_has_changed_nothing(writer: CatalogFixture) -> None:
    store_of(writer).rules = [Rule(swap(POINTER), first=Rival(writer).commit)]

    with pytest.raises(Unavailable):
        await writer.commit(MINE)

    assert b'"mine"' not in await metadata(writer)


async def test_a_writer_does_not_wait_for_its_own_turn_whose_first_answer_was_lost(writer: CatalogFixture) -> None:
    rival, store, clock = Rival(writer), store_of(writer), clock_of(writer)
    store.rules = [
        Rule(swap(POINTER), first=rival.commit, times=LOSSES),
        Rule(put(POINTER, b'"turn"'), answers=lost, times=1),
    ]
    before_ms = clock.ms

    await writer.commit(MINE)

    assert clock.ms - before_ms < MAX_TURN_MS
    assert len([call for call in store.calls if put(POINTER, b'"turn"')(call)]) == 2
    assert b'"mine"' in await metadata(writer)


async def test_a_commit_whose_branch_has_moved_waits_for_no_turn(writer: CatalogFixture) -> None:
    rival, store, clock = Rival(writer), store_of(writer), clock_of(writer)
    location = await location_of(writer)

    store.rules = [Rule(swap(POINTER), first=partial(rival.append_and_take_turn, location), times=1)]
    before_ms = clock.ms

    with pytest.raises(CommitFailed):
        await writer.commit(append(location, 2, None))

    assert clock.ms - before_ms < MAX_TURN_MS / 10


async def test_a_commit_whose_branch_moves_while_it_gives_way_takes_no_turn(writer: CatalogFixture) -> None:
    rival, store, clock = Rival(writer), store_of(writer), clock_of(writer)
    location = await location_of(writer)
    ended_ms: list[int] = []

    async def take_turn() -> None:
        await rival.take_turn(9_000)

    async def end() -> None:
        await rival.append(location)
        ended_ms.append(clock.ms)

    store.rules = [
        Rule(swap(POINTER), first=rival.commit, times=LOSSES - 1),
        Rule(Nth(LOSSES, swap(POINTER)), first=take_turn),
        Rule(Nth(2 * LOSSES + 2, get(POINTER)), first=end),
    ]

    with pytest.raises(CommitFailed):
        await writer.commit(append(location, 2, None))

    assert len(ended_ms) == 1
    assert clock.ms - ended_ms[0] < MAX_DELAY_S * 100
    assert len([call for call in store.calls if put(POINTER, b'"turn"')(call)]) == 1  # the rival's


@pytest.mark.parametrize("losses", [1, LOSSES])
async def test_a_writer_gives_way_to_turns_in_succession_for_a_bounded_time(
    writer: CatalogFixture, losses: int
) -> None:
    rival, store, clock = Rival(writer), store_of(writer), clock_of(writer)

    async def take_turn() -> None:
        await rival.take_turn(9_000)

    store.rules = [Rule(swap(POINTER), first=take_turn, times=losses), Rule(get(POINTER), first=take_turn)]
    before_ms = clock.ms

    await writer.commit(MINE)

    assert clock.ms - before_ms < (losses + 1) * (MAX_TURNS_MS + 1_000 * MAX_DELAY_S)
    assert b'"mine"' in await metadata(writer)


@pytest.mark.parametrize("summary", [{}, {"wap.id": "1"}])
async def test_an_append_that_cannot_be_rebased_waits_for_no_turn(
    writer: CatalogFixture, summary: dict[str, str]
) -> None:
    """The table does not allow rebases, or the append has another form."""
    rival, store, clock = Rival(writer), store_of(writer), clock_of(writer)
    if summary:
        await writer.commit(set_property("arco.commit.appends", "rebase"))
    location = await location_of(writer)

    store.rules = [Rule(swap(POINTER), first=partial(rival.append_and_take_turn, location), times=1)]
    before_ms = clock.ms

    with pytest.raises(CommitFailed, match="not rebased" if summary else "created concurrently"):
        await writer.commit(await rebasable_append(writer, {"arco.append": "rebase", **summary}))

    assert clock.ms - before_ms < MAX_TURN_MS / 10


def changes_of(*names: str) -> list[TableChange]:
    return [(NS, name, MINE) for name in names]


async def test_a_transaction_reserves_the_next_move_of_a_table_that_others_change(writer: CatalogFixture) -> None:
    await writer.table("u")
    rival, store = Rival(writer), store_of(writer)
    hot = (await rival.pointer()).entity
    store.rules = [Rule(put(hot, b'"intent"'), first=rival.commit, times=LOSSES)]
    before = len(store.calls)

    await commit_transaction(writer.session(), changes_of("t", "u"))

    turns = [call.key for call in store.calls[before:] if put(POINTER, b'"turn"')(call)]
    assert len(turns) == 1
    assert hot in turns[0]
    made = await metadata(writer)
    assert all(each in made for each in (b'"mine"', b'"n"'))


async def test_a_transaction_gives_way_to_the_turn_of_another(writer: CatalogFixture) -> None:
    await writer.table("u")
    rival, store, clock = Rival(writer), store_of(writer), clock_of(writer)
    hot = (await rival.pointer()).entity
    store.rules = [Rule(put(hot, b'"intent"'), first=rival.take_turn, times=1)]
    before_ms = clock.ms

    await commit_transaction(writer.session(), changes_of("t", "u"))

    assert MAX_TURN_MS <= clock.ms - before_ms < MAX_TURN_MS + 300


async def test_a_transaction_whose_branch_has_moved_waits_for_no_turn(writer: CatalogFixture) -> None:
    await writer.table("u")
    rival, store, clock = Rival(writer), store_of(writer), clock_of(writer)
    location, hot = await location_of(writer), (await rival.pointer()).entity

    store.rules = [Rule(put(hot, b'"intent"'), first=partial(rival.append_and_take_turn, location), times=1)]
    before_ms = clock.ms

    with pytest.raises(CommitFailed):
        await commit_transaction(writer.session(), [(NS, "t", append(location, 2, None)), (NS, "u", MINE)])

    assert clock.ms - before_ms < MAX_TURN_MS / 2
