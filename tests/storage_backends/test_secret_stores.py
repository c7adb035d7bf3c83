"""A secret of a cloud's store of secrets, by its reference: AWS's against moto, the others' answers as documented."""

import base64
import json
from typing import Any

import pytest
from botocore.session import Session  # type: ignore[import-untyped]

from storage_backends import StoreDenied, StoreError, StoreUnavailable, secret_stores
from storage_backends.clock import system_now_ms
from storage_backends.s3.secrets import SECRETS_MANAGER, secret_in
from storage_backends.secret_stores import azure_value, google_payload, is_reference, read_secret
from storage_backends.wire.http1 import Response
from tools.support.ports import free_port

SECRET = "a-secret-that-is-never-printed"


@pytest.fixture
def aws(s3_endpoint: str) -> dict[str, str]:
    """Variables that make clients of other services use the same moto."""
    return {"AWS_ENDPOINT_URL": s3_endpoint, "AWS_ACCESS_KEY_ID": "an-id", "AWS_SECRET_ACCESS_KEY": "a-key"}


def client(service: str, aws: dict[str, str]) -> Any:
    keys = {"aws_access_key_id": "an-id", "aws_secret_access_key": "a-key"}
    return Session().create_client(service, region_name="eu-west-1", endpoint_url=aws["AWS_ENDPOINT_URL"], **keys)


async def test_secrets_manager_and_parameter_store_are_read_by_arn(aws: dict[str, str]) -> None:
    manager, parameters = client("secretsmanager", aws), client("ssm", aws)
    arn = manager.create_secret(Name="arco/tokens", SecretString=SECRET)["ARN"]
    binary = manager.create_secret(Name="arco/binary", SecretBinary=SECRET.encode())["ARN"]
    parameters.put_parameter(Name="/arco/tokens", Value=SECRET, Type="SecureString")
    parameter = parameters.get_parameter(Name="/arco/tokens")["Parameter"]["ARN"]

    assert [await read_secret(each, aws, system_now_ms) for each in (arn, binary, parameter)] == [SECRET.encode()] * 3


@pytest.mark.parametrize(
    "arn",
    [
        "arn:aws:secretsmanager:eu-west-1:123456789012:secret:none",
        "arn:aws:ssm:eu-west-1:123456789012:parameter/none",
    ],
)
async def test_a_secret_that_is_not_there_is_denied(arn: str, aws: dict[str, str]) -> None:
    with pytest.raises(StoreDenied, match="NotFound"):
        await read_secret(arn, aws, system_now_ms)


async def test_a_store_of_secrets_that_does_not_answer_is_unavailable(aws: dict[str, str]) -> None:
    arn = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:none"
    nowhere = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(StoreUnavailable, match="no complete answer"):
        await read_secret(arn, {**aws, "AWS_ENDPOINT_URL_SECRETS_MANAGER": nowhere}, system_now_ms)


@pytest.mark.parametrize(
    ("status", "body", "failure", "report"),
    [
        (400, {"__type": "AccessDeniedException", "Message": SECRET}, StoreDenied, "AccessDeniedException"),
        (400, {"__type": "com.amazonaws#ThrottlingException"}, StoreUnavailable, "ThrottlingException"),
        (400, {"__type": f"<{SECRET}>"}, StoreDenied, "status 400"),
        (500, SECRET, StoreUnavailable, "status 500"),
        (200, {"SecretString": 7}, StoreDenied, "holds no secret"),
        (200, {"SecretBinary": "###"}, StoreDenied, "holds no secret"),
        (200, [], StoreDenied, "holds no secret"),
    ],
)
def test_a_refusal_of_aws_has_the_reason_and_no_secret(
    status: int, body: object, failure: type[StoreError], report: str
) -> None:
    with pytest.raises(failure, match=report) as refused:
        secret_in(Response(status, {}, json.dumps(body).encode()), SECRETS_MANAGER)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    ("reference", "requests", "answer"),
    [
        (
            "projects/p/secrets/s",
            "https://secretmanager.googleapis.com/v1/projects/p/secrets/s/versions/latest:access",
            {"payload": {"data": base64.b64encode(SECRET.encode()).decode()}},
        ),
        (
            "projects/p/secrets/s/versions/3",
            "https://secretmanager.googleapis.com/v1/projects/p/secrets/s/versions/3:access",
            {"payload": {"data": base64.b64encode(SECRET.encode()).decode()}},
        ),
        (
            "https://v.vault.azure.net/secrets/s",
            "https://v.vault.azure.net/secrets/s?api-version=7.4",
            {"value": SECRET, "id": "x"},
        ),
    ],
)
async def test_google_and_azure_are_called_as_their_references_document(
    monkeypatch: pytest.MonkeyPatch, reference: str, requests: str, answer: dict[str, object]
) -> None:
    urls = []

    async def fetched(url: str, headers: dict[str, str], now_ms: object, max_bytes: int) -> Response:
        urls.append((url, headers["authorization"]))
        return Response(200, {}, json.dumps(answer).encode())

    monkeypatch.setattr(secret_stores, "fetch", fetched)
    monkeypatch.setattr(secret_stores, "_google_token", lambda: "t")
    monkeypatch.setattr(secret_stores, "_azure_token", lambda domain: f"t for {domain}"[0])

    assert await read_secret(reference, {}, system_now_ms) == SECRET.encode()
    assert urls == [(requests, "Bearer t")]


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"payload": {"data": "###"}}', b'{"payload": 1, "value": 2}'])
def test_an_answer_without_a_secret_is_denied_and_not_quoted(body: bytes) -> None:
    for read in (google_payload, azure_value):
        with pytest.raises(StoreDenied, match="holds no secret"):
            read(body)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "s3://bucket/key",
        "https://evil.example/secrets/s",
        "https://v.vault.azure.net.evil.example/secrets/s",
        "https://v.vault.azure.net/keys/s",
        "http://v.vault.azure.net/secrets/s",
        "projects/p/secrets/s/versions/1/../2",
        "projects/p/secrets/s\n",
        "arn:aws:s3:::bucket",
        "arn:aws:secretsmanager:eu-west-1:123456789012:secret:",
    ],
)
async def test_an_invalid_reference_is_not_sent(text: str) -> None:
    assert not is_reference(text)
    with pytest.raises(StoreDenied, match="no reference"):
        await read_secret(text, {}, system_now_ms)
