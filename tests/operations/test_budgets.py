"""Every operation keeps to the table in docs/design/budgets.md: counted calls, and the longest chain of them."""

from collections.abc import Awaitable

import pytest

from arco_catalog.iceberg.errors import NoSuchTable
from arco_catalog.iceberg.json import JsonObject, dumps, loads
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.governance import govern_relation, relation_governance
from arco_catalog.operations.listing import Paging, list_namespaces, list_relations
from arco_catalog.operations.load import load_table, require_table
from arco_catalog.operations.register import register_table
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state.access import CLAIM_AGE_MS, POINTER_AGE_MS
from arco_catalog.state.index import relation_key
from arco_catalog.state.memory import VALUES_COUNTED_FROM_BYTES
from arco_catalog.state.spilling import Limits
from storage_backends import ABSENT
from tests.support.fake_runtime import FakeRuntime
from tools.support.catalog_fixture import NS, CountingFixture
from tools.support.request_bodies import set_property


@pytest.fixture
async def counted(counted: CountingFixture) -> CountingFixture:
    await counted.table("t")
    return counted


def snapshot_at(manifest_list: str) -> JsonObject:
    """An update that adds a snapshot."""
    snapshot: JsonObject = {
        "snapshot-id": 1,
        "sequence-number": 1,
        "timestamp-ms": 1_767_225_600_000,
        "manifest-list": manifest_list,
        "summary": {"operation": "append"},
        "schema-id": 0,
    }
    return {"action": "add-snapshot", "snapshot": snapshot}


async def cost(fixture: CountingFixture, operation: Awaitable[object]) -> tuple[int, int]:
    """(depth, calls) of an operation."""
    measured = await fixture.cost(operation)
    return measured.depth, measured.calls


def within(cost: tuple[int, int], depth: int, calls: int) -> bool:
    return cost[0] <= depth and cost[1] <= calls


async def test_a_warm_load_reads_head_and_pointer_concurrently(counted: CountingFixture) -> None:
    await load_table(counted.session(), NS, "t")
    assert await cost(counted, load_table(counted.session(), NS, "t")) == (1, 2)


async def test_a_warm_load_confirms_the_metadata_file_once_a_minute(counted: CountingFixture) -> None:
    assert isinstance(counted.runtime, FakeRuntime)
    await load_table(counted.session(), NS, "t")
    counted.runtime.ms += counted.settings.file_confirmed_ms
    assert await cost(counted, load_table(counted.session(), NS, "t")) == (1, 3)
    assert await cost(counted, load_table(counted.session(), NS, "t")) == (1, 2)


async def test_each_warm_load_confirms_a_metadata_file_that_was_registered(counted: CountingFixture) -> None:
    table = await load_table(counted.session(), NS, "t")
    metadata = loads(table.metadata)
    assert isinstance(metadata, dict)
    body = dumps({**metadata, "location": "memory:///wh/warehouse/elsewhere"})
    await counted.store.put("wh/warehouse/elsewhere/v1.json", body, ABSENT)
    file = "memory:///wh/warehouse/elsewhere/v1.json"
    await register_table(counted.session(), NS, "r", file, overwrite=False)
    await load_table(counted.session(), NS, "r")
    for _ in range(2):
        assert await cost(counted, load_table(counted.session(), NS, "r")) == (1, 3)
    await counted.commit(set_property("a", "1"), "r")
    assert await cost(counted, load_table(counted.session(), NS, "r")) == (1, 2)


async def test_a_cold_load_makes_three_calls_in_sequence(counted: CountingFixture) -> None:
    assert await cost(counted, load_table(counted.another().session(), NS, "t")) == (3, 3)


async def test_a_load_of_a_governed_table_makes_no_further_call(counted: CountingFixture) -> None:
    columns: JsonObject = {f"arco.column.{number}.tag.pii": "x" * 40 for number in range(150)}
    await govern_relation(counted.session(), NS, "t", "table", {"arco.owner": "ada", **columns})
    await load_table(counted.session(), NS, "t")

    assert await cost(counted, load_table(counted.session(), NS, "t")) == (1, 2)
    assert await cost(counted, load_table(counted.another().session(), NS, "t")) == (3, 3)
    assert await cost(counted, relation_governance(counted.another().session(), NS, "t", "table")) == (1, 1)


async def test_a_change_of_governance_without_and_with_a_key(counted: CountingFixture) -> None:
    await load_table(counted.session(), NS, "t")
    for value, key, calls in (("a", None, 4), ("b", counted.key(), 6)):
        change = govern_relation(counted.session({}, key=key), NS, "t", "table", {"arco.owner": value})
        assert within(await cost(counted, change), 3, calls)


async def test_a_warm_load_of_a_table_that_moved_on_is_one_call_deeper(counted: CountingFixture) -> None:
    await load_table(counted.session(), NS, "t")
    await counted.another().commit(set_property("a", "1"))
    assert await cost(counted, load_table(counted.session(), NS, "t")) == (2, 3)


