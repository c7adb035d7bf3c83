"""Shared Key signatures of Azure Storage: a pure function from a request to its signed headers.

Source: Azure Storage REST API, "Authorize with Shared Key". The body is not part of a signature.
"""

from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from hmac import digest
from urllib.parse import quote

_SIGNED = (
    "content-encoding",
    "content-language",
    "content-length",
    "content-md5",
    "content-type",
    "date",
    "if-modified-since",
    "if-match",
    "if-none-match",
    "if-unmodified-since",
    "range",
)
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@lru_cache(maxsize=4_096)  # no key is longer than 1,024 bytes
def path_of(key: str) -> str:
    """Returns the path of a key, escaped as it is both sent and signed."""
    return quote(key, safe="/-_.~")


def query_of(parameters: Iterable[tuple[str, str]]) -> str:
    """Returns a query string as it is sent; what is signed are its names and values before they are escaped."""
    return "&".join(f"{quote(name, safe='-_.~')}={quote(value, safe='-_.~')}" for name, value in parameters)


def signed(
    account: str,
    key: bytes,
    method: str,
    path: str,
    query: Mapping[str, str],
    headers: Mapping[str, str],
    length: int,
) -> dict[str, str]:
    """Returns `headers` (lower-case names, `x-ms-date` among them) with `authorization` added.

    Conditions are signed, so a proxy that drops one makes the request invalid. `path` is as it is sent; `length` is
    that of the body.
    """
    standard = {**headers, "content-length": str(length) if length else ""}
    lines = [method, *(standard.get(name, "") for name in _SIGNED)]
    lines += [f"{name}:{' '.join(headers[name].split())}" for name in sorted(headers) if name.startswith("x-ms-")]
    lines.append(f"/{account}{path}")
    lines += [f"{name.lower()}:{value}" for name, value in sorted(query.items())]
    signature = b64encode(digest(key, "\n".join(lines).encode(), "sha256")).decode()
    return {**headers, "authorization": f"SharedKey {account}:{signature}"}


@lru_cache(maxsize=8)
def decoded_key(key: str) -> bytes:
    """Returns the bytes of an account's key. Raises `ValueError` if it is not base64."""
    return b64decode(key, validate=True)


def date_stamp(now_ms: int) -> str:
    """Returns a time in milliseconds since 1970 as the header `x-ms-date` spells it, whatever the process's locale (RFC
    9110, section 5.6.7)."""
    return _stamp(now_ms // 1_000)


@lru_cache(maxsize=4)  # many requests are signed within a second
def _stamp(seconds: int) -> str:
    """Returns a time in seconds since 1970 as the header `x-ms-date` has it."""
    at = datetime.fromtimestamp(seconds, UTC)
    return f"{_DAYS[at.weekday()]}, {at.day:02} {_MONTHS[at.month - 1]} {at.year} {at:%H:%M:%S} GMT"
