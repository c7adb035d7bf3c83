"""What a command of `arco` is: its name, its help, what may be said to it, and how it runs."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from arco_catalog.cli.options import MultiOption, Option, warehouse
from arco_catalog.config.variables import ALLOWED_LOCATIONS

STORES = "file:/absolute/path, s3://bucket/prefix or memory:"

STORE = Option("--store", "ARCO_STORE", f"URL of the object store: {STORES}", metavar="URL")
WAREHOUSE = Option("--warehouse", "ARCO_WAREHOUSE", "name of the catalog", "arco", warehouse, "NAME")
ALLOWED = MultiOption(
    "--allowed-location",
    ALLOWED_LOCATIONS,
    "where tables may be stored besides the catalog's own folder; may be repeated or given several values; the "
    "variable is comma-separated",
    metavar="PREFIX",
)

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
    """Which catalog a command is about, and where tables of it may lie besides its own folder."""

    store: str
    warehouse: str
    allowed: Sequence[str] = ()

    @classmethod
    def of(cls, parsed: argparse.Namespace) -> "CatalogOptions":
        """Takes over what `add_catalog` declared."""
        return cls(parsed.store, parsed.warehouse, parsed.allowed_location)
