"""How parts are dealt out, lost, halved and gone on with, without a Spark: each part runs where it is collected."""

from pathlib import Path

import pytest
from pyspark import SparkContext

from arco_catalog.operations.reconcile_stats import ReconcileStats
from reconciler import parts
from reconciler.spark import WalkTask, reconcile
from tests.reconciler.clusters import Cluster
from tests.reconciler.lakes import FolderLake

TABLES = 12
FILES = TABLES * 4


def cluster(deadly: str | None = None) -> SparkContext:
    """One whose executors die of the table of an entity."""

    def dies(task: WalkTask) -> bool:
        return deadly is not None and deadly in task.pointer.entity

    return Cluster(dies).spark


@pytest.fixture
async def lake(tmp_path: Path) -> FolderLake:
    made = FolderLake(tmp_path / "small")
    await made.make(TABLES, 3)
    return made


async def test_a_table_that_needs_more_than_its_turn_comes_again_in_a_later_part(lake: FolderLake) -> None:
    before = lake.lose(every=1)
    heard: list[tuple[int, int]] = []

    def progress(stats: ReconcileStats) -> None:
        heard.append((stats.files, stats.incomplete))

    stats = await reconcile(cluster(), lake.config, part=TABLES, turn=2, progress=progress)

    assert heard == [(FILES // 2, TABLES), (FILES, 0)]
    assert (stats.walked, stats.incomplete) == (TABLES, 0)
    assert lake.receipts() == before


async def test_a_part_that_is_lost_is_halved_until_the_table_is_found_that_it_was_lost_by(lake: FolderLake) -> None:
    before = lake.lose(every=1)
    deadly = lake.entities()[-1]

    stats = await reconcile(cluster(deadly), lake.config, part=TABLES)

    assert (stats.walked, stats.incomplete, stats.written) == (TABLES, 1, FILES - 4)
    assert stats.unreadable == [f"{deadly}: the Spark task that walked it failed: Job aborted Lost task 0.0"]
    again = await reconcile(cluster(), lake.config)
    assert (again.unchanged, again.walked) == (TABLES - 1, 1)
    assert lake.receipts() == before


async def test_a_cluster_on_which_every_part_is_lost_ends_the_run(
    lake: FolderLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "MAX_LOST_PARTS", 3)
    with pytest.raises(RuntimeError, match="Job aborted"):
        await reconcile(cluster(deadly=""), lake.config, part=5)


async def test_what_a_run_left_is_gone_on_with_by_the_other_driver(lake: FolderLake) -> None:
    class Ended(Exception):
        pass

    def progress(stats: ReconcileStats) -> None:
        raise Ended

    before = lake.lose(every=1)
    with pytest.raises(Ended):
        await reconcile(cluster(), lake.config, part=TABLES, turn=3, progress=progress)

    rest = await lake.reconcile_here()

    assert (rest.walked, rest.files) == (TABLES, TABLES)
    assert lake.receipts() == before
