"""Spark with settings that a user pasted: `python -m tests.engines.openlineage_shell SETTINGS`, a JSON object.

It runs in the environment of whichever Spark is tried. A statement has ended when listeners have heard all of it.
"""

import json
import os
import sys
from typing import TextIO

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession

from tests.engines.shell import answer, outcomes
from tools.demo.java import java_home

LISTENERS_MS = 150_000


def main(out: TextIO, settings: str) -> None:
    os.environ["JAVA_HOME"] = str(java_home())
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = SparkSession.Builder().master("local[2]").appName("nightly")
    for name, value in json.loads(settings).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    listeners = session.sparkContext._jsc.sc().listenerBus()

    def run(statement: str) -> list[Row]:
        rows = session.sql(statement).collect()
        listeners.waitUntilEmpty(LISTENERS_MS)
        return rows

    answer(out, run, (PySparkException, Py4JJavaError))
    session.stop()


if __name__ == "__main__":
    with outcomes() as out:
        main(out, *sys.argv[1:])
