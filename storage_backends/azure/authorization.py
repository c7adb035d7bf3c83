"""Authorizes requests to Azure: by the account's key, a shared access signature, or a token of Entra ID."""

import binascii
from collections.abc import Mapping
from typing import Protocol

from storage_backends.azure.config import CredentialsConfig, SasToken, SharedKey
from storage_backends.azure.credentials import EntraTokens
from storage_backends.azure.endpoint import ContainerEndpoint
from storage_backends.azure.signature import decoded_key, signed
from storage_backends.base import StoreDenied, StoreError
from storage_backends.clock import system_now_ms
from storage_backends.lazy_dataclass import dataclass
from storage_backends.wire.exchange import Request

API_VERSION = "2023-11-03"


@dataclass(frozen=True, slots=True)
class Authorization:
    """What authorizes one request to Azure: the headers with which it may be sent, and the text at the end of its
    query, which is empty unless it authorizes the request."""

    headers: Mapping[str, str]
    query: str = ""


class Authorizer(Protocol):
    """The interface of what authorizes requests to Azure, by the credentials of one identity."""

    async def authorize(self, request: Request, path: str, headers: Mapping[str, str]) -> Authorization:
        """Returns what authorizes a request: its headers, which include `headers`, and the end of its query. Raises
        `StoreDenied` if there are no credentials, `StoreUnavailable` for a transient failure."""
        ...

    async def renew(self, refused: Authorization) -> bool:
        """Renews the credentials after a response with the status 401 to a request with this authorization. Returns
        whether there are other credentials now."""
        ...


class KeyAuthorizer:
    """Authorizes requests to Azure by signatures with the account's key. Raises `StoreDenied` for a key that is not
    base64."""

    def __init__(self, account: str, key: str) -> None:
        self._account = account
        try:
            self._key = decoded_key(key)
        except (binascii.Error, ValueError) as error:
            raise StoreDenied(
                "no Azure credentials: the key of the account is not base64 (AZURE_STORAGE_KEY, "
                "AZURE_STORAGE_ACCOUNT_KEY, or AccountKey in AZURE_STORAGE_CONNECTION_STRING)"
            ) from error

    async def authorize(self, request: Request, path: str, headers: Mapping[str, str]) -> Authorization:
        """Returns the headers with a signature by the account's key."""
        length = len(request.body)
        return Authorization(signed(self._account, self._key, request.method, path, request.query, headers, length))

    async def renew(self, refused: Authorization) -> bool:
        """Returns False: a key is never renewed."""
        return False


class SasAuthorizer:
    """Authorizes requests to Azure by a shared access signature at the end of the query. Raises `StoreDenied` for one
    with blanks, control characters, or characters outside of ASCII."""

    def __init__(self, token: str) -> None:
        if not (token.isascii() and token.isprintable()) or " " in token:
            raise StoreDenied(
                "no Azure credentials: the shared access signature (AZURE_STORAGE_SAS_TOKEN, or that in "
                "AZURE_STORAGE_CONNECTION_STRING) is not a query string: it has blanks, control characters, or "
                "characters outside of ASCII"
            )
        self._token = token

    async def authorize(self, request: Request, path: str, headers: Mapping[str, str]) -> Authorization:
        """Returns the headers as they are, and the shared access signature for the query."""
        return Authorization(headers, self._token)

    async def renew(self, refused: Authorization) -> bool:
        """Returns False: a shared access signature is never renewed."""
        return False


class TokenAuthorizer:
    """Authorizes requests to Azure by a token of Entra ID. Raises `StoreError` for an endpoint without TLS."""

    def __init__(self, tokens: EntraTokens, endpoint: ContainerEndpoint) -> None:
        if not endpoint.tls:
            raise StoreError(
                "no Azure client can be made: the endpoint is http, and a token of Entra ID is sent over https only: "
                "set an https endpoint, a key, or a shared access signature"
            )
        self._tokens = tokens

    async def authorize(self, request: Request, path: str, headers: Mapping[str, str]) -> Authorization:
        """Returns the headers and `authorization` with the current token, after requesting one if needed. Raises as
        `EntraTokens.current` does."""
        held = await self._tokens.current()
        return Authorization({**headers, "authorization": f"Bearer {held.token}"})

    async def renew(self, refused: Authorization) -> bool:
        """Requests another token of Entra ID, unless another task has done so. Returns whether there is another one
        now. Raises as `EntraTokens.renewed` does."""
        token = refused.headers["authorization"].removeprefix("Bearer ")
        return (await self._tokens.renewed(token)).token != token


def authorizer_of(config: CredentialsConfig, endpoint: ContainerEndpoint) -> Authorizer:
    """Returns the authorizer for the credentials that were configured; requests no token yet. Raises `StoreError` for a
    malformed key or shared access signature, and for a token of Entra ID if the endpoint is http."""
    match config:
        case SharedKey(key):
            return KeyAuthorizer(endpoint.account, key)
        case SasToken(token):
            return SasAuthorizer(token)
        case _:
            return TokenAuthorizer(EntraTokens(config, system_now_ms), endpoint)
