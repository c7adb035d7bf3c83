"""Sends requests to Azure over connections of our own, without the SDK.

Why not the SDK, which `sdk.py` has: it takes some five times the CPU a call, and over half a second to import. Only
the SDK takes a proxy (`HTTPS_PROXY`).
"""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from http import HTTPStatus

from storage_backends.azure.authorization import API_VERSION, Authorization, Authorizer, authorizer_of
from storage_backends.azure.config import AzureConfig, ClientKind
from storage_backends.azure.endpoint import ContainerEndpoint, endpoint_of
from storage_backends.azure.signature import date_stamp, query_of
from storage_backends.clock import system_now_ms
from storage_backends.wire.connections import exchange, open_pool
from storage_backends.wire.exchange import Request, Transport
from storage_backends.wire.http1 import Response, request_head
from storage_backends.wire.multipart import CONTENT_TYPE, encode
from storage_backends.wire.pool import Pool, tls_context

_NO_BODY = {"content-length": "0"}


class AzureTransport:
    """Sends requests about one Azure container over a pool of our own connections, authorized by its credentials."""

    def __init__(self, endpoint: ContainerEndpoint, authorizer: Authorizer, pool: Pool) -> None:
        self._endpoint = endpoint
        self._authorizer = authorizer
        self._pool = pool

    async def send(self, request: Request, clock_skew_ms: int) -> Response:
        """Sends one request, authorized by the credentials, and returns the response. After the status 401 it sends the
        request a second time with renewed credentials, if there are any: a request with that response was not applied.
        Raises `StoreUnavailable` if nothing was sent,
        `Ambiguous` if no complete response came, and other `StoreError`s for a request that can't be made."""
        path = self._endpoint.path_to(request.key)
        stamped = {**request.headers, "x-ms-date": date_stamp(system_now_ms() + clock_skew_ms)}
        authorized, answer = await self._send_once(request, path, stamped)
        if answer.status == HTTPStatus.UNAUTHORIZED and await self._authorizer.renew(authorized):
            _, answer = await self._send_once(request, path, stamped)  # safe: a refused request was not applied
        return answer

    async def _send_once(
        self, request: Request, path: str, stamped: Mapping[str, str]
    ) -> tuple[Authorization, Response]:
        """Authorizes a request and its parts by the present credentials, and sends it once. Returns the authorization
        of the request, and the response. Raises as `send` does."""
        headers = {**stamped, "x-ms-version": API_VERSION}
        if request.parts:
            heads = [await self._head(part, stamped) for part in request.parts]
            request = replace(request, body=encode(heads))
            headers["content-type"] = CONTENT_TYPE
        authorized = await self._authorizer.authorize(request, path, headers)
        return authorized, await self._exchange(request, path, authorized)

    async def _head(self, part: Request, stamped: Mapping[str, str]) -> bytes:
        """Returns the first lines of a request that is sent within another request, with an authorization of its
        own."""
        path = self._endpoint.path_to(part.key)
        authorized = await self._authorizer.authorize(part, path, {**stamped, **part.headers})
        return request_head(part.method, _target(part, path, authorized), {**authorized.headers, **_NO_BODY}, 0)

    async def _exchange(self, request: Request, path: str, authorized: Authorization) -> Response:
        """Sends a request once with its authorization, and returns the response, whatever its status. Raises as `send`
        does."""
        target = _target(request, path, authorized)
        headers = {"host": self._endpoint.authority, **authorized.headers}
        return await exchange(self._pool, request.method, target, headers, request.body)

    async def close(self) -> None:
        """Closes the connections to Azure: idle ones at once, and others when their request ends."""
        await self._pool.close()


def _target(request: Request, path: str, authorized: Authorization) -> str:
    """Returns the path and query of a request, with what the authorization adds to the query."""
    query = "&".join(filter(None, (query_of(request.query.items()), authorized.query)))
    return f"{path}?{query}" if query else path


async def open_transport(container: str, config: AzureConfig) -> Transport:
    """Returns the transport that was configured: connections of our own, none of which is open yet, or the SDK. Raises
    `StoreError` for a configuration that can't be followed."""
    endpoint = endpoint_of(container, config)
    if config.client is ClientKind.SDK:
        from storage_backends.azure.sdk import open_sdk  # the SDK takes half a second to import

        tls = await asyncio.to_thread(tls_context, config.ca_bundle) if endpoint.tls else None
        return await open_sdk(endpoint, config, tls)
    return AzureTransport(endpoint, authorizer_of(config.credentials, endpoint), await open_pool(endpoint, config))
