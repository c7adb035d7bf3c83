"""Gets tokens of Entra ID for Azure Storage and other services. Of the modules for Azure, only this one imports
azure-identity, and only with the first request for a token: never for a store that has a key or a shared access
signature.

azure-identity blocks, so it is only called in a thread.
"""

import asyncio
from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING

from storage_backends.azure.config import ClientSecret, DefaultChain
from storage_backends.base import StoreDenied, StoreUnavailable
from storage_backends.lazy_dataclass import dataclass

if TYPE_CHECKING:  # azure-core is optional
    from azure.core.credentials import TokenCredential

SCOPE = "https://storage.azure.com/.default"
REFRESH_MS = 5 * 60_000
"""Tokens are renewed when they expire within this time."""

_WITHOUT_IDENTITY = (
    "no Azure credentials: azure-identity, which gets tokens of Entra ID where neither a key nor a shared access "
    "signature is used, is not installed: install the extra 'azure' of arco-catalog"
)


@dataclass(frozen=True, slots=True)
class BearerToken:
    """An access token of Entra ID, and the time at which it expires in milliseconds since 1970."""

    token: str = field(repr=False)
    expires_ms: int


class EntraTokens:
    """Gets the tokens of an identity in Entra ID for a service, which `scope` names. A token within five minutes of
    expiry is renewed by the next call; nothing is renewed between calls."""

    def __init__(self, config: ClientSecret | DefaultChain, now_ms: Callable[[], int], scope: str = SCOPE) -> None:
        self._config = config
        self._scope = scope
        self._now_ms = now_ms
        self._credential: TokenCredential | None = None
        self._held: BearerToken | None = None
        self._asking = asyncio.Lock()

    async def current(self) -> BearerToken:
        """Returns a token of Entra ID that has not expired, and requests a new one if it expires within five minutes.
        Raises `StoreDenied` if there is no identity that Entra ID accepts, or no azure-identity, and `StoreUnavailable`
        if Entra ID does not respond; while the old token is valid, returns that one instead."""
        if self._held is None or self._left_ms(self._held) < REFRESH_MS:
            async with self._asking:  # one task renews; the others use the token
                if self._held is None or self._left_ms(self._held) < REFRESH_MS:
                    self._held = await self._renewed()
        return self._held

    async def renewed(self, refused: str) -> BearerToken:
        """Returns a new token in place of `refused`, the one that the store did not accept; the old one if Entra ID
        gives no other, or if that fails while the old one is valid. Otherwise raises as `current` does."""
        async with self._asking:
            if self._held is not None and self._held.token == refused:  # no other task has renewed it
                self._credential = None  # azure-identity would answer with the token that it holds
                self._held = await self._renewed()
        return await self.current()

    async def _renewed(self) -> BearerToken:
        """Returns a new token of Entra ID, or the old one if there is none to get while the old one is valid. Otherwise
        raises as `_ask` does. Does not keep the token."""
        try:
            return await asyncio.to_thread(self._ask)
        except (StoreDenied, StoreUnavailable):
            if self._held is None or self._left_ms(self._held) <= 0:
                raise
            return self._held

    def _left_ms(self, held: BearerToken) -> int:
        """Returns for how many milliseconds a token is still valid; 0 or less once it has expired."""
        return held.expires_ms - self._now_ms()

    def _ask(self) -> BearerToken:
        """Returns the token that azure-identity gives, which may be the old one. Blocks. Raises `StoreDenied` without
        the library or an identity that Entra ID accepts, and `StoreUnavailable` if Entra ID does not respond."""
        try:
            from azure.core.exceptions import AzureError, ClientAuthenticationError
        except ModuleNotFoundError as error:
            raise StoreDenied(_WITHOUT_IDENTITY) from error
        try:
            self._credential = self._credential or _credential(self._config)
            answer = self._credential.get_token(self._scope)
        except (ClientAuthenticationError, ValueError) as error:  # ValueError: a malformed tenant or authority
            raise StoreDenied(
                f"no Azure credentials: azure-identity got no token for {self._scope}, for good or for now: {error}"
            ) from error
        except AzureError as error:
            raise StoreUnavailable(
                f"no Azure credentials: Entra ID gave no usable answer, which may pass: {error}"
            ) from error
        return BearerToken(answer.token, answer.expires_on * 1_000)


def _credential(config: ClientSecret | DefaultChain) -> "TokenCredential":
    """Returns the credential of azure-identity; requests no token. Raises `StoreDenied` if that library is not
    installed, and `ValueError` for a malformed tenant or authority."""
    try:
        from azure.identity import ClientSecretCredential, DefaultAzureCredential
    except ModuleNotFoundError as error:
        raise StoreDenied(_WITHOUT_IDENTITY) from error
    match config:
        case ClientSecret(tenant_id, client_id, secret, authority):
            return ClientSecretCredential(
                tenant_id, client_id, secret, **({"authority": authority} if authority else {})
            )
        case DefaultChain():
            return DefaultAzureCredential()
