"""`arco gc` over a folder that holds a real catalog."""

import json
import os
from contextlib import suppress
from pathlib import Path

import pytest

from arco_catalog.cli.gc import Progress, as_text
from arco_catalog.iceberg.errors import CatalogError
from arco_catalog.planning.collection import Kind
from arco_catalog.planning.upkeep_settings import DAY_MS
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state.paths import SERVICE
from arco_catalog.upkeep.collection.stats import CollectionStats
from tests.cli.in_process import arco
from tests.support.scripted_store import DOWN, Rule, ScriptedFolder, swap
from tools.support.catalog_fixture import CatalogFixture
from tools.support.request_bodies import set_property


@pytest.fixture
async def folder(tmp_path: Path) -> Path:
    """A folder with a catalog that has one table and a lost try, all a month old."""
    store = ScriptedFolder(tmp_path)
    fixture = CatalogFixture(store, settings=Settings("arco"), url=tmp_path.as_uri())
    await fixture.namespace("db")
    await fixture.table("t")
    store.rules = [Rule(swap("/iceberg_pointers/"), fails=DOWN)]
    with suppress(CatalogError):
        await fixture.commit(set_property("n", "1"))
    age(tmp_path)
    return tmp_path


def age(folder: Path) -> None:
    """Makes everything a month older."""
    for file in folder.rglob("*.json"):
        old = file.stat().st_mtime - 30 * DAY_MS / 1000
        os.utime(file, (old, old))


def pending(folder: Path) -> list[Path]:
    return [*folder.glob("arco/_catalog/events/*/iceberg/pending/*.json")]


def damage(folder: Path) -> Path:
    """Damages a pending receipt, and leaves it as old as it was."""
    receipt = pending(folder)[0]
    old = receipt.stat().st_mtime
    receipt.write_bytes(b"{")
    os.utime(receipt, (old, old))
    return receipt


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("arco/warehouse/**/*.metadata.json"))


async def test_nothing_is_deleted_unless_it_has_to(folder: Path) -> None:
    before = files(folder)

    ended = await arco("gc", "--store", folder.as_uri())

    assert ended.code == 0
    assert "dry run" in ended.out
    assert "metadata-file" in ended.out
    assert "it never became current" in ended.out
    assert files(folder) == before


async def test_with_delete_it_is_gone_and_the_catalog_is_sound(folder: Path) -> None:
    ended = await arco("gc", "--delete", "--json", "--store", folder.as_uri())
    printed = json.loads(ended.out)

    assert ended.code == 0
    assert printed["deleted"] is True
    assert {each["kind"]: each["count"] for each in printed["kinds"]} == {"metadata-file": 1, "pending-receipt": 2}
    assert all(each["bytes"] > 0 and each["oldest_ms"] and each["why"] for each in printed["kinds"])
    assert len(files(folder)) == 1
    assert (await arco("fsck", "--store", folder.as_uri())).code == 0


async def test_a_record_that_cannot_be_read_is_kept_and_ends_the_command_with_1(folder: Path) -> None:
    receipt = damage(folder)

    ended = await arco("gc", "--delete", "--store", folder.as_uri())

    assert ended.code == 1
    assert receipt.name in ended.out
    assert receipt in pending(folder)


async def test_what_a_delegation_service_left_in_the_store_is_collected_and_checked_too(folder: Path) -> None:
    hint = folder / SERVICE.open_task("00000000-0000-4000-8000-000000000001", 0)
    hint.parent.mkdir(parents=True)
    hint.touch()
    os.utime(hint, (0, 0))

    ended = await arco("gc", "--delete", "--json", "--store", folder.as_uri())
    printed = json.loads(ended.out)

    assert not hint.exists()
    assert [(each["owner"], each["name"], each["count"]) for each in printed["beside"]] == [
        ("delegation-service", "_catalog", 1)
    ]
    assert [(each["name"], each["count"]) for each in printed["catalogs"]] == [("arco", printed["count"] - 1)]
    stray = folder / SERVICE.manifest
    stray.parent.mkdir(parents=True)
    stray.write_bytes(b"{}")
    found = json.loads((await arco("fsck", "--all", "--json", "--store", folder.as_uri())).out)["findings"]
    assert [(each["code"], each["where"]) for each in found] == [("object-unknown", SERVICE.manifest)]


async def test_a_delegation_service_with_a_store_of_its_own_is_collected(tmp_path: Path) -> None:
    store = tmp_path.as_uri()
    empty = await arco("gc", "--delete", "--json", "--store", store)
    hint = tmp_path / SERVICE.open_task("00000000-0000-4000-8000-000000000001", 0)
    hint.parent.mkdir(parents=True)
    hint.touch()
    os.utime(hint, (0, 0))

    dry = await arco("gc", "--store", store)
    ended = await arco("gc", "--delete", "--json", "--store", store)

    assert (empty.code, dry.code, ended.code) == (2, 0, 0), ended.err
    assert not hint.exists()
    assert json.loads(ended.out)["count"] == 1


async def test_retention_below_a_week_is_refused(folder: Path) -> None:
    ended = await arco("gc", "--store", folder.as_uri(), ARCO_RECEIPT_RETENTION="P1D")

    assert ended.code == 1
    assert "at least a week" in ended.err


def test_a_run_that_was_stopped_reports_it() -> None:
    stats = CollectionStats(listed=7, stopped=True)
    stats.collects(Kind.MARKER, size=10, written_ms=0)
    assert "Stopped before the end" in as_text(stats, delete=True)


def test_progress_is_reported_once_a_second(capsys: pytest.CaptureFixture[str]) -> None:
    now = [0]
    progress = Progress(lambda: now[0])
    for ms in (500, 1_000, 1_500, 2_000):
        now[0] = ms
        progress.report(CollectionStats(listed=ms))
    assert capsys.readouterr().err.count("\n") == 2
