"""Collections that Spark executes (docs/collection.md#collection-on-spark) collect what `arco gc` collects of the
same store, whatever happens to executors."""

import asyncio
from pathlib import Path

import pytest
from pyspark import SparkContext

from arco_catalog.iceberg.errors import NotFound
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.collection import Kind
from arco_catalog.planning.upkeep_settings import DAY_MS
from arco_catalog.state.runtime import SystemRuntime
from arco_catalog.upkeep.collection import markers, receipts, run
from arco_catalog.upkeep.collection.batch_runner import Batch
from arco_catalog.upkeep.collection.report import CollectedCatalogs, as_document
from arco_catalog.upkeep.collection.stats import CollectionStats
from reconciler import parts
from reconciler.collect import MARGIN_MS, collect_on_spark
from storage_backends import Listed
from tests.cli.in_process import arco
from tests.reconciler.clusters import Cluster
from tests.reconciler.lakes import failing_at
from tests.reconciler.littered import TABLES, LitteredLake
from tests.support.served_realms import bootstrapped

# PySpark leaves the sockets to its JVM for the garbage collector to close.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")

RUNTIME = SystemRuntime()
KINDS = {
    *(Kind.POINTER, Kind.METADATA_FILE, Kind.PENDING_RECEIPT, Kind.COMMITTED_RECEIPT, Kind.MARKER, Kind.TRANSACTION),
    *(Kind.REGISTRY_COMMIT, Kind.HINT),
}


