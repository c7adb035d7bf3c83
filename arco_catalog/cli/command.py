"""What a command of `arco` is: its name, its help, what may be said to it, and how it runs."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from arco_catalog.cli.options import Option, instant, option_of
from arco_catalog.config import variables
from arco_catalog.config.parsing import parse_realm
from arco_catalog.config.variable import Variable

STORE, WAREHOUSE, ALLOWED = map(option_of, (variables.STORE, variables.WAREHOUSE, variables.ALLOWED_LOCATIONS))
REALM = Option(
    "--realm",
    Variable(
        variables.REALM.name, "folder of the store with the realm, where it has several", parse_realm, None, "NAME"
    ),
)
"""One realm: a command is about one, a server may be about several."""

TABLE = "NAMESPACE.TABLE"
EXAMPLE_TIME = "2026-11-22T10:30:00Z"


@dataclass(frozen=True, slots=True)
class Command:
    """One command. `add_arguments` declares what is its own, given the environment; `run` returns the exit code, and
    imports what it needs itself, so that help is quick. One that `needs_store` is not run without."""

    name: str
    summary: str
    examples: str
    add_arguments: Callable[[argparse.ArgumentParser, Mapping[str, str]], None]
    run: Callable[[argparse.Namespace], int]
    needs_store: bool = True


def add_catalog(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    """Declares which catalog."""
    for option in (STORE, REALM, WAREHOUSE, ALLOWED):
        option.add_to(parser, environment)


def add_json(parser: argparse.ArgumentParser, prints: str) -> None:
    """Declares `--json`, which prints that."""
    parser.add_argument("--json", action="store_true", help=f"print {prints}")


def add_wide(parser: argparse.ArgumentParser) -> None:
    """Declares `--wide`."""
    parser.add_argument("--wide", action="store_true", help="print all columns, whatever the terminal's width")


def add_at(parser: argparse.ArgumentParser, shows: str) -> None:
    """Declares `--at`, which shows that of an earlier time."""
    parser.add_argument("--at", type=instant, metavar="TIME", help=f"show {shows} at this time, such as {EXAMPLE_TIME}")


def add_table(parser: argparse.ArgumentParser, help_text: str = "the table") -> None:
    """Declares the name of a table."""
    parser.add_argument("table", metavar=TABLE, help=help_text)


@dataclass(frozen=True, slots=True)
class CatalogOptions:
    """Which catalog a command is about, and of which realm; where tables of it may lie besides its own folder; and the
    environment, which configures its stores. Without `realm` it is that of the store's root, if there is one."""

    store: str
    warehouse: str
    allowed: Sequence[str] = ()
    realm: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, parsed: argparse.Namespace) -> "CatalogOptions":
        """Takes over what `add_catalog` declared."""
        return cls(parsed.store, parsed.warehouse, parsed.allowed_location, parsed.realm, parsed.environment)
