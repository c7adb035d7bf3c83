"""`arco doctor`: what it finds on stores that are well, that are not there, and that are ailing in known ways."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from arco_catalog.cli import checks
from arco_catalog.cli.checks import Status, clock, denied, no_catalog, packages
from arco_catalog.cli.command import CatalogOptions
from arco_catalog.cli.program import main
from storage_backends import ANY, Applied
from storage_backends.open import open_store
from storage_backends.s3.config import Carrier
from storage_backends.s3.versions import S3Versions
from storage_backends.wire.exchange import Request
from storage_backends.wire.http1 import Response
from tests.support.gcs_protocol_fake import gcs_protocol_fake
from tests.support.policy_stub import PolicyStub
from tests.support.stub_server import stub_server
from tools.support.s3_servers import S3Server

Captured = pytest.CaptureFixture[str]
ENABLE = b"<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"
NOTHING: Mapping[str, str] = {}


def examined(
    capsys: Captured, store: str, *arguments: str, code: int, environment: Mapping[str, str] = NOTHING
) -> dict[str, tuple[str, str, str | None]]:
    """Status, finding and advice of each check."""
    assert main(["doctor", "--json", "--store", store, *arguments], environment) == code
    document = json.loads(capsys.readouterr().out)
    assert document["ok"] is (code == 0)
    return {each["check"]: (each["status"], each["found"], each["advice"]) for each in document["checks"]}


def test_a_catalog_that_is_well_passes_every_check(tmp_path: Path, capsys: Captured) -> None:
    store = f"file:{tmp_path}/store"
    assert main(["init", "--store", store], {}) == 0
    capsys.readouterr()

    found = examined(capsys, store, code=0)

    assert {status for status, _, _ in found.values()} == {"ok"}
    assert [*found] == ["packages", "credentials", "store", "clock", "catalog", "conditional writes"]
    assert not list((tmp_path / "store" / "_probe").rglob("*present"))
    assert main(["doctor", "--store", store], {}) == 0
    assert "kept: what is refused is not written" in capsys.readouterr().out


def test_a_folder_that_is_not_there_fails_and_is_not_made(tmp_path: Path, capsys: Captured) -> None:
    found = examined(capsys, f"file:{tmp_path}/nowhere", code=1)

    assert found["store"][:2] == ("failed", f"there is no folder {tmp_path}/nowhere")
    assert found["conditional writes"][0] == "skipped"
    assert list(tmp_path.iterdir()) == []


def test_a_folder_without_a_catalog_is_left_as_it_is(tmp_path: Path, capsys: Captured) -> None:
    found = examined(capsys, f"file:{tmp_path}", code=1)

    assert found["catalog"][0] == "failed"
    assert "arco init" in (found["catalog"][2] or "")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_without_the_named_realm_is_left_as_it_is(tmp_path: Path, capsys: Captured) -> None:
    found = examined(capsys, f"file:{tmp_path}", "--realm", "none", code=1)

    assert found["catalog"] == (
        "failed",
        f"Realm none does not exist in file:{tmp_path}: `arco bootstrap` makes one",
        "check --realm",
    )
    assert found["conditional writes"][0] == "skipped"
    assert list(tmp_path.iterdir()) == []


def test_a_realm_whose_registry_is_corrupt_is_a_failed_catalog(tmp_path: Path, capsys: Captured) -> None:
    store = f"file:{tmp_path}"
    assert main(["bootstrap", "--store", store], {}) == 0
    [head] = (tmp_path / "_realm").rglob("manifest.json")
    head.write_bytes(b"no JSON")
    capsys.readouterr()

    assert main(["doctor", "--json", "--store", store], {}) == 1
    checks = json.loads(capsys.readouterr().out)["checks"]

    assert [(each["check"], each["status"]) for each in checks[2:]] == [
        ("store", "ok"),
        ("clock", "ok"),
        ("catalog", "failed"),
        ("conditional writes", "skipped"),
    ]
    assert "arco fsck" in checks[4]["advice"]


def test_another_name_of_the_warehouse_is_suggested(tmp_path: Path, capsys: Captured) -> None:
    store = f"file:{tmp_path}/store"
    assert main(["init", "--store", store, "--warehouse", "lake"], {}) == 0
    capsys.readouterr()

    assert examined(capsys, store, code=1)["catalog"][2] == "it has lake: give --warehouse"
    assert "`arco init` makes it" in (no_catalog(CatalogOptions("memory:", "x"), []).advice or "")


def test_a_catalog_behind_a_thousand_other_objects_is_suggested(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "store" / "files").mkdir(parents=True)
    for number in range(1_001):
        (tmp_path / "store" / "files" / str(number)).touch()
    store = f"file:{tmp_path}/store"
    assert main(["init", "--store", store, "--warehouse", "lake"], {}) == 0
    capsys.readouterr()

    assert examined(capsys, store, code=1)["catalog"][2] == "it has lake: give --warehouse"


def test_an_s3_store_is_checked_with_its_credentials(s3_server: S3Server, s3_bucket: str, capsys: Captured) -> None:
    store, environment = f"s3://{s3_bucket}/catalog", s3_server.environment
    assert main(["init", "--store", store], environment) == 0
    capsys.readouterr()

    allowed = ("--allowed-location", f"s3://{s3_bucket}/other", "s3://no-such-bucket/x")
    found = examined(capsys, store, *allowed, code=1, environment=environment)

    assert found["credentials"][0] == found["conditional writes"][0] == "ok"
    assert "endpoint http://127.0.0.1" in found["credentials"][1]
    assert found["allowed location"][0] == "failed"
    assert "no-such-bucket" in found["allowed location"][1]


def test_a_bucket_that_keeps_what_is_deleted_is_reported(s3_server: S3Server, s3_bucket: str, capsys: Captured) -> None:
    store, environment = f"s3://{s3_bucket}/catalog", s3_server.environment
    assert main(["init", "--store", store], environment) == 0
    capsys.readouterr()
    assert "does not keep versions" in examined(capsys, store, code=0, environment=environment)["kept versions"][1]

    asyncio.run(keep_versions(s3_bucket, s3_server))

    status, found, advice = examined(capsys, store, code=0, environment=environment)["kept versions"]
    assert (status, found.partition(":")[0]) == ("ok", "the bucket keeps versions")
    assert "lifecycle" in str(advice)


async def keep_versions(bucket: str, server: S3Server) -> None:
    versions = S3Versions(bucket, "", config=replace(server.config, carrier=Carrier.WIRE))
    try:
        await versions._client.write(Request("PUT", "", {}, {"versioning": ""}, ENABLE))
    finally:
        await versions.close()


@pytest.mark.parametrize("client", ["wire", "sdk"])
def test_a_gcs_store_is_checked_with_its_credentials(client: str, capsys: Captured) -> None:
    with gcs_protocol_fake() as server:
        server.make_bucket("lake")
        environment = {**server.environment, "ARCO_GCS_CLIENT": client}
        assert main(["init", "--store", "gs://lake/catalog"], environment) == 0
        capsys.readouterr()

        allowed = ("--allowed-location", "gs://lake/other", "gs://no-such-bucket/x")
        found = examined(capsys, "gs://lake/catalog", *allowed, code=1, environment=environment)

    assert {found[name][0] for name in ("packages", "credentials", "store", "clock", "conditional writes")} == {"ok"}
    assert found["credentials"][1] == f"none, for an emulator, {server.endpoint}, client {client}"
    assert found["allowed location"][:2] == ("failed", "gs://no-such-bucket/x: bucket 'no-such-bucket' does not exist")


def test_a_file_of_google_credentials_that_is_not_there_is_reported(capsys: Captured) -> None:
    environment = {"GOOGLE_APPLICATION_CREDENTIALS": "/nowhere/key.json"}
    found = examined(capsys, "gs://bucket/x", code=1, environment=environment)

    assert found["credentials"][0] == "failed"
    assert "/nowhere/key.json" in found["credentials"][1]
    assert "gcloud auth application-default login" in (found["credentials"][2] or "")
    assert found["store"][0] == "failed"


def test_a_client_that_there_is_none_of_is_reported(capsys: Captured) -> None:
    found = examined(capsys, "gs://bucket/x", code=1, environment={"ARCO_GCS_CLIENT": "grpc"})

    assert "expected wire or sdk" in found["credentials"][1]
    assert "expected wire or sdk" in found["store"][1]


def test_a_bucket_that_is_not_there_is_reported(s3_server: S3Server, capsys: Captured) -> None:
    found = examined(capsys, "s3://no-such-bucket/x", code=1, environment=s3_server.environment)

    assert found["store"][0] == "failed"
    assert "bucket 'no-such-bucket' does not exist" in found["store"][1]


def test_half_a_pair_of_keys_is_reported(capsys: Captured) -> None:
    half = {**S3Server("http://127.0.0.1:9").environment, "AWS_SECRET_ACCESS_KEY": ""}

    found = examined(capsys, "s3://bucket/x", code=1, environment=half)

    assert found["credentials"][0] == "failed"
    assert "only one of AWS_ACCESS_KEY_ID" in found["credentials"][1]


def test_a_store_that_ignores_conditions_fails(careless_s3: S3Server, capsys: Captured) -> None:
    careless_s3.make_bucket("careless-catalog")
    store, environment = "s3://careless-catalog/catalog", careless_s3.environment
    assert main(["init", "--store", store], environment) == 1
    assert "the store failed the test of conditional writes" in capsys.readouterr().err
    asyncio.run(put(store, "arco/_catalog/core/manifest.json", MANIFEST, environment))

    found = examined(capsys, store, code=1, environment=environment)

    assert found["conditional writes"][0] == "failed"
    assert found["conditional writes"][1].startswith("commits would get lost: the store ")


async def put(url: str, key: str, body: bytes, environment: Mapping[str, str] = NOTHING) -> None:
    store = open_store(url, environment)
    try:
        assert isinstance(await store.put(key, body, ANY), Applied)
    finally:
        await store.close()


MANIFEST = (
    b'{"version": 1, "id": "01KAN0Y7Q2M3C4D5E6F7G8H9JK", "sequence": 1, "recent": [], "before": null, "index": {}}'
)


def test_clocks_are_judged_by_what_engines_bear() -> None:
    assert clock(0).status is Status.OK
    assert clock(-1_999).status is Status.OK
    assert clock(2_000).status is Status.WARNING
    assert clock(-29_999).found == "this machine's clock is 30.0 s ahead of the store's"
    assert clock(30_000).status is Status.FAILED


def test_what_is_not_installed_is_reported_with_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "find_spec", lambda module: None)

    assert packages("s3://b/x").status is Status.FAILED
    assert packages("s3://b/x").advice == "install the extra 's3' of arco-catalog"
    assert packages("gs://b/x").advice == "install the extra 'gcs' of arco-catalog"
    assert packages("file:/x").status is Status.WARNING


def test_a_refusal_is_reported_with_what_helps() -> None:
    assert "clock" in denied("403 RequestTimeTooSkewed")
    assert "AWS_SECRET_ACCESS_KEY" in denied("403 SignatureDoesNotMatch")
    assert "s3:ListBucket" in denied("403 AccessDenied")
    assert "storage.objects.get" in denied("403 forbidden", "gs://bucket")
    assert "Storage Blob Data Contributor" in denied("403 PublicAccessNotPermitted", "abfss://c@account/x")
    assert "Storage Blob Data Contributor" in denied("403 AuthorizationFailure", "az://c/x")
    assert "read and write the folder" in denied("Permission denied", "file:///lake")


def test_a_bad_url_is_a_failed_check(capsys: Captured) -> None:
    found = examined(capsys, "ftp://x", code=1)
    assert found["store"][0] == "failed"
    assert "expected file:/absolute/path" in found["store"][1]


@pytest.mark.parametrize("batch", [True, False])
async def test_a_policy_that_answers_passes_whatever_it_allows(
    tmp_path: Path, capsys: Captured, *, batch: bool
) -> None:
    store, stub = f"file:{tmp_path}/store", PolicyStub(lambda *_: False)
    assert await asyncio.to_thread(main, ["init", "--store", store], {}) == 0
    capsys.readouterr()
    async with stub_server(stub.handle) as opa:
        environment = {"ARCO_OPA_URL": f"{opa.uri}/allow"}
        if batch:
            environment["ARCO_OPA_BATCH_URL"] = f"{opa.uri}/batch"
        found = await asyncio.to_thread(examined, capsys, store, code=0, environment=environment)
        assert found["policy"][0] == "ok"
        assert [len(given.get("requests", [0])) for _, given in stub.calls] == ([1, 2] if batch else [1])

        stub.answer = Response(200, {}, b"{}")
        found = await asyncio.to_thread(examined, capsys, store, code=1, environment=environment)
        assert found["policy"][0] == "failed"
        assert "the policy's rule has no result" in found["policy"][1]


def test_half_a_policy_fails(tmp_path: Path, capsys: Captured) -> None:
    store = f"file:{tmp_path}/store"
    assert main(["init", "--store", store], {}) == 0
    capsys.readouterr()
    found = examined(capsys, store, code=1, environment={"ARCO_OPA_BATCH_URL": "https://opa.example.com/batch"})
    assert found["policy"][:2] == ("failed", "ARCO_OPA_BATCH_URL is set, and ARCO_OPA_URL is not")
