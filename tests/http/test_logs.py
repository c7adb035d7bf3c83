"""The process's own log: a record is a line, and quotes nothing that was not ours to tell."""

import io
import json
import logging
import sys
from collections.abc import Iterator

import pytest

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.telemetry.logs import JsonFormatter, TextFormatter, configure_logging
from storage_backends import StoreUnavailable
from tests.support import loggers


@pytest.fixture
def restored() -> Iterator[None]:
    """The loggers as they were, afterwards."""
    with loggers.restored():
        yield


def failed(error: BaseException) -> logging.LogRecord:
    """A record of an error that was raised while another was handled."""
    try:
        try:
            raise KeyError("hunter2")
        except KeyError as cause:
            raise error from cause
    except BaseException:
        return logging.LogRecord("arco_catalog.x", logging.ERROR, __file__, 1, "it failed: %s", ("a",), sys.exc_info())


@pytest.mark.parametrize("formatter", [TextFormatter(), JsonFormatter()])
def test_an_unexpected_error_is_logged_by_its_class_and_frames_alone(formatter: logging.Formatter) -> None:
    text = formatter.format(failed(ValueError("hunter2")))

    assert "builtins.ValueError" in text
    assert "builtins.KeyError" in text
    assert f"{__file__}:" in text
    assert "hunter2" not in text


def test_a_group_is_logged_with_its_exceptions() -> None:
    text = JsonFormatter().format(failed(ExceptionGroup("hunter2", [OSError("hunter2"), TypeError("hunter2")])))

    assert "builtins.OSError" in text
    assert "builtins.TypeError" in text
    assert "hunter2" not in text


@pytest.mark.parametrize("error", [InternalError("the manifest is gone"), StoreUnavailable("the manifest is gone")])
def test_an_error_of_the_catalog_is_logged_with_its_text(error: Exception) -> None:
    assert "the manifest is gone" in JsonFormatter().format(failed(error))


@pytest.mark.parametrize("text", ["a\nb", "\r", "\x1b[2J", "\x9b", "\u2028", "\ud800", "\x00"])
def test_a_record_is_one_line_whatever_it_quotes(text: str) -> None:
    record = logging.LogRecord("arco_catalog.x", logging.WARNING, __file__, 1, "dropped %s", (text,), None)

    as_text, as_json = TextFormatter().format(record), JsonFormatter().format(record)

    assert len(as_text.splitlines()) == len(as_json.splitlines()) == 1
    assert as_text.isprintable()
    assert json.loads(as_json)["message"].startswith("dropped ")


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize("as_json", [True, False])
def test_debug_shows_our_own_records_and_not_the_libraries(as_json: bool) -> None:
    stream = io.StringIO()
    configure_logging(stream, "debug", json=as_json)

    logging.getLogger("arco_catalog.http").debug("ours")
    logging.getLogger("botocore.auth").debug("Authorization: hunter2")
    logging.getLogger("botocore.auth").warning("theirs")

    lines = stream.getvalue().splitlines()
    assert len(lines) == 2
    assert "ours" in lines[0]
    assert "theirs" in lines[1]


@pytest.mark.usefixtures("restored")
def test_a_quieter_level_quietens_all() -> None:
    stream = io.StringIO()
    configure_logging(stream, "error", json=False)

    logging.getLogger("botocore.auth").warning("theirs")
    logging.getLogger("arco_catalog.http").warning("ours")

    assert stream.getvalue() == ""