@pytest.mark.parametrize("known", [True, False])
async def test_a_name_that_does_not_exist_costs_one_call(counted: CountingFixture, known: bool) -> None:
    fixture = counted if known else counted.another()

    async def miss() -> None:
        with pytest.raises(NoSuchTable):
            await load_table(fixture.session(), NS, "nothing")

    async def head_miss() -> None:
        with pytest.raises(NoSuchTable):
            await require_table(fixture.session(), NS, "nothing")

    assert await cost(counted, miss()) == (1, 1)
    assert await cost(counted, head_miss()) == (1, 1)


async def test_a_warm_commit_with_a_key(counted: CountingFixture) -> None:
    assert within(await cost(counted, counted.commit(set_property("a", "1"), key=counted.key())), 3, 7)


async def test_a_warm_commit_with_a_key_to_metadata_whose_values_are_counted(counted: CountingFixture) -> None:
    """A base that is cached is not read, whatever its size: the claim needn't be sent before the other writes."""
    await counted.commit(set_property("long", "x" * VALUES_COUNTED_FROM_BYTES))
    assert within(await cost(counted, counted.commit(set_property("a", "1"), key=counted.key())), 3, 7)


async def test_a_cold_commit_with_a_key(counted: CountingFixture) -> None:
    other = counted.another()
    assert within(await cost(counted, other.commit(set_property("a", "1"), key=counted.key())), 6, 10)


async def test_a_cold_commit_without_a_key(counted: CountingFixture) -> None:
    assert within(await cost(counted, counted.another().commit(set_property("a", "1"))), 6, 8)


async def test_a_warm_commit_without_a_key(counted: CountingFixture) -> None:
    assert within(await cost(counted, counted.commit(set_property("a", "1"))), 3, 5)


async def test_a_commit_on_a_pointer_of_a_second_ago_reads_it_beside_the_first_writes(
    counted: CountingFixture,
) -> None:
    assert isinstance(counted.runtime, FakeRuntime)
    for key, calls in ((None, 5), (counted.key(), 7)):
        await counted.commit(set_property("a", "0"))
        counted.runtime.ms += POINTER_AGE_MS
        assert within(await cost(counted, counted.commit(set_property("a", "1"), key=key)), 3, calls + 1)


async def test_a_commit_on_a_pointer_of_a_second_ago_that_moved_on_is_three_deeper(counted: CountingFixture) -> None:
    assert isinstance(counted.runtime, FakeRuntime)
    await counted.commit(set_property("a", "1"))
    await counted.another().commit(set_property("b", "1"))
    counted.runtime.ms += POINTER_AGE_MS
    assert within(await cost(counted, counted.commit(set_property("a", "2"), key=counted.key())), 3 + 3, 7 + 8)


async def test_a_commit_with_a_key_on_a_pointer_of_a_minute_ago_is_one_deeper(counted: CountingFixture) -> None:
    assert isinstance(counted.runtime, FakeRuntime)
    await counted.commit(set_property("a", "0"))
    counted.runtime.ms += CLAIM_AGE_MS
    assert within(await cost(counted, counted.commit(set_property("a", "1"), key=counted.key())), 3 + 1, 7 + 1)


async def test_a_create_on_a_head_of_a_minute_ago_is_one_deeper(counted: CountingFixture) -> None:
    assert isinstance(counted.runtime, FakeRuntime)
    for name, key, calls in (("u", None, 7), ("v", counted.key(), 9)):
        counted.runtime.ms += CLAIM_AGE_MS
        assert within(await cost(counted, counted.table(name, key=key)), 3 + 1, calls)


async def test_a_commit_that_lost_its_compare_and_swap_is_four_deeper(counted: CountingFixture) -> None:
    await counted.commit(set_property("a", "1"))
    await counted.another().commit(set_property("b", "1"))
    assert within(await cost(counted, counted.commit(set_property("a", "2"), key=counted.key())), 3 + 4, 7 + 7)


async def test_a_warm_create_without_and_with_a_key(counted: CountingFixture) -> None:
    assert within(await cost(counted, counted.table("u")), 3, 7)
    assert within(await cost(counted, counted.table("v", key=counted.key())), 3, 9)


async def test_a_cold_create_without_and_with_a_key(counted: CountingFixture) -> None:
    assert within(await cost(counted, counted.another().table("u")), 4, 7)
    assert within(await cost(counted, counted.another().table("v", key=counted.key())), 4, 10)


async def test_a_create_under_a_head_that_moved_is_one_deeper_and_one_call_more(counted: CountingFixture) -> None:
    await counted.another().table("u")
    assert within(await cost(counted, counted.table("v")), 4, 8)
    await counted.another().table("w")
    assert within(await cost(counted, counted.table("x", key=counted.key())), 4, 10)


@pytest.mark.parametrize(("purge", "depth", "calls"), [(False, 4, 4), (True, 6, 8)])
async def test_a_drop(counted: CountingFixture, purge: bool, depth: int, calls: int) -> None:
    await counted.table("u")
    for name, key, more in (("t", None, 0), ("u", counted.key(), 2)):
        await load_table(counted.session(), NS, name)
        dropping = drop_table(counted.session({}, key=key), NS, name, purge)
        assert within(await cost(counted, dropping), depth, calls + more)


