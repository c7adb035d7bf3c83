"""The keys of encrypted tables as table metadata has them, which are encrypted themselves (table spec v3, "Encryption
Keys")."""

import base64
import binascii
from typing import TypedDict

from arco_catalog.iceberg.json import JsonValue
from arco_catalog.iceberg.shapes import NAME, STRING, STRINGS, ShapeError, record

_Key = TypedDict("_Key", {"key-id": str, "encrypted-key-metadata": str})
_KeyRest = TypedDict("_KeyRest", {"encrypted-by-id": str, "properties": dict[str, str]}, total=False)


class EncryptedKey(_Key, _KeyRest):
    """A key of an encrypted table, which is itself encrypted with another key."""


def _base64(value: JsonValue) -> str:
    """Returns the value if it is a text in base64. Raises `ShapeError` for any other one."""
    text = STRING(value)
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ShapeError("expected base64") from None
    return text


ENCRYPTED_KEY = record(
    EncryptedKey,
    required={"key-id": NAME, "encrypted-key-metadata": _base64},
    optional={"encrypted-by-id": STRING, "properties": STRINGS},
)
