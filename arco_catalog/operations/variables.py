"""Texts of environment variables, read alike by whatever starts the catalog: the command line and the functions."""

import re

from storage_backends import probe

ALLOW_LOCATION_OVERLAP = "ARCO_ALLOW_LOCATION_OVERLAP"
ALLOWED_LOCATIONS = "ARCO_ALLOWED_LOCATIONS"

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_SWITCH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def switch(text: str) -> bool:
    """On or off. Raises `ValueError` for what is neither."""
    if text.lower() not in _SWITCH:
        raise ValueError(f"choose true or false, not {text!r}")
    return _SWITCH[text.lower()]


def warehouse(text: str) -> str:
    """A catalog's name. It is a folder in the store and part of every location, so it is spelled alike everywhere.
    Raises `ValueError` for what can't be one, and for the folder in which stores are tried: what lies there may go."""
    if not _NAME.fullmatch(text):
        raise ValueError(f"a warehouse's name is made of letters, digits, dots, dashes and underscores, not {text!r}")
    if text == probe.FOLDER:
        raise ValueError(f"{text} is no warehouse's name: stores are tried in the folder of that name")
    return text


def listed(text: str) -> list[str]:
    """What stands between commas."""
    return [item for part in text.split(",") if (item := part.strip())]
