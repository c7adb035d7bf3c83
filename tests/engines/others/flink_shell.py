"""Flink's end of the talk: `python -m tests.engines.others.flink_shell SCRATCH JARS [STATEMENT]...`."""

import os
import sys
from pathlib import Path
from typing import TextIO

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyflink.common import Configuration  # type: ignore[import-not-found]
from pyflink.table import EnvironmentSettings, TableEnvironment  # type: ignore[import-not-found]
from pyflink.util.exceptions import TableException  # type: ignore[import-not-found]

from tests.engines.shell import answer, outcomes
from tools.demo.java import java_home

WRITES = ("INSERT", "UPDATE", "DELETE")
LOOPBACK = dict.fromkeys(("jobmanager.bind-host", "taskmanager.bind-host", "rest.bind-address"), "127.0.0.1")


def iceberg_runtime(jars: str) -> str:
    """The URI of Iceberg's jar for Flink."""
    [runtime] = Path(jars).glob("iceberg-flink-runtime-*.jar")
    return runtime.as_uri()


def configured(scratch: str, jars: str) -> Configuration:
    """Flink's configuration. Also sets the environment variables by which its JVM starts."""
    # Hadoop's classes must be on the class path that Flink makes itself: among `pipeline.jars` they are not found.
    os.environ["HADOOP_CLASSPATH"] = ":".join(str(jar) for jar in Path(jars).glob("hadoop-*.jar"))
    os.environ["JAVA_HOME"] = str(java_home())
    os.environ["_python_worker_execution_mode"] = "process"  # noqa: SIM112  pyflink reads it so
    configuration = Configuration()
    for name, value in {
        **LOOPBACK,
        "pipeline.jars": iceberg_runtime(jars),
        "parallelism.default": "1",
        "io.tmp.dirs": scratch,
    }.items():
        configuration.set_string(name, value)
    return configuration


def main(out: TextIO, scratch: str, jars: str, *statements: str) -> None:
    configuration = configured(scratch, jars)
    settings = EnvironmentSettings.new_instance().in_batch_mode().with_configuration(configuration).build()
    tables = TableEnvironment.create(settings)

    def run(statement: str) -> list[tuple[object, ...]]:
        outcome = tables.execute_sql(statement)
        if statement.startswith(WRITES):
            outcome.wait()
            return []
        with outcome.collect() as rows:
            return [tuple(row) for row in rows]

    for statement in statements:
        run(statement)
    answer(out, run, (Py4JJavaError, TableException))


if __name__ == "__main__":
    with outcomes() as out:
        main(out, *sys.argv[1:])
