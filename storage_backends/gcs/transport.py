"""Sends requests to GCS over connections of our own. Proxies (`HTTPS_PROXY`) are not supported: the SDK has them."""

import asyncio
from http import HTTPStatus

from storage_backends.base import StoreError
from storage_backends.gcs.address import check_bucket, part_head, target_of
from storage_backends.gcs.config import GcsClient, GcsConfig
from storage_backends.gcs.credentials import TokenSource, tokens_of
from storage_backends.wire.connections import exchange, open_pool
from storage_backends.wire.endpoint import Endpoint, parse_endpoint
from storage_backends.wire.exchange import Request, Transport
from storage_backends.wire.http1 import Response
from storage_backends.wire.multipart import CONTENT_TYPE, encode
from storage_backends.wire.pool import Pool


class GcsTransport:
    """Sends requests about one bucket of GCS over a pool of our own connections, with access tokens."""

    def __init__(
        self, bucket: str, user_project: str | None, endpoint: Endpoint, tokens: TokenSource, pool: Pool
    ) -> None:
        self._bucket = bucket
        self._user_project = user_project
        self._endpoint = endpoint
        self._tokens = tokens
        self._pool = pool

    async def send(self, request: Request, _clock_skew_ms: int) -> Response:
        """Sends one request with an access token, and returns the response. After the status 401 it sends the request a
        second time with a new token, if there is one: a request with that response was not applied. Raises
        `StoreUnavailable` if nothing was sent, or if the renewal after a 401 failed for the moment, `Ambiguous` if no
        complete response came, and other `StoreError`s for a request that can't be made."""
        token = await self._tokens.current()
        answer = await self._exchange(request, token)
        if answer.status == HTTPStatus.UNAUTHORIZED and (other := await self._tokens.renewed(token)) != token:
            answer = await self._exchange(request, other)  # safe: a refused request was not applied
        return answer

    async def _exchange(self, request: Request, token: str) -> Response:
        """Sends a request to GCS once, with this access token, and returns the response. Raises as `send` does."""
        headers = {"host": self._endpoint.authority, **request.headers}
        if token:
            headers["authorization"] = f"Bearer {token}"
        target = self._endpoint.path + target_of(self._bucket, request, self._user_project)
        body = request.body
        if request.parts:
            headers["content-type"] = CONTENT_TYPE
            body = encode([part_head(self._bucket, part, self._user_project) for part in request.parts])
        return await exchange(self._pool, request.method, target, headers, body)

    async def close(self) -> None:
        """Closes the connections to GCS: idle ones at once, and others when their request ends."""
        await self._pool.close()


async def open_transport(bucket: str, config: GcsConfig) -> Transport:
    """Returns the transport that was configured: connections of our own, of which none is made yet, or the SDK. Raises
    `StoreError` for a configuration that can't be followed."""
    check_bucket(bucket)
    endpoint = parse_endpoint(config.endpoint, "GCS")
    if config.client is GcsClient.SDK:
        return await asyncio.to_thread(_open_sdk, bucket, config)
    pool = await open_pool(endpoint, config)
    return GcsTransport(bucket, config.user_project, endpoint, tokens_of(config), pool)


def _open_sdk(bucket: str, config: GcsConfig) -> Transport:
    """Returns the transport over Google's SDK. Raises `StoreError` if that is not installed, and as `open_sdk` does."""
    try:
        from storage_backends.gcs.sdk import open_sdk
    except ModuleNotFoundError as error:
        raise StoreError(
            "ARCO_GCS_CLIENT=sdk needs google-cloud-storage: install the extra 'gcs' of arco-catalog"
        ) from error
    return open_sdk(bucket, config)
