"""Sends requests to S3 by Amazon's SDK, where our own connections can't (directory buckets, ARNs, proxies) or where
ARCO_S3_CLIENT names it.

aiobotocore finds the address, signs and sends. Each request goes out once, and its response is taken before the SDK
reads it, so what responses mean, and what is sent again, is as it is over our own connections. Of the modules for S3,
only this one imports aiobotocore and aiohttp.
"""

import asyncio
import os
import ssl
from contextlib import AsyncExitStack
from http import HTTPStatus
from typing import Any
from xml.sax.saxutils import escape

import aiohttp
from aiobotocore.config import AioConfig  # type: ignore[import-untyped]
from aiobotocore.credentials import AioCredentials  # type: ignore[import-untyped]
from aiobotocore.httpsession import AIOHTTPSession  # type: ignore[import-untyped]
from aiobotocore.session import get_session  # type: ignore[import-untyped]
from botocore.credentials import ReadOnlyCredentials  # type: ignore[import-untyped]
from botocore.exceptions import BotoCoreError, ClientError  # type: ignore[import-untyped]
from botocore.loaders import Loader  # type: ignore[import-untyped]

from storage_backends.base import StoreError, StoreUnavailable
from storage_backends.s3.config import Addressing, S3Config
from storage_backends.s3.credentials import CredentialSource, credentials_of
from storage_backends.s3.deletion import keys_in
from storage_backends.wire.exchange import Ambiguous, Request
from storage_backends.wire.http1 import Response, check_headers
from storage_backends.wire.sdk_responses import check_end, read_body

_OPERATIONS = {"GET": "get_object", "HEAD": "head_object", "PUT": "put_object", "DELETE": "delete_object"}
_OF_BUCKETS = {"GET": "list_objects_v2", "POST": "delete_objects"}
_PARAMETERS = {  # the SDK's names of headers and of query parameters
    "if-match": "IfMatch",
    "if-none-match": "IfNoneMatch",
    "range": "Range",
    "x-amz-expected-bucket-owner": "ExpectedBucketOwner",
    "x-amz-request-payer": "RequestPayer",
    "x-amz-server-side-encryption": "ServerSideEncryption",
    "x-amz-server-side-encryption-aws-kms-key-id": "SSEKMSKeyId",
    "prefix": "Prefix",
    "encoding-type": "EncodingType",
    "continuation-token": "ContinuationToken",
}
# No profile and no file of this process has a say: the configuration does, as on the wire.
_NO_FILES = {
    "profile": (None, None, None, None),
    "config_file": (None, None, os.devnull, None),
    "credentials_file": (None, None, os.devnull, None),
}
# What the SDK knows of S3, read once a process: some 200 ms of CPU, which each further store would pay.
_MODELS = Loader()
_NEVER_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.ClientHttpProxyError)


class _UnreadAnswer(Exception):
    """Raised within a call of the SDK, to end it with the response of the store before the SDK reads it."""

    def __init__(self, response: Response) -> None:
        super().__init__(response.status)
        self.response = response


