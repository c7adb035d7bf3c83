"""Iceberg's own scan planner in one JVM that lives as long as a test run: tools/javaclient/Planner.java."""

from contextlib import AbstractContextManager

from tools.support.java_programs import JavaProgram, compiled_and_running

RELEASE = "1.11.0"
SOURCES = [
    f"{name}.java"
    for name in (
        "EqualityDeletes",
        "Evolution",
        "JsonLines",
        "LocalFiles",
        "LocalOperations",
        "ParquetRows",
        "Planner",
        "RowFilter",
        "Rows",
        "Tables",
    )
]


def java_planner() -> AbstractContextManager[JavaProgram]:
    """Requests are answered one after the other. An answer has `error` where Java threw."""
    return compiled_and_running(SOURCES, RELEASE, "Planner", options=["-Xmx512m"])
