"""Gets credentials by google-auth. To load and to renew them blocks: do so in a thread. Source: google-auth's user
guide."""

import json
import warnings
from collections.abc import Sequence
from datetime import UTC
from functools import partial
from pathlib import Path
from typing import Any

import requests
from google import auth
from google.auth import compute_engine
from google.auth.credentials import AnonymousCredentials, Credentials, TokenState
from google.auth.exceptions import GoogleAuthError, RefreshError, TransportError
from google.auth.transport.requests import Request
from google.oauth2.credentials import Credentials as UserCredentials
from google.oauth2.service_account import Credentials as ServiceAccountCredentials

from storage_backends.base import StoreDenied, StoreError, StoreUnavailable
from storage_backends.gcs.config import (
    AccessToken,
    Anonymous,
    ApplicationDefault,
    CredentialsFile,
    CredentialsJson,
    GcsConfig,
    MetadataServer,
)

SCOPES = ("https://www.googleapis.com/auth/devstorage.read_write",)


class GoogleCredentials:
    """google-auth's credentials, and the HTTP session over which they are renewed. `current` is for SDKs that take
    google-auth's object."""

    def __init__(self, current: Credentials, config: GcsConfig) -> None:
        self.current = current
        session = requests.Session()
        session.verify = config.ca_bundle or True
        # Every request for a token goes through here, so that none waits for google-auth's two minutes.
        self.request = partial(Request(session), timeout=config.idle_timeout_s)

    def is_fresh(self) -> bool:
        """Whether the access token is valid, and not about to expire."""
        return bool(self.current.token) and self.current.token_state is TokenState.FRESH

    def token(self) -> str:
        """Returns the present access token: that of the last renewal, or a configured one; the text `None` before the
        first renewal."""
        return str(self.current.token)

    def expires_ms(self) -> int | None:
        """Returns the time at which the access token expires, in milliseconds since 1970; None if google-auth has
        none."""
        expiry = self.current.expiry  # in UTC, and naive
        return None if expiry is None else int(expiry.replace(tzinfo=UTC).timestamp() * 1_000)

    def renew(self) -> None:
        """Gets a new access token. Raises `StoreError` if that fails and the old token is not valid; while it is, it
        stays in use."""
        try:
            self.current.refresh(self.request)
        except GoogleAuthError as error:
            if not self.current.token or self.current.token_state is TokenState.INVALID:
                raise failure_of(error) from error


def load_credentials(config: GcsConfig, scopes: Sequence[str] = SCOPES) -> GoogleCredentials:
    """Loads the configured credentials with google-auth, for these OAuth scopes; gets no token yet. Raises
    `StoreDenied` for a file that can't be read or has no credentials, and the error of `failure_of` for a failure of
    google-auth."""
    try:
        return GoogleCredentials(_loaded(config, scopes), config)
    except GoogleAuthError as error:
        raise failure_of(error) from error
    except (OSError, ValueError) as error:
        raise StoreDenied(f"no Google credentials: {error}") from error


def failure_of(error: GoogleAuthError) -> StoreError:
    """Returns the store's error for an error of google-auth: `StoreUnavailable` if it may pass, else `StoreDenied`.
    No request was applied: none was sent, or the store rejected it with 401."""
    if isinstance(error, TransportError) or isinstance(error.__cause__, TransportError):
        return StoreUnavailable(f"no Google credentials: the token endpoint does not answer: {error}")
    if isinstance(error, RefreshError) and error.retryable:
        return StoreUnavailable(f"no Google credentials: the token endpoint failed, which may pass: {error}")
    return StoreDenied(f"no Google credentials: {error}")


def _loaded(config: GcsConfig, scopes: Sequence[str]) -> Credentials:
    """Returns the credentials of google-auth that the configuration names; reads a file for some. Raises `OSError`,
    `ValueError` or an error of google-auth if there are none."""
    match config.credentials:
        case Anonymous():
            return AnonymousCredentials()
        case AccessToken(token):
            return UserCredentials(token)
        case CredentialsFile(path):
            return _from_json(Path(path).read_text(), scopes)
        case CredentialsJson(text):
            return _from_json(text, scopes)
        case MetadataServer():
            return compute_engine.Credentials(scopes=scopes)
        case ApplicationDefault():
            return auth.default(scopes=scopes)[0]


def _from_json(text: str, scopes: Sequence[str]) -> Credentials:
    """Returns the credentials in the JSON text of a credentials file, for these scopes; those of a user have the scopes
    of the login. Raises `ValueError` or google-auth's error for a text without any."""
    info: dict[str, Any] = json.loads(text)
    match info:
        case {"type": "service_account"}:
            account: Credentials = ServiceAccountCredentials.from_service_account_info(info, scopes=scopes)
            return account
        case {"type": "authorized_user"}:  # its scopes were granted when the user logged in
            user: Credentials = UserCredentials.from_authorized_user_info(info)
            return user
    with warnings.catch_warnings():  # it warns of files from strangers: this one is the operator's
        warnings.simplefilter("ignore", DeprecationWarning)
        other: Credentials = auth.load_credentials_from_dict(info, scopes=scopes)[0]
        return other
