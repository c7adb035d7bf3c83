"""Engines without keys of their own, over `arco serve` and MinIO: what they get from the catalog opens their table and
nothing else, and it is MinIO that refuses."""

import itertools
import json
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
import requests
from botocore import UNSIGNED  # type: ignore[import-untyped]
from botocore.config import Config  # type: ignore[import-untyped]
from botocore.session import Session  # type: ignore[import-untyped]
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import ForbiddenError, SignError
from pyiceberg.io.fsspec import S3V4RestSigner

from tools.support.arco_server import ARCO, ArcoServer
from tools.support.environment import exported
from tools.support.s3_servers import S3Server

_buckets = itertools.count(1)
KEY = "0123456789abcdef0123456789abcdef"
ROWS = pa.table({"n": [1, 2, 3]})


@dataclass
class Lake:
    """`arco serve` with a realm in MinIO, and a catalog `lake` there whose role MinIO lets be assumed."""

    server: S3Server
    arco: ArcoServer
    bucket: str
    root: str

    def token(self, credential: str) -> str:
        client_id, _, secret = credential.partition(":")
        form = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": secret}
        answer = requests.post(f"{self.arco.uri}/v1/oauth/tokens", {**form, "scope": "PRINCIPAL_ROLE:ALL"}, timeout=60)
        return str(answer.json()["access_token"])

    def manage(self, method: str, path: str, body: object) -> dict[str, object]:
        headers = {"Authorization": f"Bearer {self.token(self.root)}", "Content-Type": "application/json"}
        url = f"{self.arco.uri}/api/management/v1/{path}"
        answer = requests.request(method, url, data=json.dumps(body), headers=headers, timeout=60)
        assert answer.status_code < 300, answer.text
        found: dict[str, object] = answer.json() if answer.content else {}
        return found

    def principal(self, name: str, *privileges: str) -> str:
        """Makes a principal that holds privileges in the catalog, and gives what it logs in with."""
        made = self.manage("POST", "principals", {"principal": {"name": name}})["credentials"]
        assert isinstance(made, dict)
        self.manage("POST", "principal-roles", {"principalRole": {"name": name}})
        self.manage("PUT", f"principals/{name}/principal-roles", {"principalRole": {"name": name}})
        role = {"catalogRole": {"name": name}}
        self.manage("POST", "catalogs/lake/catalog-roles", role)
        self.manage("PUT", f"principal-roles/{name}/catalog-roles/lake", role)
        for privilege in privileges:
            grant = {"grant": {"type": "catalog", "privilege": privilege}}
            self.manage("PUT", f"catalogs/lake/catalog-roles/{name}/grants", grant)
        return f"{made['clientId']}:{made['clientSecret']}"

    def client(self, credential: str, **properties: str) -> RestCatalog:
        """PyIceberg, which knows no key for the store."""
        return RestCatalog(
            "lake",
            uri=self.arco.uri,
            warehouse="lake",
            credential=credential,
            scope="PRINCIPAL_ROLE:ALL",
            **{"oauth2-server-uri": f"{self.arco.uri}/v1/oauth/tokens", **properties},
        )


@pytest.fixture
def lake(minio_server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lake]:
    bucket = f"realm-{next(_buckets)}"
    minio_server.make_bucket(bucket)
    store = f"s3://{bucket}/catalog"
    keys = tmp_path / "token-keys"
    keys.write_text(KEY)
    made = subprocess.run(
        [ARCO, "bootstrap", "--store", store, "--json"], check=True, capture_output=True, text=True, timeout=120
    )
    root = json.loads(made.stdout)
    with ArcoServer(store, tmp_path / "log", "--auth", "internal", "--token-key-file", str(keys)) as arco:
        it = Lake(minio_server, arco, bucket, f"{root['client_id']}:{root['client_secret']}")
        for name in minio_server.environment:
            monkeypatch.delenv(name)
        base = f"{store}/lake"
        storage = {
            "storageType": "S3",
            "allowedLocations": [base],
            "roleArn": "arn:aws:iam::123456789012:role/lake",
            "region": "us-east-1",
            "endpoint": minio_server.endpoint,
            "pathStyleAccess": True,
        }
        catalog = {"name": "lake", "type": "INTERNAL", "properties": {"default-base-location": base}}
        it.manage("POST", "catalogs", {"catalog": {**catalog, "storageConfigInfo": storage}})
        with exported({"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/dev/null"}):
            yield it


