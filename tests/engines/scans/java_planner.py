"""Iceberg's own scan planner in one JVM that lives as long as a test run: tools/javaclient/Planner.java."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools.support.java_programs import JavaProgram, compile_programs, running

RELEASE = "1.11.0"
SOURCES = [
    f"{name}.java"
    for name in (
        "EqualityDeletes",
        "Evolution",
        "LocalFiles",
        "ParquetRows",
        "Planner",
        "RowFilter",
        "Rows",
        "Tables",
    )
]


@contextmanager
def java_planner() -> Iterator[JavaProgram]:
    """Requests are answered one after the other. An answer has `error` where Java threw."""
    with tempfile.TemporaryDirectory(prefix="arco-planner-") as folder:
        compile_programs(SOURCES, RELEASE, folder)
        with running(Path(folder), RELEASE, "Planner", options=["-Xmx512m"]) as program:
            yield program
