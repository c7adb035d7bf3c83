"""dbt on the catalog, through Spark in dbt's own process: the project in the folder `dbt` is built, and built again."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines.lake import Lake, lake
from tests.engines.spark_shell import spark_properties
from tools.demo.engines import PROJECT, jars
from tools.demo.java import java_home

BUILD_S = 1200.0
DBT = PROJECT / ".venv-engines-dbt" / "bin" / "dbt"


@pytest.fixture
def shop_lake(tmp_path: Path) -> Iterator[Lake]:
    with lake("rest", f"file:{tmp_path / 'store'}", tmp_path / "server.log", {}) as opened:
        yield opened


@pytest.fixture
def project(shop_lake: Lake, tmp_path: Path) -> Path:
    """A copy of the project, with the profile of docs/engines/orchestrators.md beside it."""
    folder = tmp_path / "dbt"
    shutil.copytree(Path(__file__).parent / "dbt", folder)
    catalog = {"": "org.apache.iceberg.spark.SparkCatalog", ".type": "rest"}
    catalog |= {f".{name}": value for name, value in spark_properties(shop_lake).items()}
    settings = {
        "spark.jars": ",".join(str(jar) for jar in jars("")),
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.defaultCatalog": "arco",
        **{f"spark.sql.catalog.arco{name}": value for name, value in catalog.items()},
        "spark.sql.catalogImplementation": "in-memory",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
    }
    output = {"type": "spark", "method": "session", "host": "none", "schema": "shop", "threads": 1}
    profile = {"arco": {"target": "test", "outputs": {"test": {**output, "server_side_parameters": settings}}}}
    (folder / "profiles.yml").write_text(json.dumps(profile))
    return folder


def build(project: Path, factor: int) -> dict[str, str]:
    """Runs `dbt build`, and returns the status of each seed, model and test."""
    command = [str(DBT), "--no-version-check", "build", "--vars", json.dumps({"factor": factor})]
    own = {"JAVA_HOME": str(java_home()), "SPARK_LOCAL_IP": "127.0.0.1", "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}
    done = subprocess.run(
        command,
        cwd=project,
        env={**os.environ, **own},
        capture_output=True,
        text=True,
        timeout=BUILD_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]
    results = json.loads((project / "target" / "run_results.json").read_text())["results"]
    return {result["unique_id"].split(".")[2]: result["status"] for result in results}


def test_dbt_builds_tables_and_views_and_builds_them_again(project: Path, shop_lake: Lake) -> None:
    statuses = build(project, 1)
    assert set(statuses.values()) == {"success", "pass"}
    assert shop_lake.tables("shop") == ["customers", "orders", "raw_orders"]
    assert shop_lake.bystander.list_views("shop") == [("shop", "large_orders")]
    assert sorted(row[:3] for row in shop_lake.rows("shop.orders")) == [(1, "ada", 10), (2, "bob", 20), (3, "ada", 30)]
    assert shop_lake.rows("shop.customers") == [("ada", 2, 40), ("bob", 1, 20)]

    assert build(project, 10) == statuses
    assert sorted(row[:3] for row in shop_lake.rows("shop.orders")) == [
        (1, "ada", 10),
        (2, "bob", 200),
        (3, "ada", 300),
    ]
    assert shop_lake.rows("shop.customers") == [("ada", 2, 310), ("bob", 1, 200)]
    shop_lake.assert_receipts("shop.orders", "shop.customers", engine="spark")
