"""A key is one change, however often it is sent and whichever process dies (docs/design/idempotency.md#markers,
docs/design/idempotency.md#duplicates)."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

import pytest

from arco_catalog.iceberg.errors import (
    AlreadyExists,
    BadRequest,
    CommitFailed,
    CommitStateUnknown,
    KeyInProgress,
    KeyReused,
    NoSuchTable,
    Unavailable,
    Unsupported,
)
from arco_catalog.iceberg.json import JsonObject, JsonValue, loads
from arco_catalog.operations.commit import commit_table
from arco_catalog.operations.create import create_table
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.load import load_table
from arco_catalog.operations.namespaces import create_namespace, drop_namespace, update_properties
from arco_catalog.operations.rename import rename_table
from arco_catalog.planning.answers import Document
from arco_catalog.protocol.catalog import Settings
from arco_catalog.protocol.operation_request import DAY_MS, KEY_AHEAD_MS, IdempotencyKey
from arco_catalog.state.key_settings import Dialect
from arco_catalog.state.marker import Slot, WriteSet
from storage_backends import ABSENT, Applied
from storage_backends.memory import MemoryStore
from tests.support.fake_runtime import FakeRuntime, WrongClock
from tests.support.scripted_store import DOWN, Rule, ScriptedStore, lost, put
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.request_bodies import schema, set_property


@pytest.fixture
def clock() -> FakeRuntime:
    return FakeRuntime()


@pytest.fixture
async def fixture(clock: FakeRuntime) -> CatalogFixture:
    made = CatalogFixture(MemoryStore(now_ms=clock.now_ms), clock)
    await made.namespace("db")
    await made.table("t")
    return made


async def properties(fixture: CatalogFixture, name: str = "t") -> JsonObject:
    document = loads((await load_table(fixture.session(), NS, name)).metadata)
    assert isinstance(document, dict)
    found = document["properties"]
    assert isinstance(found, dict)
    return found


async def versions(fixture: CatalogFixture, name: str = "t") -> int:
    """How many metadata files the table has had."""
    location = (await load_table(fixture.session(), NS, name)).metadata_location
    return int(location.rpartition("/")[2].partition("-")[0]) + 1


async def test_the_same_request_is_applied_once_and_answered_alike(fixture: CatalogFixture) -> None:
    key = fixture.key()
    first = await fixture.commit(set_property("a", "1"), key=key)
    again = await fixture.another().commit(set_property("a", "1"), key=key)
    assert again == first
    assert await versions(fixture) == 2


async def test_a_replay_finds_its_answer_after_rename_and_drop(fixture: CatalogFixture) -> None:
    key = fixture.key()
    first = await fixture.commit(set_property("a", "1"), key=key)
    await rename_table(fixture.session(), (NS, "t"), (NS, "renamed"))
    assert await fixture.commit(set_property("a", "1"), key=key) == first
    await drop_table(fixture.session(), NS, "renamed", purge=False)
    assert await fixture.commit(set_property("a", "1"), key=key) == first


async def test_a_replayed_answer_is_not_undone_by_what_came_on_top(fixture: CatalogFixture) -> None:
    key = fixture.key()
    await fixture.commit(set_property("a", "1"), key=key)
    await fixture.commit(set_property("a", "2"))
    await fixture.commit(set_property("a", "1"), key=key)
    assert (await properties(fixture))["a"] == "2"


async def test_a_failure_is_final_even_when_its_reason_has_gone(fixture: CatalogFixture) -> None:
    body: JsonObject = {
        "requirements": [{"type": "assert-table-uuid", "uuid": "00000000-0000-4000-8000-000000000000"}],
        "updates": [{"action": "set-properties", "updates": {"a": "1"}}],
    }
    key = fixture.key()
    for process in (fixture, fixture.another()):
        with pytest.raises(CommitFailed, match="UUID does not match"):
            await process.commit(body, key=key)
    key = fixture.key()
    for _ in range(2):
        with pytest.raises(NoSuchTable):
            await fixture.commit(set_property("a", "1"), name="later", key=key)
        if _ == 0:
            await fixture.table("later")


async def test_a_no_op_is_final_too(fixture: CatalogFixture) -> None:
    await fixture.commit(set_property("a", "1"))
    key = fixture.key()
    settled = await fixture.commit(set_property("a", "1"), key=key)
    await fixture.commit(set_property("a", "2"))
    assert await fixture.commit(set_property("a", "1"), key=key) == settled
    assert (await properties(fixture))["a"] == "2"


async def test_a_key_belongs_to_one_payload_one_path_and_one_principal(fixture: CatalogFixture) -> None:
    key = fixture.key()
    await fixture.commit(set_property("a", "1"), key=key)
    with pytest.raises(KeyReused):
        await fixture.commit(set_property("a", "2"), key=key)
    body = set_property("a", "1")
    with pytest.raises(KeyReused):
        await commit_table(fixture.session(body, key=key, path="/elsewhere"), NS, "t", body)
    with pytest.raises(KeyReused):
        await commit_table(fixture.session(body, key=key, path="/commit/t", principal="other"), NS, "t", body)


def test_a_key_must_be_a_uuid_of_version_7_and_in_the_other_dialect_need_not() -> None:
    with pytest.raises(BadRequest, match="UUIDv7"):
        IdempotencyKey.parse("6f1f7c1e-7a53-4a30-8d27-0e6bb8a0d7a5", Dialect.ICEBERG)
    assert IdempotencyKey.parse("retry-1.a_b", Dialect.POLARIS).made_ms is None
    with pytest.raises(BadRequest):
        IdempotencyKey.parse("-x", Dialect.POLARIS)


@pytest.mark.parametrize(
    ("age_ms", "refusal"), [(DAY_MS + 60_000, CommitStateUnknown), (-KEY_AHEAD_MS - 60_000, BadRequest)]
)
async def test_an_old_or_future_key_without_a_marker_is_not_executed(
    fixture: CatalogFixture, age_ms: int, refusal: type[Exception]
) -> None:
    with pytest.raises(refusal):
        await fixture.commit(set_property("a", "1"), key=fixture.key(age_ms))
    assert await versions(fixture) == 1


async def test_an_old_key_elsewhere_than_on_commits_leaves_it_open_too(fixture: CatalogFixture) -> None:
    session = fixture.session(key=fixture.key(DAY_MS + 60_000))
    with pytest.raises(CommitStateUnknown):
        await create_namespace(session, ("x",), {})


async def test_an_old_key_with_a_marker_still_gets_its_answer(fixture: CatalogFixture, clock: FakeRuntime) -> None:
    key = fixture.key()
    first = await fixture.commit(set_property("a", "1"), key=key)
    clock.ms += DAY_MS + 60_000
    assert await fixture.commit(set_property("a", "1"), key=key) == first


async def test_every_mutation_is_replayed(fixture: CatalogFixture) -> None:
    async def properties_of(key: str) -> object:
        return await update_properties(fixture.session(key=key, path="p"), ("n",), ["gone"], {"a": "1"})

    calls: list[Callable[[str], Awaitable[object]]] = [
        lambda key: create_namespace(fixture.session(key=key, path="c"), ("n",), {"x": "1"}),
        properties_of,
        lambda key: drop_namespace(fixture.session(key=key, path="d"), ("n",)),
        lambda key: fixture.table("u", key=key),
        lambda key: rename_table(fixture.session(key=key, path="r"), (NS, "u"), (NS, "v")),
        lambda key: drop_table(fixture.session(key=key, path="x"), NS, "v", purge=False),
    ]
    for call in calls:
        key = fixture.key()
        assert await call(key) == await call(key)


async def test_staging_a_table_twice_gives_the_same_table(fixture: CatalogFixture) -> None:
    body: JsonObject = {"name": "s", "schema": schema("x"), "stage-create": True}
    key = fixture.key()
    first = await create_table(fixture.session(body, key=key), NS, body)
    again = await create_table(fixture.another().session(body, key=key), NS, body)
    assert isinstance(first, Document)
    assert again == first


@pytest.fixture
async def stumbling(clock: FakeRuntime) -> CatalogFixture:
    made = CatalogFixture(ScriptedStore(clock.now_ms), clock)
    await made.namespace("db")
    await made.table("t")
    return made


def on(fixture: CatalogFixture, *rules: Rule) -> None:
    assert isinstance(fixture.store, ScriptedStore)
    fixture.store.rules = [*rules]


@pytest.mark.parametrize("part", ["iceberg_idempotency", "/metadata/", "/pending/", "iceberg_pointers", "/committed/"])
@pytest.mark.parametrize("keyed", [True, False])
async def test_a_lost_answer_to_any_write_of_a_commit_is_no_lost_and_no_double_commit(
    stumbling: CatalogFixture, part: str, keyed: bool
) -> None:
    on(stumbling, Rule(put(part), answers=lost, times=1))
    await stumbling.commit(set_property("a", "1"), key=stumbling.key() if keyed else None)
    assert await versions(stumbling) == 2


async def test_a_store_that_goes_away_after_the_claim_leaves_the_outcome_open(stumbling: CatalogFixture) -> None:
    on(stumbling, Rule(put("iceberg_pointers"), fails=DOWN))
    key = stumbling.key()
    with pytest.raises(CommitStateUnknown):
        await stumbling.commit(set_property("a", "1"), key=key)
    on(stumbling)
    with pytest.raises(KeyInProgress):
        await stumbling.another().commit(set_property("a", "1"), key=key)


async def test_an_attempt_that_died_is_taken_over_when_it_is_old_enough(
    stumbling: CatalogFixture, clock: FakeRuntime
) -> None:
    on(stumbling, Rule(put("iceberg_pointers"), fails=DOWN))
    key = stumbling.key()
    with pytest.raises(CommitStateUnknown):
        await stumbling.commit(set_property("a", "1"), key=key)
    on(stumbling)
    clock.ms += stumbling.settings.in_progress_ms
    await stumbling.another().commit(set_property("a", "1"), key=key)
    assert await versions(stumbling) == 2
    assert (await properties(stumbling))["a"] == "1"


async def test_a_commit_whose_process_died_before_the_final_slot_is_recognised_at_once(
    stumbling: CatalogFixture,
) -> None:
    key = stumbling.key()
    on(stumbling, Rule(put("/1.json"), fails=DOWN))  # the final slot
    await stumbling.commit(set_property("a", "1"), key=key)
    await stumbling.another().commit(set_property("b", "2"))
    on(stumbling)
    again = await stumbling.another().commit(set_property("a", "1"), key=key)
    assert await versions(stumbling) == 3
    assert again.metadata_location.rpartition("/")[2].startswith("00002")


async def test_an_answer_by_evidence_is_left_in_the_marker(stumbling: CatalogFixture) -> None:
    key = stumbling.key()
    on(stumbling, Rule(put("/1.json"), fails=DOWN))  # the final slot
    await stumbling.commit(set_property("a", "1"), key=key)
    on(stumbling)
    await stumbling.another().commit(set_property("a", "1"), key=key)
    marker = stumbling.another().session(set_property("a", "1"), key=key, path="/commit/t").marker()
    assert marker is not None
    assert (await marker.read_on())[-1].final


@pytest.mark.parametrize("answered", [True, False])
async def test_a_commit_that_was_made_is_never_denied_though_its_metadata_file_is_gone(
    stumbling: CatalogFixture, answered: bool
) -> None:
    key = stumbling.key()
    on(stumbling, *([] if answered else [Rule(put("/1.json"), fails=DOWN)]))  # the final slot
    made = await stumbling.commit(set_property("a", "1"), key=key)
    on(stumbling)
    gone = await stumbling.store.delete(made.metadata_location.removeprefix("memory:///"))
    assert isinstance(gone, Applied)
    with pytest.raises(CommitStateUnknown):
        await stumbling.another().commit(set_property("a", "1"), key=key)


async def test_a_drop_that_died_before_its_mark_is_marked_by_the_next_that_answers_for_it(
    stumbling: CatalogFixture, clock: FakeRuntime
) -> None:
    entity = (await load_table(stumbling.session(), NS, "t")).entity
    key = stumbling.key()
    on(stumbling, Rule(put("iceberg_pointers"), fails=DOWN))
    with pytest.raises(CommitStateUnknown):
        await drop_table(stumbling.session(key=key), NS, "t", purge=False)
    on(stumbling)
    other = stumbling.another()
    assert await drop_table(other.session(key=key), NS, "t", purge=False) == Document(204)
    pointer = await other.session().state.pointer(entity)
    assert pointer is not None
    assert pointer.dropped_by is not None


async def test_a_takeover_of_a_slot_that_names_a_vanished_pointer_answers_unknown(
    fixture: CatalogFixture, clock: FakeRuntime
) -> None:
    key = fixture.key()
    body = set_property("a", "1")
    session = fixture.session(body, key=key, path="/commit/t")
    marker = session.marker()
    assert marker is not None
    slot = Slot("someone", WriteSet(pointers={"gone": 1}), marker.identity.to_json(), None)
    assert isinstance(
        await fixture.store.put(session.state.paths.marker_slot(session.request.key_hash(), 0), slot.body, ABSENT),
        Applied,
    )
    clock.ms += fixture.settings.in_progress_ms
    with pytest.raises(CommitStateUnknown):
        await fixture.commit(body, key=key)


async def test_a_create_that_lost_its_answer_does_not_conflict_with_its_own_table(
    stumbling: CatalogFixture,
) -> None:
    on(stumbling, Rule(put("manifest"), answers=lost, times=1))
    await stumbling.table("u", key=stumbling.key())
    on(stumbling, Rule(put("manifest"), answers=lost, times=1))
    await stumbling.table("v")
    with pytest.raises(AlreadyExists):
        await stumbling.table("v")


async def test_a_deadline_that_passes_before_the_first_call_is_unavailable(
    fixture: CatalogFixture,
) -> None:
    body = set_property("a", "1")
    with pytest.raises(Unavailable):
        await commit_table(fixture.session(body, deadline_ms=0), NS, "t", body)
    assert await versions(fixture) == 1


def test_settings_give_takeovers_more_time_than_requests() -> None:
    settings = Settings("wh")
    assert settings.in_progress_ms > settings.request_ms


async def test_a_catalog_that_became_read_only_denies_nothing_that_was_done(stumbling: CatalogFixture) -> None:
    done, begun, other = stumbling.key(), stumbling.key(), stumbling.key()
    first = await stumbling.commit(set_property("a", "1"), key=done)
    on(stumbling, Rule(put("iceberg_pointers"), fails=DOWN))
    with pytest.raises(CommitStateUnknown):
        await stumbling.commit(set_property("b", "1"), key=begun)
    closed = CatalogFixture(
        stumbling.store, stumbling.runtime, replace(stumbling.settings, read_only_because="of a test")
    )
    assert await closed.commit(set_property("a", "1"), key=done) == first
    with pytest.raises(KeyReused):
        await closed.commit(set_property("a", "2"), key=done)
    with pytest.raises(CommitStateUnknown):
        await closed.commit(set_property("b", "1"), key=begun)
    for key in (other, None):
        with pytest.raises(Unsupported, match="read-only, since the store could lose commits: of a test"):
            await closed.commit(set_property("c", "1"), key=key)


async def test_a_place_that_is_allowed_only_when_decoded_is_refused_by_a_final_slot() -> None:
    fixture = CatalogFixture(url="memory:///lake")
    await fixture.namespace("db")
    session = fixture.session(key=fixture.key())
    body: JsonObject = {"name": "t", "schema": schema("x"), "location": "memory:///l%61ke/wh/warehouse/t"}
    with pytest.raises(BadRequest):
        await create_table(session, NS, body)
    marker = session.marker()
    assert marker is not None
    assert [slot.final for slot in await marker.read_on()] == [True]


# The age of a key is judged by the store's clock.


def machine(fixture: CatalogFixture, clock: FakeRuntime, ahead_ms: int) -> CatalogFixture:
    """Another process, on a machine whose clock is wrong."""
    return CatalogFixture(fixture.store, WrongClock(clock, ahead_ms), fixture.settings)


async def slots_of(fixture: CatalogFixture, key: str) -> Sequence[Slot]:
    marker = fixture.another().session(key=key).marker()
    assert marker is not None
    return await marker.read_on()


@pytest.mark.parametrize("ahead_ms", [-2 * KEY_AHEAD_MS, 2 * KEY_AHEAD_MS, -3 * DAY_MS, 3 * DAY_MS])
async def test_a_machine_whose_clock_is_wrong_takes_good_keys(
    fixture: CatalogFixture, clock: FakeRuntime, ahead_ms: int
) -> None:
    body = set_property("a", "1")
    elsewhere = machine(fixture, clock, ahead_ms)

    await elsewhere.commit(body, key=fixture.key())

    assert (await properties(fixture))["a"] == "1"


@pytest.mark.parametrize("ahead_ms", [-DAY_MS, 0, DAY_MS])
@pytest.mark.parametrize("requirements", [[], [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 7}]])
async def test_a_key_that_the_store_takes_for_too_old_is_executed_on_no_machine(
    fixture: CatalogFixture, clock: FakeRuntime, ahead_ms: int, requirements: list[JsonValue]
) -> None:
    """What was applied under it may be forgotten: neither may it be done again, nor denied, now or by a duplicate."""
    key = fixture.key(DAY_MS + 60_000)
    body: JsonObject = {**set_property("a", "1"), "requirements": requirements}

    for process in (machine(fixture, clock, ahead_ms), machine(fixture, clock, ahead_ms), fixture.another()):
        with pytest.raises(CommitStateUnknown):
            await process.commit(body, key=key)
        clock.ms += fixture.settings.in_progress_ms

    assert "a" not in await properties(fixture)


@pytest.mark.parametrize("ahead_ms", [0, 2 * KEY_AHEAD_MS])
async def test_a_key_from_the_future_is_refused_for_good_by_whichever_machine_saw_it_first(
    fixture: CatalogFixture, clock: FakeRuntime, ahead_ms: int
) -> None:
    """Another machine may judge the same key a moment later, when it is no longer from the future."""
    key = fixture.key(-KEY_AHEAD_MS - 60_000)
    with pytest.raises(BadRequest, match="in the future"):
        await machine(fixture, clock, ahead_ms).commit(set_property("a", "1"), key=key)
    clock.ms += 120_000

    with pytest.raises(BadRequest, match="in the future"):
        await fixture.another().commit(set_property("a", "1"), key=key)

    assert "a" not in await properties(fixture)
    assert (await slots_of(fixture, key))[-1].final


async def test_a_key_that_one_machine_executes_is_refused_by_none_that_is_behind(
    stumbling: CatalogFixture, clock: FakeRuntime
) -> None:
    key, body = stumbling.key(), set_property("a", "1")
    on(stumbling, Rule(put("iceberg_pointers"), fails=DOWN))
    with pytest.raises(CommitStateUnknown):
        await stumbling.commit(body, key=key)

    with pytest.raises(KeyInProgress):
        await machine(stumbling, clock, -2 * KEY_AHEAD_MS).commit(body, key=key)


async def test_a_read_only_catalog_does_not_deny_what_may_have_been_forgotten(fixture: CatalogFixture) -> None:
    closed = CatalogFixture(fixture.store, fixture.runtime, replace(fixture.settings, read_only_because="of a test"))
    with pytest.raises(CommitStateUnknown):
        await closed.commit(set_property("a", "1"), key=fixture.key(DAY_MS + 60_000))
