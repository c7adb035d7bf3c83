"""The packed jobs run where nothing of this checkout is in reach: installed from the wheel into an environment of their
own, packed, and submitted from another folder by the command that the packing prints, to workers whose Python has none
of the libraries."""

import json
import os
import shlex
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

import pyspark
import pytest

from arco_catalog.iceberg.json import JsonObject
from tests.compact.lake import ServedLake
from tests.packaging.conftest import Distributions, run
from tests.reconciler.maintained import Maintained
from tools.demo.engines import ICEBERG
from tools.demo.server import WAREHOUSE, serving
from tools.support.environment import PROJECT
from tools.support.local_spark import environment, settings

SECONDS = 600
COMMITS = 6
JAR = f".jars/iceberg-spark-runtime-4.1_2.13-{ICEBERG}.jar"
MASTER = "local-cluster[1,2,1024]"
"""Workers that are processes of their own, in folders of their own: what `--archives` names is unpacked there."""


@dataclass(frozen=True)
class Submission:
    """The command that the packing printed, and the folder that it is given in."""

    command: str
    folder: Path

    def run(self, *job: str) -> JsonObject:
        """Submits a job as it was printed, with other options. Returns its counts."""
        spark = Path(pyspark.__file__).parent
        kept = {name: os.environ[name] for name in os.environ if not name.startswith(("ARCO_", "PYTHON", "VIRTUAL_"))}
        # The launcher asks the system for its Python: here it is the one that libraries were packed for.
        path = f"{spark / 'bin'}:{Path(sys.base_prefix) / 'bin'}:{kept['PATH']}"
        told = {name: value for name, value in environment().items() if not name.startswith("PYSPARK")}
        more = {"PATH": path, "SPARK_HOME": str(spark), "SPARK_CONF_DIR": str(self.folder / "conf")}
        done = subprocess.run(
            ["bash", "-c", f"{self.command} {shlex.join(job)}"],
            cwd=self.folder,
            env={**kept, **told, **more},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
        counts: JsonObject = json.loads(done.stdout.splitlines()[-1])
        return counts


@pytest.fixture
def submission(distributions: Distributions, tmp_path: Path) -> Submission:
    """Everything packed, and an environment unpacked beside it for the driver, which runs here."""
    venv, folder = tmp_path / "venv", tmp_path / "elsewhere"
    folder.mkdir()
    uv = Path(sys.executable).with_name("uv")
    run(uv, "venv", "--quiet", "--python", sys.executable, venv)
    run(
        *(uv, "pip", "install", "--offline", "--quiet", "--python", venv / "bin" / "python"),
        *("--constraints", PROJECT / "requirements" / "dev.txt"),
        f"arco-catalog[pipeline,s3] @ {distributions.wheel.as_uri()}",
    )
    said = run(venv / "bin" / "python", "-m", "reconciler.package", tmp_path / "packed")
    with tarfile.open(tmp_path / "packed" / "environment.tar.gz") as archive:
        archive.extractall(folder / "environment", filter="data")
    assert not (folder / "environment" / "lib" / "pyspark").exists()
    conf = folder / "conf"
    conf.mkdir()
    of_this_machine = {**settings(tmp_path), "spark.master": MASTER, "spark.jars": str(PROJECT / JAR)}
    (conf / "spark-defaults.conf").write_text("".join(f"{name} {value}\n" for name, value in of_this_machine.items()))
    command, found, _ = said[said.index("PYSPARK_PYTHON=") :].partition(" compact ")
    assert found
    return Submission(command, folder)


@pytest.mark.slow
@pytest.mark.needs("java", JAR)
def test_the_printed_command_runs_each_job_from_what_was_packed(submission: Submission, tmp_path: Path) -> None:
    with serving(f"file:{tmp_path / 'store'}", tmp_path / "server.log") as server:
        lake = ServedLake(server)
        for _ in range(COMMITS):
            lake.append("t")
        where = ["--store", server.store, "--warehouse", WAREHOUSE]
        receipts = sorted((lake.folder / "_catalog" / "events").glob("*/iceberg/committed/*.json"))
        receipts[0].unlink()

        assert submission.run("reconcile", *where)["written"] == 1

        counts = submission.run("compact", "--uri", server.uri, *where)
        rows = counts["rows"]
        assert isinstance(rows, dict)
        assert rows["commits"] == COMMITS + 1
        lake.assert_each_event_once()

        Maintained(lake).policy("t", "data-compaction", {})
        assert submission.run("maintain", "--uri", server.uri, *where)["outcomes"] == {"done": 1}
        assert lake.client.load_table("db.t").inspect.data_files().num_rows == 1
