"""`arco pipeline run maintain` on S3 and in a realm: as the pipeline's principal, who writes tables' files by what the
catalog gives it, and by nothing else."""

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
import requests
from botocore.config import Config  # type: ignore[import-untyped]
from botocore.session import Session  # type: ignore[import-untyped]

from arco_catalog.iceberg.json import JsonObject
from tests.stores.realm_lake import KEY, Lake
from tools.demo.engines import ICEBERG, jars
from tools.support.arco_server import ARCO, ArcoServer
from tools.support.environment import PROJECT, exported
from tools.support.local_spark import environment
from tools.support.s3_servers import S3Server, versitygw
from tools.support.server_process import built

pytestmark = [
    pytest.mark.slow,
    pytest.mark.needs("go"),
    pytest.mark.needs(f".jars/iceberg-spark-runtime-4.1_2.13-{ICEBERG}.jar"),
]
STATE, TABLES = "state", "tables"
READ = "s3:GetObject", "s3:ListBucket", "s3:GetBucketLocation"
WRITE = (*READ, "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts")
RIGHTS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    STATE: {"job": WRITE},
    TABLES: {"job": READ, "tables-reader": READ, "tables-writer": WRITE},
}
"""The job itself reads tables' files, and writes none: that takes the key that the catalog has for writers."""
POLICIES: Mapping[str, JsonObject] = {
    "data-compaction": {},
    "metadata-compaction": {},
    "snapshot-expiry": {"config": {"max_snapshot_age_days": 0, "min_snapshot_to_keep": 3}},
    "orphan-file-removal": {"max_orphan_file_age_in_days": 1},
}
COMMITS = 12
BOUND_S = 550.0


@dataclass(frozen=True)
class Site:
    """A realm on S3, with a table of small files to which policies apply."""

    lake: Lake
    folder: Path

    def maintain(self, credential: str, *more: str) -> subprocess.CompletedProcess[str]:
        """Runs the job as a principal, with the job's own key for the store."""
        file = self.folder / "credential"
        file.write_text(credential)
        where = ["--store", f"s3://{STATE}/lake", "--warehouse", "lake", "--uri", self.lake.arco.uri]
        where += ["--allowed-location", f"s3://{TABLES}"]
        command = [str(ARCO), "pipeline", "run", "maintain", *where, "--credential-file", str(file)]
        keys = {"AWS_ACCESS_KEY_ID": "job", "AWS_SECRET_ACCESS_KEY": "job-secret"}
        fetched = [] if "--dry-run" in more else ["--jars", ",".join(map(str, jars("")))]
        return subprocess.run(
            [*command, "--master", "local[2]", *fetched, *more],
            cwd=PROJECT,
            env={**os.environ, **environment(), **self.lake.server.environment, **keys},
            capture_output=True,
            text=True,
            timeout=BOUND_S,
            check=False,
        )

    def policies(self) -> None:
        """Makes all four, and attaches them to the namespace."""
        headers = {"Authorization": f"Bearer {self.lake.token(self.lake.root)}"}
        where = f"{self.lake.arco.uri}/polaris/v1/lake/namespaces/db/policies"
        target = {"target": {"type": "namespace", "path": ["db"]}}
        for kind, content in POLICIES.items():
            said = {"name": kind, "type": f"system.{kind}", "content": json.dumps({"enable": True, **content})}
            requests.post(where, json=said, headers=headers, timeout=60).raise_for_status()
            requests.put(f"{where}/{kind}/mappings", json=target, headers=headers, timeout=60).raise_for_status()


