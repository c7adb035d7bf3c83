"""A table whose current snapshot names files of another is not rewritten: the job may read more than who wrote the
snapshot, and would copy the rows into that one's table (docs/design/pipeline.md#rule-17)."""

from collections.abc import Sequence

import pytest

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.load import load_table
from reconciler.maintain.calls import Procedure
from tests.maintain.lake import Lake, Procedures
from tests.maintain.manifests import LIST, POSITION, File, snapshot_of
from tests.support.table_files import append, commit_files, write
from tools.support.catalog_fixture import NS
from tools.support.manifests import avro, manifest

DATA, POSITIONS, MANIFESTS, _, _ = Procedure
PLACE = "memory:///wh/warehouse/place"
OTHER = "memory:///wh/warehouse/other"


async def both() -> Lake:
    """A lake with a table of another, and policies by which all is rewritten."""
    lake = await Lake().made()
    await append(lake.fixture, await lake.fixture.table("other", location=OTHER), "secret", name="other")
    await lake.fixture.table("t", None, location=PLACE)
    await lake.policy("data-compaction")
    await lake.policy("metadata-compaction", config={"min_manifests": 2})
    return lake


def small(place: str, count: int, content: int = 0) -> list[File]:
    """Files that are small enough to be rewritten."""
    return [File(f"{place}/data/{content}-{number}.parquet", content, size=1_000) for number in range(count)]


async def held_back(lake: Lake) -> dict[Procedure, str]:
    """Runs, and returns what was held back, and why; nothing else may have been called."""
    procedures = Procedures(lake)
    stats = await lake.run(procedures)
    assert procedures.of("t") == []
    assert stats.held_back > 0
    [found] = [each for each in lake.seen.table_plans if each.table.name == "t"]
    return {held.procedure: held.reason for held in found.plan.held_back}


async def snapshot_with_manifests(lake: Lake, manifests: Sequence[str], manifest_list: str) -> None:
    """Commits a snapshot whose list names these manifests."""
    listed = [{"manifest_path": path, "manifest_length": 1_000, "content": 0} for path in manifests]
    more = {"partition_spec_id": 0, "sequence_number": 1}
    await write(lake.store, manifest_list, avro(LIST, [{**each, **more} for each in listed]))
    added: JsonObject = {
        "snapshot-id": 1,
        "sequence-number": 1,
        "timestamp-ms": lake.runtime.now_ms(),
        "manifest-list": manifest_list,
        "summary": {"operation": "append"},
        "schema-id": 0,
    }
    main: JsonObject = {"action": "set-snapshot-ref", "ref-name": "main", "snapshot-id": 1, "type": "branch"}
    await lake.fixture.commit(
        {"requirements": [], "updates": [{"action": "add-snapshot", "snapshot": added}, main]}, "t"
    )


async def test_small_files_of_the_tables_own_are_rewritten() -> None:
    lake = await both()
    await snapshot_of(lake, "t", [*small(PLACE, 8), *small(PLACE, 8, POSITION)])
    procedures = Procedures(lake, answers=[{}])
    await lake.run(procedures)
    assert procedures.of("t") == [DATA, POSITIONS]


@pytest.mark.parametrize(
    "foreign",
    [
        f"{OTHER}/data/secret",
        f"{PLACE}2/data/x",
        f"{PLACE}/../other/data/secret",
        f"{PLACE}/data/%2e%2e/../../other/data/secret",
        f"{PLACE}/data/..",
        "s3://other-bucket/place/data/x",
        "data/secret",
    ],
)
async def test_no_data_file_of_another_is_copied(foreign: str) -> None:
    lake = await both()
    await snapshot_of(lake, "t", [*small(PLACE, 8), *small(PLACE, 8, POSITION), File(foreign, size=1_000)])
    held = await held_back(lake)
    assert {*held} == {DATA, POSITIONS}
    assert held[DATA] == f"it names a file outside of its locations: {foreign}"


async def test_no_position_deletes_of_another_are_copied() -> None:
    lake = await both()
    foreign = File(f"{OTHER}/data/deletes", POSITION, size=1_000)
    await snapshot_of(lake, "t", [*small(PLACE, 8), *small(PLACE, 8, POSITION), foreign])
    held = await held_back(lake)
    assert held[POSITIONS] == f"it names a file outside of its locations: {foreign.path}"


async def test_no_manifest_of_another_is_copied() -> None:
    lake = await both()
    own = [
        await write(lake.store, f"{PLACE}/metadata/{number}-m0.avro", manifest([f"{PLACE}/data/{number}"]))
        for number in range(20)
    ]
    foreign = await write(lake.store, f"{OTHER}/metadata/secret-m0.avro", manifest([f"{PLACE}/data/x"]))
    await snapshot_with_manifests(lake, [*own, foreign], f"{PLACE}/metadata/snap-1.avro")
    held = await held_back(lake)
    assert held[MANIFESTS] == f"it names a file outside of its locations: {foreign}"


async def test_nothing_that_a_manifest_list_of_another_names_is_copied() -> None:
    lake = await both()
    own = [
        await write(lake.store, f"{PLACE}/metadata/{number}-m0.avro", manifest([f"{PLACE}/data/{number}"]))
        for number in range(20)
    ]
    await snapshot_with_manifests(lake, own, f"{OTHER}/metadata/snap-1.avro")
    held = await held_back(lake)
    assert held[MANIFESTS] == f"it names a file outside of its locations: {OTHER}/metadata/snap-1.avro"


async def test_a_file_that_the_current_snapshot_has_deleted_holds_nothing_back() -> None:
    lake = await both()
    state = await load_table(lake.fixture.session(), NS, "t")
    await commit_files(lake.fixture, state, [f"{OTHER}/data/secret"])
    await snapshot_of(lake, "t", small(PLACE, 8))
    procedures = Procedures(lake)
    await lake.run(procedures)
    assert procedures.of("t") == [DATA]


async def test_files_at_another_place_that_the_table_holds_are_its_own() -> None:
    lake = await both()
    elsewhere = "memory:///wh/warehouse/elsewhere"
    update: JsonObject = {"action": "set-properties", "updates": {"write.data.path": elsewhere}}
    await lake.fixture.commit({"requirements": [], "updates": [update]}, "t")
    await snapshot_of(lake, "t", [*small(PLACE, 4), *small(elsewhere, 4)])
    procedures = Procedures(lake)
    await lake.run(procedures)
    assert procedures.of("t") == [DATA]


async def test_a_table_that_takes_a_file_during_a_run_is_not_rewritten_further() -> None:
    lake = await both()
    await snapshot_of(lake, "t", [*small(PLACE, 8), *small(PLACE, 8, POSITION)])

    async def take(call: object) -> None:
        files = [*small(PLACE, 8), *small(PLACE, 8, POSITION), File(f"{OTHER}/data/secret", size=1_000)]
        await snapshot_of(lake, "t", files)

    procedures = Procedures(lake, after=take)
    await lake.run(procedures)
    assert procedures.of("t") == [DATA]
    assert "secret" in lake.seen.held["t"]
