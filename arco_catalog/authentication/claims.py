"""Reads tokens before they are verified, and checks the form of claims (RFC 7519, RFC 8725).

Times are compared with the Runtime's clock, so the JWT library's own checks of times are off.
"""

import base64
import binascii
import re
from collections.abc import Container, Iterable, Mapping

from arco_catalog.iceberg.errors import NotAuthorized
from arco_catalog.iceberg.json import JsonObject, JsonValue, MalformedJson, loads
from storage_backends.lazy_dataclass import dataclass

MAX_TOKEN = 16 << 10
"""Characters of a token; longer ones are not read. Issuers make shorter ones, and a server's limit of headers is
larger."""
MAX_HEADER = 1 << 10
"""Characters of a token's header, which has an algorithm, a type and a key id."""
SKEW_S = 60
"""Seconds by which the clocks of an issuer and of this server may differ."""
MAX_ROLE = 256
"""Characters of a principal role's name."""
MAX_TIME_S = 1 << 40
"""Seconds since 1970; later times are malformed."""

_NOT_OF_BEARER_TOKENS = {
    "cnf": "it is bound to a key, and this server can't verify that the client has that key. Send a bearer token",
    "events": "it reports an event, such as the end of a session, and is no access token. Send an access token",
}
"""Claims that no bearer token has (RFC 7800, RFC 8417), and why a token with one is refused. The token about the end of
a session has the client as its audience, as ID tokens do (docs/decisions/0095)."""

_PART = r"[A-Za-z0-9_-]+"
_ROLE = r"[A-Za-z0-9_.:-]{1,256}"


@dataclass(frozen=True, slots=True)
class UnverifiedToken:
    """The header and the claims of a token before its signature is verified. They select the authenticator and the key
    that verify it, and prove nothing."""

    header: JsonObject
    claims: JsonObject

    @property
    def issuer(self) -> str | None:
        """The claim `iss`, None if it is missing or no text. It only selects the authenticator that verifies the
        token."""
        issuer = self.claims.get("iss")
        return issuer if isinstance(issuer, str) else None


def read_unverified(token: str) -> UnverifiedToken | None:
    """Parses the header and claims of a token, and verifies nothing; None for text that is not a signed JWT in compact
    form, is longer than `MAX_TOKEN`, or has a header longer than `MAX_HEADER`."""
    parts = token.split(".", 3) if len(token) <= MAX_TOKEN else []
    if len(parts) != 3 or not all(re.fullmatch(_PART, part) for part in parts) or len(parts[0]) > MAX_HEADER:
        return None
    header, claims = _json_of(parts[0]), _json_of(parts[1])
    return None if header is None or claims is None else UnverifiedToken(header, claims)


def read_unsigned(token: str) -> JsonObject | None:
    """Returns the claims of an unsigned token (`alg` is `none`, and no signature follows), which prove nothing; None
    for any other text, and for one that is longer than `MAX_TOKEN`."""
    parts = token.split(".", 3) if len(token) <= MAX_TOKEN else []
    if len(parts) != 3 or parts[2] or not all(re.fullmatch(_PART, part) for part in parts[:2]):
        return None
    header = _json_of(parts[0])
    return _json_of(parts[1]) if header is not None and header.get("alg") == "none" else None


def _json_of(part: str) -> JsonObject | None:
    """Decodes the header or the claims of a token; None for a part that is not an object in JSON and base64url."""
    try:
        document = loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (binascii.Error, MalformedJson):
        return None
    return document if isinstance(document, dict) else None


def expiry_ms(claims: JsonObject, now_ms: int) -> int:
    """Returns the time, in milliseconds since 1970, at which a token expires: `SKEW_S` after its claim `exp`. Raises
    `NotAuthorized` if it has expired, is not valid yet (`nbf`, `iat`, with the skew), has no expiry, or has a malformed
    time."""
    expires = _time(claims, "exp")
    if expires is None:
        raise NotAuthorized("The token has no expiry (claim 'exp')")
    if now_ms >= (expires + SKEW_S) * 1_000:
        raise NotAuthorized("The token has expired: request a new one")
    for claim in ("nbf", "iat"):
        begins = _time(claims, claim)
        if begins is not None and now_ms < (begins - SKEW_S) * 1_000:
            raise NotAuthorized(
                f"The token is not valid yet (claim '{claim}'): compare the clocks of its issuer and of this server"
            )
    return int((expires + SKEW_S) * 1_000)


