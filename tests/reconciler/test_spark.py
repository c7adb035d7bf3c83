"""The reconciler on Spark (docs/design/reconciliation.md#reconciler). What a walk does is tested where it is written;
here it is dealt out."""

import asyncio
import os
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark import SparkContext

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.reconcile_stats import ReconcileStats
from arco_catalog.state.receipt import base_of
from reconciler import parts
from reconciler.spark import reconcile
from tests.reconciler.conftest import COMMITS, TABLES
from tests.reconciler.lakes import FolderLake, committed, parsed
from tools.support.environment import PROJECT
from tools.support.local_spark import environment, settings

# PySpark leaves the sockets to its JVM for the garbage collector to close.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")

FILES = TABLES * (COMMITS + 1)
PART = 10


async def test_every_commit_ends_with_the_one_receipt_that_its_writer_wrote(
    spark: SparkContext, lake: FolderLake
) -> None:
    before = lake.lose(every=3)
    assert len(before) == FILES

    stats = await reconcile(spark, lake.config, part=PART)

    assert lake.receipts() == before
    assert (stats.pointers, stats.walked, stats.files) == (TABLES, TABLES, FILES)
    assert stats.written == stats.missing_count == len(stats.missing) == len(range(0, FILES, 3))
    assert (stats.incomplete, stats.unreadable) == (0, [])


async def test_a_second_run_walks_nothing(spark: SparkContext, lake: FolderLake) -> None:
    await reconcile(spark, lake.config, part=PART)

    again = await reconcile(spark, lake.config, part=PART)

    assert (again.unchanged, again.walked, again.files) == (TABLES, 0, 0)


async def test_a_table_that_moved_is_walked_back_to_where_its_last_walk_began(
    spark: SparkContext, lake: FolderLake
) -> None:
    await reconcile(spark, lake.config, part=PART)
    await lake.commit("t7")

    again = await reconcile(spark, lake.config, part=PART)

    assert (again.unchanged, again.walked, again.files) == (TABLES - 1, 1, 1)


async def test_both_drivers_share_what_they_remember(spark: SparkContext, lake: FolderLake) -> None:
    await lake.reconcile_here()
    assert (await reconcile(spark, lake.config)).walked == 0

    await lake.commit("t7")
    await reconcile(spark, lake.config)
    assert (await lake.reconcile_here()).walked == 0


@pytest.mark.parametrize("how", [pytest.param("raises", marks=pytest.mark.slow), "killed"])
async def test_a_table_that_fails_or_kills_its_executor_costs_no_other_its_receipts(
    spark: SparkContext, lake: FolderLake, how: str
) -> None:
    before = lake.lose(every=2)
    last = max(str(parsed(before[path])["entity"]) for path in before.keys() - lake.receipts().keys())

    stats = await reconcile(spark, lake.failing(last, how), part=PART)

    assert (stats.walked, stats.incomplete, stats.unreadable_count) == (TABLES, 1, 1)
    assert stats.unreadable[0].startswith(last)
    owed = before.keys() - lake.receipts().keys()
    assert {parsed(before[path])["entity"] for path in owed} == {last}

    again = await reconcile(spark, lake.config, part=PART)

    assert lake.receipts() == before
    assert (again.unchanged, again.walked) == (TABLES - 1, 1)


@pytest.mark.slow  # test_parts.py has it each time, without Spark
async def test_a_cluster_on_which_every_part_is_lost_ends_the_run(
    spark: SparkContext, lake: FolderLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "MAX_LOST_PARTS", 2)
    with pytest.raises(Exception, match="Job aborted due to stage failure"):
        await reconcile(spark, lake.failing("", "killed"), part=PART)


@pytest.mark.slow  # test_parts.py has it each time, without Spark
async def test_a_table_that_needs_more_than_its_turn_comes_again_in_a_later_part(
    spark: SparkContext, lake: FolderLake
) -> None:
    before = lake.lose(every=1)
    heard: list[tuple[int, int]] = []

    def progress(stats: ReconcileStats) -> None:
        heard.append((stats.files, stats.incomplete))

    stats = await reconcile(spark, lake.config, part=TABLES, turn=2, progress=progress)

    assert heard == [(2 * TABLES, TABLES), (4 * TABLES, 0)]
    assert (stats.walked, stats.files, stats.incomplete) == (TABLES, FILES, 0)
    assert lake.receipts() == before


@pytest.mark.slow  # test_parts.py has it each time, without Spark
async def test_a_walk_that_one_driver_left_is_gone_on_with_by_the_other(spark: SparkContext, lake: FolderLake) -> None:
    before = lake.lose(every=1)
    heard: list[int] = []

    def progress(stats: ReconcileStats) -> None:
        heard.append(stats.files)
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await reconcile(spark, lake.config, part=TABLES, turn=3, progress=progress)
    assert heard == [3 * TABLES]

    rest = await lake.reconcile_here()
    assert (rest.walked, rest.files) == (TABLES, TABLES)
    assert lake.receipts() == before


