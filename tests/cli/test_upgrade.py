"""`arco upgrade`: raises the version of the registry of a catalog, or of a realm and its catalogs."""

import json
import time
from pathlib import Path

import pytest

from arco_catalog.cli.program import main
from arco_catalog.state import registry
from tests.cli.test_realms import Store

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def folder(tmp_path: Path, capsys: Captured) -> Path:
    """A folder with an empty catalog."""
    assert main(["init", "--store", tmp_path.as_uri()], {}) == 0
    capsys.readouterr()
    return tmp_path


def lose_writers(folder: Path, *, hours_ago: int) -> str:
    """Makes HEAD a commit of an older program at this time, and returns the id of the commit."""
    manifest = folder / "arco/_catalog/core/manifest.json"
    head = json.loads(manifest.read_bytes())
    del head["writers"]
    head["at_ms"] = round(time.time() * 1000) - hours_ago * 3_600_000
    manifest.write_text(json.dumps(head))
    return str(head["id"])


def test_a_catalog_is_upgraded_once(folder: Path, capsys: Captured) -> None:
    at = ["--store", folder.as_uri()]

    assert main(["upgrade", "--dry-run", *at], {}) == 0
    assert capsys.readouterr().out == "catalog arco: version 1 -> 2 (dry run)\n"
    assert main(["upgrade", *at], {}) == 0
    assert capsys.readouterr().out == "catalog arco: version 1 -> 2\n"
    for dry in ([], ["--dry-run"]):
        assert main(["upgrade", *dry, *at], {}) == 0
        assert capsys.readouterr().out == "catalog arco: is version 2 already\n"

    assert main(["history", *at], {}) == 0
    assert "upgrade" in capsys.readouterr().out
    assert main(["fsck", *at], {}) == 0


def test_an_older_program_of_the_last_day_is_named_and_prevents_the_upgrade(folder: Path, capsys: Captured) -> None:
    at = ["--store", folder.as_uri()]
    commit = lose_writers(folder, hours_ago=23)

    for dry in ([], ["--dry-run"]):
        assert main(["upgrade", *dry, *at], {}) == 1
        printed = capsys.readouterr().out
        assert "catalog arco: stays version 1: a program that cannot read version 2 made the commit" in printed
        assert commit in printed
        assert "--force" in printed
    assert main(["upgrade", "--json", *at], {}) == 1
    [found] = json.loads(capsys.readouterr().out)["registries"]
    assert (found["from_version"], found["to_version"], found["prevented_by"]["commit"]) == (1, 1, commit)

    assert main(["upgrade", "--force", *at], {}) == 0
    assert capsys.readouterr().out == "catalog arco: version 1 -> 2\n"


def test_an_older_program_before_the_last_day_does_not_count(folder: Path, capsys: Captured) -> None:
    lose_writers(folder, hours_ago=25)

    assert main(["upgrade", "--store", folder.as_uri()], {}) == 0
    assert capsys.readouterr().out == "catalog arco: version 1 -> 2\n"


@pytest.mark.parametrize("realm", [None, "acme"])
def test_a_realm_is_upgraded_with_all_its_catalogs(tmp_path: Path, capsys: Captured, realm: str | None) -> None:
    store = Store(tmp_path, capsys, realm)
    store.run("catalogs", "create", "other")
    state = "_realm" if realm is None else f"{realm}/_realm"

    store.run("upgrade", "--dry-run")
    lines = store.run("upgrade").splitlines()

    assert lines[0] == f"realm {state}: version 1 -> 2"
    assert sorted(lines[1:]) == ["catalog arco: version 1 -> 2", "catalog other: version 1 -> 2"]
    again = store.json("upgrade")["registries"]
    assert [(each["from_version"], each["to_version"]) for each in again] == [(2, 2)] * 3
    assert "upgrade" in store.run("history", "--realm-history")
    assert "upgrade" in store.run("history", "--warehouse", "other")
    store.run("fsck", "--all")


def test_a_new_catalog_of_an_upgraded_realm_has_its_version_and_older_programs_do_not_find_it(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path, capsys, None)
    store.run("upgrade")

    store.run("catalogs", "create", "third")

    assert "catalog third: is version 2 already" in store.run("upgrade")
    store.run("fsck", "--all")
    monkeypatch.setattr(registry, "NEWEST_VERSION", 1)
    assert main(["ls", "--warehouse", "third", "--store", tmp_path.as_uri()], {}) != 0
    refused = capsys.readouterr().err
    assert "_realm/core/manifest.json" in refused
    assert "version 2" in refused


def test_a_store_without_a_catalog_is_refused(tmp_path: Path, capsys: Captured) -> None:
    assert main(["upgrade", "--store", (tmp_path / "none").as_uri()], {}) == 2
    assert "there is no warehouse 'arco'" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()
