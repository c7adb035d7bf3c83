"""A drop with purge through a real server: PyIceberg's on local files, gone to the last byte
(docs/design/purge.md)."""

import json
import time
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import NoSuchTableError

from arco_catalog.cli import main
from tools.support.arco_server import WAREHOUSE, ArcoServer

ROWS = pa.table({"id": pa.array(range(100), pa.int64()), "part": pa.array([n % 4 for n in range(100)], pa.int64())})
WAIT_SECONDS = 300


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("by", ["the server", "arco tasks run"])
def test_a_table_that_pyiceberg_purges_is_gone_to_the_last_byte(
    tmp_path: Path, by: str, capsys: pytest.CaptureFixture[str]
) -> None:
    store, tasks = f"file:{tmp_path}/store", str(by == "the server").lower()
    options = ("--purge-undrop-window", "PT0S", "--tasks", tasks)
    with ArcoServer(store, tmp_path / "log", *options) as server:
        catalog = load_catalog("arco", type="rest", uri=server.uri)
        catalog.create_namespace("db")
        for name in ("t", "neighbour"):
            made = catalog.create_table(f"db.{name}", schema=ROWS.schema)
            for _ in range(3):
                made.append(ROWS)
            made.delete("id < 10")
        folders = {
            name: Path(catalog.load_table(f"db.{name}").location().removeprefix("file://"))
            for name in ("t", "neighbour")
        }
        kept = files(folders["neighbour"])
        assert len(files(folders["t"])) > 10

        catalog.purge_table("db.t")

        with pytest.raises(NoSuchTableError):
            catalog.load_table("db.t")
        if by != "the server":
            assert main(["tasks", "run", "--json", "--store", store], {"ARCO_WAREHOUSE": WAREHOUSE}) == 0
            assert json.loads(capsys.readouterr().out) == {"executed": 1}
        until = time.monotonic() + WAIT_SECONDS
        while files(folders["t"]) and time.monotonic() < until:
            time.sleep(0.5)
        assert files(folders["t"]) == []
        assert files(folders["neighbour"]) == kept
        assert catalog.load_table("db.neighbour").scan().to_arrow().num_rows == 270
        while time.monotonic() < until:
            assert main(["tasks", "--json", "--store", store], {"ARCO_WAREHOUSE": WAREHOUSE}) == 0
            [task] = json.loads(capsys.readouterr().out)
            if task["status"] == "SUCCESS":
                break
            time.sleep(0.5)
        assert json.loads(task["result_extended"])["left_behind"] == 0
