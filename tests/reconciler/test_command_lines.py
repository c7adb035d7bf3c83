"""The command lines of jobs, without Spark: what the environment sets, and what an operator sees of a mistake."""

import argparse
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from pathlib import Path

import pytest

from arco_catalog.operations.catalogs import Inventory
from reconciler import __main__ as jobs
from reconciler import purge
from reconciler.session import catalog_of
from tools.support.catalog_fixture import CatalogFixture


@pytest.fixture
def _without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(*_: object) -> AbstractContextManager[None]:
        return nullcontext()

    monkeypatch.setattr("reconciler.purge.SparkContext.getOrCreate", nothing)
    monkeypatch.setattr("reconciler.purge.shipped", nothing)
    for job in ("reconcile", "fsck", "collect"):
        monkeypatch.setattr(f"reconciler.{job}_job.spark_of", nothing)


def test_a_job_reads_metadata_as_large_as_a_server_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCO_MAX_METADATA", "123456789")
    parsed = argparse.Namespace(store="file:/lake", warehouse="lake", allowed_location=[], realm=None)
    assert catalog_of(parsed).max_metadata_bytes == 123_456_789


@pytest.mark.usefixtures("_without_spark")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--realm", "nowhere"], "nowhere"),
        (["--task", "01UNKNOWN"], "Task does not exist: 01UNKNOWN"),
    ],
)
def test_a_purge_of_what_does_not_exist_ends_with_a_sentence(tmp_path: Path, options: list[str], message: str) -> None:
    with pytest.raises(SystemExit) as ended:
        purge.main(["--store", f"file:{tmp_path}", *options])
    assert str(ended.value).startswith("reconciler: ")
    assert message in str(ended.value)


@pytest.mark.parametrize("job", [*jobs.JOBS, "purge"])
@pytest.mark.parametrize(
    ("variable", "value", "reason"),
    [
        ("ARCO_MAX_METADATA", "many", "ARCO_MAX_METADATA: expected a size"),
        ("ARCO_REALM", "-", "a realm's name may have"),
        ("ARCO_RECEIPT_RETENTION", "P1D", "ARCO_RECEIPT_RETENTION and ARCO_UNDROP_RETENTION must"),
        ("ARCO_TASK_PROPERTIES", "delegation.unknown=1", "delegation.unknown: no such property"),
        ("ARCO_ALLOWED_LOCATIONS", "ftp://elsewhere", "unsupported store URL 'ftp://elsewhere"),
        ("ARCO_ALLOWED_LOCATIONS", "elsewhere", "Not a valid location"),
    ],
)
def test_a_wrong_variable_ends_a_job_with_a_sentence_before_spark_starts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, job: str, variable: str, value: str, reason: str
) -> None:
    monkeypatch.setenv(variable, value)
    monkeypatch.setattr("pyspark.SparkContext.getOrCreate", lambda _: pytest.fail("Spark was started"))
    options = ["--store", f"file:{tmp_path}", "--warehouse", "lake"]
    options += ["--uri", "http://127.0.0.1:1"] if job in ("compact", "maintain") else []

    with pytest.raises(SystemExit) as ended:
        purge.main(options) if job == "purge" else jobs.main([job, *options])

    assert str(ended.value).startswith("reconciler: ")
    assert reason in str(ended.value)


@pytest.mark.usefixtures("_without_spark")
def test_in_a_realm_without_catalogs_no_purge_is_due(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    @asynccontextmanager
    async def empty(*_: object) -> AsyncIterator[Inventory]:
        yield Inventory([], [], Inventory.of_one(CatalogFixture().catalog).service)

    monkeypatch.setattr("reconciler.purge.opened", empty)
    assert purge.main(["--store", f"file:{tmp_path}"]) == 0
    with pytest.raises(SystemExit, match="reconciler: Catalog does not exist: lake"):
        purge.main(["--store", f"file:{tmp_path}", "--warehouse", "lake"])


@pytest.mark.usefixtures("_without_spark")
@pytest.mark.parametrize("job", ["reconcile", "fsck", "collect"])
def test_a_job_for_a_realm_that_does_not_exist_ends_with_a_sentence(
    job: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        jobs.main([job, "--store", f"file:{tmp_path}", "--warehouse", "lake", "--realm", "nowhere"])
    assert ended.value.code == jobs.NOT_FOUND
    assert capsys.readouterr().err.startswith("reconciler: Realm nowhere does not exist")
