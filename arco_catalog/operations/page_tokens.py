"""Page tokens: where the next page of a listing starts. In a catalog with grants a token is sealed with a MAC: it is
valid only for the principal, catalog and route to which it was issued, and clients can't forge one
(docs/design/access.md#pages)."""

import base64
import binascii
import hashlib
import hmac
import re

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonValue, MalformedJson, dumps, loads
from arco_catalog.protocol.catalog import Session

_COMMIT_ID = re.compile(r"[0-9A-Z]{26}")


async def issue(session: Session, position: list[JsonValue]) -> str:
    """Returns the token of a page that starts at a position, sealed for this request's principal, catalog and route in
    a catalog with grants."""
    token = base64.urlsafe_b64encode(dumps(position)).decode().rstrip("=")
    seal = await _seal(session, token)
    return token if seal is None else f"{token}.{seal}"


async def redeem(session: Session, token: str) -> JsonValue:
    """Returns the position in a token that a client sent, in no known form yet. Raises `BadRequest` for a token that is
    malformed, or in a catalog with grants was not issued for this request's principal, catalog and route."""
    try:
        unsealed = await _without_seal(session, token)
        return loads(base64.urlsafe_b64decode(unsealed + "=" * (-len(unsealed) % 4)))
    except (MalformedJson, binascii.Error, ValueError) as error:
        raise BadRequest("The page token is invalid: list again from the start") from error


async def _without_seal(session: Session, sealed: str) -> str:
    token, _, given = sealed.rpartition(".")
    seal = await _seal(session, token)
    if seal is None:
        return sealed
    if not hmac.compare_digest(seal.encode(), given.encode("utf-8", "surrogatepass")):
        raise BadRequest("The page token was not issued for this listing: list again from the start")
    return token


async def _seal(session: Session, token: str) -> str | None:
    key = await session.access.page_key()
    if key is None:
        return None
    entity, _ = session.catalog.entry or ("", 0)
    message = dumps([entity, session.request.principal, session.request.method, session.request.path, token])
    return hmac.new(key, message, hashlib.sha256).hexdigest()[:32]


def is_commit_id(text: str) -> bool:
    """Whether a text has the form of the id of a registry commit, so that it can be part of a key."""
    return _COMMIT_ID.fullmatch(text) is not None


def of_another_listing() -> BadRequest:
    """Returns the error for a token whose position has not the form of the listing's."""
    return BadRequest("The page token belongs to another listing: list again from the start")


def expired() -> BadRequest:
    """Returns the error for a token whose page can no longer be read."""
    return BadRequest("The page token has expired: list again from the start")
