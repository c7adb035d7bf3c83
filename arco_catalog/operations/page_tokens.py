"""Page tokens: where the next page of a listing starts. Where callers need rights, by grants or a policy, a token is
encrypted and sealed with a MAC: it is valid only for the principal, catalog and route to which it was issued, clients
can't forge one, and can't read the name in it, which may be of an object that the caller may not see
(docs/design/access.md#pages)."""

import base64
import binascii
import hashlib
import hmac
import re

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonValue, MalformedJson, dumps, loads
from arco_catalog.protocol.catalog import Session

PADDED = 64
"""A document is padded to a multiple of so many bytes, so that its length reveals little."""
_COMMIT_ID = re.compile(r"[0-9A-Z]{26}")


async def issue(session: Session, position: list[JsonValue]) -> str:
    """Returns the token of a page that starts at a position; where callers need rights, by grants or a policy, it is
    encrypted, and sealed for this request's principal, catalog and route."""
    document, key = dumps(position), await session.access.page_key()
    if key is None:
        return _encoded(document)
    document = document.ljust(-(-len(document) // PADDED) * PADDED)
    seal = _seal(session, key, document)
    return f"{_encoded(_encrypted(document, key, seal))}.{seal}"


async def redeem(session: Session, token: str) -> JsonValue:
    """Returns the position in a token that a client sent, in no known form yet. Raises `BadRequest` for a token that is
    malformed, or, where callers need rights, was not issued for this request's principal, catalog and route."""
    key = await session.access.page_key()
    try:
        return loads(_decoded(token) if key is None else _opened(session, key, token))
    except (MalformedJson, binascii.Error, ValueError) as error:
        raise BadRequest("The page token is invalid: list again from the start") from error


def _opened(session: Session, key: bytes, token: str) -> bytes:
    """Returns the document in an encrypted token. Raises `BadRequest` if the seal is forged, or of another
    principal, catalog or route, and the errors of `_decoded`."""
    encoded, _, seal = token.rpartition(".")
    encrypted = _decoded(encoded)
    document = _encrypted(encrypted, key, seal)
    # Encoded again: decoding ignores characters.
    expected = f"{_encoded(encrypted)}.{_seal(session, key, document)}"
    if not hmac.compare_digest(expected.encode(), token.encode("utf-8", "surrogatepass")):
        raise BadRequest(
            "The page token was not issued for this listing to this caller, or was changed: list again from the start"
        )
    return document


def _encoded(data: bytes) -> str:
    """Returns bytes in base64url without padding."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _decoded(text: str) -> bytes:
    """Returns the bytes of a base64url text without padding. Other ASCII characters in it are ignored. Raises
    `binascii.Error` or `ValueError` for a text of an impossible length, or with characters outside of ASCII."""
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _seal(session: Session, key: bytes, document: bytes) -> str:
    """Returns the signature of a page token's document for the catalog, the principal, and the method and path of this
    request, as 32 hex digits."""
    entity, _ = session.catalog.entry or ("", 0)
    request = dumps([entity, session.request.principal, session.request.method, session.request.path])
    return hmac.new(key, request + document, hashlib.sha256).hexdigest()[:32]


def _encrypted(data: bytes, key: bytes, seal: str) -> bytes:
    """Returns encrypted data, or decrypts it: with a stream for this key and seal. The seal depends on the whole
    document, so no two documents share a stream."""
    # The message of a seal begins with a bracket, so none is equal to this one.
    seed = hmac.digest(key, b"stream " + seal.encode("utf-8", "surrogatepass"), "sha256")
    stream = hashlib.shake_256(seed).digest(len(data))
    return (int.from_bytes(data) ^ int.from_bytes(stream)).to_bytes(len(data))


def is_commit_id(text: str) -> bool:
    """Whether a text has the form of the id of a registry commit, so that it can be part of a key."""
    return _COMMIT_ID.fullmatch(text) is not None


def of_another_listing() -> BadRequest:
    """Returns the error for a token whose position has not the form of the listing's."""
    return BadRequest("The page token belongs to another listing: list again from the start")


def expired() -> BadRequest:
    """Returns the error for a token whose page can no longer be read."""
    return BadRequest("The page token has expired: list again from the start")
