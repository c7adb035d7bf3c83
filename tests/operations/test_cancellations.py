"""A takeover cancels earlier attempts by id, in a registry whose version allows it (docs/design/registry.md)."""

from collections.abc import Mapping, Sequence

import pytest

from arco_catalog.iceberg.errors import CommitStateUnknown
from arco_catalog.operations.history import history
from arco_catalog.operations.namespaces import create_namespace
from arco_catalog.protocol import evidence
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.evidence import cancel_in_registry
from arco_catalog.state import registry
from arco_catalog.state.access import State
from arco_catalog.state.marker import Slot, WriteSet
from arco_catalog.state.registry import Operation, RegistryState
from arco_catalog.upkeep.fsck.check import check
from arco_catalog.upkeep.fsck.codes import Code
from arco_catalog.upkeep.fsck.examination import Examination
from storage_backends import ABSENT, Applied, Version
from storage_backends.memory import MemoryStore
from tests.support.fake_runtime import FakeRuntime
from tests.support.registry_versions import raise_version
from tools.support.catalog_fixture import CatalogFixture

DEAD = "01DEAD"
IN_REGISTRY = {DEAD: WriteSet(registry=0)}


@pytest.fixture
def clock() -> FakeRuntime:
    return FakeRuntime()


@pytest.fixture
async def fixture(clock: FakeRuntime) -> CatalogFixture:
    """A catalog whose registry has the second version."""
    made = CatalogFixture(MemoryStore(now_ms=clock.now_ms), clock)
    await made.namespace("db")
    await raise_version(made.session().state)
    return made.another()


async def make(state: State, commit: RegistryState, expected: Version | None) -> None:
    await state.create(state.paths.registry_commit(str(commit.id)), commit.body)
    assert isinstance(await state.move_head(commit, expected), Applied)


async def commit_of(state: State, attempt: str) -> None:
    """Commits an operation with the id of an attempt, as its own process would."""
    head = await state.head()
    operation = Operation(attempt, "create-namespace", {}, None)
    await make(state, head.successor(commit="late", at_ms=1, edits={}, operations=[operation]), head.version)


async def take_over(fixture: CatalogFixture, clock: FakeRuntime) -> RegistryState:
    """Creates a namespace under a key that a dead process has claimed, and returns HEAD after it."""
    key = fixture.key()
    session = fixture.session(key=key, path="/namespaces")
    marker = session.marker()
    assert marker is not None
    slot = Slot(DEAD, WriteSet(registry=1), marker.identity.to_json(), None)
    await fixture.store.put(session.state.paths.marker_slot(session.request.key_hash(), 0), slot.body, ABSENT)
    clock.ms += fixture.settings.in_progress_ms
    await create_namespace(fixture.session(key=key, path="/namespaces"), ("other",), {})
    return await fixture.another().session().state.head()


async def findings(fixture: CatalogFixture) -> Sequence[Code]:
    return [finding.code async for finding in check(Examination(fixture.another().session()))]


async def kinds(fixture: CatalogFixture) -> Sequence[object]:
    return [operation["kind"] async for operation in history(fixture.another().session(), own=True)]


async def test_a_takeover_cancels_the_earlier_attempt(fixture: CatalogFixture, clock: FakeRuntime) -> None:
    head = await take_over(fixture, clock)

    assert head.is_cancelled(DEAD)
    assert head.commit_of(DEAD) is None
    assert await kinds(fixture) == ["create-namespace", "cancel", "create-namespace"]


async def test_a_takeover_fences_a_registry_of_the_first_version(clock: FakeRuntime) -> None:
    fixture = CatalogFixture(MemoryStore(now_ms=clock.now_ms), clock)
    await fixture.namespace("db")

    head = await take_over(fixture, clock)

    assert "cancelled" not in head.document
    assert await kinds(fixture) == ["create-namespace", "fence", "create-namespace"]


async def test_an_attempt_that_has_committed_is_not_cancelled(fixture: CatalogFixture) -> None:
    session = fixture.session()
    await commit_of(session.state, DEAD)

    head = await cancel_in_registry(session, {**IN_REGISTRY, "01OTHER": WriteSet(registry=0)})

    assert head.commit_of(DEAD) is not None
    assert head.cancelled() == {}


def commit_before_the_next_move(patch: pytest.MonkeyPatch, other: Session) -> None:
    """Lets the earlier attempt commit just before the next compare-and-swap of HEAD."""
    rightly = State.move_head

    async def move_head(self: State, *sent: object) -> object:
        patch.setattr(State, "move_head", rightly)
        await commit_of(other.state, DEAD)
        return await rightly(self, *sent)  # type: ignore[arg-type]

    patch.setattr(State, "move_head", move_head)


async def test_an_attempt_that_commits_before_its_cancellation_is_not_cancelled(
    fixture: CatalogFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit_before_the_next_move(monkeypatch, fixture.another().session())

    head = await cancel_in_registry(fixture.session(), IN_REGISTRY)

    assert head.commit_of(DEAD) is not None
    assert not head.is_cancelled(DEAD)


async def test_a_cancellation_without_a_search_cancels_a_commit(
    fixture: CatalogFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted bug: fsck reports what it leaves behind."""

    async def search(state: State, head: RegistryState, attempts: Mapping[str, WriteSet]) -> Sequence[str]:
        return [*attempts]

    monkeypatch.setattr(evidence, "_absent_from", search)
    await commit_of(fixture.another().session().state, DEAD)
    await cancel_in_registry(fixture.session(), IN_REGISTRY)

    assert await findings(fixture) == [Code.COMMIT_CANCELLED]


async def test_an_attempt_whose_evidence_is_lost_is_not_cancelled_and_its_outcome_is_unknown(
    fixture: CatalogFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "RECENT_COMMITS", 1)
    await fixture.namespace("a")
    await fixture.namespace("b")
    state = fixture.session().state
    before = (await state.head()).before
    assert before is not None
    await fixture.store.delete(state.paths.registry_commit(before))

    with pytest.raises(CommitStateUnknown):
        await evidence.fence(fixture.another().session(), IN_REGISTRY)

    head = await fixture.another().session().state.head()
    assert head.cancelled() == {}
    assert (await kinds(fixture))[0] == "fence"


async def test_a_check_finds_nothing_in_a_registry_with_cancellations(
    fixture: CatalogFixture, clock: FakeRuntime
) -> None:
    await take_over(fixture, clock)
    assert await findings(fixture) == []
