"""Every job on every Spark that is supported, each as its own process of an environment that has this Spark alone
(docs/pipeline.md#running-it). What the jobs do is tested on the newest, and without Spark."""

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from arco_catalog.cli.client_config import SCALA_OF_SPARK
from arco_catalog.iceberg.json import JsonObject
from tests.compact.lake import ROW, ServedLake
from tests.reconciler.lakes import parsed
from tests.reconciler.maintained import Maintained
from tests.support.purges import Purges
from tests.support.sparks import Spark
from tools.demo.server import WAREHOUSE, serving
from tools.support.environment import PROJECT
from tools.support.local_spark import environment, submit_arguments

COMMITS = 12
KEPT_SNAPSHOTS = 3
BOUND_S = 600.0
PURGE_RUNS = 5
AGE_S = 100 * 24 * 60 * 60


@dataclass(frozen=True)
class Site:
    """A served catalog whose jobs run on one Spark."""

    spark: Spark
    lake: ServedLake
    scratch: Path

    def job(self, *arguments: str, code: int = 0) -> JsonObject:
        """Runs `arco`, which starts a job, to its end. Returns the counts in its last line."""
        return parsed(self._run(arguments, code).splitlines()[-1].encode())

    def here(self, *arguments: str, code: int = 0) -> JsonObject:
        """Run a command that works in one process, and return its JSON."""
        return parsed(self._run((*arguments, "--json"), code).encode())

    def _run(self, arguments: Sequence[str], code: int) -> str:
        where = ["--store", self.lake.server.store, "--warehouse", WAREHOUSE]
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK", "SPARK"))}
        own = {name: value for name, value in environment().items() if not name.startswith("PYSPARK")}
        done = subprocess.run(
            [self.spark.python, "-m", "arco_catalog.cli", *arguments, *where],
            cwd=PROJECT,
            env={**inherited, **own, "PYSPARK_SUBMIT_ARGS": submit_arguments(self.scratch)},
            capture_output=True,
            text=True,
            timeout=BOUND_S,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def pipeline(self, job: str, *arguments: str, code: int = 0) -> JsonObject:
        """Runs a job of the pipeline."""
        return self.job("pipeline", "run", job, "--master", "local[2]", *arguments, code=code)

    def age(self) -> None:
        """Makes all state a hundred days older."""
        for file in (self.lake.folder / "_catalog").rglob("*"):
            if file.is_file():
                old = file.stat().st_mtime - AGE_S
                os.utime(file, (old, old))

    def receipts(self) -> dict[Path, bytes]:
        """Every committed receipt."""
        files = sorted((self.lake.folder / "_catalog" / "events").glob("*/iceberg/committed/*.json"))
        return {file: file.read_bytes() for file in files}


@pytest.fixture(
    params=[
        pytest.param(
            spark := Spark(version),
            id=version,
            marks=pytest.mark.optional(*spark.files),
        )
        for version in SCALA_OF_SPARK
    ]
)
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    """Purges begin a second after the drop, and by no worker of the server's."""
    options = ("--workers", "1", "--purge-undrop-window", "PT1S", "--tasks", "false", "--allow-location-overlap")
    with serving(f"file:{tmp_path / 'store'}", tmp_path / "server.log", *options) as server:
        yield Site(request.param, ServedLake(server), tmp_path)


@pytest.mark.slow
def test_every_job_runs(site: Site) -> None:
    lake, client = site.lake, site.lake.client
    maintained = Maintained(lake)
    for _ in range(COMMITS):
        lake.append("busy", "gone")

    before = site.receipts()  # that of the last commit may be on its way
    lost = [*before][::3]
    for file in lost:
        file.unlink()
    counts = site.pipeline("reconcile")
    assert counts["unreadable"] == []
    assert int(str(counts["written"])) >= len(lost) > COMMITS // 2
    assert before.items() <= site.receipts().items()
    assert len(site.receipts()) == 2 * (COMMITS + 1)

    to_server = ("--uri", lake.server.uri)
    counts = site.pipeline("compact", *to_server)
    rows = counts["rows"]
    assert isinstance(rows, dict)
    assert rows["commits"] == 2 * (COMMITS + 1)
    lake.assert_each_event_once()

    maintained.policies("busy")
    old, young = maintained.orphan("busy", 2), maintained.orphan("busy", 0)
    site.pipeline("maintain", *to_server, "--jars", str(PROJECT / ".jars" / site.spark.jar))
    told = maintained.outcomes("busy")
    assert {name: row["outcome"] for name, row in told.items()} == dict.fromkeys(
        ("rewrite_data_files", "rewrite_manifests", "expire_snapshots", "remove_orphan_files"), "done"
    )
    busy = client.load_table("db.busy")
    assert len(busy.metadata.snapshots) == KEPT_SNAPSHOTS
    rewritten = busy.current_snapshot()
    assert rewritten is not None
    assert rewritten.summary is not None
    assert str(rewritten.summary["engine-version"]).startswith(f"{site.spark.version}.")
    assert busy.inspect.files()["record_count"].to_pylist() == [COMMITS]
    assert busy.scan().to_arrow().num_rows == COMMITS
    assert (old.exists(), young.exists()) == (False, True)

    purges = Purges(lake.server.store, WAREHOUSE)
    gone = client.load_table("db.gone")
    taken = gone.inspect.files()["file_path"].to_pylist()[0]
    client.create_table("db.taker", ROW.schema).add_files([taken])
    folder, files = maintained.folder("gone"), purges.files()
    own = {key for key in files if folder.name in key.split("/")}
    client.purge_table("db.gone")
    task = purges.last_task("db.gone")
    for _ in range(PURGE_RUNS):
        site.job("tasks", "run", str(task["task_id"]), "--spark")
        task = purges.last_task("db.gone")
        if task["status"] in ("SUCCESS", "FAILURE"):
            break
    assert task["status"] == "SUCCESS", task
    assert json.loads(str(task["result_extended"]))["kept"] == 1
    left = {key for key in own if taken.endswith(key)}
    assert purges.files() == files - own | left
    assert len(own) > 3 * COMMITS
    assert len(left) == client.load_table("db.taker").scan().to_arrow().num_rows == 1

    assert site.pipeline("fsck")["findings"] == site.here("fsck", "--data")["findings"]
    [kept_data] = (file for file in lake.folder.rglob("*.parquet") if file.as_posix() in busy_files(site))
    body = kept_data.read_bytes()
    kept_data.unlink()
    report = site.pipeline("fsck", "--table", "db.busy", code=1)
    assert report == site.here("fsck", "--data", "--table", "db.busy", code=1)
    assert "data-file-missing" in str(report)
    kept_data.write_bytes(body)

    site.age()
    dry = site.here("gc")
    report = site.pipeline("collect")
    assert (report["count"], report["deleted"]) == (dry["count"], False)
    assert int(str(report["count"])) > 2 * COMMITS
    report = site.pipeline("collect", "--delete")
    assert (report["deleted"], report["unreadable_count"]) == (True, 0)
    assert int(str(report["count"])) >= int(str(dry["count"]))
    lake.append("busy")
    assert client.load_table("db.busy").scan().to_arrow().num_rows == COMMITS + 1


def busy_files(site: Site) -> set[str]:
    """Where the current data files of the table lie."""
    files = site.lake.client.load_table("db.busy").inspect.files()["file_path"].to_pylist()
    return {str(file).removeprefix("file://").removeprefix("file:") for file in files}
