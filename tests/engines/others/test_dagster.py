"""Assets of Dagster that commit to the catalog by PyIceberg: a step that runs again after its commit adds no row."""

import json
import os
import subprocess
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]

from tests.engines.lake import Lake
from tools.demo.engines import PROJECT
from tools.demo.server import WAREHOUSE

RUN_S = 300.0
INT = pa.int64()


def test_a_step_that_failed_after_its_commit_adds_nothing_twice(local_lake: Lake, tmp_path: Path) -> None:
    local_lake.bystander.create_namespace("shop")
    for name, first in (("orders", "id"), ("totals", "orders")):
        local_lake.bystander.create_table(f"shop.{name}", schema=pa.schema([(first, INT), ("amount", INT)]))

    python = str(PROJECT / ".venv-engines-dagster" / "bin" / "python")
    done = subprocess.run(
        [python, "-m", "tests.engines.others.dagster_job", local_lake.server.uri, WAREHOUSE],
        cwd=PROJECT,
        env={**os.environ, "DAGSTER_HOME": str(tmp_path), "DAGSTER_DISABLE_TELEMETRY": "yes"},
        capture_output=True,
        text=True,
        timeout=RUN_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    outcome = json.loads(done.stdout)

    assert (outcome["success"], outcome["tries"]) == (True, {"orders": 2, "totals": 1}), done.stderr[-4000:]
    assert local_lake.rows("shop.orders") == [(1, 10), (2, 20), (3, 30)]
    assert local_lake.rows("shop.totals") == [(3, 60)]
    for name in ("orders", "totals"):
        snapshot = local_lake.bystander.load_table(f"shop.{name}").current_snapshot()
        assert snapshot is not None
        assert snapshot.summary is not None
        assert (snapshot.summary["dagster.run-id"], snapshot.summary["dagster.asset"]) == (outcome["run"], name)
    local_lake.assert_receipts("shop.orders", "shop.totals")