def test_an_engine_with_vended_credentials_alone_creates_writes_and_reads_its_table(lake: Lake) -> None:
    writer = lake.client(lake.principal("writer", "CATALOG_MANAGE_CONTENT"))
    writer.create_namespace("db")
    table = writer.create_table("db.t", ROWS.schema)

    table.append(ROWS)
    table.append(ROWS)

    found = lake.client(lake.principal("reader", "TABLE_READ_DATA")).load_table("db.t").scan().to_arrow()
    assert sorted(found["n"].to_pylist()) == [1, 1, 2, 2, 3, 3]


def test_a_reader_who_writes_is_refused_by_the_store_and_by_the_catalog(lake: Lake) -> None:
    writer = lake.client(lake.principal("writer", "CATALOG_MANAGE_CONTENT"))
    writer.create_namespace("db")
    for name in ("t", "u"):
        writer.create_table(f"db.{name}", ROWS.schema).append(ROWS)
    table = lake.client(lake.principal("reader", "TABLE_READ_DATA")).load_table("db.t")

    with pytest.raises(OSError, match="ACCESS_DENIED"):
        table.append(ROWS)
    with pytest.raises(OSError, match="ACCESS_DENIED"), table.io.new_input(neighbour(writer)).open() as file:
        file.read()
    with pytest.raises(ForbiddenError, match="lacks the privilege"), table.transaction() as change:
        change.set_properties(a="b")
    assert len(writer.load_table("db.t").snapshots()) == 1


def neighbour(writer: RestCatalog) -> str:
    """A data file of another table."""
    return str(next(iter(writer.load_table("db.u").scan().plan_files())).file.file_path)


def test_requests_are_signed_by_the_catalog_for_pyicebergs_signer(lake: Lake) -> None:
    signed = {"header.X-Iceberg-Access-Delegation": "remote-signing"}
    writer, reader = lake.principal("writer", "CATALOG_MANAGE_CONTENT"), lake.principal("reader", "TABLE_READ_DATA")
    made = lake.client(writer)
    made.create_namespace("db")
    made.create_table("db.t", ROWS.schema)

    def key_and_client(credential: str) -> tuple[str, Any]:
        table = lake.client(credential, **signed).load_table("db.t")
        assert "s3.access-key-id" not in table.io.properties
        client = Session().create_client(
            "s3",
            endpoint_url=table.io.properties["s3.endpoint"],
            region_name=table.io.properties["client.region"],
            config=Config(signature_version=UNSIGNED, retries={"max_attempts": 0}),
        )
        properties = {**table.io.properties, "token": lake.token(credential)}
        client.meta.events.register_last("before-sign.s3", S3V4RestSigner(properties))
        return table.location().removeprefix(f"s3://{lake.bucket}/"), client

    folder, writes = key_and_client(writer)
    _, reads = key_and_client(reader)
    writes.put_object(Bucket=lake.bucket, Key=f"{folder}/data/1", Body=b"one")

    assert reads.get_object(Bucket=lake.bucket, Key=f"{folder}/data/1")["Body"].read() == b"one"
    attempts: list[Callable[[], object]] = [
        lambda: reads.put_object(Bucket=lake.bucket, Key=f"{folder}/data/1", Body=b"two"),
        lambda: reads.delete_object(Bucket=lake.bucket, Key=f"{folder}/data/1"),
        lambda: writes.get_object(Bucket=lake.bucket, Key="catalog/_realm/core/manifest.json"),
    ]
    for attempt in attempts:
        with pytest.raises(SignError):
            attempt()
    assert reads.get_object(Bucket=lake.bucket, Key=f"{folder}/data/1")["Body"].read() == b"one"
