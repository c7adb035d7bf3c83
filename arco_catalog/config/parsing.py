"""What the texts of variables and options mean: each parser raises `ValueError` with a sentence that its user can
follow."""

import re
from collections.abc import Callable
from urllib.parse import unquote

from arco_catalog.config.durations import parse_duration
from storage_backends import probe

MIN_BYTES = 1 << 20
MIN_BODY_BYTES = 1 << 10
MOST_WORKERS = 64
LEAST_LIFETIME_S, MOST_LIFETIME_S = 10, 86_400
LEAST_VENDED_S, MOST_VENDED_S = 60, 43_200
LEAST_KEY_LIFETIME_MS, MOST_KEY_LIFETIME_MS = 1_000, 86_400_000
AUTO_WORKERS = "auto"
SEPARATES_NOTHING = ' _-+%"\\'

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_REALM = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_BASE_PATH = re.compile(r"(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*){0,8}")
_SIZE = re.compile(r"([0-9]{1,9})(KB|MB|GB)?", re.IGNORECASE)
_UNITS = {"": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}
_BOOLS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def parse_bool(text: str) -> bool:
    """True or false, 1 or 0, yes or no."""
    if text.lower() not in _BOOLS:
        raise ValueError(f"expected true or false, got {text!r}")
    return _BOOLS[text.lower()]


def parse_warehouse(text: str) -> str:
    """A catalog's name. It is a folder in the store and part of every location, so it is spelled alike everywhere.
    The folder in which stores are tried can't be one: what lies there may go."""
    if not _NAME.fullmatch(text):
        raise ValueError(
            f"a warehouse's name may have letters, digits, dots, dashes and underscores only, got {text!r}"
        )
    if text == probe.FOLDER:
        raise ValueError(f"invalid warehouse's name {text!r}: it is reserved for probing the store")
    return text


def parse_realm(text: str) -> str:
    """A realm's name. It is a folder in the store, and none of those that the catalog keeps for itself."""
    if not _REALM.fullmatch(text):
        raise ValueError(
            "a realm's name may have letters, digits, dots, dashes and underscores only, and begins with a letter or a "
            f"digit, got {text!r}"
        )
    return text


def parse_base_path(text: str) -> str:
    """What goes before `/v1` in paths, without the slash at its end."""
    path = text.rstrip("/")
    if not _BASE_PATH.fullmatch(path):
        raise ValueError(f"expected a path such as /iceberg or /api/catalog, got {text!r}")
    return path


def parse_size(text: str) -> int:
    """A number of bytes, at least a megabyte: with KB, MB or GB (of 1,024) behind it, or none."""
    number = _bytes(text)
    if number < MIN_BYTES:
        raise ValueError(f"expected a size of 1MB or more, such as 64MB or 1GB, got {text!r}")
    return number


def parse_body_size(text: str) -> int:
    """A number of bytes that a request's body may have: at least a kilobyte, since a smaller one holds no commit."""
    number = _bytes(text)
    if number < MIN_BODY_BYTES:
        raise ValueError(f"expected a size of 1KB or more, such as 512KB or 8MB, got {text!r}")
    return number


def _bytes(text: str) -> int:
    match = _SIZE.fullmatch(text.strip())
    return 0 if match is None else int(match[1]) * _UNITS[(match[2] or "").upper()]


def parse_separator(text: str) -> str:
    """The character between the levels of a namespace in paths, which may be percent-encoded. One that names have, or
    that means something in every path, cannot be it."""
    character = unquote(text)
    printable = character.isascii() and character.isprintable() and not character.isalnum()
    if len(character) != 1 or not (character == "\x1f" or printable) or character in SEPARATES_NOTHING:
        raise ValueError(
            f"expected one character such as . or %1F, and no letter, digit, space, _, -, + or %, got {text!r}"
        )
    return character


def parse_port(text: str) -> int:
    """A TCP port."""
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise ValueError(f"expected a port from 0 to 65535, got {text!r}")
    return int(text)


def parse_count(text: str) -> int:
    """How many, at least one."""
    if not text.isascii() or not text.isdigit() or not 0 < int(text) <= 10**9:
        raise ValueError(f"expected a number of at least 1, got {text!r}")
    return int(text)


def parse_lifetime(text: str) -> int:
    """Seconds that a token lives: from ten, since its client must have time to use it, to a day."""
    return _seconds(text, LEAST_LIFETIME_S, MOST_LIFETIME_S)


def parse_key_lifetime(text: str) -> int:
    """Milliseconds for which clients may retry with one key: up to a day, since markers are kept for two."""
    lifetime = parse_duration(text)
    if not LEAST_KEY_LIFETIME_MS <= lifetime <= MOST_KEY_LIFETIME_MS:
        raise ValueError(f"expected a length of time from PT1S to P1D, got {text!r}")
    return lifetime


def parse_vended_lifetime(text: str) -> int:
    """Seconds that a vended credential is used: from a minute, since its client must have time to use it, to the twelve
    hours that STS gives at most."""
    return _seconds(text, LEAST_VENDED_S, MOST_VENDED_S)


def _seconds(text: str, least: int, most: int) -> int:
    if not text.isascii() or not text.isdigit() or not least <= int(text) <= most:
        raise ValueError(f"expected a number of seconds from {least} to {most}, got {text!r}")
    return int(text)


def parse_workers(text: str) -> int | None:
    """How many processes; None for as many as there are cores."""
    if text == AUTO_WORKERS:
        return None
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= MOST_WORKERS:
        raise ValueError(f"expected a number of workers from 1 to {MOST_WORKERS}, got {text!r}")
    return int(text)


def split_csv(text: str) -> tuple[str, ...]:
    """Splits a text at commas, without the spaces around items and without empty items."""
    return tuple(item for part in text.split(",") if (item := part.strip()))


def choice(*choices: str, refusal: str, any_case: bool = False) -> Callable[[str], str]:
    """A parser of one of these words; `refusal` is the sentence about another, with `{text}` and `{choices}` in it."""
    words = " or ".join(choices) if len(choices) == 2 else f"one of {', '.join(choices)}"

    def parse(text: str) -> str:
        word = text.lower() if any_case else text
        if word not in choices:
            raise ValueError(refusal.format(text=repr(text), choices=words))
        return word

    return parse
