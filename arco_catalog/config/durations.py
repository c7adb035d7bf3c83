"""Parses and formats lengths of time in milliseconds. As text they are ISO 8601 (`PT24H`, `P30D`), or a number with a
unit (`30s`, `1h`)."""

import re

_ISO = r"P(?:([0-9]{1,6})D)?(?:T(?=[0-9])(?:([0-9]{1,6})H)?(?:([0-9]{1,6})M)?(?:([0-9]{1,9}(?:\.[0-9]{1,3})?)S)?)?"
_SIMPLE = r"([0-9]{1,11})(ms|s|m|h|d)"
_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def format_duration(milliseconds: int) -> str:
    """Returns a length of time in milliseconds as ISO 8601 has it, such as `PT1H30M`, cut to whole seconds; `PT0S` for
    less than one. Days are given in hours."""
    minutes, seconds = divmod(milliseconds // 1_000, 60)
    hours, minutes = divmod(minutes, 60)
    parts = "".join(f"{count}{unit}" for count, unit in ((hours, "H"), (minutes, "M"), (seconds, "S")) if count)
    return f"PT{parts or '0S'}"


def parse_duration(text: str) -> int:
    """Returns the milliseconds of a length of time in ISO 8601 with days, hours, minutes and seconds, which may have
    three decimals (`PT24H`, `P30D`, `PT0.5S`), or of an integer of at most 11 digits with the unit ms, s, m, h or d
    (`30s`, `1h`). Letters may be in lower or upper case; spaces around the text are ignored. Raises `ValueError` for
    any other text."""
    simple = re.fullmatch(_SIMPLE, text.strip().lower())
    if simple is not None:
        return int(simple[1]) * _UNITS[simple[2]]
    iso = re.fullmatch(_ISO, text.strip().upper())
    if iso is None or not any(iso.groups()):
        raise ValueError(f"expected a length of time such as PT24H, P30D, 30s or 1h, got {text!r}")
    days, hours, minutes, seconds = iso.groups()
    whole = int(days or 0) * _UNITS["d"] + int(hours or 0) * _UNITS["h"] + int(minutes or 0) * _UNITS["m"]
    return whole + round(float(seconds or 0) * 1_000)
