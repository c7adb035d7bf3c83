"""`arco diff`: what differs between two versions, at the store."""

import json
from pathlib import Path

import pytest

from arco_catalog.iceberg.json import JsonObject, JsonValue, loads
from arco_catalog.operations.commit import commit_view
from arco_catalog.operations.create import create_view
from arco_catalog.operations.load import load_table
from arco_catalog.state.fields import mapping
from tests.cli.in_process import arco
from tests.cli.test_operator import catalog_in, output
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.request_bodies import append_snapshot, set_property, view_request


@pytest.fixture
async def fixture(folder: Path) -> CatalogFixture:
    """The table `db.t` in the warehouse `arco` of a folder."""
    made = catalog_in(folder)
    await made.namespace("db")
    await made.table("t")
    return made


async def change(fixture: CatalogFixture) -> None:
    """Commits columns, a property and a snapshot to `t`, a version each."""
    fields: list[JsonValue] = [
        {"id": 1, "name": "renamed\x1b[31m", "type": "long", "required": False},
        {"id": 2, "name": "added", "type": "string", "required": False, "doc": "new"},
    ]
    columns: JsonObject = {"type": "struct", "schema-id": 1, "fields": fields}
    schema: JsonObject = {
        "requirements": [],
        "updates": [
            {"action": "add-schema", "schema": columns, "last-column-id": 2},
            {"action": "set-current-schema", "schema-id": -1},
        ],
    }
    metadata = loads((await load_table(fixture.session(), NS, "t")).metadata)
    assert isinstance(metadata, dict)
    for body in (
        schema,
        set_property("color", "red"),
        append_snapshot(7, 1_700_000_000_000, f"{metadata['location']}/m"),
    ):
        await fixture.commit(body)


async def test_differences_are_shown_with_a_sign_each(fixture: CatalogFixture, folder: Path) -> None:
    await change(fixture)

    report = await output(folder, "diff", "db.t", "0")

    assert report.splitlines()[0].startswith("from  version 0 of 20")
    lines = report.splitlines()[3:]
    assert "+ column 2 added string" in lines
    assert "~ column 1 renamed\\u001b[31m, name: x -> renamed\\u001b[31m" in lines
    assert "+ property color: red" in lines
    assert "~ the current snapshot is ahead, 1 snapshots between" in lines
    assert "+ 1 snapshots" in lines
    assert "\x1b" not in report
    assert (await output(folder, "diff", "db.t", "0", "0")).splitlines()[-1] == "Nothing differs."
    backward = await output(folder, "diff", "db.t", "3", "0")
    assert "- property color: red" in backward


async def test_the_json_is_that_of_the_api(fixture: CatalogFixture, folder: Path) -> None:
    await change(fixture)

    compared = json.loads(await output(folder, "diff", "db.t", "1", "snapshot:7", "--json"))

    assert (compared["from"]["version"], compared["to"]["version"]) == (1, 3)
    assert compared["properties"]["added"] == {"color": "red"}


async def test_versions_of_a_view_that_differ_only_by_their_ids_differ(fixture: CatalogFixture, folder: Path) -> None:
    body = view_request()
    await create_view(fixture.session(body), NS, body)
    version: JsonObject = {**mapping(body, "view-version"), "version-id": 2, "summary": {"by": "another"}}
    updates: list[JsonValue] = [
        {"action": "add-view-version", "view-version": version},
        {"action": "set-current-view-version", "view-version-id": -1},
    ]
    change: JsonObject = {"requirements": [], "updates": updates}
    await commit_view(fixture.session(change), NS, "v", change)

    lines = (await output(folder, "diff", "db.v", "0")).splitlines()

    assert lines[3:] == ["~ current view version: 1 -> 2", "+ view version 2"]
    backward = (await output(folder, "diff", "db.v", "1", "0")).splitlines()
    assert backward[3:] == ["~ current view version: 2 -> 1", "- view version 2"]


async def test_views_are_compared_and_unknown_versions_are_one_clear_line(
    fixture: CatalogFixture, folder: Path
) -> None:
    body = view_request()
    await create_view(fixture.session(body), NS, body)

    assert "Nothing differs." in await output(folder, "diff", "db.v", "0")
    ended = await arco("diff", "db.v", "9", "--store", f"file:{folder}")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("arco: Version does not exist")
    absent = await arco("diff", "db.absent", "0", "--store", f"file:{folder}")
    assert absent.err.startswith("arco: Table does not exist: db.absent")
