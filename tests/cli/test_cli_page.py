"""docs/cli.md: every command has an example, and every example runs."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from arco_catalog.cli.program import COMMANDS

PAGE = (Path(__file__).parents[2] / "docs/cli.md").read_text()
BLOCKS = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def srv(tmp_path: Path) -> Path:
    """What the page finds in /srv: a SQL catalog, a folder of Hadoop's catalog, and a list."""
    srv = tmp_path / "srv"
    (srv / "old").mkdir(parents=True)
    old = load_catalog(
        "old", type="sql", uri=f"sqlite:///{srv}/old/catalog.db", warehouse=f"file://{srv}/old/warehouse"
    )
    schema = Schema(NestedField(1, "id", LongType()))
    old.create_namespace("sales")
    old.create_table("sales.orders", schema=schema)
    made = {name: old.create_table(f"sales.{name}", schema=schema).metadata_location for name in ("visits", "copied")}
    for name in made:
        old.drop_table(f"sales.{name}")
    (srv / "visits.txt").write_text(made["visits"])
    (srv / "tables.txt").write_text(f"# from a script\nlisted.copied {made['copied']}\n")
    metadata = srv / "hadoop/web/clicks/metadata"
    metadata.mkdir(parents=True)
    document = json.loads(Path(made["copied"].removeprefix("file://")).read_bytes())
    located = {**document, "location": f"file://{srv}/hadoop/web/clicks"}
    (metadata / "v1.metadata.json").write_text(json.dumps(located))
    (metadata / "version-hint.text").write_text("1")
    return srv


def test_every_example_of_the_page_runs(srv: Path, tmp_path: Path) -> None:
    code = "set -euo pipefail\n" + "\n".join(BLOCKS).replace("/srv/", f"{srv}/")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("ARCO_")}
    bin_folder = str(Path(sys.executable).parent)
    path = {"PATH": f"{bin_folder}:{os.environ['PATH']}", "ARCO_STORE": f"file:{tmp_path}/lib"}

    ended = subprocess.run(
        ["bash", "-xc", code], env={**clean, **path}, capture_output=True, text=True, timeout=600, check=False
    )

    assert ended.returncode == 0, ended.stderr[-2000:]
    assert "Restored sales.orders_2025" in ended.stdout
    assert "hadoop.web.clicks" in ended.stdout


def test_every_command_is_on_the_page() -> None:
    shown = "\n".join(BLOCKS)
    for command in COMMANDS:
        assert f"arco {command.name}" in (PAGE if command.name in ("serve", "pipeline") else shown)
