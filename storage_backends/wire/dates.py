"""Parses the dates in stores' responses. The usual form is parsed by hand: the standard library's parser is part of its
e-mail package, which a cold start would load for nothing else."""

from datetime import UTC, datetime
from functools import lru_cache

_NAMES = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTHS = {name: number for number, name in enumerate(_NAMES, start=1)}


@lru_cache(maxsize=256)
def http_date_ms(text: str) -> int:
    """Returns the milliseconds since 1970 of a date in an HTTP header (RFC 9110, section 5.6.7), or in another form
    that Python's `email` reads. Raises ValueError for any other text."""
    match text.split(" "):
        case [_, day, month, year, time, "GMT"] if month in _MONTHS and len(time) == 8:
            hour, minute, second = time.split(":")
            date = datetime(int(year), _MONTHS[month], int(day), int(hour), int(minute), int(second), tzinfo=UTC)
            return int(date.timestamp()) * 1_000
    from email.utils import parsedate_to_datetime  # obsolete forms, which no store uses

    return int(parsedate_to_datetime(text).timestamp()) * 1_000


def iso_date_ms(text: str) -> int:
    """Returns the milliseconds since 1970 of an ISO 8601 date in a listing, in UTC unless it names a zone. Raises
    ValueError."""
    date = datetime.fromisoformat(text)
    return int((date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() * 1_000)
