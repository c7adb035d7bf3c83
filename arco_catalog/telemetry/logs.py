"""The process's own log, with one record a line, as JSON or as text, where an exception adds lines. Of that it has the
class and frames, and the text only if the exception is a `CatalogError` or `StoreError`.

The texts of these two, which are our own, are safe to log. Any other exception may quote a request's body or a header
in its text."""

import logging
import re
from collections.abc import Iterator
from traceback import extract_tb
from types import TracebackType
from typing import TextIO

from arco_catalog.iceberg.errors import CatalogError
from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps
from arco_catalog.telemetry.lines import utc_time
from storage_backends import StoreError

OURS = ("arco_catalog", "storage_backends", "uvicorn")
"""Loggers whose level may be lowered. Others' debug lines show headers with signatures and tokens."""
MAX_ERRORS = 20
"""How many exceptions of a chain or a group are logged."""

_CONTROL = r"[\x00-\x1f\x7f-\x9f\u2028\u2029]"

_Raised = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


def configure_logging(stream: TextIO, level: str, *, json: bool) -> None:
    """Writes the log to a stream, as JSON objects or as lines of text: the records of the loggers in `OURS` from
    `level` on, and all others from `warning` on, or from `level` if that is higher. Replaces all handlers of the root
    logger."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter() if json else TextFormatter())
    wanted = logging.getLevelNamesMapping()[level.upper()]
    logging.basicConfig(level=max(wanted, logging.WARNING), handlers=[handler], force=True)
    set_levels(level)


def set_levels(level: str) -> None:
    """Sets the level of this program's own loggers and of uvicorn's (`OURS`), and changes no handler."""
    wanted = logging.getLevelNamesMapping()[level.upper()]
    for name in OURS:
        logging.getLogger(name).setLevel(wanted)


class TextFormatter(logging.Formatter):
    """Formats a record of the process's log as one line, and exceptions with their frames as indented lines after
    it."""

    def format(self, record: logging.LogRecord) -> str:
        """Formats a log record as a line of text (time, level, logger and message), followed by indented lines about
        the exception and the causes, if there is one. Control characters are replaced."""
        line = f"{utc_time(_ms(record))} {record.levelname} {record.name}: {_safe(record.getMessage())}"
        return "\n".join([line, *(f"  {_safe(line)}" for line in _exception_lines(record))])


class JsonFormatter(logging.Formatter):
    """Formats a record of the process's log as a JSON object. For a record with an exception the array `exception` has
    the classes and frames of it, of the causes and of a group's members."""

    def format(self, record: logging.LogRecord) -> str:
        """Formats a log record as one line with a JSON object of time, level, logger and message, in which control
        characters are replaced; the field `exception` is there only for a record with an exception."""
        facts: JsonObject = {
            "time": utc_time(_ms(record)),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _safe(record.getMessage()),
        }
        lines: list[JsonValue] = [_safe(line) for line in _exception_lines(record)]
        return dumps({**facts, "exception": lines} if lines else facts).decode()


def _ms(record: logging.LogRecord) -> int:
    """Returns the time of a log record in milliseconds since 1970."""
    return int(record.created * 1000)


def _safe(text: str) -> str:
    """Returns the text with a question mark in place of each character that would end the line or control a terminal,
    or that UTF-8 can't encode."""
    return re.sub(_CONTROL, "?", text).encode(errors="replace").decode()


def _exception_lines(record: logging.LogRecord) -> list[str]:
    """Returns the lines about a log record's exception, the causes, and the members of groups, of at most `MAX_ERRORS`
    exceptions; empty for a record without an exception."""
    raised: _Raised | None = record.exc_info
    if raised is None or raised[1] is None:
        return []
    return [line for error in _chain(raised[1]) for line in _lines(error)]


def _chain(first: BaseException) -> Iterator[BaseException]:
    """Iterates over an exception, the causes of it (or the contexts, unless they are suppressed), and the members of
    exception groups: at most `MAX_ERRORS` exceptions in all."""
    waiting, seen = [first], 0
    while waiting and seen < MAX_ERRORS:
        error = waiting.pop(0)
        seen += 1
        yield error
        if isinstance(error, BaseExceptionGroup):
            waiting.extend(error.exceptions)
        cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        if cause is not None:
            waiting.append(cause)


def _lines(error: BaseException) -> Iterator[str]:
    """Yields the lines about one exception: the class, and the files, lines and functions of the traceback. Only a
    `CatalogError` or `StoreError` has the text, as others may have secrets. Our other errors, such as `LeaseLost`, go
    without."""
    text = f": {error}" if isinstance(error, CatalogError | StoreError) else ""
    yield f"{type(error).__module__}.{type(error).__qualname__}{text}"
    for frame in extract_tb(error.__traceback__):
        yield f"  {frame.filename}:{frame.lineno} in {frame.name}"