async def test_a_commit_that_takes_a_manifest_list_from_its_own_location_costs_no_more(
    counted: CountingFixture,
) -> None:
    place = (await load_table(counted.session(), NS, "t")).metadata_location.rpartition("/")[0]
    updates: JsonObject = {"requirements": [], "updates": [snapshot_at(f"{place}/snap-1.avro")]}
    assert within(await cost(counted, counted.commit(updates)), 3, 5)


async def test_a_page_of_a_listing(counted: CountingFixture) -> None:
    for name in ("u", "v"):
        await counted.table(name)
    first = await list_relations(counted.another().session(), NS, "table", Paging("", 1))
    await counted.namespace("another")
    later = Paging(first.next_page_token, 1)
    assert within(await cost(counted, list_relations(counted.another().session(), NS, "table", later)), 2, 2)
    assert within(await cost(counted, list_namespaces(counted.another().session(), (), Paging("", 1))), 2, 2)


# With a spilled index: a cold lookup costs one call more, a flush the listed number.


@pytest.fixture
async def spilled(counted: CountingFixture) -> CountingFixture:
    """A catalog with its tables in segments, opened by a new process that spills no more and has read no segment."""
    busy = CountingFixture(counted.store, counted.runtime, Settings("wh", spill=Limits(embedded=300, segment=600)))
    for name in "abcdef":
        await busy.table(name)
    index = (await counted.session().state.head()).index
    assert len(index.directory.refs) > 3
    assert relation_key(NS, "t") not in index.edits
    return counted.another()


async def test_a_load_over_a_spilled_index(spilled: CountingFixture) -> None:
    assert await cost(spilled, load_table(spilled.session(), NS, "t")) == (4, 4)
    assert await cost(spilled, load_table(spilled.session(), NS, "t")) == (1, 2)


async def test_a_miss_over_a_spilled_index(spilled: CountingFixture) -> None:
    async def miss() -> None:
        with pytest.raises(NoSuchTable):
            await load_table(spilled.session(), NS, "nothing")

    assert await cost(spilled, miss()) == (2, 2)
    assert await cost(spilled, miss()) == (1, 1)


async def test_a_commit_over_a_spilled_index(spilled: CountingFixture) -> None:
    assert within(await cost(spilled, spilled.commit(set_property("a", "1"), key=spilled.key())), 6 + 1, 10 + 1)
    assert within(await cost(spilled, spilled.commit(set_property("a", "2"), key=spilled.key())), 3, 7)


async def test_a_create_over_a_spilled_index_reads_one_segment_at_most(spilled: CountingFixture) -> None:
    await spilled.session().state.head()
    assert within(await cost(spilled, spilled.table("t1")), 3 + 1, 7 + 1)
    assert within(await cost(spilled, spilled.table("t2")), 3, 7)
    assert within(await cost(spilled, spilled.table("t3", key=spilled.key())), 3, 9)
    unspilled = CountingFixture(spilled.store, spilled.runtime, Settings("another"))
    await unspilled.namespace("db")
    depth, calls = await cost(unspilled, unspilled.another().table("t"))
    assert within(await cost(spilled, spilled.another().table("t4")), depth + 1, calls + 1)


async def test_a_flush_adds_one_read_and_one_write_and_a_split_one_write_more(spilled: CountingFixture) -> None:
    flushing = CountingFixture(
        spilled.store, spilled.runtime, Settings("wh", spill=Limits(embedded=300, segment=100_000))
    )
    await flushing.session().state.head()
    assert within(await cost(flushing, flushing.table("t1")), 3 + 1 + 1, 7 + 1 + 2)
    splitting = CountingFixture(spilled.store, spilled.runtime, Settings("wh", spill=Limits(embedded=300, segment=600)))
    await splitting.session().state.head()
    assert within(await cost(splitting, splitting.table("t2")), 3 + 1 + 1, 7 + 1 + 3)


async def test_a_page_over_a_spilled_index(spilled: CountingFixture) -> None:
    listed = list_relations(spilled.another().session(), NS, "table", Paging("", 1))
    assert await cost(spilled, listed) == (2, 2)
    first = await list_relations(spilled.session(), NS, "table", Paging("", 1))
    await spilled.namespace("another")
    later = Paging(first.next_page_token, 1)
    assert await cost(spilled, list_relations(spilled.another().session(), NS, "table", later)) == (2, 2)


# A name and its state, read beside each other.


async def test_a_warm_load_under_a_head_that_moved_revalidates_the_pointer(counted: CountingFixture) -> None:
    await load_table(counted.session(), NS, "t")
    await counted.another().table("u")
    assert await cost(counted, load_table(counted.session(), NS, "t")) == (2, 3)
    assert await cost(counted, load_table(counted.session(), NS, "t")) == (1, 2)


async def test_a_warm_load_of_a_table_that_moved_on_under_a_head_that_moved_too(counted: CountingFixture) -> None:
    await load_table(counted.session(), NS, "t")
    await counted.another().table("u")
    await counted.another().commit(set_property("a", "1"))
    assert await cost(counted, load_table(counted.session(), NS, "t")) == (2, 4)
