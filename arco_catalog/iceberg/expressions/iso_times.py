"""Dates and timestamps of any year, and times of day, as ISO-8601 text and as numbers: days or nanoseconds since 1970,
nanoseconds since midnight."""

import re
from datetime import date

from arco_catalog.iceberg.errors import BadRequest

_CYCLE_YEARS = 400
_CYCLE_DAYS = 146_097
_EPOCH = date(1970, 1, 1).toordinal()
_NANOS_A_SECOND = 10**9
_SECONDS_A_DAY = 86_400

_DATE = r"(?P<year>[0-9]{4}|-[0-9]{4,9}|\+[0-9]{5,9})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})"
_TIME = r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})(:(?P<second>[0-9]{2})(\.(?P<fraction>[0-9]{0,9}))?)?"
_OFFSET = r"(?P<offset>[Zz]|[+-][0-9]{2}:[0-9]{2}(:[0-9]{2})?)"
_DATE_PATTERN = re.compile(_DATE)
_TIME_PATTERN = re.compile(_TIME)
_TIMESTAMP_PATTERN = re.compile(f"{_DATE}[Tt]{_TIME}")
_ZONED_PATTERN = re.compile(f"{_DATE}[Tt]{_TIME}{_OFFSET}")


def parse_date(text: str) -> int:
    """Returns the days from 1970-01-01 to a date. Raises `BadRequest` for any other text."""
    return _days(_match(_DATE_PATTERN, text, "date"), text)


def parse_time(text: str) -> int:
    """Returns the nanoseconds from midnight to a time of day. Raises `BadRequest` for any other text."""
    return _nanos_of_day(_match(_TIME_PATTERN, text, "time"), text)


def parse_timestamp(text: str, *, zoned: bool) -> int:
    """Returns the nanoseconds from 1970 to a timestamp, which must have an offset from UTC if it is `zoned`, and none
    otherwise. Raises `BadRequest` for any other text."""
    pattern, what = (
        (_ZONED_PATTERN, "timestamp with an offset") if zoned else (_TIMESTAMP_PATTERN, "timestamp without an offset")
    )
    found = _match(pattern, text, what)
    local = _days(found, text) * _SECONDS_A_DAY * _NANOS_A_SECOND + _nanos_of_day(found, text)
    return local - _offset_seconds(found["offset"], text) * _NANOS_A_SECOND if zoned else local


def date_text(days: int) -> str:
    """Returns the ISO date that is this many days after 1970-01-01. Years before 0 or after 9999 have a sign."""
    year, month, day = year_month_day(days)
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04d}-{month:02d}-{day:02d}"


def time_text(nanos: int) -> str:
    """Returns the ISO time that is this many nanoseconds after midnight, without zeros at the end of the fraction."""
    seconds, fraction = divmod(nanos, _NANOS_A_SECOND)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{fraction:09d}".rstrip("0") if fraction else text


def timestamp_text(nanos: int) -> str:
    """Returns the ISO timestamp that is this many nanoseconds after 1970, without an offset."""
    days, of_day = divmod(nanos, _SECONDS_A_DAY * _NANOS_A_SECOND)
    return f"{date_text(days)}T{time_text(of_day)}"


def year_month_day(days: int) -> tuple[int, int, int]:
    """Returns the year, month and day of the date that is this many days after 1970-01-01, in the Gregorian calendar,
    which repeats every 400 years."""
    cycles, rest = divmod(days + _EPOCH - 1, _CYCLE_DAYS)
    found = date.fromordinal(rest + 1)
    return found.year + cycles * _CYCLE_YEARS, found.month, found.day


def _days(found: re.Match[str], text: str) -> int:
    """Returns the days since 1970 of the date in a match. Raises `BadRequest`, which quotes `text`, for a date that the
    calendar does not have."""
    cycles, year = divmod(int(found["year"]) - 1, _CYCLE_YEARS)
    try:
        ordinal = date(year + 1, int(found["month"]), int(found["day"])).toordinal()
    except ValueError as error:
        raise BadRequest(f"Cannot parse the date in {text[:40]!r} of a filter: {error}") from None
    return ordinal + cycles * _CYCLE_DAYS - _EPOCH


def _nanos_of_day(found: re.Match[str], text: str) -> int:
    """Returns the nanoseconds since midnight of the time in a match. Raises `BadRequest`, which quotes `text`, for a
    time that no day has."""
    hour, minute, second = int(found["hour"]), int(found["minute"]), int(found["second"] or 0)
    if hour > 23 or minute > 59 or second > 59:
        raise BadRequest(f"Cannot parse the time in {text[:40]!r} of a filter: no such time of day")
    return (hour * 3600 + minute * 60 + second) * _NANOS_A_SECOND + int((found["fraction"] or "").ljust(9, "0"))


def _offset_seconds(offset: str, text: str) -> int:
    """Returns an offset from UTC, such as `Z` or `+02:00`, in seconds. Raises `BadRequest`, which quotes `text`, for
    one that is not possible, as of 19 hours or more."""
    if offset in "Zz":
        return 0
    hours, minutes, seconds = (int(part) for part in f"{offset[1:]}:00".split(":")[:3])
    if hours > 18 or minutes > 59 or seconds > 59:
        raise BadRequest(f"Cannot parse {text[:40]!r} of a filter as a timestamp: no such offset from UTC")
    return (hours * 3600 + minutes * 60 + seconds) * (-1 if offset[0] == "-" else 1)


def _match(pattern: re.Pattern[str], text: str, what: str) -> re.Match[str]:
    """Returns the match of a pattern with a whole text. Raises `BadRequest`, which names the expected type `what`, if
    it does not match or has more than 64 characters."""
    found = pattern.fullmatch(text) if len(text) <= 64 else None
    if found is None:
        raise BadRequest(
            f"Cannot parse {text[:40]!r} of a filter as a {what}: expected the extended form of ISO-8601, with at most "
            "9 digits after a point"
        )
    return found
