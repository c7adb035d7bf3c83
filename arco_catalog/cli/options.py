"""Options that are a flag and an environment variable at once, and the types of their values."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from arco_catalog.config import variables
from arco_catalog.protocol.operation_request import Dialect

T = TypeVar("T")

MOST_WORKERS = 64
LOG_LEVELS = ("debug", "info", "warning", "error")
LOG_FORMATS = ("text", "json")


class _FromVariable(str):
    """A text that an environment variable holds."""


@dataclass(frozen=True)
class Option:
    """One option with one value. `type` reads the text of either source; its errors are told as wrong usage. Without a
    default the value may be None."""

    flag: str
    variable: str
    help: str
    default: str | None = None
    type: Callable[[str], object] = str
    metavar: str | None = None

    def add_to(self, parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
        """Declares it. An empty variable is none."""
        set_there = environment.get(self.variable)
        value = _FromVariable(set_there) if set_there else self.default
        parser.add_argument(self.flag, type=self.read, default=value, metavar=self.metavar, help=self.described())

    def read(self, text: str) -> object:
        """The value of a text. Raises `argparse.ArgumentTypeError`, which names the variable if it is from there."""
        try:
            return self.type(text)
        except argparse.ArgumentTypeError as error:
            if isinstance(text, _FromVariable):
                raise argparse.ArgumentTypeError(f"{self.variable}: {error}") from error
            raise

    def described(self) -> str:
        """Its help, with the variable and the default."""
        default = "" if self.default is None else f", default {self.default}"
        return f"{self.help} [env {self.variable}{default}]"


class Switch(Option):
    """An option that is off unless it is named."""

    def __init__(self, flag: str, variable: str, help: str) -> None:  # noqa: A002  as argparse calls it
        super().__init__(flag, variable, help, type=parse_bool)

    def add_to(self, parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
        value = _FromVariable(environment.get(self.variable) or "false")
        parser.add_argument(
            self.flag,
            type=self.read,
            nargs="?",
            const="true",
            default=value,
            metavar="true|false",
            help=self.described(),
        )


class MultiOption(Option):
    """An option with any number of values: several at once, or several times; with commas in its variable."""

    def add_to(self, parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
        default = tuple(variables.split_csv(environment.get(self.variable, "")))
        parser.add_argument(
            self.flag, action=_Extend, nargs="+", default=default, metavar=self.metavar, help=self.described()
        )


class _Extend(argparse.Action):
    """Gathers what flags say; if they say anything, the default does not count."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[object] | None,
        option_string: str | None = None,
    ) -> None:
        earlier = getattr(namespace, self.dest)
        setattr(namespace, self.dest, (*(() if earlier is self.default else earlier), *(values or ())))


def port(text: str) -> int:
    """A TCP port."""
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"expected a port from 0 to 65535, got {text!r}")
    return int(text)


def positive(text: str) -> int:
    """How many."""
    if not text.isascii() or not text.isdigit() or not 0 < int(text) <= 10**9:
        raise argparse.ArgumentTypeError(f"expected a number of at least 1, got {text!r}")
    return int(text)


def workers(text: str) -> int:
    """How many processes."""
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= MOST_WORKERS:
        raise argparse.ArgumentTypeError(f"expected a number of workers from 1 to {MOST_WORKERS}, got {text!r}")
    return int(text)


def size(text: str) -> int:
    """A number of bytes."""
    return _read(variables.size, text)


def warehouse(text: str) -> str:
    """A catalog's name."""
    return _read(variables.warehouse, text)


def dialect(text: str) -> Dialect:
    """Whose idempotency keys."""
    if text not in [*Dialect]:
        raise argparse.ArgumentTypeError(f"expected {' or '.join(Dialect)}, got {text!r}")
    return Dialect(text)


def log_level(text: str) -> str:
    """How much is logged."""
    if text.lower() not in LOG_LEVELS:
        raise argparse.ArgumentTypeError(f"unknown log level {text!r}: expected one of {', '.join(LOG_LEVELS)}")
    return text.lower()


def log_format(text: str) -> str:
    """How a line of the log looks."""
    if text.lower() not in LOG_FORMATS:
        raise argparse.ArgumentTypeError(f"unknown log format {text!r}: expected {' or '.join(LOG_FORMATS)}")
    return text.lower()


def parse_bool(text: str) -> bool:
    """On or off."""
    return _read(variables.parse_bool, text)


def _read(reader: Callable[[str], T], text: str) -> T:
    """What a reader of variables makes of an option's text; the parser of options shows the text of its own errors
    alone."""
    try:
        return reader(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
