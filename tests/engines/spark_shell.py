"""Spark's end of the talk: `python -m tests.engines.spark_shell SCRATCH JAR [NAME PROPERTIES]...`.

Each catalog gets its properties from a JSON object; the first is the default. A process of its own, because Spark's
Python leaves sockets open that pytest would take for a leak of ours.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession

from tests.engines.lake import Lake
from tests.engines.shell import Sql, answer, outcomes, shell
from tools.demo.engines import JARS, PROJECT, spark_session
from tools.demo.server import WAREHOUSE

SPARK_USER = "asker"
"""Who Spark takes itself to be asked by: by the variable of this name, if anybody sets it."""
LOCAL = {"io-impl": "org.apache.iceberg.hadoop.HadoopFileIO"}
S3 = {"io-impl": "org.apache.iceberg.aws.s3.S3FileIO"}


def spark_properties(lake: Lake) -> dict[str, str]:
    """The settings of a catalog, as docs/engines/spark.md tells the user."""
    files = {**S3, **lake.s3} if lake.s3 else LOCAL
    return {"uri": lake.server.uri, "warehouse": WAREHOUSE, **files, **lake.login}


@contextmanager
def spark_shell(
    catalogs: Mapping[str, Mapping[str, str]], scratch: Path, python: str = sys.executable, runtime: str = JARS[0]
) -> Iterator[Sql]:
    """Spark's SQL, with these catalogs: the Spark of a Python, and the jar of Iceberg for it. Its log is
    `scratch/spark.log`."""
    arguments = [text for name, properties in catalogs.items() for text in (name, json.dumps(dict(properties)))]
    command = [python, "-m", "tests.engines.spark_shell", str(scratch), runtime, *arguments]
    with shell(command, PROJECT, scratch, {"SPARK_USER": SPARK_USER}) as sql:
        yield sql


def main(out: TextIO, scratch: str, runtime: str, *catalogs: str) -> None:
    properties = dict(zip(catalogs[::2], map(json.loads, catalogs[1::2]), strict=True))
    default = catalogs[0]
    uri, warehouse = properties[default]["uri"], properties[default]["warehouse"]
    with spark_session(uri, warehouse, Path(scratch), runtime=runtime) as session:
        for name in properties:
            add_catalog(session, name, properties[name])
        session.conf.set("spark.sql.defaultCatalog", default)

        def run(statement: str) -> list[Row]:
            return session.sql(statement).collect()

        answer(out, run, (PySparkException, Py4JJavaError))


def add_catalog(session: SparkSession, name: str, properties: Mapping[str, str]) -> None:
    """A catalog. It remembers no table: each statement sees what another engine has just committed."""
    settings = {
        "": "org.apache.iceberg.spark.SparkCatalog",
        ".type": "rest",
        ".cache-enabled": "false",
        **{f".{key}": value for key, value in properties.items()},
    }
    for key, value in settings.items():
        session.conf.set(f"spark.sql.catalog.{name}{key}", value)


if __name__ == "__main__":
    with outcomes() as out:
        main(out, *sys.argv[1:])
