"""Reads one secret of AWS Secrets Manager, or one parameter of Systems Manager, by a signed request of our own.

Sources: Secrets Manager API reference, GetSecretValue; Systems Manager API reference, GetParameter; "Common errors" of
both; AWS SDKs and tools reference guide, "Service-specific endpoints".
"""

import base64
import binascii
import json
from collections.abc import Callable, Mapping

from storage_backends.base import StoreDenied
from storage_backends.s3.json_api import Service, call, refusal
from storage_backends.wire.http1 import Response

MAX_BYTES = 256 << 10
"""Of an answer: a secret has 64 KB at most."""
SECRETS_MANAGER, PARAMETER_STORE = "secretsmanager", "ssm"

_SERVICES = {
    SECRETS_MANAGER: Service(SECRETS_MANAGER, "AWS_ENDPOINT_URL_SECRETS_MANAGER", "application/x-amz-json-1.1"),
    PARAMETER_STORE: Service(PARAMETER_STORE, "AWS_ENDPOINT_URL_SSM", "application/x-amz-json-1.1"),
}
_TARGETS = {SECRETS_MANAGER: "secretsmanager.GetSecretValue", PARAMETER_STORE: "AmazonSSM.GetParameter"}


async def read_aws_secret(
    service: str, region: str, arn: str, environment: Mapping[str, str], now_ms: Callable[[], int]
) -> bytes:
    """Returns the bytes of the current version of the secret, or of the parameter, with this ARN, read with the
    credentials that the variables name. `service` is `SECRETS_MANAGER` or `PARAMETER_STORE`. Raises `StoreDenied` if
    there is none, or it may not be read, and `StoreUnavailable` if the service does not respond, or fails for now. No
    error quotes the secret."""
    request = {"SecretId": arn} if service == SECRETS_MANAGER else {"Name": arn, "WithDecryption": True}
    answer = await call(_SERVICES[service], region, _TARGETS[service], request, environment, now_ms, MAX_BYTES)
    return secret_in(answer, service)


def secret_in(response: Response, service: str) -> bytes:
    """Returns the secret in the response of an AWS service, which is `SECRETS_MANAGER` or `PARAMETER_STORE`. Raises
    `StoreUnavailable` for a transient failure of the service, and `StoreDenied` for any other response without a
    secret."""
    if response.status != 200:
        raise refusal(f"the secret cannot be read from {service}", response)
    try:
        match service, json.loads(response.body):
            case "ssm", {"Parameter": {"Value": str(value)}}:
                return value.encode()
            case "secretsmanager", {"SecretString": str(value)}:
                return value.encode()
            case "secretsmanager", {"SecretBinary": str(value)}:
                return base64.b64decode(value, validate=True)
    except (ValueError, binascii.Error) as error:
        raise _no_secret(service) from error
    raise _no_secret(service)


def _no_secret(service: str) -> StoreDenied:
    """Returns, for the caller to raise, the error for a response of an AWS service without a secret."""
    return StoreDenied(
        f"the answer of {service} holds no secret: check that {_SERVICES[service].endpoint_variable} or "
        "AWS_ENDPOINT_URL, if set, names that service"
    )
