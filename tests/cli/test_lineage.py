"""`arco lineage`: the graph around a table, at the store."""

import json
from pathlib import Path

import pytest

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.lineage import receive_event
from tests.cli.in_process import arco
from tests.cli.test_operator import catalog_in, output
from tools.support.catalog_fixture import CatalogFixture

EVENT: JsonObject = {
    "eventType": "COMPLETE",
    "eventTime": "2026-11-22T10:00:00Z",
    "producer": "x",
    "schemaURL": "x",
    "run": {"runId": "0190b7a5-1f7c-7c6a-b9ad-3c2c5c1b2f10"},
    "job": {"namespace": "nightly", "name": "daily\x1b[31m"},
    "inputs": [{"namespace": "http://lake", "name": "db.t"}, {"namespace": "kafka://b", "name": "clicks"}],
    "outputs": [{"namespace": "http://lake", "name": "db.u"}],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
async def fixture(folder: Path) -> CatalogFixture:
    """The tables `db.t` and `db.u` in the warehouse `arco` of a folder, and a run from one to the other."""
    made = catalog_in(folder)
    await made.namespace("db")
    for name in ("t", "u"):
        await made.table(name)
    await receive_event(made.session(EVENT), EVENT, "ada")
    return made


async def test_edges_are_lines_and_notes_follow(fixture: CatalogFixture, folder: Path) -> None:
    report = await output(folder, "lineage", "db.u")

    lines = [line.split() for line in report.splitlines()]
    assert lines[0][:3] == ["TIME", "(UTC)", "FROM"]
    ends = sorted((line[2:-4], line[-1]) for line in lines[1:3])
    assert ends == [(["db.t", "db.u"], "DeclaredUnverified"), (["kafka://b", "clicks", "db.u"], "DeclaredUnverified")]
    assert "arco pipeline run compact" in report
    assert "\x1b" not in report


async def test_a_direction_without_edges_is_one_sentence(fixture: CatalogFixture, folder: Path) -> None:
    assert (await output(folder, "lineage", "db.u", "--direction", "downstream")).startswith("No lineage was found.")


async def test_the_json_is_that_of_the_api(fixture: CatalogFixture, folder: Path) -> None:
    graph = json.loads(await output(folder, "lineage", "db.t", "--depth", "2", "--json"))

    assert [node["name"] for node in graph["nodes"]] == ["t", "u", None]


async def test_a_table_that_is_absent_is_one_clear_line(fixture: CatalogFixture, folder: Path) -> None:
    ended = await arco("lineage", "db.absent", "--store", f"file:{folder}")

    assert (ended.code, ended.err) == (1, "arco: Table does not exist: db.absent\n")
