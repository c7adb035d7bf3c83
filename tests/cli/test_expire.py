"""`arco expire`: what it shows, and what it removes."""

import json
from pathlib import Path

import pytest

from tests.cli.in_process import arco
from tests.cli.test_operator import catalog_in
from tools.support.catalog_fixture import CatalogFixture
from tools.support.request_bodies import append_snapshot, set_property


@pytest.fixture
async def fixture(folder: Path) -> CatalogFixture:
    """A table with two old snapshots."""
    made = catalog_in(folder)
    await made.namespace("db")
    table = await made.table("t")
    place = table.metadata_location.rpartition("/")[0]
    for number in (7, 8):
        await made.commit(append_snapshot(number, 1_700_000_000_000 + number, f"{place}/m{number}"))
    return made


async def test_a_dry_run_shows_what_would_be_removed(fixture: CatalogFixture, folder: Path) -> None:
    shown = await arco("expire", "db.t", "--dry-run", "--store", f"file:{folder}")
    assert (shown.code, shown.out) == (
        0,
        "db.t: 1 snapshots and 0 branches or tags expire\n  snapshot 7\n",
    )
    shown = await arco("expire", "db.t", "--dry-run", "--max-age-days", "36500", "--json", "--store", f"file:{folder}")
    assert json.loads(shown.out) == {"snapshots": [], "refs": [], "held_back": None}


async def test_snapshots_are_removed_and_the_files_wait(fixture: CatalogFixture, folder: Path) -> None:
    shown = await arco("expire", "db.t", "--json", "--store", f"file:{folder}")
    assert shown.code == 0, shown.err
    result = json.loads(shown.out)
    assert result["status"] == "RETRY_SCHEDULED"
    assert result["result"] == "Removed 1 snapshots; the files that only they need are deleted later"
    again = await arco("expire", "db.t", "--store", f"file:{folder}")
    assert "db.t: Nothing expires (task " in again.out


async def test_a_table_whose_files_must_not_be_deleted_is_not_expired(fixture: CatalogFixture, folder: Path) -> None:
    await fixture.commit(set_property("gc.enabled", "false"))
    for more in ((), ("--dry-run",)):
        shown = await arco("expire", "db.t", *more, "--store", f"file:{folder}")
        assert "gc.enabled is not true" in shown.out


async def test_a_table_that_does_not_exist_is_an_error(fixture: CatalogFixture, folder: Path) -> None:
    shown = await arco("expire", "db.other", "--store", f"file:{folder}")
    assert shown.code != 0
    assert "Table does not exist: db.other" in shown.err