def _time(claims: JsonObject, name: str) -> float | None:
    """Returns the time in a claim, in seconds since 1970; None without the claim, or if it is null. Raises
    `NotAuthorized` for another value."""
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_TIME_S:
        raise NotAuthorized(f"The token has a malformed time (claim '{name}')")
    return value


def check_bearer_token(claims: Container[str]) -> None:
    """Raises `NotAuthorized` if these names of claims have one that no bearer token has: `cnf`, which binds a token to
    a key, or `events`, of a token that reports an event and is no access token."""
    for name, reason in _NOT_OF_BEARER_TOKENS.items():
        if name in claims:
            raise NotAuthorized(f"The token has the claim '{name}': {reason}")


def text_claim(claims: Mapping[str, JsonValue], name: str, max_length: int = 1024) -> str:
    """Returns a required claim: a text of 1 to `max_length` printable characters. Raises `NotAuthorized` for a missing
    one and for any other value."""
    value = claims.get(name)
    if not isinstance(value, str) or not value or len(value) > max_length or not value.isprintable():
        raise NotAuthorized(
            f"The token's claim '{name}' is missing, or is not a string of 1 to {max_length} printable characters"
        )
    return value


def role_names(names: Iterable[JsonValue]) -> frozenset[str]:
    """Returns the set of these names of roles that a token activates. Raises `NotAuthorized` for a malformed name."""
    checked = set()
    for name in names:
        if not isinstance(name, str) or not re.fullmatch(_ROLE, name):
            raise NotAuthorized(
                "The token names a malformed principal role: a name has 1 to 256 letters, digits or any of _ . : -"
            )
        checked.add(name)
    return frozenset(checked)


def possible_role_names(names: Iterable[JsonValue]) -> frozenset[str]:
    """Returns those of an issuer's names of roles and groups that a principal role can have: with 1 to `MAX_ROLE`
    printable characters. An issuer's other names activate nothing. Raises `NotAuthorized` for what is not a string."""
    found = set()
    for name in names:
        if not isinstance(name, str):
            raise NotAuthorized("The token's array of principal roles has a value that is not a string")
        if 1 <= len(name) <= MAX_ROLE and name.isprintable():
            found.add(name)
    return frozenset(found)


def claim_at(claims: JsonObject, path: str) -> JsonValue:
    """Returns the claim that has `path` as its name, or else the value inside of claims at the names that dots separate
    in `path`; None if there is neither. A name may itself have dots: of several the longest is taken.
    `realm_access.roles` is an array inside an object for Keycloak, and the name of one claim for others;
    `kubernetes.io.serviceaccount.uid` is inside two objects."""
    found: JsonValue = claims
    parts = path.split(".")
    while parts:
        if not isinstance(found, dict):
            return None
        length = next((n for n in range(len(parts), 0, -1) if ".".join(parts[:n]) in found), None)
        if length is None:
            return None
        found, parts = found[".".join(parts[:length])], parts[length:]
    return found


def roles_in(claims: JsonObject, path: str | None) -> frozenset[str] | None:
    """Returns the principal roles that a token activates by the claim at `path`: the names in an array that a role
    can have, or names separated by blanks. None, for all roles of the principal, if no claim is configured. A token
    without the claim, or with null there, activates none. Raises `NotAuthorized` for an array with a value that is not
    a string, for a malformed name in a text, and for a claim of another form."""
    if path is None:
        return None
    match claim_at(claims, path):
        case None:
            return frozenset()
        case str(text):
            return role_names(text.split())
        case list(names):
            return possible_role_names(names)
    raise NotAuthorized(f"The token's claim {path!r}, which names principal roles, must be a string or an array")
