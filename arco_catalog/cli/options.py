"""Options that are a flag and an environment variable at once, and the types of their values."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import Any

from arco_catalog.config.parsing import parse_bool, parse_count, split_csv
from arco_catalog.config.variable import Variable


class _FromVariable(str):
    """The text of an environment variable."""


@dataclass(frozen=True)
class Option:
    """One option with one value, which its variable parses; an error in it is wrong usage. Without a default the value
    may be None."""

    flag: str
    variable: Variable[object]

    def add_to(self, parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
        """Declares the option. An empty variable counts as unset."""
        set_there = environment.get(self.variable.name)
        parser.add_argument(
            self.flag,
            type=self.read,
            default=_FromVariable(set_there) if set_there else self.variable.default,
            metavar=self.variable.metavar,
            help=self.described().replace("%", "%%"),
        )

    def read(self, text: str) -> object:
        """The value of a text. Raises `argparse.ArgumentTypeError`, which names the variable of the text."""
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
    """An option that is off unless its flag is given."""

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


def option_of(variable: Variable[object]) -> Option:
    """The option of a variable: its flag is the variable's name, in the singular where each value is given by itself,
    and a variable that is false by default is a switch."""
    flag = "--" + variable.name.removeprefix("ARCO_").lower().replace("_", "-")
    if variable.parse is split_csv:
        return MultiOption(flag[:-3] + "y" if flag.endswith("ies") else flag.removesuffix("s"), variable)
    if variable.parse is parse_bool and variable.default == "false":
        return Switch(flag, variable)
    return Option(flag, variable)


class _Extend(argparse.Action):
    """Collects the values of all flags; without a flag, the default remains."""

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
    """A number of at least one. Raises `argparse.ArgumentTypeError`, whose text argparse prints."""
    try:
        return parse_count(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def instant(text: str) -> int:
    """A time in milliseconds since 1970: ISO 8601, in UTC without an offset. Raises
    `argparse.ArgumentTypeError`."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"expected a time such as 2026-11-22T10:30:00Z or '2026-11-22 10:30' (UTC), got {text!r}"
        ) from error
    in_utc = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    return (in_utc - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def same_named(parsed: argparse.Namespace, options: type) -> dict[str, Any]:
    """The parsed values of the options that have a field of the same name in a dataclass."""
    names = {field.name for field in fields(options)}
    return {name: value for name, value in vars(parsed).items() if name in names}
