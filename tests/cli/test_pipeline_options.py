"""`arco pipeline run`: which options belong to which job, checked before Spark starts."""

from pathlib import Path

import pytest

from tests.cli.in_process import arco


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["reconcile", "--dry-run"],
            "--dry-run, --max-bytes, --minutes, --jars and --no-vended-credentials are of maintain",
        ),
        (["fsck", "--delete"], "--delete and --seconds are of collect"),
        (["reconcile", "--after", "db.t"], "--table and --after are of fsck"),
        (["maintain", "--uri", "http://127.0.0.1:1", "--table", "db.t"], "--table and --after are of fsck"),
        (["compact"], "compact needs --uri"),
    ],
)
async def test_an_option_of_another_job_is_refused(tmp_path: Path, words: list[str], message: str) -> None:
    ended = await arco("pipeline", "run", *words, "--store", tmp_path.as_uri())

    assert ended.code == 2
    assert message in ended.err


async def test_a_check_of_what_is_not_there_is_reported(tmp_path: Path) -> None:
    ended = await arco("pipeline", "run", "fsck", "--store", tmp_path.as_uri(), "--warehouse", "none")

    assert ended.code == 2
    assert "there is no warehouse 'none'" in ended.err