async def test_the_two_drivers_and_writers_do_not_mind_each_other(spark: SparkContext, lake: FolderLake) -> None:
    before = lake.lose(every=2)

    await asyncio.gather(
        reconcile(spark, lake.config, part=PART),
        reconcile(spark, lake.config, part=PART),
        lake.reconcile_here(),
        *(lake.commit(f"t{number}") for number in range(5)),
    )

    after = lake.receipts()
    assert {path: after.get(path) for path in before} == before
    assert len(after) == FILES + 5
    assert len({parsed(receipt)["metadata_location"] for receipt in after.values()}) == FILES + 5


async def test_a_dry_run_names_what_is_missing_and_writes_nothing(spark: SparkContext, lake: FolderLake) -> None:
    lost = lake.lose(every=4)
    left = lake.receipts()
    gone = [parsed(lost[path])["metadata_location"] for path in lost.keys() - left.keys()]

    stats = await reconcile(spark, lake.config, dry=True, part=PART)

    assert sorted(str(missing["metadata_location"]) for missing in stats.missing) == sorted(map(str, gone))
    assert stats.written == 0
    assert lake.receipts() == left
    assert (await reconcile(spark, lake.config, dry=True)).walked == TABLES


async def test_executors_reach_the_tables_files_and_report_what_they_cannot_read(
    spark: SparkContext, lake: FolderLake
) -> None:
    newest: dict[str, Path] = {}
    for path, body in lake.receipts("pending").items():
        if base_of(parsed(body)) is None:
            newest[str(parsed(body)["entity"])] = path
    (restored, create), (lost, other) = sorted(newest.items())[:2]
    gone = str(parsed(other.read_bytes())["metadata_location"])
    for pending in (create, other):
        committed(pending).unlink()
        pending.unlink()
    lake.unlink(gone)

    stats = await reconcile(spark, lake.config, part=PART)

    written = parsed(committed(create).read_bytes())
    assert (written["entity"], written["source"]) == (restored, {"kind": "Restored"})
    assert stats.incomplete == 1
    assert len(stats.unreadable) == 1
    assert stats.unreadable[0].startswith(lost)
    assert gone in stats.unreadable[0]


async def test_each_finished_part_is_heard_of(spark: SparkContext, lake: FolderLake) -> None:
    heard: list[int] = []

    def progress(stats: ReconcileStats) -> None:
        heard.append(stats.walked)

    await reconcile(spark, lake.config, part=PART, progress=progress)

    assert heard == [PART, 2 * PART, 3 * PART, 4 * PART]


async def test_spark_submit_runs_the_job_with_the_packages_as_an_archive(lake: FolderLake, tmp_path: Path) -> None:
    before = lake.lose(every=5)

    stats = submit(lake, tmp_path, "--py-files", str(archive(tmp_path / "arco.zip")))

    assert (stats["walked"], stats["written"]) == (TABLES, len(range(0, FILES, 5)))
    assert lake.receipts() == before


@pytest.mark.slow
@pytest.mark.parametrize("within", [True, False])
async def test_spark_submit_runs_the_job_of_a_checkout_from_anywhere(
    lake: FolderLake, tmp_path: Path, *, within: bool
) -> None:
    lake.lose(every=5)
    left = lake.receipts()

    stats = submit(lake, PROJECT if within else tmp_path, options=["--dry-run"])

    missing = stats["missing"]
    assert isinstance(missing, list)
    assert (stats["written"], len(missing)) == (0, len(range(0, FILES, 5)))
    assert stats["missing_count"] == len(missing)
    assert lake.receipts() == left


def submit(lake: FolderLake, folder: Path, *how: str, options: Sequence[str] = ()) -> JsonObject:
    """Runs `spark-submit` in a folder. It passes both of the job's streams on as its standard output."""
    command = [str(Path(sys.executable).with_name("spark-submit")), *how]
    for name, value in settings(lake.folder.parent).items():
        command += ["--conf", f"{name}={value}"]
    command += [
        str(PROJECT / "reconciler" / "job.py"),
        "--store",
        lake.config.store,
        "--warehouse",
        lake.config.warehouse,
    ]
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [*command, *options],
        cwd=folder,
        env=inherited | environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    *progress, stats = done.stdout.splitlines()
    assert f"{TABLES} of {TABLES} tables and views walked" in progress[-1]
    return parsed(stats.encode())


def archive(file: Path) -> Path:
    """The packages as docs/reconciler.md has them packed."""
    with zipfile.ZipFile(file, "w") as packed:
        for package in ("arco_catalog", "storage_backends", "reconciler"):
            for module in (PROJECT / package).rglob("*.py"):
                packed.write(module, module.relative_to(PROJECT))
    return file
