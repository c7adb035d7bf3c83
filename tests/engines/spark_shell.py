"""Spark's end of the talk: `python -m tests.engines.spark_shell URI SCRATCH [NAME URI PROPERTIES]...`.

The first URI's catalog is `rest`; others get the name, address and properties (a JSON object) that follow. A process of
its own, because Spark's Python leaves sockets open that pytest would take for a leak of ours.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession

from tests.engines.lake import Lake
from tests.engines.shell import Sql, answer, outcomes, shell
from tools.demo.engines import PROJECT, spark_session
from tools.demo.server import WAREHOUSE

LOCAL = {"io-impl": "org.apache.iceberg.hadoop.HadoopFileIO"}


@contextmanager
def spark_shell(first: Lake, others: Sequence[Lake], scratch: Path) -> Iterator[Sql]:
    """Spark's SQL, with each lake as a catalog. Its log is `scratch/spark.log`."""
    catalogs = [(lake.name, lake.server.uri, json.dumps({**(lake.s3 or LOCAL), **lake.login})) for lake in others]
    arguments = [first.server.uri, str(scratch), *(argument for catalog in catalogs for argument in catalog)]
    with shell([sys.executable, "-m", "tests.engines.spark_shell", *arguments], PROJECT, scratch) as sql:
        yield sql


def main(out: TextIO, uri: str, scratch: str, *others: str) -> None:
    with spark_session(uri, WAREHOUSE, Path(scratch)) as session:
        for name, elsewhere, properties in zip(others[::3], others[1::3], others[2::3], strict=True):
            add_catalog(session, name, elsewhere, json.loads(properties))

        def run(statement: str) -> list[Row]:
            return session.sql(statement).collect()

        answer(out, run, (PySparkException, Py4JJavaError))


def add_catalog(session: SparkSession, name: str, uri: str, properties: dict[str, str]) -> None:
    """A catalog beside the session's own, on S3 unless its properties say otherwise."""
    settings = {
        "": "org.apache.iceberg.spark.SparkCatalog",
        ".type": "rest",
        ".uri": uri,
        ".warehouse": WAREHOUSE,
        ".cache-enabled": "false",
        ".io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        **{f".{key}": value for key, value in properties.items()},
    }
    for key, value in settings.items():
        session.conf.set(f"spark.sql.catalog.{name}{key}", value)


if __name__ == "__main__":
    with outcomes() as out:
        main(out, *sys.argv[1:])
