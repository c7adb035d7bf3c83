"""Calls AWS's services, most of which speak JSON, by signed requests of our own.

Source: AWS SDKs and tools reference guide, "Service-specific endpoints"; Smithy, "AWS JSON protocols".
"""

import json
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from storage_backends.base import InvalidContent, StoreDenied, StoreError, StoreUnavailable
from storage_backends.lazy_dataclass import dataclass
from storage_backends.s3.config import S3Config
from storage_backends.s3.credentials import credentials_of
from storage_backends.s3.endpoint import domain_of
from storage_backends.s3.signature import Scope, signed, signing_stamp
from storage_backends.wire.fetch import fetch
from storage_backends.wire.http1 import Response

_CONTENT = ("InvalidMessageContents", "InvalidParameter", "ParameterValueInvalid")
"""Prefixes of the error codes with which AWS's services reject the content of a request."""
_TRANSIENT = (
    *("Throttling", "Throttled", "InternalS", "InternalError", "InternalFailure"),
    *("ServiceUnavailable", "RequestLimitExceeded"),
)


@dataclass(frozen=True, slots=True)
class Service:
    """An AWS service: its name in addresses and signatures, the environment variable by which another endpoint is set,
    and the content type of requests."""

    name: str
    endpoint_variable: str
    content_type: str


async def call(
    service: Service,
    region: str,
    target: str,
    body: Mapping[str, object],
    environment: Mapping[str, str],
    now_ms: Callable[[], int],
    max_bytes: int,
) -> Response:
    """Calls the operation `target` of a service that speaks JSON, and returns the answer, whatever its status. Raises
    `StoreDenied` as `post` does, and `StoreUnavailable` without a whole answer of the service or of a source of
    credentials."""
    sent = json.dumps(body).encode()
    return await post(service, region, {"x-amz-target": target}, sent, environment, now_ms, max_bytes)


async def post(
    service: Service,
    region: str,
    headers: Mapping[str, str],
    body: bytes,
    environment: Mapping[str, str],
    now_ms: Callable[[], int],
    max_bytes: int,
) -> Response:
    """Sends an AWS service one request, signed with the credentials that the variables name, and returns the answer,
    whatever its status. The request goes to the endpoint that a variable names, else to Amazon's in the region. Raises
    `StoreDenied` without credentials, for an address that is not allowed, an endpoint that is no URL and an unknown
    ARCO_S3_CLIENT, `StoreUnavailable` without a whole answer of at most `max_bytes` or if a source of credentials
    does not respond, and another `StoreError` for credentials that are not printable ASCII."""
    configured = environment.get(service.endpoint_variable) or environment.get("AWS_ENDPOINT_URL")
    url = f"{(configured or f'https://{service.name}.{region}.{domain_of(region)}').rstrip('/')}/"
    try:
        parts = urlsplit(url)
        config = S3Config.from_environment(environment)
    except ValueError as error:
        raise StoreDenied(
            f"no request was sent to the AWS service {service.name} at {url!r}, since that URL, or a variable of S3, "
            f"is invalid: {error}"
        ) from error
    keys = await credentials_of(config.credentials).current()
    named = {"host": parts.netloc, "content-type": service.content_type, **headers}
    stamp = signing_stamp(now_ms())
    sent = signed(keys, Scope(region, service.name), stamp, "POST", parts.path, "", named, body)
    return await fetch(url, sent, now_ms, max_bytes, method="POST", body=body, plain_loopback=configured is not None)


def refusal(what: str, response: Response) -> StoreError:
    """Returns the error for a response of an AWS service that speaks JSON with another status than 200: that of
    `refusal_of_code` for the error code in it. `what` is the failed operation."""
    try:
        document = json.loads(response.body)
    except ValueError:
        document = None
    code = str(document.get("__type", "")) if isinstance(document, dict) else ""
    return refusal_of_code(what, response.status, code.rpartition("#")[2])


def refusal_of_code(what: str, status: int, code: str) -> StoreError:
    """Returns the error for a response of an AWS service with this error code, empty for none: `StoreUnavailable` for a
    transient code, status 429 or one from 500 on, `InvalidContent` if the content of the request is at fault, else
    `StoreDenied`. The message has the code, or the status if the code is empty or has more than letters and digits, and
    nothing else of the response. `what` is the failed operation."""
    transient = status >= 500 or status == 429 or code.startswith(_TRANSIENT)
    shown = code if code.isalnum() and len(code) <= 100 else f"status {status}"
    denied = InvalidContent if code.startswith(_CONTENT) else StoreDenied
    return (StoreUnavailable if transient else denied)(f"{what}: {shown}")
