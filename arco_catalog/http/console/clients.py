"""How people sign in to the console at issuers of tokens, and what its pages may request for that."""

import re
from collections.abc import Sequence

from arco_catalog.http.browsers import parse_origin
from arco_catalog.iceberg.json import JsonObject
from storage_backends import StoreDenied
from storage_backends.lazy_dataclass import dataclass
from storage_backends.wire.fetch import checked_url

OPENID = "openid"
_WORD = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")
"""A client id without blanks, or one scope (RFC 6749, appendix A)."""


@dataclass(frozen=True, slots=True)
class ConsoleClient:
    """What the console is to an issuer: a public client with this id, which requests a scope. `origin` is that of the
    issuer."""

    issuer: str
    origin: str
    client_id: str
    scope: str

    @property
    def shown(self) -> JsonObject:
        """The client as the configuration of the console has it."""
        return {"issuer": self.issuer, "client-id": self.client_id, "scope": self.scope}


@dataclass(frozen=True, slots=True)
class SignIn:
    """The issuers at which people sign in to the console, by what it is to them. `other_origins` are those of endpoints
    that are not at the origin of their issuer."""

    clients: Sequence[ConsoleClient] = ()
    other_origins: Sequence[str] = ()

    @property
    def origins(self) -> Sequence[str]:
        """The origins to which pages of the console may send requests besides the server's own."""
        return list(dict.fromkeys([*(client.origin for client in self.clients), *self.other_origins]))


def parse_client(text: str, *, plain_loopback: bool) -> ConsoleClient:
    """Parses an issuer, a client id and any number of scopes, separated by blanks; without scopes the client requests
    `openid`. `plain_loopback` accepts an issuer on this machine without TLS. Raises `ValueError` for any other text,
    and for scopes without `openid`."""
    issuer, *words = text.split() or [""]
    if not words or not all(map(_WORD.fullmatch, words)):
        raise ValueError(f"expected an issuer, a client id and any number of scopes, separated by blanks, got {text!r}")
    origin = _origin_of(issuer, plain_loopback=plain_loopback)
    client_id, *scopes = words
    if scopes and OPENID not in scopes:
        raise ValueError(f"the scopes of {client_id!r} must have {OPENID!r}: without an ID token a sign-in is refused")
    return ConsoleClient(issuer, origin, client_id, " ".join(scopes or [OPENID]))


def parse_endpoint_origin(text: str, *, plain_loopback: bool) -> str:
    """Returns an https origin in lower case, as browsers have it; with `plain_loopback` it may also be an http origin
    on this machine. Raises `ValueError` for any other text."""
    origin = parse_origin(text)
    _origin_of(origin, plain_loopback=plain_loopback)
    return origin


def _origin_of(url: str, *, plain_loopback: bool) -> str:
    """Returns the origin of a URL in lower case. Raises `ValueError` for one that is not https, or with
    `plain_loopback` on this machine, that has a query, or a host with characters that a policy of contents would read
    as more than one origin."""
    try:
        parts = checked_url(url, plain_loopback=plain_loopback)
    except StoreDenied as error:
        raise ValueError(str(error)) from error
    if parts.query:
        raise ValueError(f"{url!r} must have no query")
    return parse_origin(f"{parts.scheme}://{parts.netloc}")
