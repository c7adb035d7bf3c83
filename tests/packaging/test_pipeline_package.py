"""The packed jobs run where nothing of this checkout is in reach: installed from the wheel into an environment of their
own, packed, unpacked in another folder, and given to `spark-submit`, whose Python has none of the libraries."""

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pyspark
import pytest

from tests.compact.lake import ServedLake
from tests.packaging.test_distributions import Built, built, run
from tools.demo.server import WAREHOUSE, serving
from tools.support.environment import PROJECT
from tools.support.local_spark import environment, settings

__all__ = ["built"]
SECONDS = 600


@pytest.fixture
def packed(built: Built, tmp_path: Path) -> Path:
    """A folder with job.py, arco.zip and, unpacked, the environment."""
    venv, folder = tmp_path / "venv", tmp_path / "packed"
    uv = Path(sys.executable).with_name("uv")
    run(uv, "venv", "--quiet", "--python", sys.executable, venv)
    run(
        *(uv, "pip", "install", "--offline", "--quiet", "--python", venv / "bin" / "python"),
        *("--constraints", PROJECT / "requirements" / "dev.txt"),
        f"arco-catalog[pipeline,s3] @ {built.wheel.as_uri()}",
    )
    said = run(venv / "bin" / "python", "-m", "reconciler.package", folder)
    assert "--py-files" in said
    with tarfile.open(folder / "environment.tar.gz") as archive:
        archive.extractall(folder / "environment", filter="data")
    return folder


@pytest.mark.slow
@pytest.mark.needs("java")
def test_spark_submit_runs_what_was_packed(packed: Path, tmp_path: Path) -> None:
    python = packed / "environment" / "bin" / "python"
    assert not (packed / "environment" / "lib" / "pyspark").exists()
    spark = Path(pyspark.__file__).parent
    conf = [text for name, value in settings(tmp_path).items() for text in ("--conf", f"{name}={value}")]
    with serving(f"file:{tmp_path / 'store'}", tmp_path / "server.log") as server:
        lake = ServedLake(server)
        lake.append("t", "u")
        where = ["--uri", server.uri, "--store", server.store, "--warehouse", WAREHOUSE]
        script = [str(packed / "job.py"), "compact", *where]
        kept = {name: os.environ[name] for name in os.environ if not name.startswith(("ARCO_", "PYTHON", "VIRTUAL_"))}
        pythons = {"PYSPARK_PYTHON": str(python), "PYSPARK_DRIVER_PYTHON": str(python), "SPARK_HOME": str(spark)}
        # The launcher asks the system for its Python: here it is the one that libraries were packed for.
        path = f"{Path(sys.base_prefix) / 'bin'}:{kept['PATH']}"
        done = subprocess.run(
            [str(spark / "bin" / "spark-submit"), *conf, "--py-files", str(packed / "arco.zip"), *script],
            cwd=tmp_path,
            env={**kept, **environment(), **pythons, "PATH": path},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-4000:]
        assert json.loads(done.stdout.splitlines()[-1])["rows"]["commits"] == 4
        lake.assert_each_event_once()