@pytest.fixture
async def lake(tmp_path: Path) -> LitteredLake:
    made = LitteredLake(tmp_path / "lake")
    await made.make()
    return made


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that there are several of a kind."""
    monkeypatch.setattr(run, "BATCH", 60)
    monkeypatch.setattr(receipts, "BATCH", 60)
    monkeypatch.setattr(markers, "MAX_FENCED", 30)


async def collected(spark: SparkContext, lake: LitteredLake, *, delete: bool, timeout_ms: int = DAY_MS) -> JsonObject:
    """The JSON that the command prints, with the exit status as `code`."""
    found = await collect_on_spark(spark, lake.environment, RUNTIME, timeout_ms, delete=delete)
    return as_printed(found, delete=delete)


def as_printed(found: CollectedCatalogs, *, delete: bool) -> JsonObject:
    failed = any(stats.unreadable_count for _, stats in found)
    return {**as_document(found, delete=delete), "code": 1 if failed else 0}


def kinds(document: JsonObject) -> dict[str, int]:
    found = document["kinds"]
    assert isinstance(found, list)
    return {str(each["kind"]): int(str(each["count"])) for each in found if isinstance(each, dict)}


async def test_executors_collect_what_the_command_does_beside_live_commits(
    spark: SparkContext, lake: LitteredLake
) -> None:
    here = await lake.collected_here()
    last: dict[str, str] = {}
    ended = asyncio.Event()

    async def live() -> None:
        while not ended.is_set():
            for number in range(TABLES // 2):
                last[f"t{number}"] = await lake.commit(f"t{number}", str(len(last)))

    async with asyncio.TaskGroup() as group:
        group.create_task(live())
        deleted = await collected(spark, lake, delete=True)
        ended.set()

    assert deleted["code"] == 0
    assert {kind: count for kind, count in kinds(deleted).items() if kind in kinds(here)} == kinds(here)
    assert {name: await lake.current(name) for name in last} == last
    left = await lake.collected_here()
    assert left["count"] == 0
    assert (await arco("fsck", "--store", lake.store, "--warehouse", lake.warehouse)).code == 0


@pytest.mark.slow  # test_spark.py kills workers each time, and below a cluster without Spark loses them
async def test_an_object_that_kills_its_spark_worker_is_told_and_kept(
    spark: SparkContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "BATCH", 20)
    monkeypatch.setattr(receipts, "BATCH", 20)
    lake = LitteredLake(tmp_path / "deadly")
    await lake.make(100)
    here = kinds(await lake.collected_here())
    deadly = min(each for each in lake.there() if "/transactions/" in each)

    found = await collect_on_spark(
        spark, lake.environment, RUNTIME, DAY_MS, delete=True, opens=failing_at(deadly, "killed")
    )

    [(_, stats)] = found
    [why] = stats.unreadable
    assert why.startswith(f"{deadly}: the Spark task that read it failed: ")
    assert deadly in lake.there()
    assert {**here, "transaction": here["transaction"] - 1}.items() <= kinds(as_printed(found, delete=True)).items()


async def test_what_is_left_is_what_the_command_leaves(lake: LitteredLake, tmp_path: Path) -> None:
    dry = await collected(Cluster[Batch[Listed, None]]().spark, lake, delete=False)
    before = lake.there()
    assert dry == await lake.collected_here()
    deleted = await collected(Cluster[Batch[Listed, None]]().spark, lake, delete=True)

    other = LitteredLake(tmp_path / "other")
    await other.make()
    here = await other.collected_here("--delete")

    assert kinds(deleted) == kinds(here)
    assert {*kinds(here)} == {kind.value for kind in KINDS}
    assert {*kinds(dry)} == {*kinds(here)} - {Kind.COMMITTED_RECEIPT}, "whose pending ones are there"
    assert (deleted["code"], deleted["unreadable_count"], deleted["stopped"]) == (0, 0, False)
    assert len(before - lake.there()) >= int(str(deleted["count"]))
    assert (await lake.collected_here())["count"] == 0


async def test_an_object_that_kills_its_executor_is_told_and_kept_and_all_others_go(lake: LitteredLake) -> None:
    here = await lake.collected_here()
    deadly = sorted(each for each in lake.there() if "/iceberg/pending/" in each)[0]

    def dies(batch: Batch[Listed, None]) -> bool:
        return any(isinstance(each, Listed) and each.key == deadly for each in batch.items)

    document = await collected(Cluster(dies).spark, lake, delete=True)

    assert document["code"] == 1
    assert document["unreadable"] == [f"{deadly}: the Spark task that read it failed: Job aborted Lost task 0.0"]
    assert deadly in lake.there()
    assert kinds(document)["pending-receipt"] == kinds(here)["pending-receipt"] - 1
    assert {name: count for name, count in kinds(document).items() if name in ("marker", "transaction", "hint")} == {
        name: count for name, count in kinds(here).items() if name in ("marker", "transaction", "hint")
    }


async def test_a_decision_outlives_the_markers_of_which_nothing_is_known(lake: LitteredLake) -> None:
    """One whose task failed may still ask for it (docs/design/collection.md#rule-7)."""
    slot = min(each for each in lake.there() if "/iceberg_idempotency/" in each)

    def dies(batch: Batch[object, object]) -> bool:
        return any(isinstance(each, tuple) and each[0] in slot for each in batch.items)

    document = await collected(Cluster(dies).spark, lake, delete=True)

    assert document["code"] == 1
    assert slot in lake.there()
    assert "marker" in kinds(document)
    assert "transaction" not in kinds(document)


async def test_a_run_that_is_told_to_stop_says_so_and_the_next_goes_on(lake: LitteredLake) -> None:
    stopped = await collected(Cluster[Batch[Listed, None]]().spark, lake, delete=True, timeout_ms=MARGIN_MS)
    rest = await collected(Cluster[Batch[Listed, None]]().spark, lake, delete=True)

    assert (stopped["stopped"], stopped["count"], stopped["code"]) == (True, 0, 0)
    assert {*kinds(rest)} == {kind.value for kind in KINDS}


async def test_a_catalog_of_a_realm_and_the_registry_of_that_are_collected(tmp_path: Path) -> None:
    lake = LitteredLake(tmp_path / "realm", "arco")
    await bootstrapped(lake.store)
    await lake.make(100)
    here = await lake.collected_here()

    document = await collected(Cluster[Batch[Listed, None]]().spark, lake, delete=False)

    assert document == here
    beside = document["beside"]
    assert isinstance(beside, list)
    assert [each["owner"] for each in beside if isinstance(each, dict)] == ["realm"]
    assert int(str(document["count"])) > 100
    deleted = await collected(Cluster[Batch[Listed, None]]().spark, lake, delete=True)
    assert deleted["code"] == 0
    assert (await lake.collected_here())["count"] == 0


async def test_what_is_not_there_is_told_and_a_cluster_that_loses_everything_ends_the_run(
    lake: LitteredLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = LitteredLake(tmp_path / "empty")
    empty.folder.mkdir()
    with pytest.raises(NotFound, match="no catalog 'wh'"):
        await collected(Cluster[Batch[Listed, None]]().spark, empty, delete=True)
    assert empty.there() == set()
    monkeypatch.setattr(parts, "MAX_LOST_PARTS", 3)
    with pytest.raises(RuntimeError, match="Job aborted"):
        await collected(Cluster[Batch[Listed, None]](lambda batch: True).spark, lake, delete=True)


def test_progress_is_told(lake: LitteredLake) -> None:
    heard: list[int] = []

    def progress(stats: CollectionStats) -> None:
        heard.append(stats.listed)

    spark = Cluster[Batch[Listed, None]]().spark
    asyncio.run(collect_on_spark(spark, lake.environment, RUNTIME, DAY_MS, delete=False, progress=progress))

    assert len({*heard}) > 5
    assert max(heard) > 200
