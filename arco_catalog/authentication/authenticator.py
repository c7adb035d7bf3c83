"""The interface of authenticators, which verify the credentials of a request; their input and their result."""

from collections.abc import Mapping
from typing import Protocol

from arco_catalog.planning.access import Identity
from storage_backends.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class RequestCredentials:
    """The parts of a request where an authenticator looks for credentials: the headers, with lower-case names, and the
    gateway's event that invoked a function, or one of the same form that the adapter for another cloud has made; None
    without a gateway."""

    headers: Mapping[str, str]
    event: object = None

    @property
    def bearer(self) -> str | None:
        """The token in the header `Authorization` of the type Bearer; None without such a header, or if the token is
        empty."""
        scheme, _, token = self.headers.get("authorization", "").partition(" ")
        return token.strip() if scheme.lower() == "bearer" and token.strip() else None


@dataclass(frozen=True, slots=True)
class AuthenticationResult:
    """The verified realm and identity of a caller, and its name for receipts and logs. `session` distinguishes callers
    with one identity: by the session of an assumed role, or the id of the principal that acts for this one; None
    without either. `scopes` are all words of the scope in a token of a configured issuer; of the catalog's own token
    only `execute_tasks`, if it has that; empty for a caller that a gateway names."""

    realm: str
    identity: Identity
    name: str
    session: str | None = None
    scopes: frozenset[str] = frozenset()

    @property
    def name_count(self) -> int:
        """The number of names in the result: of the roles that it activates one by one (none if it activates all), and
        of scopes."""
        return len(self.identity.activated or ()) + len(self.scopes)


class Authenticator(Protocol):
    """A method of authentication: verifies the credentials of a request, and returns the caller. It returns None for a
    request without credentials of its kind, so that another method is tried."""

    async def authenticate(self, credentials: RequestCredentials) -> AuthenticationResult | None:
        """Returns the caller of a request; None if the request has no credentials of this kind, or of an issuer that
        this method does not know. Raises `NotAuthorized` for credentials of this kind that are wrong, expired or not
        for this server, also for the event of a gateway that names no caller if the request has no bearer token, and
        `Unavailable` if the credentials can't be verified now."""
        ...
