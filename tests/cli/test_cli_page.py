"""docs/cli.md: every command has an example, and every example runs."""

import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from arco_catalog.cli.program import COMMANDS
from tests.cli.in_process import arco
from tests.cli.process import environment_of

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


def commands(code: str, environment: Mapping[str, str]) -> list[list[str]]:
    """The arguments of each `arco` in a script, as bash expands them."""
    script = f"set -euo pipefail\narco() {{ printf '%s\\0' \"$@\" $'\\n' >&3; }}\n{code}"
    command = ["bash", "-c", f"exec 3>&1 1>/dev/null\n{script}"]
    expanded = subprocess.run(command, env={**environment}, capture_output=True, text=True, timeout=60, check=True)
    return [line.split("\0")[:-1] for line in expanded.stdout.split("\n\0") if line]


async def test_every_example_of_the_page_runs(srv: Path, tmp_path: Path) -> None:
    code = "\n".join(BLOCKS).replace("/srv/", f"{srv}/")
    environment = environment_of({"ARCO_STORE": f"file:{tmp_path}/lib"})
    examples = commands(code, environment)
    assert len(examples) == sum(line.startswith("arco ") for line in code.splitlines())

    printed = ""
    for arguments in examples:
        ended = await arco(*arguments, **environment)
        assert ended.code == 0, (arguments, ended.err)
        printed += ended.out

    assert "Restored sales.orders_2025" in printed
    assert "hadoop.web.clicks" in printed


def test_every_command_is_on_the_page() -> None:
    shown = "\n".join(BLOCKS)
    for command in COMMANDS:
        assert f"arco {command.name}" in (PAGE if command.name in ("serve", "pipeline", "prove") else shown)
