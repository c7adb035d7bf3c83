"""The module applied against moto, its functions run from the zip that was deployed, and all of it destroyed.

moto keeps what it is told and runs none of it. So the functions' configuration is read back from it, and the local
gateway runs that handler of that very zip with that environment.
"""

import base64
import hashlib
import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3  # type: ignore[import-untyped]
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from pyiceberg.catalog import load_catalog

from arco_catalog.cli.client_config import client_config
from arco_catalog.http.lambda_adapter import Endpoint
from tests.infra.terraform import REGION, TerraformFailed, Variables, Workspace
from tools.gateway.running import API, running, unzipped
from tools.gateway.sandbox import Function, Pool
from tools.support.s3_servers import S3Server

KEYS = {"aws_access_key_id": "testing", "aws_secret_access_key": "testing", "region_name": REGION}
BUCKET = "lake-123456789012-us-east-1"


@dataclass(frozen=True)
class Deployment:
    """An applied deployment."""

    aws: S3Server
    workspace: Workspace
    variables: Variables
    outputs: dict[str, Any]
    package: Path

    def function(self, name: str) -> dict[str, Any]:
        """The configuration of a function's version that is called, as AWS has it."""
        found: dict[str, Any] = ask(self.aws, "lambda", f"/2015-03-31/functions/lake-{name}?Qualifier=live")
        return dict(found["Configuration"])

    def environment(self, name: str) -> dict[str, str]:
        """What a function finds in its environment: its own variables, and what Lambda adds of itself."""
        return {**self.aws.environment, **self.function(name)["Environment"]["Variables"]}


