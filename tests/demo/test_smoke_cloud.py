"""`make smoke-cloud` over emulators: it finds what is wrong, removes what it made, and leaves all else as it was."""

import asyncio
import itertools
import os
from collections.abc import Iterator, Mapping

import pytest

from arco_catalog.cli.store_doctor import Report
from storage_backends import ANY
from storage_backends.conformance.examine import ExaminationReport
from storage_backends.open import open_store
from tools.smoke_cloud import requests, trial
from tools.smoke_cloud.__main__ import main
from tools.smoke_cloud.steps import StepFailed
from tools.support.emulators import store_server
from tools.support.environment import exported
from tools.support.s3_servers import S3Server, moto_server

ROLE = "arn:aws:iam::123456789012:role/lake"
_buckets = itertools.count(1)


@pytest.fixture
def bucket(moto: S3Server) -> Iterator[str]:
    """A bucket in moto with one object; the environment leads there."""
    name = f"smoke-{next(_buckets)}"
    moto.make_bucket(name)
    with exported(moto.environment):
        put_beside(f"s3://{name}")
        yield f"s3://{name}/lake"


@pytest.fixture(scope="module")
def moto() -> Iterator[S3Server]:
    with moto_server() as server:
        yield server


def put_beside(root: str) -> None:
    async def work() -> None:
        store = open_store(root, os.environ)
        await store.put("lake/beside", b"x", ANY)
        await store.close()

    asyncio.run(work())


def keys(root: str) -> list[str]:
    async def work() -> list[str]:
        store = open_store(root, os.environ)
        page = await store.list("")
        await store.close()
        return [entry.key for entry in page.entries]

    return asyncio.run(work())


def run(capsys: pytest.CaptureFixture[str], url: str, *options: str) -> tuple[int, Mapping[str, str]]:
    """The exit code, and the line of each step by the first word of its name."""
    capsys.readouterr()
    code = main([url, *options], dict(os.environ))
    lines = capsys.readouterr().out.splitlines()[2:]
    assert "counted calls, about $" in lines[-1]
    return code, {line.split()[0].rstrip(":"): line for line in lines[:-2]}


def test_every_step_is_timed_and_counted_and_nothing_is_left(bucket: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, steps = run(capsys, bucket)

    assert (code, keys("s3://" + bucket.split("/")[2])) == (0, ["lake/beside"])
    assert " skipped " in steps["vended"]
    assert [name for name, line in steps.items() if " ok " not in line] == ["vended"]
    assert "none lost, and the same answers again" in steps["16"]


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves out the examination of the store, and most of the concurrent commits: another test has them."""

    async def nothing_wrong(*arguments: object) -> Report:
        return Report({"wire": ExaminationReport({}, ())}, {}, {})

    monkeypatch.setattr(trial, "report", nothing_wrong)
    monkeypatch.setattr(requests, "WRITERS", 2)


@pytest.mark.usefixtures("short")
def test_credentials_that_reach_beside_the_table_are_found(bucket: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, steps = run(capsys, bucket, "--aws-role-arn", ROLE)

    assert (code, keys("s3://" + bucket.split("/")[2])) == (1, ["lake/beside"])
    assert "failed" in steps["vended"]
    assert "may write and read beside" in steps["vended"]  # moto checks no rights
    assert " ok " in steps["drop"]


def test_a_store_that_ignores_conditions_gets_no_catalog(capsys: pytest.CaptureFixture[str]) -> None:
    with moto_server(ignore_conditions=True) as server, exported(server.environment):
        server.make_bucket("smoke")
        code, steps = run(capsys, "s3://smoke")

        assert (code, [*steps], keys("s3://smoke")) == (1, ["store", "removal"], [])
        assert "failed" in steps["store"]


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("error", [StepFailed("lost"), RuntimeError("unforeseen"), KeyboardInterrupt()])
def test_what_was_made_is_removed_after_any_failure(
    bucket: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    async def fail(*arguments: object) -> str:
        raise error

    monkeypatch.setattr(requests, "plan_scan", fail)

    if isinstance(error, StepFailed):
        code, steps = run(capsys, bucket)
        assert (code, "failed" in steps["scan"], " ok " in steps["drop"]) == (1, True, True)
    else:
        with pytest.raises(type(error)):
            main([bucket], dict(os.environ))
    assert keys("s3://" + bucket.split("/")[2]) == ["lake/beside"]


def test_a_url_of_no_store_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["ftp://bucket"], {})
    assert ended.value.code == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("url", "server"),
    [
        pytest.param("s3://smoke/lake", "versitygw", marks=pytest.mark.needs("go")),
        pytest.param("gs://smoke/lake", "", marks=pytest.mark.needs("go")),
        pytest.param("az://smoke/lake", "", marks=pytest.mark.needs("node", "npm")),
    ],
)
def test_other_stores_pass(url: str, server: str, capsys: pytest.CaptureFixture[str]) -> None:
    with store_server(url, server):
        code, steps = run(capsys, url)
        assert (code, keys(url)) == (0, []), steps
