"""Carries requests to Azure over connections of our own: signed with the account's key, or with a token.

Why not the SDK, which `sdk.py` has: it takes some five times the CPU a call, and over half a second to import. Only
the SDK takes a proxy (`HTTPS_PROXY`).
"""

import asyncio
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Protocol

from storage_backends.azure.config import AzureConfig, ClientKind, CredentialsConfig, SasToken, SharedKey
from storage_backends.azure.credentials import EntraTokens
from storage_backends.azure.endpoint import ContainerEndpoint, endpoint_of
from storage_backends.azure.signature import date_stamp, decoded_key, path_of, query_of, signed
from storage_backends.base import StoreDenied, StoreError
from storage_backends.clock import system_now_ms
from storage_backends.wire.connections import exchange, open_pool
from storage_backends.wire.exchange import Request, Transport
from storage_backends.wire.http1 import Response, request_head
from storage_backends.wire.multipart import CONTENT_TYPE, encode
from storage_backends.wire.pool import Pool, tls_context

API_VERSION = "2023-11-03"
_NO_BODY = {"content-length": "0"}


@dataclass(frozen=True, slots=True)
class Authorized:
    """The headers of a request that may be sent, and what its query ends in."""

    headers: Mapping[str, str]
    query: str = ""


class Authorizer(Protocol):
    """Gives a request the rights of an identity."""

    async def authorize(self, request: Request, path: str, headers: Mapping[str, str]) -> Authorized:
        """Raises `StoreDenied` if there are no credentials, `StoreUnavailable` for a transient failure."""
        ...

    async def renew(self, refused: Authorized) -> bool:
        """After a 401: whether there are other credentials now."""
        ...


class AzureTransport:
    """A container's address, the credentials for it, and a pool of connections."""

    def __init__(self, endpoint: ContainerEndpoint, authorizer: Authorizer, pool: Pool) -> None:
        self._endpoint = endpoint
        self._authorizer = authorizer
        self._pool = pool

    async def send(self, request: Request, clock_skew_ms: int) -> Response:
        """See `Transport.send`."""
        path = target_path(self._endpoint, request.key)
        stamped = {**request.headers, "x-ms-date": date_stamp(system_now_ms() + clock_skew_ms)}
        if request.parts:
            heads = [await self._head(part, stamped) for part in request.parts]
            request = replace(request, body=encode(heads))
            stamped["content-type"] = CONTENT_TYPE
        headers = {**stamped, "x-ms-version": API_VERSION}
        authorized = await self._authorizer.authorize(request, path, headers)
        answer = await self._exchange(request, path, authorized)
        if answer.status == HTTPStatus.UNAUTHORIZED and await self._authorizer.renew(authorized):
            authorized = await self._authorizer.authorize(request, path, headers)
            answer = await self._exchange(request, path, authorized)  # safe: a refused request was not applied
        return answer

    async def _head(self, part: Request, stamped: Mapping[str, str]) -> bytes:
        """A request within another, which has rights of its own."""
        path = target_path(self._endpoint, part.key)
        authorized = await self._authorizer.authorize(part, path, {**stamped, **part.headers})
        return request_head(part.method, _target(part, path, authorized), {**authorized.headers, **_NO_BODY}, 0)

    async def _exchange(self, request: Request, path: str, authorized: Authorized) -> Response:
        target = _target(request, path, authorized)
        headers = {"host": self._endpoint.authority, **authorized.headers}
        return await exchange(self._pool, request.method, target, headers, request.body)

    async def close(self) -> None:
        """See `Transport.close`."""
        await self._pool.close()


class KeyAuthorizer:
    """Signs with the account's key. Raises `StoreDenied` for one that is not base64."""

    def __init__(self, account: str, key: str) -> None:
        self._account = account
        try:
            self._key = decoded_key(key)
        except (binascii.Error, ValueError) as error:
            raise StoreDenied("no Azure credentials: AZURE_STORAGE_KEY is not base64") from error

    async def authorize(self, request: Request, path: str, headers: Mapping[str, str]) -> Authorized:
        length = len(request.body)
        return Authorized(signed(self._account, self._key, request.method, path, request.query, headers, length))

    async def renew(self, refused: Authorized) -> bool:
        return False


class SasAuthorizer:
    """Adds a shared access signature to the query."""

    def __init__(self, token: str) -> None:
        if not (token.isascii() and token.isprintable()) or " " in token:
            raise StoreDenied("no Azure credentials: AZURE_STORAGE_SAS_TOKEN is not a query string")
        self._token = token

    async def authorize(self, request: Request, path: str, headers: Mapping[str, str]) -> Authorized:
        return Authorized(headers, self._token)

    async def renew(self, refused: Authorized) -> bool:
        return False


class TokenAuthorizer:
    """Sends a token of Entra ID, to an encrypted address only."""

    def __init__(self, tokens: EntraTokens, endpoint: ContainerEndpoint) -> None:
        if not endpoint.tls:
            raise StoreError("no Azure client can be made: a token of Entra ID is sent over https only")
        self._tokens = tokens

    async def authorize(self, request: Request, path: str, headers: Mapping[str, str]) -> Authorized:
        held = await self._tokens.current()
        return Authorized({**headers, "authorization": f"Bearer {held.token}"})

    async def renew(self, refused: Authorized) -> bool:
        token = refused.headers["authorization"].removeprefix("Bearer ")
        return (await self._tokens.renewed(token)).token != token


def _target(request: Request, path: str, authorized: Authorized) -> str:
    query = "&".join(filter(None, (query_of(request.query.items()), authorized.query)))
    return f"{path}?{query}" if query else path


def target_path(endpoint: ContainerEndpoint, key: str) -> str:
    """The path of an object, or of the container itself."""
    return f"{endpoint.path}/{path_of(key)}" if key else endpoint.path


async def open_transport(container: str, config: AzureConfig) -> Transport:
    """What the configuration asks for; no connection is made yet. Raises `StoreError` for a configuration that can't be
    followed."""
    endpoint = endpoint_of(container, config)
    if config.client is ClientKind.SDK:
        from storage_backends.azure.sdk import open_sdk  # the SDK takes half a second to import

        tls = await asyncio.to_thread(tls_context, config.ca_bundle) if endpoint.tls else None
        return await open_sdk(endpoint, config, tls)
    return AzureTransport(endpoint, authorizer_of(config.credentials, endpoint), await open_pool(endpoint, config))


def authorizer_of(config: CredentialsConfig, endpoint: ContainerEndpoint) -> Authorizer:
    """Raises `StoreError` for credentials that can't be used."""
    match config:
        case SharedKey(key):
            return KeyAuthorizer(endpoint.account, key)
        case SasToken(token):
            return SasAuthorizer(token)
        case _:
            return TokenAuthorizer(EntraTokens(config, system_now_ms), endpoint)
