"""What was collected is not missed, as long as the floors tell of it (docs/design/collection.md#rule-5)."""

from collections import Counter

import pytest

from arco_catalog.iceberg.json import loads
from arco_catalog.operations.as_of import HistoryCollected, registry_at, relation_at
from arco_catalog.operations.namespaces import create_namespace
from arco_catalog.planning.collection import Kind
from arco_catalog.state.access import State
from arco_catalog.state.floors import read_floor
from arco_catalog.state.pointer import MetadataFile
from arco_catalog.upkeep.fsck.codes import Code
from storage_backends import ANY, Found
from tests.upkeep.collection.conftest import PATHS, Collections
from tools.support.catalog_fixture import NS


@pytest.fixture
async def collected() -> Collections:
    """A table and a registry, each with commits of three times: all receipts but the last one have been collected, and
    so have the first commits of the registry."""
    made = Collections()
    await made.fixture.namespace("db")
    await made.fixture.table("t")
    total: Counter[Kind] = Counter()
    for place in range(3):
        await made.commit()
        await create_namespace(made.fixture.session(path=f"/ns/{place}"), ("db", str(place)), {})
        made.days(45)
        total += Counter(await made.collected())
    assert total[Kind.COMMITTED_RECEIPT] == 3
    assert total[Kind.REGISTRY_COMMIT] > 0
    made.days(1)  # or all is as young as the collector's fences
    return made


def state_of(collections: Collections) -> State:
    return collections.fixture.another().session().state


async def entity_of(collections: Collections) -> str:
    return collections.listed(PATHS.pointers)[0].rpartition("/")[2].removesuffix(".json")


async def test_receipts_behind_the_floor_are_not_missed(collected: Collections) -> None:
    assert await collected.codes() == []


async def test_a_receipt_before_the_floor_is_missed(collected: Collections) -> None:
    floor = await read_floor(state_of(collected), await entity_of(collected))
    assert floor is not None
    for key in collected.listed(PATHS.events):
        found = await collected.store.get(key)
        assert isinstance(found, Found)
        document = loads(found.body)
        assert isinstance(document, dict)
        file = MetadataFile(str(document["metadata_location"]), int(str(document["metadata_ms"])))
        if "/committed/" in key and file.ms > floor:
            await collected.store.delete(key)
    assert await collected.codes() == [Code.RECEIPT_MISSING.value]


@pytest.mark.parametrize("body", [b"{", b'{"version": 1, "floors": {"e": "x"}}'])
async def test_floors_that_cannot_be_read_are_reported_and_nothing_is_missed_for_that(
    collected: Collections, body: bytes
) -> None:
    for key in collected.listed(f"{PATHS.collector}floors"):
        await collected.store.put(key, body, ANY)
    assert await collected.codes() == [Code.FLOOR_UNREADABLE.value]


async def test_a_floor_of_the_registry_that_cannot_be_read_is_reported(collected: Collections) -> None:
    await collected.store.put(PATHS.registry_floor, b'{"version": 1, "sequence": "x"}', ANY)
    assert await collected.codes() == [Code.FLOOR_UNREADABLE.value]


async def test_missing_floors_are_reported_as_missing_receipts_and_commits(collected: Collections) -> None:
    for key in collected.listed(PATHS.collector):
        await collected.store.delete(key)
    assert {*await collected.codes()} == {Code.RECEIPT_MISSING.value, Code.COMMIT_MISSING.value}


async def test_what_is_no_floor_is_unknown_there(collected: Collections) -> None:
    await collected.store.put(f"{PATHS.collector}other.txt", b"{}", ANY)
    assert await collected.codes() == [Code.OBJECT_UNKNOWN.value]


async def test_a_time_before_the_floor_is_reported_as_collected(collected: Collections) -> None:
    session = collected.fixture.another().session()
    long_ago = collected.runtime.ms - 135 * 24 * 60 * 60 * 1000
    with pytest.raises(HistoryCollected):
        await registry_at(session, long_ago)
    with pytest.raises(HistoryCollected):
        await relation_at(session, NS, "t", long_ago)
