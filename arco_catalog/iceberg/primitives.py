"""Primitive types by name: the format versions that have them, and the JSON form of their default values (table spec,
"Primitive Types" and "JSON single-value serialization")."""

import math
import re
from collections.abc import Callable
from datetime import date

from arco_catalog.iceberg.json import JsonValue

_SINCE_V1 = frozenset(
    {
        "boolean",
        "int",
        "long",
        "float",
        "double",
        "date",
        "time",
        "timestamp",
        "timestamptz",
        "string",
        "uuid",
        "binary",
    }
)
_SINCE_V3 = frozenset({"timestamp_ns", "timestamptz_ns", "variant", "unknown", "geometry", "geography"})
_PLAIN = _SINCE_V1 | _SINCE_V3
_PARAMETERISED = {
    "fixed": r"fixed\[\s*([0-9]{1,9})\s*\]",
    "decimal": r"decimal\(\s*([0-9]{1,9})\s*,\s*([0-9]{1,9})\s*\)",
    "geometry": r"geometry\s*\(([^()]*)\)",
    "geography": r"geography\s*\(([^(),]*)(?:,\s*(?:spherical|vincenty|thomas|andoyer|karney)\s*)?\)",
}

MAX_DECIMAL_PRECISION = 38
UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def same_uuid(one: str, other: str) -> bool:
    """Whether two UUIDs are equal, in any case of letters. That of a registered table may be any text, however long, so
    the lengths are compared first."""
    return len(one) == len(other) and one.lower() == other.lower()


def base_name(type_name: str) -> str:
    """Returns a type's name without its parameters, for example `decimal` for `decimal(9,2)`; empty if there is no such
    type, or if a decimal's precision is above 38."""
    if type_name in _PLAIN:
        return type_name
    for name, pattern in _PARAMETERISED.items():
        if type_name.startswith(name) and (found := re.fullmatch(pattern, type_name)):
            fits = int(found[1]) <= MAX_DECIMAL_PRECISION if name == "decimal" else bool(found[1].strip())
            return name if fits else ""
    return ""


def canonical(type_name: str) -> str:
    """Returns a type's name without white space in the parameters, if it is `fixed` or `decimal`, so that equal ones
    have one spelling. Any other name is returned as it is, also `geometry (...)`."""
    return re.sub(r"\s+", "", type_name) if base_name(type_name) in ("fixed", "decimal") else type_name


def minimum_version(type_name: str) -> int:
    """Returns the first format version that has this type: 3 (as for `unknown`), or 1 for all other types, and for a
    name that no type has."""
    return 3 if base_name(type_name) in _SINCE_V3 else 1


def is_primitive(type_name: str) -> bool:
    """Whether values of a type that is only a name (no struct, list or map) are primitive. All but `variant` are."""
    return type_name != "variant"


def is_default(type_name: str, value: JsonValue) -> bool:
    """Whether `value` is the JSON form of a default of this type. False for all values of a type without defaults."""
    test = _DEFAULTS.get(base_name(type_name))
    return test is not None and test(type_name, value)


def _integer(bits: int) -> Callable[[str, JsonValue], bool]:
    """Returns a test whether a default is an integer of so many bits."""
    bound = 2 ** (bits - 1)

    def is_valid(_: str, value: JsonValue) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and -bound <= value < bound

    return is_valid


def _float(_: str, value: JsonValue) -> bool:
    """Whether a default is a floating-point number in the range of a float; an integer is none."""
    return isinstance(value, float) and abs(value) <= _MAX_FLOAT


def _double(_: str, value: JsonValue) -> bool:
    """Whether a default is a finite floating-point number; an integer is none."""
    return isinstance(value, float) and math.isfinite(value)


def _dated(pattern: str, years: range = range(-99_999, 100_000)) -> Callable[[str, JsonValue], bool]:
    """Returns a check that a value is a text of this pattern, and that its date exists in the calendar and is in one of
    these years: readers fail on any other."""

    def is_valid(_: str, value: JsonValue) -> bool:
        found = re.fullmatch(pattern, value, re.ASCII) if isinstance(value, str) else None
        return found is not None and int(found["year"]) in years and _is_day(found)

    return is_valid


def _is_day(found: re.Match[str]) -> bool:
    """Whether the date in a match of a pattern, with groups for year, month and day, exists in the calendar."""
    try:
        # The calendar repeats every 400 years, and Python's ends with the year 9999.
        date(2000 + int(found["year"]) % 400, int(found["month"]), int(found["day"]))
    except ValueError:
        return False
    return True


def _matching(pattern: str) -> Callable[[str, JsonValue], bool]:
    """Returns a check that a value is a text of this pattern, whatever the type's parameters."""

    def is_valid(_: str, value: JsonValue) -> bool:
        return isinstance(value, str) and re.fullmatch(pattern, value, re.ASCII) is not None

    return is_valid


def _decimal(type_name: str, value: JsonValue) -> bool:
    """Whether a default is a decimal of the type's scale, as text. The type's precision does not count."""
    found = re.fullmatch(_PARAMETERISED["decimal"], type_name)
    digits = (
        re.fullmatch(r"[+-]?([0-9]+)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]{1,3}))?", value)
        if isinstance(value, str)
        else None
    )
    if found is None or digits is None:
        return False
    return len(digits[2] or "") - int(digits[3] or 0) == int(found[2])


def _hex(type_name: str, value: JsonValue) -> bool:
    """Whether a default is bytes in hexadecimal digits, of the type's length if that is fixed."""
    if not isinstance(value, str) or re.fullmatch(r"([0-9a-fA-F]{2})*", value) is None:
        return False
    length = re.fullmatch(_PARAMETERISED["fixed"], type_name)
    return length is None or len(value) == 2 * int(length[1])


_MAX_FLOAT = (2 - 2**-23) * 2.0**127
_NANOSECOND_YEARS = range(1678, 2262)
"""The years that 64 bits of nanoseconds can express completely."""

_DATE = r"(?P<year>-?[0-9]{4}|[+-][0-9]{5})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})"
_TIME = r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,9})?)?"

_DEFAULTS: dict[str, Callable[[str, JsonValue], bool]] = {
    "boolean": lambda _, value: isinstance(value, bool),
    "int": _integer(32),
    "long": _integer(64),
    "float": _float,
    "double": _double,
    "decimal": _decimal,
    "date": _dated(_DATE),
    "time": _matching(_TIME),
    "timestamp": _dated(f"{_DATE}T{_TIME}"),
    "timestamptz": _dated(rf"{_DATE}T{_TIME}(\+00:00|Z)"),
    "timestamp_ns": _dated(f"{_DATE}T{_TIME}", _NANOSECOND_YEARS),
    "timestamptz_ns": _dated(rf"{_DATE}T{_TIME}(\+00:00|Z)", _NANOSECOND_YEARS),
    "string": lambda _, value: isinstance(value, str),
    "uuid": _matching(UUID.pattern),
    "fixed": _hex,
    "binary": _hex,
}
