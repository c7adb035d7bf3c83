"""`arco backup` and `arco restore`, and what other commands tell of an earlier time (docs/recovery.md)."""

import asyncio
import json
import time
from pathlib import Path

import pytest

from arco_catalog.cli.program import main
from arco_catalog.protocol.catalog import Settings
from storage_backends.local.store import LocalStore
from storage_backends.s3.store import S3Store
from storage_backends.wire.exchange import Request
from tests.cli.test_realms import Store
from tools.support.catalog_fixture import CatalogFixture
from tools.support.request_bodies import set_property
from tools.support.s3_servers import S3Server

Captured = pytest.CaptureFixture[str]
ENABLE = b"<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a catalog that has one table."""
    fixture = CatalogFixture(LocalStore(tmp_path / "lake"), settings=Settings("arco"), url=f"{tmp_path.as_uri()}/lake")

    async def make() -> None:
        await fixture.namespace("db")
        await fixture.table("t")
        await fixture.commit(set_property("p", "1"))

    asyncio.run(make())
    return tmp_path / "lake"


def test_a_time_is_iso_8601(folder: Path, capsys: Captured) -> None:
    for command in (["ls", "db"], ["history"], ["show", "db.t"]):
        assert main([*command, "--at", "2099-01-01", "--store", folder.as_uri()], {}) == 0
        assert "t" in capsys.readouterr().out
        assert main([*command, "--at", "2001-01-01 12:00", "--store", folder.as_uri()], {}) == 1
        assert "The catalog had no commit yet at the time of --at" in capsys.readouterr().err
        with pytest.raises(SystemExit):
            main([*command, "--at", "yesterday", "--store", folder.as_uri()], {})
        assert "expected a time such as" in capsys.readouterr().err


def test_what_a_name_meant_is_shown_with_who_committed(folder: Path, capsys: Captured) -> None:
    assert main(["show", "db.t", "--at", "2099-01-01T00:00:00+01:00", "--json", "--store", folder.as_uri()], {}) == 0

    shown = json.loads(capsys.readouterr().out)

    assert (shown["state"], shown["principal"], shown["registry"]["sequence"]) == ("live", "tester", 2)


def test_what_is_to_be_chosen_is_shown_and_ends_the_command_with_1(folder: Path, capsys: Captured) -> None:
    at = ["--store", folder.as_uri()]
    for receipt in folder.glob("arco/_catalog/events/*/iceberg/committed/*"):
        receipt.unlink()
    (folder / "arco/_catalog/core/manifest.json").unlink()
    for pointer in folder.glob("arco/_catalog/iceberg_pointers/*"):
        pointer.unlink()

    assert main(["restore", *at], {}) == 1
    printed = capsys.readouterr().out
    assert "arco restore --head COMMIT" in printed
    assert "create-table" in printed
    assert main(["restore", "--dry-run", "--json", *at], {}) == 1
    head = json.loads(capsys.readouterr().out)["head"]["candidates"][-1]["commit"]
    assert main(["restore", "--head", head, *at], {}) == 1
    printed = capsys.readouterr().out
    assert "arco restore --pointer" in printed
    assert main(["restore", "--dry-run", "--json", *at], {}) == 1
    [lost] = json.loads(capsys.readouterr().out)["pointers"]
    newest = max(lost["candidates"], key=lambda each: each["metadata_ms"])["metadata_location"]
    assert main(["restore", "--pointer", f"{lost['entity']}={newest}", *at], {}) == 0
    assert main(["fsck", *at], {}) == 0


def test_every_command_states_that_head_is_lost(folder: Path, capsys: Captured) -> None:
    at = ["--store", folder.as_uri()]
    (folder / "arco/_catalog/core/manifest.json").unlink()

    for command in (["ls"], ["init"], ["gc", "--delete"], ["reconcile"], ["tasks", "run"]):
        assert main([*command, *at], {}) == 1
        assert "then run `arco restore --dry-run`" in capsys.readouterr().err
    assert main(["doctor", "--json", *at], {}) == 1
    [found] = [each for each in json.loads(capsys.readouterr().out)["checks"] if each["status"] == "failed"]
    assert (found["check"], found["advice"]) == (
        "catalog",
        "`arco fsck` has the details, docs/recovery.md the steps",
    )
    assert main(["restore", *at], {}) == 0
    assert main(["fsck", *at], {}) == 0


