"""What a command of `arco` is: its name, its help, what may be said to it, and how it runs."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from arco_catalog.cli.options import MultiOption, Option
from arco_catalog.config import variables

STORE = Option("--store", variables.STORE)
WAREHOUSE = Option("--warehouse", variables.WAREHOUSE)
ALLOWED = MultiOption("--allowed-location", variables.ALLOWED_LOCATIONS)

TABLE = "NAMESPACE.TABLE"


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
    for option in (STORE, WAREHOUSE, ALLOWED):
        option.add_to(parser, environment)


def add_json(parser: argparse.ArgumentParser, prints: str) -> None:
    """Declares `--json`, which prints that."""
    parser.add_argument("--json", action="store_true", help=f"print {prints}")


def add_table(parser: argparse.ArgumentParser, help_text: str = "the table") -> None:
    """Declares the name of a table."""
    parser.add_argument("table", metavar=TABLE, help=help_text)


@dataclass(frozen=True, slots=True)
class CatalogOptions:
    """Which catalog a command is about, where tables of it may lie besides its own folder, and the environment, which
    configures its stores."""

    store: str
    warehouse: str
    allowed: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, parsed: argparse.Namespace) -> "CatalogOptions":
        """Takes over what `add_catalog` declared."""
        return cls(parsed.store, parsed.warehouse, parsed.allowed_location, parsed.environment)
