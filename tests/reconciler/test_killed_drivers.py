"""Drivers that are killed while they purge by the anti-join: the next one goes on, to one end
(docs/design/purge.md#rule-20)."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from arco_catalog.iceberg.json import JsonObject, loads
from arco_catalog.state.fields import mapping
from arco_catalog.state.paths import Paths
from tests.reconciler.dropped_table import WAREHOUSE, PurgedLake, drop_shared_table
from tests.support.purges import Purges
from tools.support.local_spark import environment, submit_arguments
from tools.support.synthetic_table import Shape

pytestmark = pytest.mark.slow

SHAPE = Shape(manifests=120, files_each=20, snapshots=2, folders=3)
SHARED = SHAPE.manifests // 2
LEASE = "delegation.task.lease.lost-timeout-duration=PT60S"
ATTEMPTS = "delegation.retry.TABLE_PURGE.max-attempts=1000"
BOUND_S = 1_800.0
POINTS: list[Callable[[JsonObject], bool]] = [
    lambda checkpoint: checkpoint.get("anti_join") is True,
    lambda checkpoint: checkpoint.get("deleting") is True,
    lambda checkpoint: checkpoint.get("parts") != 0,
    lambda checkpoint: checkpoint.get("phase") != "data",
    lambda checkpoint: checkpoint.get("phase") == "done",
]
"""What a checkpoint says when a driver is killed, one after the other."""


class Driver:
    """The task, and who does it: a process at a time."""

    def __init__(self, lake: PurgedLake, task: str, folder: Path) -> None:
        self._versions = Path(lake.url.removeprefix("file:")) / Paths(WAREHOUSE).task(task)
        self._log = folder / "log"
        self._command = [sys.executable, "-m", "reconciler.purge", "--task", task]
        self._environment = {
            **os.environ,
            **environment(),
            "PYSPARK_SUBMIT_ARGS": submit_arguments(folder),
            "ARCO_STORE": lake.url,
            "ARCO_WAREHOUSE": WAREHOUSE,
            "ARCO_TASK_PROPERTIES": f"{LEASE},{ATTEMPTS}",
        }
        self._until = time.monotonic() + BOUND_S

    def versions(self) -> list[JsonObject]:
        """All versions of the task, the last one last."""
        files = sorted(self._versions.glob("*.json"), key=lambda file: int(file.stem))
        return [found for file in files if isinstance(found := loads(file.read_bytes()), dict)]

    def run(self, stop: Callable[[JsonObject], bool]) -> bool:
        """Does the task until a checkpoint is such that it is killed. Returns whether it was."""
        with self._log.open("ab") as log:
            process = subprocess.Popen(self._command, env=self._environment, stdout=log, stderr=log)
        try:
            while process.poll() is None:
                assert time.monotonic() < self._until, self._log.read_text()
                versions = self.versions()
                if versions and stop(mapping(versions[-1], "checkpoint")):
                    process.kill()
                    return True
                time.sleep(0.02)
            return False
        finally:
            process.kill()
            process.wait()


def is_shared(key: str) -> bool:
    """Whether the neighbour leads to a file, by its name."""
    name = key.rpartition("/")[2]
    if "-m0.avro" in name or name.endswith(".parquet"):
        return int(name.partition("-")[0]) < SHARED
    return name == "snap-1.avro"


def test_the_purge_ends_once_and_only_what_is_shared_is_left(tmp_path: Path) -> None:
    lake = PurgedLake(f"file:{tmp_path}/store", {})
    task = asyncio.run(drop_shared_table(lake, SHAPE))
    purges = Purges(lake.url, WAREHOUSE)
    before = purges.files()
    [place] = {key.partition("/metadata/")[0] for key in before if key.endswith("/snap-1.avro")}
    driver, killed = Driver(lake, task, tmp_path), 0
    for point in POINTS:
        while not (there := driver.versions()) or there[-1]["status"] != "SUCCESS":
            if driver.run(point):
                killed += 1
                break
    while driver.versions()[-1]["status"] != "SUCCESS":
        driver.run(lambda _: False)

    versions = driver.versions()
    assert killed >= 3
    assert [version["status"] for version in versions].count("SUCCESS") == 1
    own = {key for key in before if key.startswith(f"{place}/")}
    assert purges.files() == {key for key in before if key not in own or is_shared(key)}
    told = loads(str(versions[-1]["result_extended"]).encode())
    assert isinstance(told, dict)
    assert told["kept"] == told["left_behind"] == SHARED * (SHAPE.files_each + 1) + 1
