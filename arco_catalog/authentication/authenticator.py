"""What every way of authenticating has in common."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from arco_catalog.planning.access import Identity


@dataclass(frozen=True, slots=True)
class Presented:
    """What a request presents: its headers, with lower-case names, and the event of the gateway that invoked us, None
    without one."""

    headers: Mapping[str, str]
    event: object = None

    @property
    def bearer(self) -> str | None:
        """The token in the header `Authorization`, None without one."""
        scheme, _, token = self.headers.get("authorization", "").partition(" ")
        return token.strip() if scheme.lower() == "bearer" and token.strip() else None


@dataclass(frozen=True, slots=True)
class Authenticated:
    """Who made a request, verified: its realm, its identity there, and a name for receipts and logs. `session` tells
    apart who assumed one role; `scopes` are words of the token's scope beside principal roles."""

    realm: str
    identity: Identity
    name: str
    session: str | None = None
    scopes: frozenset[str] = frozenset()


class Authenticator(Protocol):
    """One way to authenticate."""

    async def authenticate(self, presented: Presented) -> Authenticated | None:
        """Who makes a request; None if it presents nothing of this kind. Raises `NotAuthorized` for what is of this
        kind and is wrong, expired or foreign."""
        ...
