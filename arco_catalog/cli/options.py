"""Options of the command line with a flag and an environment variable, and the parsers of their values."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from arco_catalog.cli.errors import CliError
from arco_catalog.config.parsing import parse_bool, parse_count, split_csv
from arco_catalog.config.variable import Variable


class _FromVariable(str):
    """A text that comes from an environment variable, so that errors about it name the variable."""


@dataclass(frozen=True)
class Option:
    """An option of the command line with one value. The value is that of the flag, else of the environment variable,
    else the default of the variable, else None. The variable's parser reads both; an invalid value ends the command as
    wrong usage."""

    flag: str
    variable: Variable[object]

    def add_to(self, parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
        """Declares the option to the parser, with the value of the environment variable as default. An empty variable
        counts as unset."""
        from_environment = environment.get(self.variable.name)
        parser.add_argument(
            self.flag,
            type=self.read,
            default=_FromVariable(from_environment) if from_environment else self.variable.default,
            metavar=self.variable.metavar,
            help=self.described().replace("%", "%%"),
        )

    def read(self, text: str) -> object:
        """Parses a value by the variable's parser. Raises `argparse.ArgumentTypeError` for an invalid one, which names
        the variable if the value comes from it."""
        try:
            return self.variable.parse(text)
        except ValueError as error:
            where = f"{self.variable.name}: " if isinstance(text, _FromVariable) else ""
            raise argparse.ArgumentTypeError(f"{where}{error}") from error

    def described(self) -> str:
        """Returns the help of the option, with the name of the variable and the default, if there is one."""
        default = f", default {self.variable.default}" if self.variable.default else ""
        return f"{self.variable.help} [env {self.variable.name}{default}]"


class Switch(Option):
    """A boolean option, false by default. The flag may have a value, true or false; without one it means true."""

    def add_to(self, parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
        """Adds the flag to the parser, with an optional value that is true if left out. Without the flag the
        environment variable has the value; false if it is not set or empty. An invalid value ends the command as wrong
        usage."""
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
        """Returns the help text, with the name of the variable."""
        return f"{self.variable.help} [env {self.variable.name}]"


class MultiOption(Option):
    """An option with any number of values. The flag takes several values and may be repeated; the variable separates
    them by commas."""

    def add_to(self, parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
        """Adds the flag to the parser, which may be repeated; the values of the first flag replace the default, further
        ones are appended. The default is the value of the environment variable. Raises `ValueError` if that is invalid,
        and `KeyError` if it is neither set nor has a default."""
        parser.add_argument(
            self.flag,
            action=_Extend,
            nargs="+",
            default=self.variable.read(environment),
            metavar=self.variable.metavar,
            help=self.described().replace("%", "%%"),
        )


def option_of(variable: Variable[object]) -> Option:
    """Returns the option of a variable. The flag is the name of the variable without ARCO_, in lower case with dashes:
    `--log-level` for ARCO_LOG_LEVEL. A variable with several values becomes a `MultiOption`, with the flag in the
    singular, and a boolean one that is false by default a `Switch`."""
    flag = "--" + variable.name.removeprefix("ARCO_").lower().replace("_", "-")
    if variable.parse is split_csv:
        return MultiOption(flag[:-3] + "y" if flag.endswith("ies") else flag.removesuffix("s"), variable)
    if variable.parse is parse_bool and variable.default == "false":
        return Switch(flag, variable)
    return Option(flag, variable)


class _Extend(argparse.Action):
    """Collects the values of all occurrences of a flag. The first occurrence replaces the default."""

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
    """Parses a whole number from 1 to 10**9. Raises `argparse.ArgumentTypeError` for any other text; argparse prints
    the message."""
    try:
        return parse_count(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def parse_pairs(flag: str, example: str, pairs: Sequence[str]) -> dict[str, str]:
    """Parses the values of a flag that takes KEY=VALUE, such as `example`, and returns them by key; the last one counts
    for a key. Raises `CliError` for one without a key or an equals sign."""
    parsed: dict[str, str] = {}
    for text in pairs:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise CliError(f"{flag} takes KEY=VALUE, such as {flag} {example}, got {text!r}")
        parsed[key] = value
    return parsed


def instant(text: str) -> int:
    """Parses an ISO 8601 time, in UTC if it has no offset, and returns milliseconds since 1970. Raises
    `argparse.ArgumentTypeError` for any other text."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"expected a time such as 2026-11-22T10:30:00Z, 2026-11-22T12:30+02:00 or '2026-11-22 10:30' (UTC), got "
            f"{text!r}"
        ) from error
    in_utc = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    return (in_utc - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