class SdkTransport:
    """Sends requests about one bucket of S3 by a client of Amazon's SDK."""

    def __init__(self, bucket: str, config: S3Config, client: Any, http: AIOHTTPSession, stack: AsyncExitStack) -> None:
        self._bucket = bucket
        self._config = config
        self._client = client
        self._http = http
        self._stack = stack
        client.meta.events.register("before-send.s3", self._carry)

    async def send(self, request: Request, clock_skew_ms: int) -> Response:
        """Sends one request, once, by the SDK, and returns the response. The SDK signs by this machine's clock:
        `clock_skew_ms` is not used. If the store denies the session that a directory bucket needs, that is the
        response. Raises `StoreUnavailable` if the request was surely not sent, `Ambiguous` if no complete response
        came, also where the time was over before it was sent or the CA bundle can't be read, and other `StoreError`s
        for a request that can't be sent."""
        check_headers(request.headers)
        operation = _OPERATIONS[request.method] if request.key else _OF_BUCKETS[request.method]
        try:
            async with asyncio.timeout(self._config.exchange_timeout_s):
                await getattr(self._client, operation)(**self._parameters(request))
        except _UnreadAnswer as answer:
            return answer.response
        except ClientError as error:
            return _answer_for_a_session(error)
        except BotoCoreError as error:
            raise _never_sent(error) from error
        except RuntimeError as error:  # a session that is over, by this machine's clock, when it begins
            raise StoreError(
                f"the SDK of AWS can't make the request, perhaps because this machine's clock is wrong: {error}"
            ) from error
        except TimeoutError as error:
            raise Ambiguous(f"no whole answer of the store came within {self._config.exchange_timeout_s} s") from error
        raise Ambiguous("the SDK of AWS ended a call without an answer of the store")

    async def close(self) -> None:
        """Closes the connections of Amazon's SDK to S3."""
        await self._stack.aclose()

    def _parameters(self, request: Request) -> dict[str, Any]:
        """Returns a request as the arguments of a method of the SDK's client. Headers and query parameters that the SDK
        has no argument for, or sets itself, are left out."""
        given = {**request.headers, **request.query}
        parameters: dict[str, Any] = {_PARAMETERS[name]: value for name, value in given.items() if name in _PARAMETERS}
        if "max-keys" in given:
            parameters["MaxKeys"] = int(given["max-keys"])
        if request.key:
            parameters["Key"] = request.key
        if request.method == "POST":  # the SDK spells it, and its checksum, by itself
            objects = [{"Key": key} for key in keys_in(request.body)]
            parameters["Delete"] = {"Quiet": True, "Objects": objects}
        if request.method == "PUT":
            parameters["Body"] = request.body
            if self._config.checksum:
                parameters["ChecksumAlgorithm"] = "SHA256"
        return {"Bucket": self._bucket, **parameters}

    async def _carry(self, request: Any, event_name: str, **_context: object) -> None:
        """Sends a request that the SDK has signed, and raises `_UnreadAnswer` with the response, which ends the SDK's
        call; raises a `StoreError` if there is no complete response. Does nothing for the request by which the SDK
        opens a session: the SDK sends that one."""
        if event_name.endswith(".CreateSession"):
            return  # the SDK's own, for a directory bucket
        request.headers.pop("Expect", None)  # not signed; the wire sends none, and not all servers answer one
        request.stream_output = True  # the body is read below, up to its bound
        try:
            answer = await self._http.send(request)
        except BotoCoreError as error:
            raise _failure(error) from error
        try:
            body = await read_body(answer.raw, self._config.max_answer_bytes)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Ambiguous(f"the connection to the store was lost or timed out: {error!r}") from error
        response = Response(answer.status_code, dict(answer.headers), body)
        check_end(request.method, response)
        raise _UnreadAnswer(response)


class _Once(AIOHTTPSession):  # type: ignore[misc]
    """The SDK's HTTP session, changed so that it sends each request once: aiohttp by default resends an idempotent
    request when a kept connection breaks during it, and any request to where a redirect leads."""

    async def _get_session(self, proxy_url: str | None) -> "_SessionWithoutRedirects":
        """Returns a session for requests directly or through the proxy, with the resending by aiohttp switched off, in
        a wrapper that follows no redirect."""
        session: aiohttp.ClientSession = await super()._get_session(proxy_url)
        session._retry_connection = False
        return _SessionWithoutRedirects(session)


class _SessionWithoutRedirects:
    """A session of aiohttp that follows no redirect."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def request(self, method: str, **options: Any) -> aiohttp.ClientResponse:
        """Sends one request over the session of aiohttp, and returns the response; follows no redirect."""
        return await self._session.request(method, **options, allow_redirects=False)


class _Keys(AioCredentials):  # type: ignore[misc]
    """The SDK's credentials object, which reads the configured keys anew for each request."""

    def __init__(self, source: CredentialSource) -> None:
        super().__init__("", "")
        self._source = source

    async def get_frozen_credentials(self) -> Any:
        """Returns the configured keys as they are now, as the SDK's tuple of access key, secret key and token. Raises
        as the source of credentials does."""
        keys = await self._source.current()
        return ReadOnlyCredentials(keys.access_key, keys.secret_key, keys.token)