@pytest.fixture
def server() -> Iterator[S3Server]:
    """Two buckets: one for the catalog's state, and one for tables; and users with some rights on these."""
    with versitygw(users=True) as gateway:
        admin = [str(built("versitygw")), "admin", "--access", gateway.access_key, "--secret", gateway.secret_key]
        for name in {name for users in RIGHTS.values() for name in users}:
            user = ["create-user", "--access", name, "--secret", f"{name}-secret", "--role", "user"]
            subprocess.run([*admin, "--endpoint-url", gateway.endpoint, *user], check=True, timeout=60)
        client = Session().create_client(
            "s3",
            endpoint_url=gateway.endpoint,
            region_name="us-east-1",
            aws_access_key_id=gateway.access_key,
            aws_secret_access_key=gateway.secret_key,
            config=Config(s3={"addressing_style": "path"}),
        )
        for bucket, users in RIGHTS.items():
            gateway.make_bucket(bucket)
            statements = [
                {
                    "Effect": "Allow",
                    "Principal": {"AWS": [name]},
                    "Action": [each for each in actions if each.endswith(("Bucket", "Location")) == of_bucket],
                    "Resource": [f"arn:aws:s3:::{bucket}{'' if of_bucket else '/*'}"],
                }
                for name, actions in users.items()
                for of_bucket in (True, False)
            ]
            policy = json.dumps({"Version": "2012-10-17", "Statement": statements})
            client.put_bucket_policy(Bucket=bucket, Policy=policy)
        yield gateway


@pytest.fixture
def site(server: S3Server, tmp_path: Path) -> Iterator[Site]:
    token_keys, vending_keys = tmp_path / "token-keys", tmp_path / "vending-keys.json"
    token_keys.write_text(KEY)
    users = {
        right: {"access-key-id": f"tables-{right}", "secret-access-key": f"tables-{right}-secret"}
        for right in ("reader", "writer")
    }
    vending_keys.write_text(json.dumps([{"prefix": f"s3://{TABLES}", "opens-whole-prefix": True, **users}]))
    store, tables, log = f"s3://{STATE}/lake", f"s3://{TABLES}", tmp_path / "log"
    options = ["--auth", "internal", "--token-key-file", str(token_keys), "--vending-keys-file", str(vending_keys)]
    options += ["--allowed-location", tables]
    with exported(server.environment):
        made = subprocess.run(
            [ARCO, "bootstrap", "--store", store, "--json"], check=True, capture_output=True, text=True, timeout=120
        )
        root = json.loads(made.stdout)
        with ArcoServer(store, log, *options) as arco:
            lake = Lake(server, arco, TABLES, f"{root['client_id']}:{root['client_secret']}", log, options)
            reached = {"region": "us-east-1", "endpoint": server.endpoint, "pathStyleAccess": True}
            storage = {"storageType": "S3", "allowedLocations": [tables], "stsUnavailable": True, **reached}
            catalog = {"name": "lake", "type": "INTERNAL", "properties": {"default-base-location": tables}}
            lake.manage("POST", "catalogs", {"catalog": {**catalog, "storageConfigInfo": storage}})
            nothing = dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "")
            with exported({**nothing, "AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/dev/null"}):
                yield Site(lake, tmp_path)


def test_the_pipelines_principal_maintains_tables_by_the_credentials_that_the_catalog_gives(site: Site) -> None:
    lake = site.lake
    client = lake.client(lake.principal("writer", "CATALOG_MANAGE_CONTENT"))
    client.create_namespace("db")
    rows = pa.table({"n": pa.array([1], pa.int64())})
    table = client.create_table("db.t", rows.schema)
    for _ in range(COMMITS):
        table.append(rows)
    site.policies()
    pipeline = lake.principal("pipeline", "CATALOG_MANAGE_CONTENT", **{"arco.pipeline": "true"})

    planned = site.maintain(pipeline, "--dry-run")
    assert f"rewrite_data_files: {COMMITS} of {COMMITS} data files" in planned.stdout, planned.stdout + planned.stderr

    done = site.maintain(pipeline)
    assert done.returncode == 0, done.stdout + done.stderr
    table = client.load_table("db.t")
    assert table.inspect.files().num_rows == 1
    assert len(table.metadata.snapshots) == 3
    assert table.scan().to_arrow().num_rows == COMMITS
    told = {
        row["procedure"]: row["outcome"]
        for row in client.load_table("system.maintenance").scan().to_arrow().to_pylist()
    }
    assert told == dict.fromkeys(
        ("rewrite_data_files", "rewrite_manifests", "expire_snapshots", "remove_orphan_files"), "done"
    )
