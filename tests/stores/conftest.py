"""Stores whose servers take minutes to build, and tests of stores that take minutes. `make test-stores` builds the
servers and runs these tests; `pytest` alone does not."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.support.environment import exported
from tools.support.s3_servers import S3Server, minio

HERE = Path(__file__).resolve().parent


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Only who names this folder gets it."""
    named = [Path(argument.partition("::")[0]).resolve() for argument in config.args]
    return None if any(path.is_relative_to(HERE) for path in named) else True


@pytest.fixture(scope="session")
def minio_server() -> Iterator[S3Server]:
    """MinIO; the environment of these tests, and of what they start, leads there."""
    with minio() as server, exported(server.environment):
        yield server
