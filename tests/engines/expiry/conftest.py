"""Iceberg's own expiry in Java, which lives while the tests of this folder run."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines.scans.java_planner import RELEASE, SOURCES
from tools.support.java_programs import JavaProgram, compile_programs, running


@pytest.fixture(scope="package")
def java() -> Iterator[JavaProgram]:
    """Requests are answered one after the other. An answer has `error` where Java threw."""
    with tempfile.TemporaryDirectory(prefix="arco-expiry-") as folder:
        compile_programs([*SOURCES, "Expiry.java"], RELEASE, folder)
        with running(Path(folder), RELEASE, "Expiry", options=["-Xmx512m"]) as program:
            yield program
