import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark import SparkContext

from tests.reconciler.lakes import FolderLake
from tools.support.local_spark import local_spark

TABLES = 40
COMMITS = 3


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkContext]:
    """One Spark for all tests."""
    with local_spark(tmp_path_factory.mktemp("spark")) as running:
        yield running


@pytest.fixture
async def lake(tmp_path: Path) -> FolderLake:
    """Forty tables of four metadata files each, nothing missing."""
    made = FolderLake(tmp_path / "lake")
    await made.make(TABLES, COMMITS)
    return made


@pytest.fixture(autouse=True)
def _sockets_of_pyspark() -> Iterator[None]:
    """Has what PySpark left open closed before the next test, which does not expect it."""
    yield
    gc.collect()
