"""What make says at the start on a machine that lacks something."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.packaging.dockerfile import PROJECT

TOOLS = ("java", "mvn", "go", "node", "npm", "chromium", "terraform")
PYTHONS = [f"python{version}" for version in (PROJECT / ".ci/pythons").read_text().split()]


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder that is all of PATH, with bash alone in it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "bash").symlink_to(shutil.which("bash") or "")
    return folder


def make(
    programs: Path, *arguments: str, folder: Path = PROJECT, **environment: str
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [shutil.which("make") or "", "--no-print-directory", *arguments],
        cwd=folder,
        env={"PATH": str(programs), **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def add(programs: Path, *tools: str) -> None:
    for tool in tools:
        (programs / tool).write_text("#!/bin/sh\n")
        (programs / tool).chmod(0o755)


def test_tools_that_are_missing_are_named_before_anything_is_installed(programs: Path) -> None:
    said = make(programs, "lacks")
    assert said.returncode == 0
    assert f"lacks: {' '.join([*TOOLS, *PYTHONS])}." in said.stderr
    first, *_ = make(programs, "--dry-run", "test").stdout.splitlines()
    assert "This machine lacks" in first


def test_in_ci_every_tool_must_be_there(programs: Path) -> None:
    add(programs, *TOOLS[:-1], *PYTHONS)
    said = make(programs, "lacks", CI="true")
    assert said.returncode != 0
    assert "lacks: terraform." in said.stderr
    add(programs, *TOOLS)
    assert make(programs, "lacks", CI="true").returncode == 0


@pytest.mark.parametrize(
    ("lacking", "fetched"),
    [("mvn", set()), ("go", {"iceberg-spark-runtime", "trino"}), ("terraform", {"iceberg-spark-runtime", "trino"})],
)
def test_nothing_is_fetched_with_a_tool_that_is_missing(
    programs: Path, tmp_path: Path, lacking: str, fetched: set[str]
) -> None:
    """In a folder where nothing was fetched yet."""
    shutil.copytree(PROJECT / "requirements", tmp_path / "requirements")
    shutil.copytree(PROJECT / "tools/rck", tmp_path / "tools/rck")
    shutil.copytree(PROJECT / "console", tmp_path / "console", ignore=shutil.ignore_patterns("node_modules", "build"))
    shutil.copy(PROJECT / "Makefile", tmp_path)
    shutil.copy(PROJECT / "fetch.mk", tmp_path)
    shutil.copy(PROJECT / "slow.mk", tmp_path)
    shutil.copy(PROJECT / "pyproject.toml", tmp_path)
    add(programs, *(tool for tool in TOOLS if tool != lacking))
    recipe = make(programs, "--dry-run", "test", folder=tmp_path).stdout
    assert all(name in recipe for name in fetched)
    assert fetched or "dependency-plugin" not in recipe
    assert ("go install" in recipe) == (lacking != "go")
    assert ("demo-short" in recipe) == (lacking != "mvn")


def test_where_no_python_fits_make_says_what_to_install(programs: Path, tmp_path: Path) -> None:
    shutil.copytree(PROJECT / "requirements", tmp_path / "requirements")
    shutil.copy(PROJECT / "Makefile", tmp_path)
    shutil.copy(PROJECT / "fetch.mk", tmp_path)
    shutil.copy(PROJECT / "slow.mk", tmp_path)
    shutil.copy(PROJECT / "pyproject.toml", tmp_path)
    said = make(programs, "setup", folder=tmp_path)
    assert said.returncode != 0
    assert "python3.11 is not here" in said.stderr
    assert "apt install python3.11-venv" in said.stderr
    assert not (tmp_path / ".venv").exists()


def test_where_npm_is_missing_make_names_what_the_console_needs(programs: Path, tmp_path: Path) -> None:
    for folder in ("requirements", "console"):
        shutil.copytree(PROJECT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("node_modules", "build"))
    for file in ("Makefile", "fetch.mk", "slow.mk", "pyproject.toml"):
        shutil.copy(PROJECT / file, tmp_path)
    ended = make(programs, "console", folder=tmp_path)
    assert ended.returncode != 0
    assert "npm is not here: the console needs Node.js" in ended.stderr


def test_the_makefile_is_read_in_minutes() -> None:
    assert len((PROJECT / "Makefile").read_text().splitlines()) < 250
