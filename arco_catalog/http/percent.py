"""Decodes percent-encoding strictly: malformed escapes and bytes that are not UTF-8 are refused."""

import re
from urllib.parse import unquote_to_bytes

from arco_catalog.iceberg.errors import BadRequest

_BAD_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")


def decode_text(encoded: bytes) -> str:
    """Returns percent-encoded UTF-8 as text, in which a `+` remains a plus. Raises `BadRequest` for a malformed escape,
    and for bytes that are not UTF-8."""
    if _BAD_ESCAPE.search(encoded):
        raise BadRequest(
            f"Malformed percent-encoding in the path or query: {_shown(encoded)} has a % without two hexadecimal digits"
        )
    try:
        if b"%" not in encoded:
            return encoded.decode("utf-8")
        return unquote_to_bytes(encoded).decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadRequest(
            f"Malformed percent-encoding in the path or query: {_shown(encoded)} does not decode to UTF-8"
        ) from error


def decode_form(encoded: bytes) -> str:
    """Returns percent-encoded UTF-8 as text, with a space for each `+`, as in queries and in the paths of most clients.
    Raises `BadRequest` for a malformed escape, and for bytes that are not UTF-8."""
    return decode_text(encoded.replace(b"+", b" "))


def _shown(encoded: bytes) -> str:
    """Returns the first hundred bytes as text in quotes, for an error message."""
    return repr(encoded[:100].decode("ascii", "backslashreplace"))
