"""Apache Polaris's own integration tests of its Python client, as they are, at a server of a realm."""

import asyncio
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit
from xml.etree import ElementTree

import pytest

from tests.support.served_realms import LOGINS, bootstrapped
from tools.demo.engines import PROJECT
from tools.support.arco_server import ArcoServer

VARIABLE = "POLARIS_SOURCES"
FOLDER = "integration_tests"
LIMIT_S = 900
FEWEST = 15
"""Tests of the commit that docs/design/polaris.md names."""
DIFFERENT: frozenset[str] = frozenset()
"""Tests that must fail here, for a reason that docs/design/polaris.md gives with the test's name."""


def copied(folder: Path) -> Path:
    """The tests alone, away from sources that would be imported in place of the client. Raises `LookupError`."""
    sources = os.environ.get(VARIABLE)
    found = Path(sources or "", "client", "python", FOLDER)
    if not sources or not found.is_dir():
        raise LookupError(f"`make test-polaris-python {VARIABLE}=...` runs these tests: where apache/polaris lies")
    return shutil.copytree(found, folder / FOLDER)


def test_what_polaris_asks_of_its_own_server_this_one_answers_likewise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tests, report, store = copied(tmp_path), tmp_path / "report.xml", f"file:{tmp_path / 'store'}"
    [client] = PROJECT.glob(".venv-polaris/lib/python3*/site-packages")
    places = set(re.findall(r"file:///\w[\w/]*\w", (tests / "conftest.py").read_text()))
    for name, value in {**LOGINS, "ARCO_ALLOWED_LOCATIONS": ",".join(sorted(places))}.items():
        monkeypatch.setenv(name, value)
    root = asyncio.run(bootstrapped(store))

    with ArcoServer(store, tmp_path / "log") as server:
        told = {
            "PYTHONPATH": str(client),
            "POLARIS_HOST": urlsplit(server.uri).hostname or "",
            "POLARIS_PORT": str(urlsplit(server.uri).port),
            "POLARIS_ROOT_CREDENTIAL": f"{root.client_id}:{root.secret}",
        }
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", FOLDER]
        done = subprocess.run(
            command, cwd=tmp_path, env={**os.environ, **told}, capture_output=True, text=True, timeout=LIMIT_S
        )

    print(done.stdout)
    cases = [*ElementTree.parse(report).iter("testcase")]
    failed = {case.get("name") for case in cases if {"failure", "error", "skipped"} & {child.tag for child in case}}
    assert failed == DIFFERENT, done.stdout[-20_000:]
    assert len(cases) >= FEWEST
