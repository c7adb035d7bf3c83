"""Parsers of the texts of environment variables and options. For an invalid text they raise `ValueError` with a
sentence that the user can follow."""

import re
from urllib.parse import unquote

from arco_catalog.config.durations import parse_duration
from storage_backends import probe
from storage_backends.lazy_dataclass import dataclass

MIN_BYTES = 1 << 20
MIN_BODY_BYTES = 1 << 10
MAX_WORKERS = 64
MIN_KEY_LIFETIME_MS, MAX_KEY_LIFETIME_MS = 1_000, 86_400_000
AUTO_WORKERS = "auto"
SEPARATES_NOTHING = ' _-+%"\\'

_NAME = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}"
_REALM = r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}"
_BASE_PATH = r"(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*){0,8}"
_SIZE = r"([0-9]{1,15})|([0-9]{1,9})(KB|MB|GB)"
_UNITS = {"": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}
_BOOLS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def parse_bool(text: str) -> bool:
    """Returns the boolean of a text: true or false, 1 or 0, yes or no, in any case. Raises `ValueError` for any other
    text."""
    if text.lower() not in _BOOLS:
        raise ValueError(f"expected true or false (or 1 or 0, yes or no), got {text!r}")
    return _BOOLS[text.lower()]


def parse_warehouse(text: str) -> str:
    """Returns the text unchanged if it is a valid name of a catalog: 1 to 128 letters, digits, dots, dashes or
    underscores, the first no dot or dash. The name is a folder in the store and part of every location, so it may have
    only characters that URLs do not encode. Raises `ValueError` for any other text, and for `_probe`, the folder in
    which stores are probed, since the objects there may be deleted at any time."""
    if not re.fullmatch(_NAME, text):
        raise ValueError(
            "a warehouse's name may have letters, digits, dots, dashes and underscores, at most 128, and begins with a "
            f"letter, a digit or an underscore, got {text!r}"
        )
    if text == probe.FOLDER:
        raise ValueError(
            f"invalid warehouse's name {text!r}: the folder of this name is for tests of the store; choose another"
        )
    return text


def parse_realm(text: str) -> str:
    """Returns the text unchanged if it is a valid name of a realm: 1 to 128 letters, digits, dots, dashes or
    underscores, the first a letter or a digit. The name is a folder in the store, beside folders of the catalog itself,
    which begin with an underscore. Raises `ValueError` for any other text."""
    if not re.fullmatch(_REALM, text):
        raise ValueError(
            "a realm's name may have letters, digits, dots, dashes and underscores, at most 128, and begins with a "
            f"letter or a digit, got {text!r}"
        )
    return text


def parse_base_path(text: str) -> str:
    """Returns the path before `/v1` in the URLs of the API, with a slash at the start and none at the end; empty for an
    empty text or a slash. Raises `ValueError` for a text that is no such path, or has more than eight parts."""
    path = text.rstrip("/")
    if not re.fullmatch(_BASE_PATH, path):
        raise ValueError(f"expected a path such as /iceberg or /api/catalog, of at most eight parts, got {text!r}")
    return path


def parse_size(text: str) -> int:
    """Returns a number of bytes. The text is a number of at most nine digits with the unit KB, MB or GB (powers of
    1,024), or of at most 15 without one. Raises `ValueError` for less than a megabyte, and for any other text."""
    return _sized(text, MIN_BYTES, "1MB or more, such as 64MB or 1GB")


def parse_body_size(text: str) -> int:
    """Returns the limit in bytes of a request's body, from a number of at most nine digits with the unit KB, MB or GB,
    or of at most 15 without one. Raises `ValueError` for less than a kilobyte, which holds no commit, and for any other
    text."""
    return _sized(text, MIN_BODY_BYTES, "1KB or more, such as 512KB or 8MB")


def _sized(text: str, least: int, expected: str) -> int:
    """Returns the bytes of a size such as 64MB, at most nine digits and a unit (a power of 1,024), or 15 digits. Raises
    `ValueError`, in which the sentence `expected` is quoted, for less than `least` and for any other text."""
    match = re.fullmatch(_SIZE, text.strip(), re.IGNORECASE)
    size = 0 if match is None else int(match[1] or match[2]) * _UNITS[(match[3] or "").upper()]
    if size < least:
        raise ValueError(f"expected a size of {expected}, got {text!r}")
    return size


