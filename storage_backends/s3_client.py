"""Asks S3, and what speaks its protocol, until the answer means something. Alone in importing aiobotocore.

What a status or an error means is decided in one place, `_meaning`. Sources: S3 user guide, "Conditional requests"; API
reference, "Error responses"; botocore and aiohttp as read and measured (notes/limits.md, sections 1 and 4).
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import cache
from http import HTTPStatus
from types import SimpleNamespace
from typing import Any

import aiohttp
from aiobotocore.config import AioConfig  # type: ignore[import-untyped]
from aiobotocore.httpsession import AIOHTTPSession  # type: ignore[import-untyped]
from aiobotocore.session import get_session  # type: ignore[import-untyped]
from botocore import exceptions as botocore  # type: ignore[import-untyped]
from botocore.handlers import add_expect_header  # type: ignore[import-untyped]
from botocore.loaders import create_loader  # type: ignore[import-untyped]
from botocore.parsers import ResponseParserError  # type: ignore[import-untyped]

from storage_backends.backoff import full_jitter
from storage_backends.base import StoreDenied, StoreError, StoreUnavailable, Unknown
from storage_backends.clock import system_now_ms

CONNECT_TIMEOUT_S = 3
READ_TIMEOUT_S = 10
POOL_SIZE = 64

# Statuses that say how things stand, as does a 404 that names the key; any other of 300 or more is a failure.
_ANSWERS = frozenset(
    {HTTPStatus.NOT_MODIFIED, HTTPStatus.PRECONDITION_FAILED, HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE}
)

# Answers after which nothing has landed and the same request may succeed.
_AGAIN = frozenset(
    {
        "ConditionalRequestConflict",
        "OperationAborted",
        "RequestTimeout",  # a 400: the body did not arrive in time
        "BandwidthLimitExceeded",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "SlowDown",
        "SlowDownRead",
        "SlowDownWrite",
        "Throttling",
        "ThrottlingException",
        "TooManyRequests",
        "TooManyRequestsException",
    }
)
_DENIED = frozenset({"ExpiredToken", "InvalidToken", "TokenRefreshRequired"})  # these are 400s

_VENDOR_ERRORS = (
    botocore.ClientError,  # the store answered with a status of 300 or more
    botocore.BotoCoreError,
    ResponseParserError,
    aiohttp.ClientError,  # reading a body: aiobotocore lets some of these through
    OSError,
)
_NO_CREDENTIALS = (
    botocore.NoCredentialsError,
    botocore.PartialCredentialsError,
    botocore.CredentialRetrievalError,
    botocore.TokenRetrievalError,
    botocore.NoAuthTokenError,
)
_CONNECTION_ERRORS = (
    botocore.HTTPClientError,
    botocore.ConnectionError,
    botocore.IncompleteReadError,
    ResponseParserError,
    aiohttp.ClientError,
    OSError,
)


class _Ambiguous(StoreUnavailable):
    """The request left, and what became of it is not known."""


@dataclass(slots=True)
class _Wire:
    """What went out in one attempt, as aiohttp tells it.

    aiohttp sends a PUT or DELETE once more by itself when the connection dies under it, so what we are told in the end
    may be about a second sending, and the first may have landed.
    """

    requests: int = 0
    sendings: int = 0

    @property
    def never_left(self) -> bool:
        return self.requests > 0 and self.sendings == 0

    @property
    def resent(self) -> bool:
        return self.sendings > self.requests


_wire: ContextVar[_Wire] = ContextVar("_wire")


async def _request_began(_session: aiohttp.ClientSession, _context: SimpleNamespace, _params: object) -> None:
    if wire := _wire.get(None):
        wire.requests += 1


async def _headers_left(_session: aiohttp.ClientSession, _context: SimpleNamespace, _params: object) -> None:
    if wire := _wire.get(None):
        wire.sendings += 1


_TRACE = aiohttp.TraceConfig()
_TRACE.on_request_start.append(_request_began)
_TRACE.on_request_headers_sent.append(_headers_left)
_TRACE.freeze()


class _TracedSession(AIOHTTPSession):  # type: ignore[misc]
    """aiobotocore's session, telling `_wire` what goes out. If a new version of it no longer calls this method, no
    request counts as never sent, which is safe."""

    async def _get_session(self, proxy_url: str | None) -> aiohttp.ClientSession:
        session: aiohttp.ClientSession = await super()._get_session(proxy_url)
        if _TRACE not in session.trace_configs:
            session.trace_configs.append(_TRACE)
        return session


@dataclass(frozen=True, slots=True)
class Answer:
    """A definite answer: success, or a status that says how things stand. `fields` are the SDK's, with a body as bytes;
    `now_ms` is the store's clock, to the second."""

    status: int
    fields: Mapping[str, Any]
    now_ms: int


