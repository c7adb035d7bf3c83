"""`arco doctor URL`: the checks of every client, and the report on stores, clients and their differences."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from arco_catalog.cli import clients, store_doctor
from arco_catalog.cli.clients import StoreClient, clients_of
from arco_catalog.cli.columns import as_json as json_text
from arco_catalog.cli.program import main
from arco_catalog.cli.store_doctor import report, text
from storage_backends import ObjectStore
from storage_backends.conformance.checks import CHECKS
from storage_backends.memory import MemoryStore
from tests.storage_backends.contract import listed
from tests.storage_backends.test_negative_control import Ignores
from tests.support.gcs_protocol_fake import gcs_protocol_fake
from tools.support.azurite import AzuriteServer
from tools.support.s3_servers import S3Server

Captured = pytest.CaptureFixture[str]
BOTH = ["wire", "sdk"]


@dataclass(frozen=True)
class Lake:
    """A store, and the variables that lead there."""

    url: str
    environment: Mapping[str, str]


@contextmanager
def lake_in(kind: str, request: pytest.FixtureRequest) -> Iterator[Lake]:
    match kind:
        case "s3":
            server: S3Server = request.getfixturevalue("s3_server")
            yield Lake(f"s3://{request.getfixturevalue('s3_bucket')}/lake", server.environment)
        case "gs":
            with gcs_protocol_fake() as gcs:
                gcs.make_bucket("lake")
                yield Lake("gs://lake/prefix", gcs.environment)
        case _:
            azure: AzuriteServer = request.getfixturevalue("azurite_server")
            azure.make_container("examined")
            yield Lake("az://examined/prefix", azure.environment)


@pytest.mark.parametrize("kind", ["s3", "gs", pytest.param("az", marks=pytest.mark.needs("node", "npm"))])
def test_both_clients_of_a_cloud_find_the_same(kind: str, request: pytest.FixtureRequest, capsys: Captured) -> None:
    with lake_in(kind, request) as lake:
        code = main(["doctor", lake.url, "--json"], lake.environment)
        document = json.loads(capsys.readouterr().out)
        [wire, _] = clients_of(lake.url)
        store = wire.open(lake.url, lake.environment)
        left = asyncio.run(everything_in(store))

    assert document["faults"] == []
    assert (code, document["ok"], document["clients"], document["not_run"]) == (0, True, BOTH, {})
    assert [each["check"] for each in document["checks"]] == [each.name for each in CHECKS]
    assert not any(each["differs"] for each in document["checks"])
    assert {found["status"] for each in document["checks"] for found in each["clients"].values()} <= {
        "ok",
        "lacking",
        "skipped",
    }
    assert left == []


async def everything_in(store: ObjectStore) -> list[str]:
    try:
        return [entry.key for entry in await listed(store)]
    finally:
        await store.close()


def test_a_folder_is_examined_and_left_as_it_was(tmp_path: Path, capsys: Captured) -> None:
    assert main(["doctor", f"file:{tmp_path}", "--pages"], {}) == 0

    printed = capsys.readouterr().out
    assert printed.splitlines()[0].split() == ["CHECK", "DIRECT"]
    assert "1,001 objects, each once" in printed
    assert printed.endswith("The store does what a catalog needs.\n")
    assert not list(tmp_path.rglob("create"))


def test_a_folder_that_is_not_there_is_not_made(tmp_path: Path, capsys: Captured) -> None:
    assert main(["doctor", f"file:{tmp_path}/nowhere"], {}) == 2
    assert "there is no folder" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_store_in_memory_is_examined_too(capsys: Captured) -> None:
    assert main(["doctor", "memory:"], {}) == 0
    assert "no HTTP" in capsys.readouterr().out


def test_a_store_that_ignores_conditions_fails_by_both_clients(careless_s3: S3Server, capsys: Captured) -> None:
    careless_s3.make_bucket("careless-store")
    assert main(["doctor", "s3://careless-store/x"], careless_s3.environment) == 1

    printed = capsys.readouterr().out
    for client in BOTH:
        assert f"create again, by {client}: a second creation was not reported as refused: it was applied" in printed
        assert f"racing updates, by {client}: " in printed
    assert "The store does what a catalog needs" not in printed


def test_a_bucket_that_is_not_there_is_reported_by_each_client(s3_server: S3Server, capsys: Captured) -> None:
    assert main(["doctor", "s3://no-such-bucket/x"], s3_server.environment) == 1

    printed = capsys.readouterr().out
    for client in BOTH:
        assert f"{client} cannot reach the store: bucket 'no-such-bucket' does not exist" in printed


def test_an_sdk_that_is_not_installed_is_reported_with_its_extra(
    s3_server: S3Server, s3_bucket: str, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setattr(clients, "find_spec", lambda module: None)
    assert main(["doctor", f"s3://{s3_bucket}/x"], s3_server.environment) == 0

    printed = capsys.readouterr().out
    assert "sdk was not run: aiobotocore is not installed: install the extra 's3-sdk' of arco-catalog" in printed
    assert "The store does what a catalog needs." in printed


def test_what_only_the_sdk_reaches_is_not_held_against_the_wire() -> None:
    refused = clients.needs_sdk("s3://lake--use1-az4--x-s3/x", {"AWS_REGION": "us-east-1"})
    assert "directory bucket" in (refused or "")
    assert "proxy" in (clients.needs_sdk("s3://lake/x", {"HTTPS_PROXY": "http://proxy:3128"}) or "")
    assert clients.needs_sdk("s3://lake/x", {}) is None
    assert clients.needs_sdk("gs://lake/x", {}) is None


def test_where_no_client_can_be_run_nothing_is_well(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    monkeypatch.setattr(clients, "find_spec", lambda module: None)
    monkeypatch.setattr(store_doctor, "needs_sdk", lambda url, environment: "a proxy is on the way")

    assert main(["doctor", "s3://lake/x"], {}) == 1
    printed = capsys.readouterr().out
    assert "wire was not run: a proxy is on the way" in printed
    assert "no client could be run" in printed


@dataclass(frozen=True)
class Client(StoreClient):
    """A client that reaches another store than its URL names."""

    store: ObjectStore = field(default_factory=MemoryStore)

    def open(self, url: str, environment: Mapping[str, str]) -> ObjectStore:
        return self.store


async def test_clients_that_differ_are_reported_and_are_a_fault() -> None:
    found = await report("memory:", {}, [Client("wire", {}), Client("sdk", {}, store=Ignores("delete"))])

    assert found.faults == ["conditional delete: wire and sdk differ"]
    [line] = [line for line in text(found).splitlines() if line.endswith("differs")]
    assert "refused if stale or missing" in line
    assert "lacking: its condition is ignored" in line
    checks = json.loads(json_text(found.as_json()))["checks"]
    assert [each["check"] for each in checks if each["differs"]] == ["conditional delete"]


async def test_figures_may_differ() -> None:
    found = await report("memory:", {}, [Client("wire", {}), Client("sdk", {})])
    assert found.faults == []


@pytest.mark.parametrize("arguments", [["doctor"], ["doctor", "--pages", "--store", "memory:"]])
def test_a_store_has_to_be_named(arguments: list[str], capsys: Captured) -> None:
    with pytest.raises(SystemExit):
        main(arguments, {})
    assert "URL" in capsys.readouterr().err
