"""What a token says, read without trusting it, and what its claims must be like (RFC 7519, RFC 8725).

Times are judged by the Runtime's clock, which is why the JWT library is told not to judge them.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from arco_catalog.iceberg.errors import NotAuthorized
from arco_catalog.iceberg.json import JsonObject, JsonValue, MalformedJson, loads

MAX_TOKEN = 16 << 10
"""Characters of a token that is looked at at all: more than any issuer makes, less than a server's limit of headers."""
MAX_DEPTH_BYTES = 1 << 10
"""Bytes of a token's header: an algorithm, a kind and a key's name."""
SKEW_S = 60
"""How far the clocks of an issuer and ours may be apart."""
FARTHEST_S = 1 << 40
"""Times after this are no times."""

_PART = re.compile(r"[A-Za-z0-9_-]+")
_ROLE = re.compile(r"[A-Za-z0-9_.:-]{1,256}")


@dataclass(frozen=True, slots=True)
class Unverified:
    """The header and the claims of a token whose signature nobody has checked."""

    header: JsonObject
    claims: JsonObject

    @property
    def issuer(self) -> str | None:
        """Who the token says that it is from, which decides only who checks it."""
        issuer = self.claims.get("iss")
        return issuer if isinstance(issuer, str) else None


def read_unverified(token: str) -> Unverified | None:
    """What a token says of itself; None for what is no signed JWT in compact form."""
    parts = token.split(".", 3) if len(token) <= MAX_TOKEN else []
    if len(parts) != 3 or not all(_PART.fullmatch(part) for part in parts) or len(parts[0]) > MAX_DEPTH_BYTES:
        return None
    header, claims = _json_of(parts[0]), _json_of(parts[1])
    return None if header is None or claims is None else Unverified(header, claims)


def read_unsigned(token: str) -> JsonObject | None:
    """The claims of a token that says itself that nobody signed it (`alg` is `none`), None for any other."""
    parts = token.split(".", 3) if len(token) <= MAX_TOKEN else []
    if len(parts) != 3 or parts[2] or not all(_PART.fullmatch(part) for part in parts[:2]):
        return None
    header = _json_of(parts[0])
    return _json_of(parts[1]) if header is not None and header.get("alg") == "none" else None


def _json_of(part: str) -> JsonObject | None:
    try:
        document = loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (binascii.Error, MalformedJson):
        return None
    return document if isinstance(document, dict) else None


def expiry_ms(claims: JsonObject, now_ms: int) -> int:
    """When a token is no longer taken. Raises `NotAuthorized` if that is now, or if it is not valid yet, or does not
    say when it expires."""
    expires = _time(claims, "exp")
    if expires is None:
        raise NotAuthorized("The token does not say when it expires (claim 'exp')")
    if now_ms >= (expires + SKEW_S) * 1_000:
        raise NotAuthorized("The token has expired")
    for claim in ("nbf", "iat"):
        begins = _time(claims, claim)
        if begins is not None and now_ms < (begins - SKEW_S) * 1_000:
            raise NotAuthorized(f"The token is not valid yet (claim '{claim}')")
    return int((expires + SKEW_S) * 1_000)


def _time(claims: JsonObject, name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= FARTHEST_S:
        raise NotAuthorized(f"The token has a malformed time (claim '{name}')")
    return value


def text_claim(claims: Mapping[str, JsonValue], name: str, at_most: int = 1024) -> str:
    """A claim that must be there and be a text. Raises `NotAuthorized`."""
    value = claims.get(name)
    if not isinstance(value, str) or not value or len(value) > at_most or not value.isprintable():
        raise NotAuthorized(f"The token does not say who it is for (claim '{name}')")
    return value


def role_names(names: Iterable[JsonValue]) -> frozenset[str]:
    """The names of roles that a token activates. Raises `NotAuthorized` for one that is spelled as none may be."""
    checked = set()
    for name in names:
        if not isinstance(name, str) or not _ROLE.fullmatch(name):
            raise NotAuthorized("The token names a role in a way that roles are not named")
        checked.add(name)
    return frozenset(checked)


def claim_at(claims: JsonObject, path: str) -> JsonValue:
    """The claim of a name; or, where none has it, the one that the name's parts lead to: `realm_access.roles` is an
    array in an object to Keycloak, and the name of one claim to others."""
    if path in claims:
        return claims[path]
    found: JsonValue = claims
    for part in path.split("."):
        if not isinstance(found, dict):
            return None
        found = found.get(part)
    return found


def roles_in(claims: JsonObject, path: str | None) -> frozenset[str] | None:
    """The principal roles that a token activates by a claim: an array of names, or a text with blanks between them; all
    that its principal has where no claim was configured. A token without the claim activates none. Raises
    `NotAuthorized`."""
    if path is None:
        return None
    match claim_at(claims, path):
        case None:
            return frozenset()
        case str(text):
            return role_names(text.split())
        case list(names):
            return role_names(names)
    raise NotAuthorized("The token names roles in a way that roles are not named")