class S3Client:
    """One bucket, and one pool of connections that opens with the first call and belongs to its event loop."""

    def __init__(self, bucket: str, sleep: Callable[[float], Awaitable[None]], random: Callable[[], float]) -> None:
        self._bucket = bucket
        self._sleep = sleep
        self._random = random
        self._connecting: asyncio.Task[Any] | None = None

    async def read(self, operation: str, **request: object) -> Answer:
        """Asks, again and again while it may help. Raises `StoreError`."""
        failure = StoreUnavailable("not asked")
        for pause in full_jitter(self._random):
            try:
                return await self._attempt(operation, request, pause, _Wire())
            except StoreUnavailable as error:
                failure = error
        raise failure

    async def write(self, operation: str, **request: object) -> Answer | Unknown:
        """Sends a change, again only while nothing can have landed. Raises `StoreError` only if nothing has."""
        failure: StoreError = StoreUnavailable("not asked")
        may_have_landed = False
        for pause in full_jitter(self._random):
            wire = _Wire()
            try:
                return await self._attempt(operation, request, pause, wire)
            except _Ambiguous as error:
                return Unknown(str(error))
            except StoreUnavailable as error:
                failure = error
                may_have_landed |= wire.resent
            except StoreError as error:
                failure = error
                may_have_landed |= wire.resent
                break
        if may_have_landed:
            return Unknown(str(failure))
        raise failure

    async def close(self) -> None:
        """Closes the pool; another call would open a new one."""
        connecting, self._connecting = self._connecting, None
        if connecting is not None and connecting.get_loop() is asyncio.get_running_loop():
            await (await connecting).close()

    async def _attempt(self, operation: str, request: Mapping[str, object], pause: float, wire: _Wire) -> Answer:
        if pause:
            await self._sleep(pause)
        client = await self._connected()
        token = _wire.set(wire)
        try:
            return await self._ask(client, operation, request)
        except _VENDOR_ERRORS as error:
            raise _meaning(error, wire, self._bucket) from error
        finally:
            _wire.reset(token)

    async def _ask(self, client: Any, operation: str, request: Mapping[str, object]) -> Answer:
        try:
            fields = await getattr(client, operation)(Bucket=self._bucket, **request)
            if "Body" in fields:
                async with fields["Body"] as body:
                    fields["Body"] = await body.read()
        except botocore.ClientError as error:
            fields = error.response
            if not _is_answer(fields, operation):
                raise
        return Answer(_status(fields), fields, _date_ms(fields))

    async def _connected(self) -> Any:
        loop = asyncio.get_running_loop()
        connecting = self._connecting
        if connecting is None or connecting.get_loop() is not loop:
            connecting = self._connecting = loop.create_task(_connect())
        try:
            return await asyncio.shield(connecting)  # the first caller's deadline is not the others'
        except StoreError:
            if self._connecting is connecting:
                self._connecting = None
            raise


@cache
def _service_models() -> Any:
    """The SDK's description of S3, a megabyte of JSON, which every session would read again."""
    return create_loader()


async def _connect() -> Any:
    """A client after the usual `AWS_*` variables, with everything off that resends or costs a round trip."""
    custom_endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    config = AioConfig(
        connect_timeout=CONNECT_TIMEOUT_S,
        read_timeout=READ_TIMEOUT_S,
        max_pool_connections=POOL_SIZE,
        retries={"mode": "standard", "total_max_attempts": 1},
        request_checksum_calculation="when_required",  # compatible stores stumble over the trailers
        response_checksum_validation="when_required",
        s3={"addressing_style": "path" if custom_endpoint else "auto"},
        http_session_cls=_TracedSession,
    )
    session = get_session()
    session.register_component("data_loader", _service_models())
    try:
        client = await session.create_client("s3", config=config).__aenter__()
    except (botocore.BotoCoreError, ValueError) as error:
        raise StoreError(f"no S3 client can be made: {error}") from error
    client.meta.events.unregister("before-call.s3", add_expect_header)  # saves a round trip a PUT
    return client


def _is_answer(fields: Mapping[str, Any], operation: str) -> bool:
    if _status(fields) == HTTPStatus.NOT_FOUND:  # of a bucket, or from a proxy, it would not say that a key is free
        return _code(fields) == "NoSuchKey" or operation == "head_object"  # the answer to a HEAD has no body
    return _status(fields) in _ANSWERS


def _meaning(error: Exception, wire: _Wire, bucket: str) -> StoreError:
    """What a failed attempt says of the request: `StoreUnavailable` that nothing landed and it may be sent again,
    `_Ambiguous` that it may have landed, any other `StoreError` that nothing landed and nothing will."""
    if isinstance(error, botocore.ClientError):
        return _meaning_of_status(error, bucket)
    if isinstance(error, _NO_CREDENTIALS):
        return StoreDenied(str(error))
    if isinstance(error, _CONNECTION_ERRORS):
        reason = f"{type(error).__name__}: {error}"
        return StoreUnavailable(reason) if wire.never_left else _Ambiguous(reason)
    return StoreError(str(error))


def _meaning_of_status(error: Any, bucket: str) -> StoreError:
    status, code = _status(error.response), _code(error.response)
    if code == "NoSuchBucket":
        return StoreError(f"there is no bucket {bucket!r}")
    if code in _AGAIN or status == 429:
        return StoreUnavailable(str(error))
    if status in (401, 403) or code in _DENIED:
        return StoreDenied(str(error))
    if status >= 500 and status != 501:  # 501: a header that this store does not know
        return _Ambiguous(str(error))
    return StoreError(str(error))


def _status(fields: Mapping[str, Any]) -> int:
    return int(fields["ResponseMetadata"]["HTTPStatusCode"])


def _code(fields: Mapping[str, Any]) -> str:
    return str(fields.get("Error", {}).get("Code", ""))


def _date_ms(fields: Mapping[str, Any]) -> int:
    date = fields["ResponseMetadata"]["HTTPHeaders"].get("date")
    return int(parsedate_to_datetime(date).timestamp() * 1_000) if date else system_now_ms()
