"""A consistent cut of several tables: what it costs, and that it is of one instant where another process works between
two reads (docs/design/resolve.md#rule-5). The simulation has drawn programs (tests/simulation/cutting.py)."""

from collections.abc import Awaitable, Callable, Sequence

import pytest

from arco_catalog.iceberg.errors import InternalError, NoSuchTable, Refusal, Unavailable
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.commit import commit_table
from arco_catalog.operations.cut import TRIES, CurrentRelation, read_cut
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.rename import rename_table
from arco_catalog.operations.transaction import commit_transaction
from arco_catalog.planning.cut import Observation, lacks_pointer
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.access import State
from arco_catalog.state.entries import RelationEntry
from arco_catalog.state.pointer import Pointer
from tools.support.catalog_fixture import NS, CatalogFixture, CountingFixture
from tools.support.request_bodies import set_property

NAMES = [f"t{number}" for number in range(6)]


@pytest.fixture
async def counted(counted: CountingFixture) -> CountingFixture:
    for name in NAMES:
        await counted.table(name)
    return counted


async def cut(session: Session, *names: str) -> list[str | None]:
    """The metadata locations of these tables at one instant, None for one that does not exist."""
    found = await read_cut(session, [(NS, name) for name in names])
    return [_location(found[NS, name]) for name in names]


def _location(found: CurrentRelation | Refusal) -> str | None:
    if isinstance(found, CurrentRelation):
        return found.pointer.metadata.location
    assert isinstance(found, NoSuchTable)
    return None


async def loaded(session: Session, *names: str) -> None:
    for found in (await read_cut(session, [(NS, name) for name in names])).values():
        assert isinstance(found, CurrentRelation)
        await found.load(session)


async def test_a_warm_cut_reads_head_and_then_each_pointer(counted: CountingFixture) -> None:
    await loaded(counted.session(), *NAMES)

    measured = await counted.cost(loaded(counted.session(), *NAMES))

    assert (measured.depth, measured.calls) == (2, 1 + len(NAMES))


async def test_a_cold_cut_reads_head_and_each_pointer_twice(counted: CountingFixture) -> None:
    measured = await counted.cost(cut(counted.another().session(), *NAMES))
    assert (measured.depth, measured.calls) == (4, 2 * (1 + len(NAMES)))


async def test_a_table_that_has_moved_costs_one_more_collection(counted: CountingFixture) -> None:
    await loaded(counted.session(), *NAMES)
    await counted.another().commit(set_property("a", "b"), NAMES[0])

    measured = await counted.cost(cut(counted.session(), *NAMES))

    assert measured.calls == 2 * (1 + len(NAMES))


async def test_names_without_a_table_cost_no_call(counted: CountingFixture) -> None:
    assert await cut(counted.session(), "none", "nowhere") == [None, None]
    measured = await counted.cost(cut(counted.session(), "none", "nowhere"))
    assert measured.calls == 1


class Meddler:
    """Runs steps of another process, each before the next read of a pointer."""

    def __init__(
        self, patch: pytest.MonkeyPatch, *steps: Callable[[], Awaitable[object]], forever: bool = False
    ) -> None:
        self._steps = [*steps]
        self._forever = forever
        self._busy = False
        real = State.pointer

        async def pointer(state: State, entity: str) -> Pointer | None:
            if self._steps and not self._busy:
                self._busy = True
                step = self._steps[0] if self._forever else self._steps.pop(0)
                await step()
                self._busy = False
            return await real(state, entity)

        patch.setattr(State, "pointer", pointer)


async def tables(fixture: CatalogFixture, *names: str) -> None:
    for name in names:
        await fixture.table(name)


def change(value: str) -> JsonObject:
    return set_property("a", value)


async def test_a_table_that_never_rests_is_named(fixture: CatalogFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    await tables(fixture, "t", "hot")
    other, numbers = fixture.another(), iter(range(1_000))
    calls: list[int] = []

    async def commit() -> None:
        calls.append(1)
        body = change(str(next(numbers)))
        await commit_table(other.session(body), NS, "hot", body)

    Meddler(monkeypatch, commit, forever=True)

    with pytest.raises(Unavailable, match=r"changed, in the last one db\.hot\. Try again"):
        await cut(fixture.session(), "hot", "t")
    assert len(calls) >= TRIES


async def test_a_transaction_is_seen_whole_or_not_at_all(
    fixture: CatalogFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    await tables(fixture, "a", "b")
    before = await cut(fixture.session(), "a", "b")
    other, body = fixture.another(), change("new")

    async def transact() -> None:
        await commit_transaction(other.session(body, path="/t"), [(NS, "a", body), (NS, "b", body)])

    Meddler(monkeypatch, _nothing, transact)  # after the pointer of `a` was read, before that of `b`
    seen = await cut(fixture.another().session(), "a", "b")

    assert seen == await cut(fixture.another().session(), "a", "b")
    assert not {*seen} & {*before}


async def _nothing() -> None:
    return None


@pytest.mark.parametrize("names", [("t", "u"), ("u", "t")])
async def test_a_table_that_is_renamed_meanwhile_has_one_of_its_names(
    fixture: CatalogFixture, monkeypatch: pytest.MonkeyPatch, names: Sequence[str]
) -> None:
    await tables(fixture, "t", "other")
    other = fixture.another()
    body: JsonObject = {}

    async def rename() -> None:
        await rename_table(other.session(body), (NS, "t"), (NS, "u"))

    Meddler(monkeypatch, rename)
    seen = await cut(fixture.session(), *names, "other")

    assert [each is None for each in seen].count(True) == 1


async def test_a_dropped_table_is_not_found(fixture: CatalogFixture) -> None:
    await tables(fixture, "t", "u")
    await cut(fixture.session(), "t", "u")
    await drop_table(fixture.another().session(), NS, "t", purge=False)

    gone, there = await cut(fixture.session(), "t", "u")

    assert (gone is None, there is None) == (True, False)


async def test_a_table_whose_pointer_is_gone_is_damaged(fixture: CatalogFixture) -> None:
    entity = (await fixture.table("t")).entity
    await fixture.store.delete(fixture.session().state.paths.pointer(entity))

    with pytest.raises(InternalError, match=r"The pointer .* is missing"):
        await cut(fixture.another().session(), "t")


@pytest.mark.parametrize(
    ("transaction", "has_committed", "is_damaged"),
    [(None, None, True), ("tx", True, True), ("tx", False, False), ("tx", None, False)],
)
def test_a_create_that_was_not_committed_needs_no_pointer(
    transaction: str | None, has_committed: bool | None, is_damaged: bool
) -> None:
    entry = RelationEntry.new(kind="table", entity="e", uuid=None, locations=[], transaction=transaction)
    assert lacks_pointer(entry, Observation({}, {"tx": has_committed})) is is_damaged