def ask(aws: S3Server, service: str, path: str) -> Any:
    """What a service of moto's answers to a GET. It reads the service from the signature, and checks no more of it."""
    request = urllib.request.Request(f"{aws.endpoint}{path}")
    scope = f"testing/20261101/{REGION}/{service}/aws4_request"
    request.add_header("Authorization", f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=none")
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def is_there(aws: S3Server, service: str, path: str) -> bool:
    try:
        ask(aws, service, path)
    except urllib.error.HTTPError as error:
        if error.code != 404:
            raise
        return False
    return True


def bucket_in(aws: S3Server) -> Any:
    """The bucket that is made, for boto3."""
    return boto3.resource("s3", endpoint_url=aws.endpoint, **KEYS).Bucket(BUCKET)


@contextmanager
def open_to_requests(aws: S3Server) -> Iterator[None]:
    """moto takes no notice of a policy's conditions: one that denies what comes without TLS denies everything."""
    policy = bucket_in(aws).Policy()
    document = policy.policy
    policy.delete()
    try:
        yield
    finally:
        policy.put(Policy=document)


@pytest.fixture(scope="module")
def lake(aws: S3Server, archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    """The module with its defaults, and the zip that `make package` builds. The last test of this file destroys it."""
    scratch = tmp_path_factory.mktemp("applied")
    workspace = Workspace.copy_of(".", scratch)
    workspace.use(aws)
    variables: Variables = {"name": "lake", "package": str(archive)}
    return Deployment(aws, workspace, variables, workspace.apply(variables), archive)


def test_the_deployed_code_is_the_package(lake: Deployment) -> None:
    digest = base64.b64encode(hashlib.sha256(lake.package.read_bytes()).digest()).decode()

    assert {lake.function(name)["CodeSha256"] for name in ("api", "reconcile", "work", "collect")} == {digest}


def test_a_pyiceberg_session_runs_through_the_deployed_api(lake: Deployment, tmp_path: Path) -> None:
    environment = lake.environment("api")
    rows = pa.table({"id": pa.array([1, 2, 3], pa.int64())})

    assert lake.function("api")["Handler"] == API
    endpoint = Endpoint(environment["ARCO_ENDPOINT"])
    with open_to_requests(lake.aws), running(lake.package, endpoint, tmp_path / "api.log", environment) as uri:
        catalog = load_catalog(
            "lake",
            **{
                **{"type": "rest", "uri": uri, "warehouse": environment["ARCO_WAREHOUSE"]},
                **{"s3.endpoint": lake.aws.endpoint, "s3.region": REGION},
                **{"s3.access-key-id": "testing", "s3.secret-access-key": "testing"},
            },
        )
        catalog.create_namespace("sales")
        table = catalog.create_table("sales.orders", rows.schema)
        table.append(rows)
        read = catalog.load_table("sales.orders").scan().to_arrow()

    assert read.column("id").to_pylist() == [1, 2, 3]
    assert table.location().startswith(f"s3://{BUCKET}/main/warehouse/")


async def test_the_deployed_reconciler_reaches_the_end_of_its_walk(lake: Deployment, tmp_path: Path) -> None:
    stats = await invoke(lake, "reconcile", {}, tmp_path)

    assert stats["stopped"] is False
    assert stats["unreadable"] == []


async def test_the_deployed_worker_says_which_message_failed(lake: Deployment, tmp_path: Path) -> None:
    bodies = {"good": {"version": 1, "work": "reconcile"}, "bad": {"version": 1, "work": "nothing that there is"}}
    records = [{"messageId": name, "body": json.dumps(body)} for name, body in bodies.items()]

    assert await invoke(lake, "work", {"Records": records}, tmp_path) == {
        "batchItemFailures": [{"itemIdentifier": "bad"}]
    }


async def invoke(lake: Deployment, name: str, event: object, scratch: Path) -> dict[str, Any]:
    """What a deployed function returns."""
    with unzipped(lake.package) as folder:
        function = Function(folder, lake.function(name)["Handler"], lake.environment(name), scratch / f"{name}.log")
        with open_to_requests(lake.aws):
            async with Pool(function, 1) as pool:
                result: dict[str, Any] = json.loads(await pool.invoke(json.dumps(event).encode()))
    return result


def test_the_outputs_lead_to_what_was_made(lake: Deployment) -> None:
    outputs = lake.outputs

    assert outputs["bucket"] == BUCKET
    assert outputs["store"] == f"s3://{BUCKET}"
    assert outputs["functions"] == {name: f"lake-{name}" for name in ("api", "reconcile", "work", "collect")}
    assert re.fullmatch(r"https://[a-z0-9]+\.execute-api\.us-east-1\.amazonaws\.com", outputs["url"])
    assert "emr" not in outputs
    called = [
        statement
        for statement in json.loads(outputs["engine_policy_json"])["Statement"]
        if statement["Sid"] == "CallTheCatalog"
    ]
    assert [statement["Action"] for statement in called] == ["execute-api:Invoke"]
    assert [each.partition("/")[2] for each in called[0]["Resource"]] == ["*/*/v1/*", "*/*/polaris/*", "*/*/api/*"]


def test_settings_to_paste_are_those_that_a_local_server_prints_and_what_signs_in(lake: Deployment) -> None:
    local = client_config(lake.outputs["url"], "main", "s3://bucket", {"AWS_REGION": REGION})
    deployed = "\n\n".join(lake.outputs["settings"][engine] for engine in ("spark", "pyiceberg", "trino"))

    assert settings(local) <= settings(deployed)
    assert {key for key, _ in settings(deployed) - settings(local)} == {
        *(f"spark.sql.catalog.arco.rest.{key}" for key in ("auth.type", "signing-name", "signing-region")),
        "spark.sql.catalog.arco.rest.auth.sigv4.delegate-auth-type",
        *(f"rest.{key}" for key in ("sigv4-enabled", "signing-name", "signing-region")),
        *(f"iceberg.rest-catalog.{key}" for key in ("security", "signing-name")),
        "s3.iam-role",
    }


def settings(text: str) -> set[tuple[str, str]]:
    """Keys and values, of whichever engine."""
    flat = re.findall(r"^(?:  --conf )?([a-z][A-Za-z0-9.-]*)=(\S+)", text, re.MULTILINE)
    return {*flat, *re.findall(r'^ +"([a-z][a-z0-9.-]*)": "([^"]*)"', text, re.MULTILINE)}


@pytest.mark.slow
def test_applying_again_would_change_nothing(lake: Deployment) -> None:
    """But for what moto gives back in other words: JSON with other spaces, and an alias as the version it names."""
    reworded = {"aws_sqs_queue.work", "aws_lambda_event_source_mapping.work"}

    assert lake.workspace.changes(lake.variables) <= reworded


@pytest.mark.slow
def test_a_deployment_becomes_a_realm_s_by_one_variable(lake: Deployment) -> None:
    """What the gateway of this deployment verifies is believed, and nobody else's word."""
    outputs = lake.workspace.apply({**lake.variables, "auth": ["gateway"]})
    told = lake.environment("api")

    assert told["ARCO_AUTH"] == "gateway"
    assert outputs["url"].startswith(f"https://{told['ARCO_GATEWAY_APIS']}.execute-api.")
    assert "ARCO_AUTH" not in lake.environment("reconcile")
    assert outputs["storage"] == {
        "new_catalogs": [f"s3://{BUCKET}/catalogs"],
        "storageConfigInfo": {
            "storageType": "S3",
            "region": REGION,
            "roleArn": "arn:aws:iam::123456789012:role/lake-vending",
        },
    }
    assert "header.X-Iceberg-Access-Delegation=vended-credentials" in outputs["settings"]["spark"]
    assert "iceberg.rest-catalog.vended-credentials-enabled=true" in outputs["settings"]["trino"]


@pytest.mark.slow
def test_destroying_it_keeps_a_bucket_with_data_until_it_is_emptied(lake: Deployment) -> None:
    bucket = bucket_in(lake.aws)
    with open_to_requests(lake.aws):
        bucket.put_object(Key="main/_catalog/core/manifest.json", Body=b"{}")

    with pytest.raises(TerraformFailed, match="BucketNotEmpty"):
        lake.workspace.destroy(lake.variables)

    assert lake.workspace.managed() == ["aws_s3_bucket.store[0]"]
    assert not is_there(lake.aws, "lambda", "/2015-03-31/functions/lake-api")
    assert [found.key for found in bucket.objects.filter(Prefix="main/_catalog/core/manifest")] != []

    bucket.Versioning().enable()  # Terraform suspended it, and moto then fails on versions behind a delete marker
    bucket.object_versions.delete()
    lake.workspace.destroy(lake.variables)

    assert lake.workspace.managed() == []
