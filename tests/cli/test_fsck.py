"""`arco fsck` over a folder that holds a real catalog."""

import json
import os
import shutil
from pathlib import Path

import pytest

from arco_catalog.cli.fsck import MAX_LISTED, Progress, as_text
from arco_catalog.iceberg.errors import NoSuchTable
from arco_catalog.operations.load import load_table
from arco_catalog.protocol.catalog import Settings
from arco_catalog.upkeep.fsck.check import check
from arco_catalog.upkeep.fsck.codes import Code
from arco_catalog.upkeep.fsck.examination import Examination
from arco_catalog.upkeep.fsck.files import Scope
from arco_catalog.upkeep.fsck.findings import Finding
from storage_backends import ABSENT
from storage_backends.local.store import LocalStore
from tests.cli.in_process import arco
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.manifests import LIST_SCHEMA, avro, manifest


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


def the_receipt(folder: Path) -> Path:
    """The receipt of the table's creation."""
    (receipt,) = folder.glob("arco/_catalog/events/*/iceberg/committed/*.json")
    return receipt


async def test_a_sound_catalog_counts_as_sound(folder: Path) -> None:
    ended = await arco("fsck", "--store", folder.as_uri())

    assert ended.code == 0
    assert "Nothing is wrong." in ended.out


async def test_an_error_is_reported_with_its_remedy_and_ends_the_command_with_1(folder: Path) -> None:
    pointer = the_pointer(folder)
    pointer.write_bytes(b"{")

    ended = await arco("fsck", "--store", folder.as_uri())
    printed = json.loads((await arco("fsck", "--json", "--store", folder.as_uri())).out)

    assert ended.code == 1
    assert "pointer-unreadable" in ended.out
    assert "then run `arco restore`" in ended.out
    assert (printed["ok"], [finding["code"] for finding in printed["findings"]]) == (False, ["pointer-unreadable"])
    assert printed["findings"][0]["where"] == pointer.relative_to(folder).as_posix()


async def test_head_that_is_gone_is_a_finding_and_a_store_without_a_catalog_none(folder: Path, tmp_path: Path) -> None:
    (folder / "arco/_catalog/core/manifest.json").unlink()

    ended = await arco("fsck", "--store", folder.as_uri())
    other = await arco("fsck", "--store", folder.as_uri(), "--warehouse", "none")

    assert (ended.code, "manifest-missing" in ended.out) == (1, True)
    assert other.code == 2
    assert "there is no warehouse 'none'" in other.err


def test_many_findings_of_one_kind_are_cut_and_counted() -> None:
    found = [Finding(Code.RECEIPT_MISSING, f"key-{number}", "why") for number in range(MAX_LISTED + 7)]

    printed = as_text(found, 1_000)

    assert printed.count("receipt-missing") == MAX_LISTED + 2
    assert "... and 7 more of receipt-missing" in printed
    assert "1,000 objects were checked: 0 errors, 107 warnings, 0 notes." in printed


def test_progress_is_reported_once_a_second(capsys: pytest.CaptureFixture[str]) -> None:
    times = iter([0, 500, 1_500, 1_500, 1_600])
    progress = Progress(lambda: next(times))
    examination = Examination(CatalogFixture().session())

    for examined in (10, 20, 30):
        examination.examined = examined
        examination.at = "db.t"
        progress.report(examination)

    assert capsys.readouterr().err == "arco: 20 objects checked so far, now at the files of db.t\n"


async def test_repairs_are_reported_and_carried_out_only_where_that_is_requested(folder: Path) -> None:
    receipt = the_receipt(folder)
    body = receipt.read_bytes()
    receipt.unlink()
    age(folder)

    planned = await arco("fsck", "--repair", "--store", folder.as_uri())
    assert not receipt.exists()
    mended = json.loads((await arco("fsck", "--repair", "--apply", "--json", "--store", folder.as_uri())).out)
    again = await arco("fsck", "--store", folder.as_uri())

    assert planned.code == 0
    assert "planned" in planned.out
    assert "To carry out the repairs, add --apply." in planned.out
    assert [(each["code"], each["outcome"]) for each in mended["repairs"]] == [("receipt-missing", "mended")]
    assert receipt.read_bytes() == body
    assert "Nothing is wrong." in again.out


def age(folder: Path) -> None:
    """Makes all that is stored an hour older."""
    for file in folder.rglob("*.json"):
        was = file.stat()
        os.utime(file, ns=(was.st_atime_ns, was.st_mtime_ns - 3_600 * 10**9))


async def test_files_are_read_where_that_is_requested(folder: Path) -> None:
    fixture = CatalogFixture(LocalStore(folder), settings=Settings("arco"), url=folder.as_uri())
    place = str(json.loads((await load_table(fixture.session(), NS, "t")).metadata)["location"])
    await fixture.commit(
        {
            "requirements": [],
            "updates": [
                {
                    "action": "add-snapshot",
                    "snapshot": {
                        "snapshot-id": 1,
                        "sequence-number": 1,
                        "timestamp-ms": fixture.runtime.now_ms(),
                        "manifest-list": f"{place}/metadata/snap-1.avro",
                        "summary": {"operation": "append"},
                        "schema-id": 0,
                    },
                }
            ],
        }
    )
    path = Path(place.removeprefix("file://"))
    key = path.relative_to(folder).as_posix()
    store = LocalStore(folder)
    entries = manifest([f"{place}/data/gone.parquet"])
    await store.put(f"{key}/metadata/m.avro", entries, ABSENT)
    listed = [{"manifest_path": f"{place}/metadata/m.avro", "manifest_length": len(entries)}]
    schema = {**LIST_SCHEMA, "fields": LIST_SCHEMA["fields"][:2]}  # type: ignore[index]
    await store.put(f"{key}/metadata/snap-1.avro", avro(schema, listed), ABSENT)

    plain = await arco("fsck", "--store", folder.as_uri())
    ended = await arco("fsck", "--data", "--table", "db.t", "--json", "--store", folder.as_uri())
    later = await arco("fsck", "--data", "--after", "db.t", "--store", folder.as_uri())
    unknown = await arco("fsck", "--data", "--table", "db.x", "--store", folder.as_uri())

    assert (plain.code, later.code) == (0, 0)
    assert (ended.code, [each["code"] for each in json.loads(ended.out)["findings"]]) == (1, ["data-file-missing"])
    assert (unknown.code, "Table does not exist: db.x" in unknown.err) == (1, True)


async def test_an_unknown_table_ends_the_check_before_files_are_read_and_anything_is_mended(folder: Path) -> None:
    fixture = CatalogFixture(LocalStore(folder), settings=Settings("arco"), url=folder.as_uri())
    examination, scope = Examination(fixture.session()), Scope(frozenset({"db.t", "db.x"}))
    found: list[Finding] = []
    place = str(json.loads((await load_table(fixture.session(), NS, "t")).metadata)["location"])
    shutil.rmtree(place.removeprefix("file://"))

    async def run() -> None:
        async for finding in check(examination, scope):
            found.append(finding)

    with pytest.raises(NoSuchTable, match=r"db\.x is the name of no Iceberg table.*nothing was mended"):
        await run()

    assert found == []


@pytest.mark.parametrize(
    ("arguments", "printed"), [(["--apply"], "give --repair, too"), (["--table", "db.t"], "give --data, too")]
)
async def test_options_that_say_nothing_alone_are_refused(folder: Path, arguments: list[str], printed: str) -> None:
    ended = await arco("fsck", *arguments, "--store", folder.as_uri())

    assert (ended.code, printed in ended.err) == (1, True)