class _Provider:
    """Gives the SDK the configured keys, as the SDK's credential providers do."""

    def __init__(self, keys: _Keys) -> None:
        self._keys = keys

    async def load_credentials(self) -> _Keys:
        """Returns the object by which the SDK reads the configured keys."""
        return self._keys


async def open_sdk_transport(bucket: str, region: str, config: S3Config, proxy: str) -> SdkTransport:
    """Returns a transport by the SDK, through `proxy` if that is not empty. Nothing is sent yet. Raises `StoreError`
    for a configuration that can't be followed, except a CA bundle that can't be read, with which requests fail."""
    session = get_session(_NO_FILES)
    session.register_component("data_loader", _MODELS)
    session.register_component("credential_provider", _Provider(_Keys(credentials_of(config.credentials))))
    trusted = config.ca_bundle or ssl.get_default_verify_paths().cafile or True
    proxies = {"http": proxy, "https": proxy} if proxy else {}
    path = config.addressing is Addressing.AUTO and config.endpoint_url
    settings = AioConfig(
        retries={"total_max_attempts": 1},
        connect_timeout=config.connect_timeout_s,
        read_timeout=config.idle_timeout_s,
        proxies=proxies,
        use_fips_endpoint=config.fips,
        use_dualstack_endpoint=config.dualstack,
        ignore_configured_endpoint_urls=True,
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        s3={"addressing_style": "path" if path else config.addressing.value},
    )
    http = _Once(
        verify=trusted,
        proxies=proxies,
        timeout=(config.connect_timeout_s, config.idle_timeout_s),
        max_pool_connections=config.max_connections,
    )
    stack = AsyncExitStack()
    try:
        client = await stack.enter_async_context(
            session.create_client(
                "s3", region_name=region, endpoint_url=config.endpoint_url, verify=trusted, config=settings
            )
        )
        await stack.enter_async_context(http)
    except (BotoCoreError, ValueError) as error:
        await stack.aclose()
        raise StoreError(f"no S3 client can be made: {error}") from error
    return SdkTransport(bucket, config, client, http, stack)


def _failure(error: BotoCoreError) -> StoreError:
    """Returns the store's error for an error of the SDK while it sent a request: `StoreUnavailable` if there was no
    connection, `Ambiguous` for any other exception below the SDK, as when the response was lost or a CA bundle can't
    be read, `StoreError` for a request that can't be sent."""
    cause = error.kwargs.get("error")
    if isinstance(cause, _NEVER_SENT):
        return StoreUnavailable(f"no connection to the store could be made: {error}")
    if isinstance(cause, Exception):
        return Ambiguous(f"the store's answer to a read or write was lost: {error}")
    return StoreError(f"the SDK of AWS can't make the request: {error}")


def _never_sent(error: BotoCoreError) -> StoreError:
    """Returns the store's error for an error of the SDK before it sent a request. The SDK first opens a session by a
    request of its own: if that failed, it is `StoreUnavailable`, else `StoreError`."""
    if isinstance(error.kwargs.get("error"), Exception):
        return StoreUnavailable(f"no session of S3 Express could be made: {error}")
    return StoreError(f"the SDK of AWS can't make the request: {error}")


def _answer_for_a_session(error: ClientError) -> Response:
    """Returns the store's response to a request by which the SDK opens a session, as if it were the response to the
    actual request. Raises `StoreUnavailable` for a status from 500 on: the actual request was not sent, and can be sent
    again."""
    details, about = error.response.get("Error", {}), error.response.get("ResponseMetadata", {})
    if about.get("HTTPStatusCode", 500) >= HTTPStatus.INTERNAL_SERVER_ERROR:
        raise StoreUnavailable(
            f"the request was not sent: S3 Express answered a server error to the opening of a session: {error}"
        ) from error
    code, message = (escape(details.get(name, "")) for name in ("Code", "Message"))
    body = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>"
    return Response(about.get("HTTPStatusCode", 500), about.get("HTTPHeaders", {}), body.encode())