def test_options_that_do_not_go_together_are_refused(folder: Path, capsys: Captured) -> None:
    for wrong in (
        ["--from", "x", "--head", "y"],
        ["--to", "2026-01-01", "--replace"],
        ["--pointer", "no-location"],
    ):
        with pytest.raises(SystemExit):
            main(["restore", *wrong, "--store", folder.as_uri()], {})
    assert main(["restore", "--to", "2026-01-01", "--store", folder.as_uri()], {}) == 1
    assert "from an S3 store only" in capsys.readouterr().err
    assert main(["restore", "--store", f"{folder.as_uri()}/none"], {}) == 2


def test_a_backup_of_a_catalog_is_none_of_a_realm(folder: Path, tmp_path: Path, capsys: Captured) -> None:
    archive = str(tmp_path / "b.tar.gz")
    assert main(["backup", "--to", archive, "--store", folder.as_uri()], {}) == 0
    assert main(["backup", "--to", archive, "--store", folder.as_uri()], {}) == 1
    assert f"{archive} exists: remove it, or write" in capsys.readouterr().err
    assert main(["backup", "--to", f"{tmp_path}/none/b.tar.gz", "--store", folder.as_uri()], {}) == 1
    assert capsys.readouterr().err == f"arco: there is no folder {tmp_path}/none to write b.tar.gz to: make it\n"
    other = (tmp_path / "other").as_uri()
    assert main(["restore", "--from", archive, "--store", other, "--json"], {}) == 0
    assert len(json.loads(capsys.readouterr().out)["registries"]) == 1
    assert main(["restore", "--from", archive, "--store", other], {}) == 1
    assert "exists" in capsys.readouterr().err
    assert main(["restore", "--from", str(folder / "none"), "--store", other], {}) == 1
    assert capsys.readouterr().err == f"arco: {folder}/none: No such file or directory\n"


@pytest.mark.parametrize("realm", [None, "acme"])
def test_a_realm_is_backed_up_with_its_catalogs(realm: str | None, tmp_path: Path, capsys: Captured) -> None:
    made = Store(tmp_path / "lake", capsys, realm)
    made.run("catalogs", "create", "pond")
    made.table("pond", "t")
    archive = str(tmp_path / "b.tar.gz")

    report = made.json("backup", "--to", archive)
    assert len(report["registries"]) == 3
    named = [] if realm is None else ["--realm", realm]
    other = ["--store", f"file:{tmp_path}/other", *named]
    assert main(["restore", "--from", archive, *other], {}) == 0
    capsys.readouterr()

    allowed = ["--allowed-location", f"file://{tmp_path}/lake"]
    assert main(["ls", "-R", "--warehouse", "pond", *allowed, *other], {}) == 0
    assert "db.t" in capsys.readouterr().out
    assert main(["fsck", "--warehouse", "pond", *allowed, *other], {}) == 0
    assert main(["catalogs", "list", *other], {}) == 0
    assert "pond" in capsys.readouterr().out
    assert main(["history", "--realm-history", *other], {}) == 0
    assert "restore" in capsys.readouterr().out
    assert main(["adopt", "--json", *allowed, *other], {}) == 1
    copies = json.loads(capsys.readouterr().out)["copies"]
    assert len(copies) == 2
    assert all(f"file://{tmp_path}/lake/" in each["copy_of"] for each in copies)
    assert main(["adopt", "--original-is-deleted", *allowed, *other], {}) == 0
    assert main(["adopt", *allowed, *other], {}) == 0


def test_the_registry_of_a_realm_is_found_again(tmp_path: Path, capsys: Captured) -> None:
    made = Store(tmp_path / "lake", capsys)
    made.run("catalogs", "create", "pond")
    manifest = tmp_path / "lake/_realm/core/manifest.json"
    before = manifest.read_bytes()
    manifest.unlink()

    printed = made.json("restore", "--realm-registry", code=1)
    last = printed["head"]["candidates"][-1]
    assert [each["kind"] for each in last["operations"]] == ["create-catalog"]
    made.run("restore", "--realm-registry", "--head", last["commit"])

    assert manifest.read_bytes() == before
    assert "pond" in made.run("catalogs", "list")


