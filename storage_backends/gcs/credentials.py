"""Gets access tokens for Google Cloud Storage as a configuration has them: none, a fixed one, or those of google-auth.
That library blocks, so it runs in a thread; it is not imported for the first two."""

import asyncio
from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Protocol

from storage_backends.base import StoreDenied
from storage_backends.gcs.config import AccessToken, Anonymous, GcsConfig
from storage_backends.lazy_dataclass import dataclass

if TYPE_CHECKING:  # imports google-auth, which is optional
    from storage_backends.gcs.google_credentials import GoogleCredentials

_WITHOUT_GOOGLE_AUTH = (
    "google-auth, which gets tokens for keys, users and machines, is not installed: "
    "install the extra 'gcs' of arco-catalog"
)


class TokenSource(Protocol):
    """The interface of sources of access tokens for Google Cloud Storage and Pub/Sub. A token that the source can renew
    has not expired when it is returned; a configured one may have."""

    async def current(self) -> str:
        """Returns an access token; empty if requests need none. Raises `StoreDenied` if there are no credentials,
        `StoreUnavailable` for a transient failure."""
        ...

    async def renewed(self, refused: str) -> str:
        """Returns a new token in place of `refused`, the one that the store did not accept; the same one if there is no
        other. Raises `StoreDenied` if there are no credentials, `StoreUnavailable` for a transient failure."""
        ...


def tokens_of(config: GcsConfig, scopes: Sequence[str] | None = None) -> TokenSource:
    """Returns the source of access tokens for the configured credentials; those of google-auth have the `scopes`, as
    `GoogleTokens` has them."""
    match config.credentials:
        case Anonymous():
            return FixedToken("")
        case AccessToken(token):
            return FixedToken(token)
    return GoogleTokens(config, scopes)


class FixedToken:
    """A source of access tokens that always returns the configured token, empty for none."""

    def __init__(self, token: str) -> None:
        self._token = token

    async def current(self) -> str:
        """Returns the configured token, empty for none. Never fails."""
        return self._token

    async def renewed(self, refused: str) -> str:
        """Returns the configured token, also in place of the one that the store did not accept, because there is no
        other."""
        return self._token


@dataclass(frozen=True, slots=True)
class ExpiringToken:
    """An access token of Google, and the time at which it expires in milliseconds since 1970; None if that is
    unknown."""

    token: str = field(repr=False)
    expires_ms: int | None


class GoogleTokens:
    """A source of access tokens by google-auth. A token within some minutes of expiry is renewed by the next call; if
    that fails, the old token is used as long as it is valid. `scopes` are the OAuth scopes of the tokens; None stands
    for the one to read and write Cloud Storage."""

    def __init__(self, config: GcsConfig, scopes: Sequence[str] | None = None) -> None:
        self._config = config
        self._scopes = scopes
        self._credentials: GoogleCredentials | None = None
        self._asking = asyncio.Lock()

    async def current(self) -> str:
        """Returns an access token that has not expired, after loading or renewing the credentials if needed. Raises as
        `expiring` does."""
        return (await self._fresh()).token()

    async def expiring(self) -> ExpiringToken:
        """Returns a token that has not expired, with the time at which it expires. Raises `StoreDenied` if there are no
        credentials, `StoreUnavailable` for a transient failure."""
        held = await self._fresh()
        return ExpiringToken(held.token(), held.expires_ms())

    async def _fresh(self) -> "GoogleCredentials":
        """Returns the credentials with a token that has not expired, after loading or renewing them if needed. Raises
        as `expiring` does."""
        held = self._credentials
        if held is not None and held.is_fresh():
            return held
        async with self._asking:  # one task renews; the others use the token
            if self._credentials is None:
                self._credentials = await asyncio.to_thread(_load, self._config, self._scopes)
            if not self._credentials.is_fresh():
                await asyncio.to_thread(self._credentials.renew)
            return self._credentials

    async def renewed(self, refused: str) -> str:
        """Returns another access token in place of `refused`, which it renews unless another task has; the same one if
        the renewal fails while it is valid. Raises as `current` does."""
        async with self._asking:
            if self._credentials is not None and self._credentials.token() == refused:  # no other task has renewed it
                await asyncio.to_thread(self._credentials.renew)
        return await self.current()


def _load(config: GcsConfig, scopes: Sequence[str] | None) -> "GoogleCredentials":
    """Loads the configured credentials by google-auth, for these OAuth scopes; for Cloud Storage if they are None.
    Raises `StoreDenied` if the library is not installed, and as `load_credentials` does."""
    try:
        from storage_backends.gcs.google_credentials import load_credentials
    except ModuleNotFoundError as error:
        raise StoreDenied(f"no Google credentials: {_WITHOUT_GOOGLE_AUTH}") from error
    return load_credentials(config) if scopes is None else load_credentials(config, scopes)
