"""Sends requests to S3 and retries those that are safe to retry.

Why not an SDK: it parses its vendor's models for half a second at each cold start, takes several times the CPU a call,
and retries writes by itself (docs/decisions/0007). Proxies (`HTTPS_PROXY`) are not supported.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from storage_backends.backoff import full_jitter
from storage_backends.base import StoreUnavailable, Unknown
from storage_backends.clock import system_now_ms
from storage_backends.s3.answers import Ambiguous, Answer, date_ms, failure_of, is_answer, is_skewed
from storage_backends.s3.config import S3Config
from storage_backends.s3.credentials import CredentialSource, credentials_of, region_of
from storage_backends.s3.dates import signing_stamp
from storage_backends.s3.endpoint import Endpoint, endpoint_of
from storage_backends.s3.http1 import AnswerLost, NeverSent, Response, request_head
from storage_backends.s3.pool import Pool, Timeouts, tls_context
from storage_backends.s3.signature import Scope, path_of, query_of, signed

_UNSIGNED = {"accept-encoding": "identity", "user-agent": "arco-catalog"}  # proxies may change these


@dataclass(frozen=True, slots=True)
class Request:
    """One request: about a key, or about the bucket itself if `key` is empty. Header names are in lower case."""

    method: str
    key: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class _Client:
    """An open connection pool to the bucket, in one event loop."""

    loop: asyncio.AbstractEventLoop
    endpoint: Endpoint
    scope: Scope
    credentials: CredentialSource
    pool: Pool


class S3Client:
    """One bucket, and one pool of connections that opens with the first call and belongs to its event loop."""

    def __init__(
        self, bucket: str, config: S3Config, sleep: Callable[[float], Awaitable[None]], random: Callable[[], float]
    ) -> None:
        self._bucket = bucket
        self._config = config
        self._sleep = sleep
        self._random = random
        self._client: _Client | None = None
        self._clock_skew_ms = 0  # how far the store's clock is ahead of this machine's

    async def read(self, request: Request) -> Answer:
        """Sends a read and retries transient failures. Raises `StoreError`."""
        failure = StoreUnavailable("no attempt was made")
        for pause in full_jitter(self._random):
            try:
                return await self._attempt(request, pause)
            except StoreUnavailable as error:
                failure = error
        raise failure

    async def write(self, request: Request) -> Answer | Unknown:
        """Sends a write, and retries it only after answers that mean it was not applied. Raises `StoreError` only if it
        was not."""
        failure = StoreUnavailable("no attempt was made")
        for pause in full_jitter(self._random):
            try:
                return await self._attempt(request, pause)
            except Ambiguous as error:
                return Unknown(str(error))
            except StoreUnavailable as error:
                failure = error
        raise failure

    async def close(self) -> None:
        """Closes the pool; another call would open a new one."""
        client, self._client = self._client, None
        if client is not None and client.loop is asyncio.get_running_loop():
            await client.pool.close()

    async def _attempt(self, request: Request, pause: float) -> Answer:
        if pause:
            await self._sleep(pause)
        client = await self._connected()
        response = await self._exchange(client, request)
        if is_skewed(response) and (store_ms := date_ms(response)) is not None:
            self._clock_skew_ms = store_ms - system_now_ms()
            response = await self._exchange(client, request)  # safe to repeat: a refused request was not applied
        if not is_answer(response, request.method):
            raise failure_of(response, self._bucket)
        now_ms = date_ms(response)
        return Answer(response.status, response, system_now_ms() if now_ms is None else now_ms)

    async def _exchange(self, client: _Client, request: Request) -> Response:
        path, query = client.endpoint.path + path_of(request.key), query_of(request.query.items())
        headers = signed(
            await client.credentials.current(),
            client.scope,
            signing_stamp(system_now_ms() + self._clock_skew_ms),
            request.method,
            path,
            query,
            {"host": client.endpoint.authority, **request.headers},
            request.body,
        )
        target = f"{path}?{query}" if query else path
        head = request_head(request.method, target, {**headers, **_UNSIGNED}, len(request.body))
        try:
            return await client.pool.send(request.method, head, request.body)
        except NeverSent as error:
            raise StoreUnavailable(str(error)) from error
        except AnswerLost as error:
            raise Ambiguous(str(error)) from error

    async def _connected(self) -> _Client:
        loop = asyncio.get_running_loop()
        if self._client is None or self._client.loop is not loop:
            client = await _open(self._bucket, self._config)  # opens no connection yet
            if self._client is None or self._client.loop is not loop:  # no other call was faster
                self._client = client
        return self._client


async def _open(bucket: str, config: S3Config) -> _Client:
    """Raises `StoreError` for a configuration that can't be followed."""
    region = await region_of(config)
    endpoint = endpoint_of(bucket, region, config)
    tls = await asyncio.to_thread(tls_context, config.ca_bundle) if endpoint.tls else None
    timeouts = Timeouts(config.connect_timeout_s, config.idle_timeout_s)
    pool = Pool(endpoint.host, endpoint.port, tls, config.max_connections, timeouts, system_now_ms)
    return _Client(asyncio.get_running_loop(), endpoint, Scope(region), credentials_of(config.credentials), pool)
