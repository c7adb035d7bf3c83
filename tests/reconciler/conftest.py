import asyncio
import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark import SparkContext

from tests.reconciler.lakes import FolderLake
from tests.support.filled_store import FilledStore
from tools.support.local_spark import local_spark

TABLES = 40
COMMITS = 3


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkContext]:
    """One Spark for all tests."""
    with local_spark(tmp_path_factory.mktemp("spark")) as running:
        yield running


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> FilledStore:
    """Forty tables of four metadata files each."""

    def fill(url: str) -> None:
        asyncio.run(FolderLake(Path(url.removeprefix("file:"))).make(TABLES, COMMITS))

    return FilledStore.of(tmp_path_factory.mktemp("filled"), fill)


@pytest.fixture
def lake(filled: FilledStore) -> FolderLake:
    """Those tables, nothing missing."""
    return FolderLake(Path(filled.restore().removeprefix("file:")))


@pytest.fixture(autouse=True)
def _sockets_of_pyspark() -> Iterator[None]:
    """Has what PySpark left open closed before the next test, which does not expect it."""
    yield
    gc.collect()
