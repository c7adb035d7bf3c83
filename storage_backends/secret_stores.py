"""Reads one secret of a cloud's store of secrets, by its usual reference:

    arn:aws:secretsmanager:REGION:ACCOUNT:secret:NAME     AWS Secrets Manager
    arn:aws:ssm:REGION:ACCOUNT:parameter/NAME             AWS Systems Manager, Parameter Store
    projects/PROJECT/secrets/NAME[/versions/VERSION]      Google Secret Manager
    https://VAULT.vault.azure.net/secrets/NAME[/VERSION]  Azure Key Vault

Requests to AWS are signed with the credentials of the catalog's S3 store. For the other clouds their libraries find the
credentials; they are imported when a secret is read, and only that cloud's. They block, so they are called in threads.
Sources: Google Secret Manager REST reference, projects.secrets.versions.access; Azure Key Vault REST reference, Get
Secret.
"""

import asyncio
import base64
import json
import re
from collections.abc import Callable, Mapping

from storage_backends.base import StoreDenied, StoreError, StoreUnavailable
from storage_backends.wire.fetch import failure_of, fetch

MAX_BYTES = 256 << 10
"""No store of secrets keeps larger ones."""

_AWS = re.compile(r"arn:aws[a-z-]*:(secretsmanager|ssm):([a-z0-9-]+):[0-9]{12}:(?:secret:|parameter/)\S+")
_GOOGLE = re.compile(r"projects/[^/\s]+/secrets/[^/\s]+(/versions/[^/\s]+)?")
_AZURE = re.compile(
    r"https://[a-z0-9-]+\.vault\.(?:azure\.net|azure\.cn|usgovcloudapi\.net)/secrets/[A-Za-z0-9-]+(?:/[0-9a-f]{32})?"
)
_GOOGLE_SCOPE = "https://www.googleapis.com/auth/cloud-platform"


def is_reference(text: str) -> bool:
    """Whether a text has the form of a reference to a secret in one of the clouds' stores of secrets; reads nothing."""
    return any(form.fullmatch(text) for form in (_AWS, _GOOGLE, _AZURE))


async def read_secret(reference: str, environment: Mapping[str, str], now_ms: Callable[[], int]) -> bytes:
    """Returns the bytes of the current version of a secret, or of the version that the reference names; `environment`
    has the variables that name credentials for AWS. Raises `StoreDenied` if there is none, if it may not be read, if
    the cloud's library is not installed, or if the reference has no known form, and `StoreUnavailable` if the store of
    secrets does not respond or fails for now. Either may mean that a source of credentials does not respond. No error
    quotes the secret."""
    if match := _AWS.fullmatch(reference):
        from storage_backends.s3.secrets import read_aws_secret  # not for functions on another cloud

        return await read_aws_secret(match[1], match[2], reference, environment, now_ms)
    if match := _GOOGLE.fullmatch(reference):
        version = "" if match[1] else "/versions/latest"
        token = await asyncio.to_thread(_google_token)
        url = f"https://secretmanager.googleapis.com/v1/{reference}{version}:access"
        return google_payload(await _ask(url, token, now_ms))
    if match := _AZURE.fullmatch(reference):
        token = await asyncio.to_thread(_azure_token, reference.split("/")[2].partition(".")[2])
        return azure_value(await _ask(f"{reference}?api-version=7.4", token, now_ms))
    raise StoreDenied(
        f"{reference!r} is no reference to a secret: expected an ARN of Secrets Manager or Parameter Store, "
        "projects/PROJECT/secrets/NAME, or https://VAULT.vault.azure.net/secrets/NAME"
    )


async def _ask(url: str, token: str, now_ms: Callable[[], int]) -> bytes:
    """Requests a secret over a new connection, and returns the response body. `now_ms` is the clock by which
    connections age. Raises `StoreUnavailable` without a response or for one that may pass, and another `StoreError` for
    any other but 200."""
    response = await fetch(url, {"authorization": f"Bearer {token}"}, now_ms, MAX_BYTES)
    if response.status != 200:
        raise failure_of("the secret cannot be read: the store of secrets", response)
    return response.body


def google_payload(body: bytes) -> bytes:
    """Returns the decoded bytes of the secret in a response of Google Secret Manager. Raises `StoreDenied` if it has
    none."""
    try:
        match json.loads(body):
            case {"payload": {"data": str(data)}}:
                return base64.b64decode(data, validate=True)
    except ValueError as error:
        raise StoreDenied(
            "the answer of Google Secret Manager holds no secret that can be read: it is not JSON, or the secret in it "
            "is not base64"
        ) from error
    raise StoreDenied(
        "the answer of Google Secret Manager holds no secret that can be read: it has no string payload.data"
    )


def azure_value(body: bytes) -> bytes:
    """Returns the secret in a response of Azure Key Vault, as bytes of UTF-8. Raises `StoreDenied` if it has none."""
    try:
        match json.loads(body):
            case {"value": str(value)}:
                return value.encode()
    except ValueError as error:
        raise StoreDenied(
            "the answer of Azure Key Vault holds no secret that can be read: it is not JSON, or not valid Unicode"
        ) from error
    raise StoreDenied("the answer of Azure Key Vault holds no secret that can be read: it has no string value")


def _google_token() -> str:
    """Returns an access token for Google Cloud, by google-auth's own search for credentials. Blocks. Raises
    `StoreUnavailable` if Google's token server does not respond, and `StoreDenied` without that library or credentials
    and for any other failure: that server fails, or the metadata server of a machine does not respond."""
    try:
        import requests
        from google import auth
        from google.auth.exceptions import GoogleAuthError, TransportError
        from google.auth.transport.requests import Request
    except ModuleNotFoundError as error:
        raise _not_installed("google-auth", "gcs") from error
    try:
        credentials = auth.default(scopes=[_GOOGLE_SCOPE])[0]
        credentials.refresh(Request(requests.Session()))
    except TransportError as error:
        raise _failed(StoreUnavailable, type(error).__name__) from error
    except GoogleAuthError as error:
        raise _failed(StoreDenied, type(error).__name__) from error
    return str(credentials.token)


def _azure_token(domain: str) -> str:
    """Returns a token of Entra ID for the key vaults under `domain`, by azure-identity's own search for credentials.
    Blocks. Raises `StoreDenied` without that library, and if the search finds no token, also where a server does not
    respond, for which azure-identity has the same error; `StoreUnavailable` for any other error of Azure's."""
    try:
        from azure.core.exceptions import AzureError, ClientAuthenticationError
        from azure.identity import DefaultAzureCredential
    except ModuleNotFoundError as error:
        raise _not_installed("azure-identity", "azure") from error
    try:
        return DefaultAzureCredential().get_token(f"https://{domain}/.default").token
    except ClientAuthenticationError as error:
        raise _failed(StoreDenied, type(error).__name__) from error
    except AzureError as error:
        raise _failed(StoreUnavailable, type(error).__name__) from error


def _failed(kind: type[StoreError], why: str) -> StoreError:
    """Returns, for the caller to raise, the error of the class `kind` for a secret that can't be read without an access
    token."""
    return kind(f"the secret cannot be read, because the library of its cloud got no access token: {why}")


def _not_installed(library: str, extra: str) -> StoreDenied:
    """Returns, for the caller to raise, the error for a secret that can't be read, since a cloud's library is not
    installed."""
    return StoreDenied(
        f"the secret cannot be read: {library} is not installed: install the extra '{extra}' of arco-catalog"
    )