def parse_separator(text: str) -> str:
    """Returns the character that separates the levels of a namespace in paths: one ASCII punctuation mark, or the unit
    separator %1F. The text may be percent-encoded. Raises `ValueError` for any other text, and for characters that are
    common in names or have a meaning in every path (`SEPARATES_NOTHING`)."""
    character = unquote(text)
    printable = character.isascii() and character.isprintable() and not character.isalnum()
    if len(character) != 1 or not (character == "\x1f" or printable) or character in SEPARATES_NOTHING:
        raise ValueError(
            f'expected one ASCII punctuation mark other than _ - + % " \\, such as ., or %1F, got {text!r}'
        )
    return character


def parse_port(text: str) -> int:
    """Returns a TCP port, from 0 to 65535. Raises `ValueError` for any other text."""
    return _whole(text, 0, 65535, "a port from 0 to 65535")


def parse_count(text: str) -> int:
    """Returns a number from 1 to 10**9. Raises `ValueError` for any other text."""
    return _whole(text, 1, 10**9, "a whole number from 1 to 1,000,000,000")


def parse_rate(text: str) -> int:
    """Returns a number of requests per second, from 1 to 10**6. Raises `ValueError` for any other text."""
    return _whole(text, 1, 10**6, "requests per second from 1 to 1,000,000")


def parse_key_lifetime(text: str) -> int:
    """Returns the milliseconds for which clients may retry with one idempotency key, from a length of time. Raises
    `ValueError` for less than a second, for more than a day, since markers are kept for two, and for any other text."""
    lifetime = parse_duration(text)
    if not MIN_KEY_LIFETIME_MS <= lifetime <= MAX_KEY_LIFETIME_MS:
        raise ValueError(f"expected a length of time from PT1S to P1D, got {text!r}")
    return lifetime


def parse_workers(text: str) -> int | None:
    """Returns a number of processes, from 1 to `MAX_WORKERS`; None for `auto`. Raises `ValueError` for any other
    text."""
    if text == AUTO_WORKERS:
        return None
    return _whole(text, 1, MAX_WORKERS, f"a number of workers from 1 to {MAX_WORKERS}")


def _whole(text: str, low: int, high: int, expected: str) -> int:
    """Returns the whole number in a text of digits. Raises `ValueError`, in which the phrase `expected` is quoted,
    unless it is from `low` to `high`."""
    if not text.isascii() or not text.isdigit() or not low <= int(text) <= high:
        raise ValueError(f"expected {expected}, got {text!r}")
    return int(text)


def split_csv(text: str) -> tuple[str, ...]:
    """Splits a text at commas, and returns the items without the spaces around them; empty items are left out."""
    return tuple(item for part in text.split(",") if (item := part.strip()))


@dataclass(frozen=True, slots=True)
class Seconds:
    """A parser of a whole number of seconds from `low` to `high`, which raises `ValueError` for any other text."""

    low: int
    high: int

    def __call__(self, text: str) -> int:
        return _whole(text, self.low, self.high, f"a number of seconds from {self.low} to {self.high}")


TOKEN_LIFETIME_S = Seconds(10, 86_400)
"""Until a token expires: at least ten seconds, since its client must have time to use it, and at most a day."""
OPA_TIMEOUT_S = Seconds(1, 10)
"""How long a policy may take to answer: less than a request may take."""
OPA_CACHE_S = Seconds(0, 5)
"""How long an answer of a policy that allows something is used again."""
VENDED_LIFETIME_S = Seconds(60, 43_200)
"""How long a vended credential is used: at least a minute, since its client must have time to use it, and at most the
twelve hours that STS allows."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A parser that accepts only one of the `words`, with `any_case` in any case of letters, and returns it, then in
    lower case. For other texts it raises `ValueError` with the sentence `refusal`, in which `{text}` and `{choices}`
    are replaced."""

    words: tuple[str, ...]
    refusal: str = "expected {choices}, got {text}"
    any_case: bool = False

    def __call__(self, text: str) -> str:
        word = text.lower() if self.any_case else text
        if word not in self.words:
            expected = " or ".join(self.words) if len(self.words) == 2 else f"one of {', '.join(self.words)}"
            raise ValueError(self.refusal.format(text=repr(text), choices=expected))
        return word
