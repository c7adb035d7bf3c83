"""Reads one secret of AWS Secrets Manager, or one parameter of Systems Manager, by a signed request of our own.

Sources: Secrets Manager API reference, GetSecretValue; Systems Manager API reference, GetParameter; "Common errors" of
both; AWS SDKs and tools reference guide, "Service-specific endpoints".
"""

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from storage_backends.base import StoreDenied, StoreError, StoreUnavailable
from storage_backends.s3.config import S3Config
from storage_backends.s3.credentials import credentials_of
from storage_backends.s3.endpoint import domain_of
from storage_backends.s3.signature import Scope, signed, signing_stamp
from storage_backends.wire.fetch import fetch
from storage_backends.wire.http1 import Response

MAX_BYTES = 256 << 10
"""Of an answer: a secret has 64 KB at most."""
SECRETS_MANAGER, PARAMETER_STORE = "secretsmanager", "ssm"

_ENDPOINTS = {SECRETS_MANAGER: "AWS_ENDPOINT_URL_SECRETS_MANAGER", PARAMETER_STORE: "AWS_ENDPOINT_URL_SSM"}
_TARGETS = {SECRETS_MANAGER: "secretsmanager.GetSecretValue", PARAMETER_STORE: "AmazonSSM.GetParameter"}
_TRANSIENT = ("Throttling", "InternalS", "ServiceUnavailable", "RequestLimitExceeded")


async def read_aws_secret(
    service: str, region: str, arn: str, environment: Mapping[str, str], now_ms: Callable[[], int]
) -> bytes:
    """The newest version, by the credentials that the variables name. Raises `StoreDenied` if there is none, or it may
    not be read, and `StoreUnavailable` if nobody answers. No error quotes it."""
    asked = {"SecretId": arn} if service == SECRETS_MANAGER else {"Name": arn, "WithDecryption": True}
    body = json.dumps(asked).encode()
    configured = environment.get(_ENDPOINTS[service]) or environment.get("AWS_ENDPOINT_URL")
    url = f"{(configured or f'https://{service}.{region}.{domain_of(region)}').rstrip('/')}/"
    parts = urlsplit(url)
    keys = await credentials_of(S3Config.from_environment(environment).credentials).current()
    named = {
        "host": parts.netloc,
        "content-type": "application/x-amz-json-1.1",
        "x-amz-target": _TARGETS[service],
    }
    stamp = signing_stamp(now_ms())
    headers = signed(keys, Scope(region, service), stamp, "POST", parts.path, "", named, body)
    plain = configured is not None
    return secret_in(await fetch(url, headers, now_ms, MAX_BYTES, plain_loopback=plain, post=body), service)


def secret_in(response: Response, service: str) -> bytes:
    """The secret in an answer. Raises as `read_aws_secret` does."""
    try:
        document = json.loads(response.body)
        if response.status != 200:
            raise _failure(response.status, document)
        match service, document:
            case "ssm", {"Parameter": {"Value": str(value)}}:
                return value.encode()
            case "secretsmanager", {"SecretString": str(value)}:
                return value.encode()
            case "secretsmanager", {"SecretBinary": str(value)}:
                return base64.b64decode(value, validate=True)
    except (ValueError, binascii.Error) as error:
        if response.status != 200:
            raise _failure(response.status, None) from error
        raise StoreDenied(f"the answer of {service} holds no secret") from error
    raise StoreDenied(f"the answer of {service} holds no secret")


def _failure(status: int, document: object) -> StoreError:
    """What a refusal means; of its document only the code is told."""
    code = str(document.get("__type", "")) if isinstance(document, dict) else ""
    code = code.rpartition("#")[2]
    transient = status >= 500 or status == 429 or code.startswith(_TRANSIENT)
    shown = code if code.isalnum() and len(code) <= 100 else f"status {status}"
    return (StoreUnavailable if transient else StoreDenied)(f"the secret cannot be read: {shown}")
