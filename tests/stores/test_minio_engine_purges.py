"""What Spark and Trino drop with purge on MinIO is gone to the last byte, and nothing else is: with a leak audit of the
bucket."""

from collections.abc import Iterator

import pytest

from tests.engines.lake import Lake
from tests.engines.lake import lake as served_lake
from tests.engines.purging import WINDOW
from tests.engines.shell import Sql
from tests.engines.spark_shell import spark_properties, spark_shell
from tests.engines.test_purges import (
    test_tables_of_spark_that_pyiceberg_purges,
    test_trino_which_purges_with_every_drop,
    test_what_spark_purges_itself_leaves_nothing_and_nothing_to_do,
)
from tests.engines.trino_server import run, trino_properties, trino_server
from tools.support.s3_servers import S3Server

__all__ = [
    "test_tables_of_spark_that_pyiceberg_purges",
    "test_trino_which_purges_with_every_drop",
    "test_what_spark_purges_itself_leaves_nothing_and_nothing_to_do",
]

pytestmark = pytest.mark.needs("go", "java", "mvn")

BUCKET = "engine-purges"


@pytest.fixture(scope="module")
def lake(minio_server: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """The catalog `minio`, whose purges begin when a test says so."""
    minio_server.make_bucket(BUCKET)
    access = {
        "s3.endpoint": minio_server.endpoint,
        "s3.path-style-access": "true",
        "s3.region": "us-east-1",
        "s3.access-key-id": minio_server.access_key,
        "s3.secret-access-key": minio_server.secret_key,
        "client.region": "us-east-1",
    }
    log = tmp_path_factory.mktemp("purging") / "log"
    with served_lake("minio", f"s3://{BUCKET}/catalog", log, access, *WINDOW) as opened:
        yield opened


@pytest.fixture(scope="module")
def spark(lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sql]:
    with spark_shell({lake.name: spark_properties(lake)}, tmp_path_factory.mktemp("spark")) as sql:
        yield sql


@pytest.fixture(scope="module")
def trino(lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sql]:
    with trino_server({lake.name: trino_properties(lake)}, tmp_path_factory.mktemp("trino")) as connection:
        yield lambda statement: run(connection, statement)
