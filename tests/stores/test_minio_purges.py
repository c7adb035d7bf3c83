"""Purges on MinIO: PyIceberg's tables are gone to the last byte and nothing else is, also when workers are killed."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.purge_storm import survive
from tests.cli.test_purge_storm import SHORT
from tests.cli.test_purged_neighbours import (
    Site,
    site_on,
    test_a_table_that_was_registered_a_second_time_keeps_its_files,
    test_a_table_whose_file_another_has_taken_keeps_its_files,
    test_a_table_with_branches_tags_and_statistics_is_restored_and_then_gone,
    test_files_that_lie_elsewhere_stay,
)
from tools.support.s3_servers import S3Server

__all__ = [
    "test_a_table_that_was_registered_a_second_time_keeps_its_files",
    "test_a_table_whose_file_another_has_taken_keeps_its_files",
    "test_a_table_with_branches_tags_and_statistics_is_restored_and_then_gone",
    "test_files_that_lie_elsewhere_stay",
]

pytestmark = pytest.mark.needs("go")

_buckets = itertools.count(1)


@pytest.fixture
def bucket(minio_server: S3Server) -> str:
    name = f"purges-{next(_buckets)}"
    minio_server.make_bucket(name)
    return name


@pytest.fixture
def site(minio_server: S3Server, bucket: str, tmp_path: Path) -> Iterator[Site]:
    with site_on(f"s3://{bucket}/lake", tmp_path, minio_server) as made:
        yield made


def test_each_task_succeeds_once_and_nothing_is_left_or_gone_besides(
    minio_server: S3Server, bucket: str, tmp_path: Path
) -> None:
    survive(f"s3://{bucket}/lake", minio_server.environment, SHORT, tmp_path / "log")
