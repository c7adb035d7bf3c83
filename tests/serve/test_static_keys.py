"""An operator's own keys of a store without STS, over `arco serve` and versitygw: what each opens is up to the store,
and it is the store that refuses."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from botocore.config import Config  # type: ignore[import-untyped]
from botocore.session import Session  # type: ignore[import-untyped]
from pyiceberg.exceptions import ForbiddenError

from tests.stores.realm_lake import KEY, Lake
from tests.stores.test_minio_delegation import ROWS
from tools.support.arco_server import ARCO, ArcoServer
from tools.support.environment import exported
from tools.support.s3_servers import S3Server, versitygw
from tools.support.server_process import built

pytestmark = pytest.mark.needs("go")
STATE, SALES = "state", "sales"
READ = "s3:GetObject", "s3:ListBucket", "s3:GetBucketLocation"
WRITE = (*READ, "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts")
USERS = {"sales-reader": READ, "sales-writer": WRITE}


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    """Two buckets: one for the catalog's state, and one for tables, which two users may read and write."""
    with versitygw(users=True) as gateway:
        for bucket in (STATE, SALES):
            gateway.make_bucket(bucket)
        admin = [str(built("versitygw")), "admin", "--access", gateway.access_key, "--secret", gateway.secret_key]
        for name in USERS:
            user = ["create-user", "--access", name, "--secret", f"{name}-secret", "--role", "user"]
            subprocess.run([*admin, "--endpoint-url", gateway.endpoint, *user], check=True, timeout=60)
        statements = [
            {
                "Effect": "Allow",
                "Principal": {"AWS": [name]},
                "Action": [action for action in actions if action.endswith("Bucket" if of_bucket else "Object")],
                "Resource": [f"arn:aws:s3:::{SALES}{'' if of_bucket else '/*'}"],
            }
            for name, actions in USERS.items()
            for of_bucket in (True, False)
        ]
        client(gateway, gateway.access_key, gateway.secret_key).put_bucket_policy(
            Bucket=SALES, Policy=json.dumps({"Version": "2012-10-17", "Statement": statements})
        )
        yield gateway


def client(server: S3Server, access_key: str, secret_key: str) -> Any:
    return Session().create_client(
        "s3",
        endpoint_url=server.endpoint,
        region_name="us-east-1",
        aws_access_key_id=access_key,
        aws_secret_access_key=secret_key,
        config=Config(s3={"addressing_style": "path"}, retries={"max_attempts": 0}),
    )


@pytest.fixture
def lake(server: S3Server, tmp_path: Path) -> Iterator[Lake]:
    token_keys, vending_keys = tmp_path / "token-keys", tmp_path / "vending-keys.json"
    token_keys.write_text(KEY)
    users = {
        right: {"access-key-id": f"sales-{right}", "secret-access-key": f"sales-{right}-secret"}
        for right in ("reader", "writer")
    }
    vending_keys.write_text(json.dumps([{"prefix": f"s3://{SALES}", "opens-whole-prefix": True, **users}]))
    store, tables = f"s3://{STATE}/{tmp_path.name}", f"s3://{SALES}"
    options = ["--auth", "internal", "--token-key-file", str(token_keys), "--vending-keys-file", str(vending_keys)]
    options += ["--allowed-location", tables]
    with exported(server.environment):
        made = subprocess.run(
            [ARCO, "bootstrap", "--store", store, "--json"], check=True, capture_output=True, text=True, timeout=120
        )
        root = json.loads(made.stdout)
        with ArcoServer(store, tmp_path / "log", *options) as arco:
            it = Lake(server, arco, SALES, f"{root['client_id']}:{root['client_secret']}", tmp_path / "log", options)
            storage = {
                "storageType": "S3",
                "allowedLocations": [tables],
                "stsUnavailable": True,
                "region": "us-east-1",
                "endpoint": server.endpoint,
                "pathStyleAccess": True,
            }
            properties = {"default-base-location": tables}
            catalog = {"name": "lake", "type": "INTERNAL", "properties": properties, "storageConfigInfo": storage}
            it.manage("POST", "catalogs", {"catalog": catalog})
            nothing = {name: "" for name in server.environment if name.startswith("AWS_") and "KEY" in name}
            with exported({**nothing, "AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/dev/null"}):
                yield it


def test_a_writers_key_writes_and_a_readers_reads_and_the_store_refuses_the_rest(lake: Lake, tmp_path: Path) -> None:
    writer = lake.client(lake.principal("writer", "CATALOG_MANAGE_CONTENT"))
    writer.create_namespace("db")
    writer.create_table("db.t", ROWS.schema).append(ROWS)

    table = lake.client(lake.principal("reader", "TABLE_READ_DATA")).load_table("db.t")
    assert sorted(table.scan().to_arrow()["n"].to_pylist()) == [1, 2, 3]
    assert table.io.properties["s3.access-key-id"] == "sales-reader"
    with pytest.raises(OSError, match="ACCESS_DENIED"):
        table.append(ROWS)
    with pytest.raises(ForbiddenError, match="lacks the privilege"), table.transaction() as change:
        change.set_properties(a="b")

    keys = client(lake.server, "sales-writer", "sales-writer-secret")
    attempts: list[Callable[[], object]] = [
        lambda: keys.list_objects_v2(Bucket=STATE),
        lambda: keys.get_object(Bucket=STATE, Key=f"{tmp_path.name}/_realm/core/manifest.json"),
        lambda: keys.put_object(Bucket=STATE, Key="x", Body=b"x"),
    ]
    for attempt in attempts:
        with pytest.raises(keys.exceptions.ClientError, match="AccessDenied"):
            attempt()

    log = (tmp_path / "log").read_text()
    assert "-secret" not in log


def test_a_revoked_principal_gets_no_key_with_the_next_request(lake: Lake) -> None:
    lake.client(lake.principal("writer", "CATALOG_MANAGE_CONTENT")).create_namespace("db")
    lake.client(lake.principal("maker", "CATALOG_MANAGE_CONTENT")).create_table("db.t", ROWS.schema)
    reader = lake.principal("reader", "TABLE_READ_DATA")
    url = f"{lake.arco.uri}/v1/lake/namespaces/db/tables/t/credentials"
    headers = {"Authorization": f"Bearer {lake.token(reader)}"}
    given = requests.get(url, headers=headers, timeout=60)
    assert given.json()["storage-credentials"][0]["config"]["s3.access-key-id"] == "sales-reader"

    grant = {"grant": {"type": "catalog", "privilege": "TABLE_READ_DATA"}}
    lake.manage("POST", "catalogs/lake/catalog-roles/reader/grants", grant)

    refused = requests.get(url, headers=headers, timeout=60)
    assert refused.status_code == 404
    assert "sales-reader" not in refused.text
