"""Page tokens as the catalog writes them where it neither signs nor encrypts them: JSON, in base64 for URLs."""

import base64

from arco_catalog.iceberg.json import JsonValue, dumps, loads


def encode_token(position: JsonValue) -> str:
    """The page token of a position, which may be one that no listing gives."""
    return base64.urlsafe_b64encode(dumps(position)).decode().rstrip("=")


def decode_token(token: str) -> JsonValue:
    """The position in a page token."""
    return loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