def test_a_bucket_is_brought_back_to_an_earlier_time(s3_server: S3Server, s3_bucket: str, capsys: Captured) -> None:
    url = f"s3://{s3_bucket}/lake"
    at = ["--store", url]

    async def make() -> tuple[str, str]:
        store = S3Store(s3_bucket, "lake", config=s3_server.config)
        await store._client.write(Request("PUT", "", {}, {"versioning": ""}, ENABLE))
        fixture = CatalogFixture(store, settings=Settings("arco"), url=url)
        await fixture.namespace("db")
        await fixture.table("t")
        now_ms = (await store.list("nothing/")).now_ms
        for _ in range(600):
            await asyncio.sleep(0.05)
            if (await store.list("nothing/")).now_ms > now_ms:
                break
        await fixture.commit(set_property("p", "1"))
        await fixture.table("u")
        await store.close()
        then = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now_ms / 1000))
        return then, fixture.url

    then, _ = asyncio.run(make())
    environment = s3_server.environment

    assert main(["restore", "--to", then, "--dry-run", *at], environment) == 0
    assert "would be brought back" in capsys.readouterr().out
    assert main(["restore", "--to", "2099-01-01", *at], environment) == 1
    assert "is in the future" in capsys.readouterr().err
    for command in (["restore", "--to", then], ["restore"], ["reconcile"], ["fsck"]):
        assert main([*command, *at], environment) == 0, capsys.readouterr()
    capsys.readouterr()
    assert main(["ls", "-R", *at], environment) == 0

    assert capsys.readouterr().out.split()[2:] == ["namespace", "db", "table", "db.t"]


def test_a_copy_is_shown_refuses_to_delete_and_is_adopted(folder: Path, tmp_path: Path, capsys: Captured) -> None:
    archive, place = tmp_path / "b.tar.gz", ["--store", f"{tmp_path.as_uri()}/other"]
    allowed = ["--allowed-location", f"{folder.as_uri()}/arco/warehouse"]
    assert main(["backup", "--to", str(archive), "--store", folder.as_uri()], {}) == 0
    assert main(["restore", "--from", str(archive), *place], {}) == 0
    assert f"a copy of the catalog at {folder.as_uri()}/arco" in capsys.readouterr().out

    assert main(["info", "db.t", *place, *allowed], {}) == 0
    assert f"a copy of {folder.as_uri()}/arco" in capsys.readouterr().out
    assert main(["gc", "--delete", *place], {}) == 1
    assert "arco adopt" in capsys.readouterr().out
    assert main(["gc", *place], {}) == 0
    capsys.readouterr()

    assert main(["adopt", "--json", *place], {}) == 1
    shown = json.loads(capsys.readouterr().out)
    copy_of = f"{folder.as_uri()}/arco"
    copies = [{"adopted": False, "copy_of": copy_of, "name": "arco"}]
    assert shown == {"copies": copies, "left_out": [], "confirmed": False}
    assert main(["adopt", *place], {}) == 1
    report = capsys.readouterr().out
    assert report.splitlines()[0].endswith(" STATE")
    assert "--original-is-deleted" in report

    assert main(["adopt", "--original-is-deleted", *place], {}) == 0
    assert "adopted" in capsys.readouterr().out
    assert main(["adopt", *place], {}) == 0
    assert "No catalog that was read is a copy" in capsys.readouterr().out
    assert main(["gc", "--delete", *place], {}) == 0


def test_a_backup_that_is_restored_at_its_place_makes_no_copy(folder: Path, tmp_path: Path, capsys: Captured) -> None:
    archive, at = tmp_path / "b.tar.gz", ["--store", folder.as_uri()]
    assert main(["backup", "--to", str(archive), *at], {}) == 0
    (folder / "arco" / "_catalog").rename(tmp_path / "lost")
    assert main(["restore", "--from", str(archive), *at], {}) == 0
    assert main(["adopt", *at], {}) == 0
    assert "No catalog that was read is a copy" in capsys.readouterr().out
