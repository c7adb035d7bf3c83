"""Each request of a plan keeps to its row in docs/design/budgets.md."""

import pytest

from arco_catalog.iceberg.json import JsonObject, loads
from arco_catalog.iceberg.scan_request import parse_plan_request
from arco_catalog.operations.scans import planner
from arco_catalog.operations.scans.plans import Plan, begin, fetch, resume
from tests.support.scanned_tables import Manifest, ScannedTable, commit_of, entry
from tools.support.catalog_fixture import NS, CountingFixture

LONG: JsonObject = {"filter": {"type": "in", "term": "x", "values": [number * 7919 for number in range(500)]}}


@pytest.fixture
async def counted(counted: CountingFixture, monkeypatch: pytest.MonkeyPatch) -> CountingFixture:
    """A table with three data manifests and two delete manifests."""
    monkeypatch.setattr(planner, "PART_WEIGHT", 100)
    metadata = loads((await counted.table("t")).metadata)
    assert isinstance(metadata, dict)
    table = ScannedTable(counted.store, str(metadata["location"]))
    manifests = [Manifest([entry(f"memory:///wh/{number}.parquet", x=(0, 9))]) for number in range(3)]
    deletes = [
        Manifest([entry(f"memory:///wh/d{number}.parquet", content=2, equality_ids=[1])], content=1)
        for number in range(2)
    ]
    await counted.commit(commit_of(await table.snapshot(1, [*manifests, *deletes])))
    return counted


async def plan(fixture: CountingFixture, body: JsonObject | None = None) -> Plan:
    return await begin(fixture.session(), NS, "t", parse_plan_request(body or {}))


async def test_a_plan_reads_each_manifest_once(counted: CountingFixture) -> None:
    cold = await counted.another().cost(plan(counted.another()))
    assert (cold.depth, cold.calls) == (6, 4 + 3 + 2)
    await plan(counted)
    warm = await counted.cost(plan(counted))
    assert warm.depth <= 4
    assert warm.calls <= 3 + 3 + 2


async def test_a_long_request_is_a_write_more_and_a_task_reads_it(counted: CountingFixture) -> None:
    await plan(counted)
    short, long = await counted.cost(plan(counted)), await counted.cost(plan(counted, LONG))
    assert long.calls <= short.calls + 1
    begun = await plan(counted, LONG)
    again = await counted.cost(resume(counted.session(), NS, "t", begun.token.text))
    assert again.calls <= short.calls + 1


async def test_a_plan_task_reads_its_own_manifests_and_the_deletes(
    counted: CountingFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planner, "PART_WEIGHT", 20)
    monkeypatch.setattr(planner, "MIN_PART_WEIGHT", 1)
    begun = await plan(counted)
    assert len(begun.plan_tasks) == 3
    task = await counted.cost(fetch(counted.session(), NS, "t", begun.plan_tasks[1]))
    assert task.calls <= 3 + 1 + 2
    assert task.depth <= 4
