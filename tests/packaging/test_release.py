"""What a release is made of: one version in all places, notes from the changelog, and the same bytes each time."""

import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.packaging.conftest import MAKES_NO_PACKAGE
from tools.release import (
    PROJECT,
    VERSIONS,
    ReleaseError,
    build_distributions,
    commit_time,
    disagreements,
    notes,
    pack_chart,
    set_version,
    version,
    write_sums,
)

CHANGELOG = """# Changelog

## [Unreleased]

## [0.3.0] - 2026-12-01

### Added

- One thing.

## [0.2.0]

- No date.

## [0.1.0] - 2026-11-01
"""
TIME = 1_700_000_000


def test_every_file_has_the_version_of_the_project() -> None:
    assert disagreements() == {}


def test_a_version_is_set_where_it_stands(tmp_path: Path) -> None:
    for path in VERSIONS:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PROJECT / path, tmp_path / path)

    set_version("7.8.9", tmp_path)

    assert disagreements(tmp_path) == {}
    assert all("7.8.9" in (tmp_path / path).read_text() for path in VERSIONS)
    changed = [
        line
        for path in VERSIONS
        for line in (tmp_path / path).read_text().splitlines()
        if line not in (PROJECT / path).read_text().splitlines()
    ]
    assert len(changed) == 4, changed


@pytest.mark.parametrize("wrong", ["", "1", "1.2", "v1.2.3", "1.2.3 ", "1.2.3\n"])
def test_what_is_no_version_is_refused(wrong: str, tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match="is not a version"):
        set_version(wrong, tmp_path)


def test_a_file_of_another_version_is_named(tmp_path: Path) -> None:
    for path in VERSIONS:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PROJECT / path, tmp_path / path)
    chart = tmp_path / "deploy/helm/arco-catalog/Chart.yaml"
    chart.write_text(chart.read_text().replace("\nversion: ", "\nversion: 9"))

    assert [*disagreements(tmp_path)] == ["deploy/helm/arco-catalog/Chart.yaml"]


def test_notes_are_the_section_of_the_version() -> None:
    assert notes(CHANGELOG, "0.3.0") == "### Added\n\n- One thing.\n"


@pytest.mark.parametrize(
    ("released", "why"),
    [("0.2.0", "has no date"), ("0.1.0", "is empty"), ("0.9.0", "has no section"), ("0.3", "no section")],
)
def test_a_version_that_the_changelog_does_not_describe_is_refused(released: str, why: str) -> None:
    with pytest.raises(ReleaseError, match=why):
        notes(CHANGELOG, released)


def test_a_checkout_with_changes_is_refused(tmp_path: Path) -> None:
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@localhost"]
    subprocess.run([*git, "init", "--quiet"], cwd=tmp_path, check=True)
    (tmp_path / "a").write_text("1")
    subprocess.run([*git, "add", "a"], cwd=tmp_path, check=True)
    subprocess.run([*git, "commit", "--quiet", "-m", "a"], cwd=tmp_path, check=True)
    assert commit_time(tmp_path) > TIME
    (tmp_path / "a").write_text("2")

    with pytest.raises(ReleaseError, match="not committed"):
        commit_time(tmp_path)


def test_two_checkouts_give_the_same_bytes(tmp_path: Path) -> None:
    made: list[dict[str, bytes]] = []
    for name in ("one", "two"):
        checkout, output = tmp_path / name / "checkout", tmp_path / name / "output"
        shutil.copytree(PROJECT, checkout, ignore=MAKES_NO_PACKAGE, copy_function=shutil.copy)
        output.mkdir()
        build_distributions(output, TIME, checkout)
        pack_chart(output, TIME)
        write_sums(output)
        made.append({path.name: path.read_bytes() for path in output.iterdir()})

    assert {*made[0]} == {
        "SHA256SUMS",
        f"arco-catalog-{version()}.tgz",
        f"arco_catalog-{version()}-py3-none-any.whl",
        f"arco_catalog-{version()}.tar.gz",
    }
    assert made[0] == made[1]
    listed = (tmp_path / "one/output/SHA256SUMS").read_text().splitlines()
    assert [line.split("  ")[1] for line in listed] == sorted({*made[0]} - {"SHA256SUMS"})


def test_the_chart_is_a_folder_of_its_name(tmp_path: Path) -> None:
    pack_chart(tmp_path, TIME)

    with tarfile.open(tmp_path / f"arco-catalog-{version()}.tgz") as archive:
        names = archive.getnames()
    assert "arco-catalog/Chart.yaml" in names
    assert all(name.startswith("arco-catalog/") for name in names)
