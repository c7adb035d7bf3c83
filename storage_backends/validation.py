"""What every store asks of its arguments, so that all stores refuse alike."""

import re

from storage_backends.base import Absent, Anything, InvalidKey, Matches, When

MAX_KEY_BYTES = 1_024
"""S3, GCS and Azure all stop here."""

_NO_SEGMENT = frozenset(("", ".", ".."))
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")

PAGE_SIZE = 1_000
"""Objects in one page of a listing."""


def check_key(key: str) -> None:
    """Raises `InvalidKey` unless the key is `/`-separated segments, none of them empty, `.` or `..`, without control
    characters, at most 1,024 bytes of UTF-8 in all."""
    if not _NO_SEGMENT.isdisjoint(key.split("/")):
        raise InvalidKey(f"a key has no empty, '.' or '..' segment: {key!r}")
    if _CONTROL.search(key):
        raise InvalidKey(f"a key has no control character: {key!r}")
    try:
        size = len(key.encode())
    except UnicodeEncodeError as error:
        raise InvalidKey(f"a key is valid Unicode: {key!r}") from error
    if size > MAX_KEY_BYTES:
        raise InvalidKey(f"a key has at most {MAX_KEY_BYTES} bytes, not {size}: {key[:80]!r}...")


def is_key(key: str) -> bool:
    """Whether `check_key` lets it pass: what others put into a store may have names that no key can have."""
    try:
        check_key(key)
    except InvalidKey:
        return False
    return True


def check_range(start: int, length: int) -> None:
    """Raises ValueError for a range that no object can have."""
    if start < 0 or length < 1:
        raise ValueError(f"a range begins at 0 or later and has at least one byte, not {start}+{length}")


def check_deletable(when: When) -> Matches | Anything:
    """Returns a condition that a deletion can have; raises ValueError for `ABSENT`."""
    if isinstance(when, Absent):
        raise ValueError("ABSENT is no condition for a deletion")
    return when
