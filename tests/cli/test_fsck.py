"""`arco fsck` over a folder that holds a real catalog."""

import json
from pathlib import Path

import pytest

from arco_catalog.cli.fsck import MOST, Progress, as_text
from arco_catalog.operations.fsck.findings import Code, Finding
from arco_catalog.protocol.catalog import Settings
from storage_backends.local.store import LocalStore
from tests.cli.process import arco
from tools.support.catalog_fixture import CatalogFixture


@pytest.fixture
async def folder(tmp_path: Path) -> Path:
    """A folder with a catalog that has one table."""
    fixture = CatalogFixture(LocalStore(tmp_path), settings=Settings("arco"), url=tmp_path.as_uri())
    await fixture.namespace("db")
    await fixture.table("t")
    return tmp_path


def the_pointer(folder: Path) -> Path:
    """The table's pointer."""
    (pointer,) = folder.glob("arco/_catalog/iceberg_pointers/*.json")
    return pointer


async def test_a_sound_catalog_is_said_to_be_sound(folder: Path) -> None:
    ended = await arco("fsck", "--store", folder.as_uri())

    assert ended.code == 0
    assert "Nothing is wrong." in ended.out


async def test_an_error_is_told_with_its_remedy_and_ends_the_command_with_1(folder: Path) -> None:
    pointer = the_pointer(folder)
    pointer.write_bytes(b"{")

    ended = await arco("fsck", "--store", folder.as_uri())
    told = json.loads((await arco("fsck", "--json", "--store", folder.as_uri())).out)

    assert ended.code == 1
    assert "pointer-unreadable" in ended.out
    assert "restore its newest readable version" in ended.out
    assert (told["ok"], [finding["code"] for finding in told["findings"]]) == (False, ["pointer-unreadable"])
    assert told["findings"][0]["where"] == pointer.relative_to(folder).as_posix()


async def test_head_that_is_gone_is_a_finding_and_a_store_without_a_catalog_none(folder: Path, tmp_path: Path) -> None:
    (folder / "arco/_catalog/core/manifest.json").unlink()

    ended = await arco("fsck", "--store", folder.as_uri())
    other = await arco("fsck", "--store", folder.as_uri(), "--warehouse", "none")

    assert (ended.code, "manifest-missing" in ended.out) == (1, True)
    assert other.code == 2
    assert "there is no warehouse 'none'" in other.err


def test_many_findings_of_one_kind_are_cut_and_counted() -> None:
    found = [Finding(Code.RECEIPT_MISSING, f"key-{number}", "why") for number in range(MOST + 7)]

    told = as_text(found, 1_000)

    assert told.count("receipt-missing") == MOST + 2
    assert "... and 7 more of receipt-missing" in told
    assert "1,000 objects were looked at: 0 errors, 107 warnings, 0 notes." in told


def test_progress_is_told_once_a_second(capsys: pytest.CaptureFixture[str]) -> None:
    times = iter([0, 500, 1_500, 1_500, 1_600])
    progress = Progress(lambda: next(times))

    for looked_at in (10, 20, 30):
        progress.told(looked_at)

    assert capsys.readouterr().err == "arco: 20 objects looked at so far\n"
