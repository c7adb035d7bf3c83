"""Loads of several tables in one request: what they cost, and what they show of transactions
(docs/design/resolve.md)."""

import pytest

from arco_catalog.iceberg.errors import NoSuchTable
from arco_catalog.operations.load import CurrentState
from arco_catalog.operations.resolve import load_names, resolve_one
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import gather
from arco_catalog.state.spilling import Limits
from tools.support.catalog_fixture import NS, CatalogFixture, CountingFixture
from tools.support.request_bodies import set_property

NAMES = [f"t{number}" for number in range(6)]


@pytest.fixture
async def counted(counted: CountingFixture) -> CountingFixture:
    for name in NAMES:
        await counted.table(name)
    return counted


async def resolve(session: Session, *names: str) -> list[str | None]:
    """The locations of the metadata files of these tables, None for one that does not exist."""
    identifiers = [(NS, name) for name in names]
    head = await session.head()
    await load_names(session, head, identifiers)
    found = await gather(*(resolve_one(session, head, identifier) for identifier in identifiers))
    assert all(isinstance(each, CurrentState | NoSuchTable) for each in found)
    return [each.pointer.metadata.location if isinstance(each, CurrentState) else None for each in found]


async def test_a_warm_request_reads_head_and_each_pointer(counted: CountingFixture) -> None:
    await resolve(counted.session(), *NAMES)

    measured = await counted.cost(resolve(counted.session(), *NAMES, "none"))

    assert (measured.depth, measured.calls) == (2, 1 + len(NAMES))


async def test_a_cold_request_reads_metadata_files_besides(counted: CountingFixture) -> None:
    measured = await counted.cost(resolve(counted.another().session(), *NAMES))
    assert (measured.depth, measured.calls) == (3, 1 + 2 * len(NAMES))


async def test_a_spilled_index_is_read_once_for_all_names(counted: CountingFixture) -> None:
    counted.settings = type(counted.settings)("wh", spill=Limits(embedded=0, segment=1_000_000))
    spilled = counted.another()
    await spilled.table("last")

    measured = await counted.cost(resolve(spilled.another().session(), *NAMES, "last"))

    assert measured.calls == 1 + 1 + 2 * (len(NAMES) + 1)


async def test_what_another_process_has_committed_is_seen(fixture: CatalogFixture) -> None:
    await fixture.table("t")
    before = await resolve(fixture.session(), "t")

    await fixture.another().commit(set_property("a", "b"))
    after = await resolve(fixture.session(), "t")

    assert before != after == await resolve(fixture.another().session(), "t")
