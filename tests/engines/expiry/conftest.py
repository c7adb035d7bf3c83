"""Iceberg's own expiry in Java, which lives while the tests of this folder run."""

from collections.abc import Iterator

import pytest

from tests.engines.scans.java_planner import RELEASE
from tools.support.java_programs import JavaProgram, compiled_and_running

SOURCES = ["Expiry.java", "JsonLines.java", "LocalFiles.java", "LocalOperations.java"]


@pytest.fixture(scope="package")
def java() -> Iterator[JavaProgram]:
    """Requests are answered one after the other. An answer has `error` where Java threw."""
    with compiled_and_running(SOURCES, RELEASE, "Expiry", options=["-Xmx512m"]) as program:
        yield program
