"""`compact` on Spark. What it does is tested in tests/compact, in one process; here its parts go to executors."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark import SparkContext

from reconciler.compact.driver import compact
from reconciler.executors import SparkExecutors
from reconciler.system.opened import SystemTables
from tests.compact.lake import ServedLake
from tests.reconciler.lakes import failing, parsed
from tools.demo.server import WAREHOUSE, serving
from tools.support.environment import PROJECT, exported
from tools.support.local_spark import environment

RUNS = 20
"""No catalog of two tables needs as many runs, each of which commits at least once."""

# PySpark leaves the sockets to its JVM for the garbage collector to close.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[ServedLake]:
    """Two tables with two commits each, over a real server."""
    with serving(f"file:{tmp_path / 'store'}", tmp_path / "server.log", "--workers", "1") as server:
        made = ServedLake(server)
        made.append("t", "u")
        yield made


async def test_executors_write_files_that_the_driver_commits(spark: SparkContext, served: ServedLake) -> None:
    stats = await compact(SystemTables(served.mortal(), WAREHOUSE), served.config, SparkExecutors(spark), batch_size=3)
    assert (stats.rows["commits"], stats.unreadable_count) == (4, 0)
    served.assert_each_event_once()


@pytest.mark.parametrize("how", [pytest.param("raises", marks=pytest.mark.slow), "killed"])
async def test_an_executor_that_dies_costs_no_event_and_tells_none_twice(
    spark: SparkContext, served: ServedLake, how: str
) -> None:
    await compact(SystemTables(served.mortal(), WAREHOUSE), served.config, SparkExecutors(spark))
    served.append("t", "u")
    dying = failing(served.config, served.receipt_of("u").stem, how)
    with pytest.raises(Exception, match="Job aborted due to stage failure"):
        await compact(SystemTables(served.mortal(), WAREHOUSE), dying, SparkExecutors(spark), batch_size=1)
    stats = await compact(SystemTables(served.mortal(), WAREHOUSE), served.config, SparkExecutors(spark))
    assert stats.unreadable_count == 0
    served.assert_each_event_once()


@pytest.mark.slow  # test_maintain.py runs another job by this command, above executors run this one
def test_the_command_runs_the_job_with_a_spark_of_its_own(served: ServedLake) -> None:
    said = ["pipeline", "run", "compact", "--uri", served.server.uri, "--master", "local[1]"]
    where = ["--store", served.server.store, "--warehouse", WAREHOUSE]
    with exported(environment()):
        done = subprocess.run(
            [str(Path(sys.executable).with_name("arco")), *said, *where],
            cwd=PROJECT.parent,
            capture_output=True,
            timeout=240,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert parsed(done.stdout.splitlines()[-1])["rows"]
    served.assert_each_event_once()


@pytest.mark.slow
def test_a_job_whose_processes_are_all_killed_leaves_what_the_next_goes_on_with(served: ServedLake) -> None:
    said = ["--uri", served.server.uri, "--store", served.server.store, "--warehouse", WAREHOUSE]
    killed = 0
    for _ in range(RUNS):
        with (
            exported(environment()),
            subprocess.Popen(
                [sys.executable, "-m", "reconciler", "compact", "--master", "local[1]", *said],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            ) as job,
        ):
            assert job.stderr is not None
            if any("commits: " in line and " 0 commits" not in line for line in job.stderr):
                os.killpg(job.pid, signal.SIGKILL)
                killed += 1
            else:
                break
    assert job.returncode == 0
    assert killed >= 5
    served.assert_each_event_once()
