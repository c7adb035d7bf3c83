"""Options that are a flag and an environment variable at once, and the types of their values."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from arco_catalog.config.parsing import parse_count
from arco_catalog.config.variable import Variable


class _FromVariable(str):
    """A text that an environment variable holds."""


@dataclass(frozen=True)
class Option:
    """One option with one value, which its variable parses; errors in it are told as wrong usage. Without a default the
    value may be None."""

    flag: str
    variable: Variable[object]

    def add_to(self, parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
        """Declares it. An empty variable is none."""
        set_there = environment.get(self.variable.name)
        parser.add_argument(
            self.flag,
            type=self.read,
            default=_FromVariable(set_there) if set_there else self.variable.default,
            metavar=self.variable.metavar,
            help=self.described().replace("%", "%%"),
        )

    def read(self, text: str) -> object:
        """The value of a text. Raises `argparse.ArgumentTypeError`, which names the variable if it is from there."""
        try:
            return self.variable.parse(text)
        except ValueError as error:
            where = f"{self.variable.name}: " if isinstance(text, _FromVariable) else ""
            raise argparse.ArgumentTypeError(f"{where}{error}") from error

    def described(self) -> str:
        """Its help, with the variable and the default."""
        default = f", default {self.variable.default}" if self.variable.default else ""
        return f"{self.variable.help} [env {self.variable.name}{default}]"


class Switch(Option):
    """An option that is off unless it is named."""

    def add_to(self, parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
        parser.add_argument(
            self.flag,
            type=self.read,
            nargs="?",
            const="true",
            default=_FromVariable(environment.get(self.variable.name) or "false"),
            metavar="true|false",
            help=self.described().replace("%", "%%"),
        )

    def described(self) -> str:
        return f"{self.variable.help} [env {self.variable.name}]"


class MultiOption(Option):
    """An option with any number of values: several at once, or several times; with commas in its variable."""

    def add_to(self, parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
        parser.add_argument(
            self.flag,
            action=_Extend,
            nargs="+",
            default=self.variable.read(environment),
            metavar=self.variable.metavar,
            help=self.described().replace("%", "%%"),
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


def positive(text: str) -> int:
    """How many. Raises `argparse.ArgumentTypeError`, whose own text is shown to the user."""
    try:
        return parse_count(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def instant(text: str) -> int:
    """A time in milliseconds since 1970: ISO 8601, in UTC unless it says otherwise. Raises
    `argparse.ArgumentTypeError`."""
    try:
        said = datetime.fromisoformat(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"expected a time such as 2026-11-22T10:30:00Z or '2026-11-22 10:30' (UTC), got {text!r}"
        ) from error
    known = said if said.tzinfo is not None else said.replace(tzinfo=UTC)
    return (known - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
