"""What the pages say of installing: the wheel of a checkout, with extras that there are.

The name is not taken at the package index, so no page and no error may tell a reader to fetch it from there.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import PROJECT, blocks, pages
from tests.packaging.conftest import Distributions, run

FROM_THE_INDEX = re.compile(r"(pip|pipx|uvx?|uv pip) install[^\n]*'?arco-catalog\b")
STEPS = ("make dist", "WHEEL=", "pip install")
SHELL = """
set -euo pipefail
WHEEL=$(ls "$PWD"/dist/*.whl)
make() { [ "$*" = dist ]; }
pip() { "$UV" pip "$@" --quiet --offline --python env/bin/python --constraints "$CONSTRAINTS"; }
"""
"""The wheel is built already, and libraries are those that this checkout fetched."""


def installations() -> list[str]:
    """The lines of each page that install the wheel by pip, once each."""
    found = []
    for page in pages():
        for block in blocks(page):
            lines = [line for line in block.text.splitlines() if line.startswith(STEPS)]
            if any(".whl" in line or "$WHEEL" in line for line in lines):
                found.append("\n".join(lines))
    return sorted(set(found))


def test_no_page_no_message_and_no_recipe_installs_from_the_index() -> None:
    sources = (
        file for room in ("arco_catalog", "storage_backends", "reconciler") for file in (PROJECT / room).rglob("*.py")
    )
    recipes = (file for file in (PROJECT / "deploy").rglob("*") if file.is_file())
    found = [
        f"{file.relative_to(PROJECT)}: {match[0]}"
        for file in [*pages(), *sources, *recipes]
        if (match := FROM_THE_INDEX.search(file.read_text()))
    ]
    assert found == []


def test_the_pages_install_servers_and_jobs() -> None:
    whole = "\n".join(installations())
    assert all(f"[{extras}]" in whole for extras in ("serve,s3", "serve", "pipeline", "pipeline,s3"))


@pytest.mark.parametrize("lines", installations())
def test_the_lines_of_a_page_install_the_wheel(lines: str, distributions: Distributions, tmp_path: Path) -> None:
    uv = Path(sys.executable).with_name("uv")
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / distributions.wheel.name).symlink_to(distributions.wheel)
    run(uv, "venv", "--quiet", "--python", sys.executable, tmp_path / "env")
    environment = {"UV": str(uv), "CONSTRAINTS": str(PROJECT / "requirements/dev.txt"), "PATH": os.environ["PATH"]}
    done = subprocess.run(
        ["bash", "-c", SHELL + lines],
        cwd=tmp_path,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, f"{lines}\n{done.stderr}"
    assert run(tmp_path / "env/bin/arco", "--version").startswith("arco ")
