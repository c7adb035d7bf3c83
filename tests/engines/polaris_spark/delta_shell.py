"""Spark with Polaris's plugin and Delta: `python -m tests.engines.polaris_spark.delta_shell SCRATCH JARS PROPERTIES`.

`JARS` are separated by commas; the one catalog, `polaris`, gets its properties from a JSON object.
"""

import json
import os
import sys
from pathlib import Path
from typing import TextIO

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession

from tests.engines.shell import answer, outcomes
from tools.demo.java import java_home

EXTENSIONS = (
    "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "io.delta.sql.DeltaSparkSessionExtension",
)


def main(out: TextIO, scratch: str, jars: str, properties: str) -> None:
    os.environ["JAVA_HOME"] = str(java_home())
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    settings = {
        "spark.jars": jars,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.local.dir": str(Path(scratch, "spark")),
        "spark.sql.catalog.polaris": "org.apache.polaris.spark.SparkCatalog",
        **{f"spark.sql.catalog.polaris.{name}": value for name, value in json.loads(properties).items()},
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.defaultCatalog": "polaris",
        "spark.sql.extensions": ",".join(EXTENSIONS),
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(Path(scratch, "spark-warehouse")),
        "spark.ui.enabled": "false",
    }
    builder = SparkSession.Builder().master("local[2]").appName("generic tables")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()

    def run(statement: str) -> list[Row]:
        return session.sql(statement).collect()

    answer(out, run, (PySparkException, Py4JJavaError))
    session.stop()


if __name__ == "__main__":
    with outcomes() as out:
        main(out, *sys.argv[1:])
