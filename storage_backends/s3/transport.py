"""Sends signed requests to S3 over connections of our own.

Why not an SDK: it parses its vendor's models for half a second at each cold start, takes several times the CPU a call,
and retries writes by itself (docs/decisions/0007). Requests that this can't send, `carrier.py` gives to the SDK.
"""

from functools import lru_cache

from storage_backends.clock import system_now_ms
from storage_backends.s3.config import S3Config
from storage_backends.s3.credentials import CredentialSource, credentials_of
from storage_backends.s3.signature import Credentials, Scope, path_of, query_of, signed, signing_stamp
from storage_backends.wire.connections import exchange_bytes, head_of, open_pool
from storage_backends.wire.endpoint import Endpoint
from storage_backends.wire.exchange import Request
from storage_backends.wire.http1 import Response
from storage_backends.wire.pool import Pool

READ_SIGNED_MS = 60_000
"""How long the signed head of a read is sent again: a small part of the 15 minutes for which S3 accepts it."""
REMEMBERED_HEADS = 512


class S3Transport:
    """Sends requests about one bucket of S3 over a pool of our own connections, signed with its credentials. Equal
    reads of an object within a minute have one signature."""

    def __init__(
        self, endpoint: Endpoint, scope: Scope, credentials: CredentialSource, pool: Pool, *, checksum: bool
    ) -> None:
        self._endpoint = endpoint
        self._scope = scope
        self._credentials = credentials
        self._pool = pool
        self._checksum = checksum
        self._head_of_read = lru_cache(REMEMBERED_HEADS)(self._sign_read)

    async def send(self, request: Request, clock_skew_ms: int) -> Response:
        """Signs one request, sends it once, and returns the response, whatever its status; equal reads of an object
        within a minute are signed once. Raises `StoreUnavailable` if nothing was sent, `Ambiguous` if no complete
        response came, and other `StoreError`s for a request that can't be made."""
        credentials, now_ms = await self._credentials.current(), system_now_ms() + clock_skew_ms
        if request.method == "GET" and not request.query:
            minute_ms = now_ms - now_ms % READ_SIGNED_MS
            head = self._head_of_read(credentials, minute_ms, request.key, tuple(request.headers.items()))
        else:
            head = self._sign(credentials, now_ms, request)
        return await exchange_bytes(self._pool, request.method, head, request.body)

    def _sign_read(self, credentials: Credentials, at_ms: int, key: str, headers: tuple[tuple[str, str], ...]) -> bytes:
        """Returns the signed head of a GET, which `_head_of_read` caches."""
        return self._sign(credentials, at_ms, Request("GET", key, dict(headers)))

    def _sign(self, credentials: Credentials, at_ms: int, request: Request) -> bytes:
        """Returns the head of a request, signed at a time in milliseconds since 1970. Raises `StoreError` for an
        invalid header."""
        path, query = self._endpoint.path + path_of(request.key), query_of(request.query.items())
        headers = signed(
            credentials,
            self._scope,
            signing_stamp(at_ms),
            request.method,
            path,
            query,
            {"host": self._endpoint.authority, **request.headers},
            request.body,
            checksum=self._checksum and request.method == "PUT",
        )
        return head_of(request.method, f"{path}?{query}" if query else path, headers, len(request.body))

    async def close(self) -> None:
        """Closes the connections to S3."""
        await self._pool.close()


async def open_wire_transport(endpoint: Endpoint, region: str, config: S3Config) -> S3Transport:
    """Returns the transport over connections of our own, of which none is made yet. Raises `StoreError` for a
    configuration that can't be followed."""
    pool = await open_pool(endpoint, config)
    return S3Transport(endpoint, Scope(region), credentials_of(config.credentials), pool, checksum=config.checksum)
