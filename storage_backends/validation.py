"""Checks keys, ranges and conditions that callers pass to any store, and whether a condition holds."""

import re

from storage_backends.base import Absent, Anything, InvalidKey, Matches, Version, When

MAX_KEY_BYTES = 1_024
"""S3, GCS and Azure all stop here."""

_NO_SEGMENT = frozenset(("", ".", ".."))
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")

PAGE_SIZE = 1_000
"""Objects in one page of a listing."""


def check_key(key: str) -> None:
    """Raises `InvalidKey` unless the key is `/`-separated segments, none of them empty, `.` or `..`, without control
    characters, valid Unicode, and at most 1,024 bytes of UTF-8 in all."""
    if not _NO_SEGMENT.isdisjoint(key.split("/")):
        raise InvalidKey(f"the key of an object must not have an empty, '.' or '..' segment: {key!r}")
    if _CONTROL.search(key):
        raise InvalidKey(f"the key of an object must not contain a control character: {key!r}")
    try:
        size = len(key.encode())
    except UnicodeEncodeError as error:
        raise InvalidKey(f"the key of an object must be valid Unicode: {key!r}") from error
    if size > MAX_KEY_BYTES:
        raise InvalidKey(
            f"the key of an object must have at most {MAX_KEY_BYTES} bytes, the limit of all stores; "
            f"this one has {size} and begins with {key[:80]!r}"
        )


def is_key(key: str) -> bool:
    """Whether a name is a valid key of a store: `/`-separated segments, none of them empty, `.` or `..`, without
    control characters, valid Unicode, and at most 1,024 bytes of UTF-8 in all. Other programs may have stored objects
    with other names."""
    try:
        check_key(key)
    except InvalidKey:
        return False
    return True


def check_range(start: int, length: int) -> None:
    """Raises ValueError for a range that begins before 0 or has less than one byte."""
    if start < 0 or length < 1:
        raise ValueError(
            f"a range of bytes must start at 0 or later and have at least one byte, got start {start}, length {length}"
        )


def check_deletable(when: When) -> Matches | Anything:
    """Returns the condition of a deletion as it is, if a deletion can have it. Raises ValueError for `ABSENT`."""
    if isinstance(when, Absent):
        raise ValueError("a deletion cannot have the condition ABSENT: use ANY, or Matches with a version")
    return when


def holds(when: When, current: Version | None) -> bool:
    """Whether the condition of a write holds for an object with the version `current`; None if there is none."""
    match when:
        case Absent():
            return current is None
        case Matches(version):
            return current == version
        case Anything():
            return True
