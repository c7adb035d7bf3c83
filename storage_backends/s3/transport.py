"""Sends signed requests to S3 over connections of our own.

Why not an SDK: it parses its vendor's models for half a second at each cold start, takes several times the CPU a call,
and retries writes by itself (docs/decisions/0007). Requests that this can't send, `carrier.py` gives to the SDK.
"""

from storage_backends.clock import system_now_ms
from storage_backends.s3.config import S3Config
from storage_backends.s3.credentials import CredentialSource, credentials_of
from storage_backends.s3.signature import Scope, path_of, query_of, signed, signing_stamp
from storage_backends.wire.connections import exchange, open_pool
from storage_backends.wire.endpoint import Endpoint
from storage_backends.wire.exchange import Request
from storage_backends.wire.http1 import Response
from storage_backends.wire.pool import Pool


class S3Transport:
    """Sends requests about one bucket of S3 over a pool of our own connections, signed with its credentials."""

    def __init__(
        self, endpoint: Endpoint, scope: Scope, credentials: CredentialSource, pool: Pool, *, checksum: bool
    ) -> None:
        self._endpoint = endpoint
        self._scope = scope
        self._credentials = credentials
        self._pool = pool
        self._checksum = checksum

    async def send(self, request: Request, clock_skew_ms: int) -> Response:
        """Signs one request, sends it once, and returns the response. Raises `StoreUnavailable` if nothing was sent,
        `Ambiguous` if no complete response came, and other `StoreError`s for a request that can't be made."""
        path, query = self._endpoint.path + path_of(request.key), query_of(request.query.items())
        headers = signed(
            await self._credentials.current(),
            self._scope,
            signing_stamp(system_now_ms() + clock_skew_ms),
            request.method,
            path,
            query,
            {"host": self._endpoint.authority, **request.headers},
            request.body,
            checksum=self._checksum and request.method == "PUT",
        )
        target = f"{path}?{query}" if query else path
        return await exchange(self._pool, request.method, target, headers, request.body)

    async def close(self) -> None:
        """Closes the connections."""
        await self._pool.close()


async def open_wire_transport(endpoint: Endpoint, region: str, config: S3Config) -> S3Transport:
    """Returns the transport over connections of our own, of which none is made yet. Raises `StoreError` for a
    configuration that can't be followed."""
    pool = await open_pool(endpoint, config)
    return S3Transport(endpoint, Scope(region), credentials_of(config.credentials), pool, checksum=config.checksum)
