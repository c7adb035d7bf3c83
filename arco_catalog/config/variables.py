"""Texts of environment variables, read alike by whatever starts the catalog: the command line and the functions."""

import re
from collections.abc import Mapping

from storage_backends import probe

ALLOW_LOCATION_OVERLAP = "ARCO_ALLOW_LOCATION_OVERLAP"
ALLOWED_LOCATIONS = "ARCO_ALLOWED_LOCATIONS"
REQUEST_MEMORY = "ARCO_REQUEST_MEMORY"
CACHE_MEMORY = "ARCO_CACHE_MEMORY"
MAX_BODY = "ARCO_MAX_BODY"
MAX_METADATA = "ARCO_MAX_METADATA"

LEAST_BYTES = 1 << 20

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_SIZE = re.compile(r"([0-9]{1,9})(KB|MB|GB)?", re.IGNORECASE)
_UNITS = {"": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}
_BOOLS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def parse_bool(text: str) -> bool:
    """Parses true or false, 1 or 0, yes or no. Raises `ValueError`."""
    if text.lower() not in _BOOLS:
        raise ValueError(f"expected true or false, got {text!r}")
    return _BOOLS[text.lower()]


def warehouse(text: str) -> str:
    """A catalog's name. It is a folder in the store and part of every location, so it is spelled alike everywhere.
    Raises `ValueError` for what can't be one, and for the folder in which stores are tried: what lies there may go."""
    if not _NAME.fullmatch(text):
        raise ValueError(
            f"a warehouse's name may have letters, digits, dots, dashes and underscores only, got {text!r}"
        )
    if text == probe.FOLDER:
        raise ValueError(f"invalid warehouse's name {text!r}: it is reserved for probing the store")
    return text


def size(text: str) -> int:
    """A number of bytes, at least a megabyte: with KB, MB or GB (of 1,024) behind it, or none. Raises `ValueError`."""
    match = _SIZE.fullmatch(text.strip())
    number = 0 if match is None else int(match[1]) * _UNITS[(match[2] or "").upper()]
    if number < LEAST_BYTES:
        raise ValueError(f"expected a size of 1MB or more, such as 64MB or 1GB, got {text!r}")
    return number


def size_from_env(environment: Mapping[str, str], variable: str, default: int) -> int:
    """The size that a variable gives. Raises `ValueError`, which names the variable."""
    try:
        return size(environment.get(variable) or str(default))
    except ValueError as error:
        raise ValueError(f"{variable}: {error}") from error


def split_csv(text: str) -> list[str]:
    """Splits a text at commas, without the spaces around items and without empty items."""
    return [item for part in text.split(",") if (item := part.strip())]
