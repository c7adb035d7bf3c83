"""Defines a command of `arco` (name, help, options, function), and the options that many commands have."""

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
"""The option for one realm. `arco serve` has another option, which takes several."""

TABLE = "NAMESPACE.TABLE"
EXAMPLE_TIME = "2026-11-22T10:30:00Z"


@dataclass(frozen=True, slots=True)
class Command:
    """One command of `arco`, with a summary and examples for the help. `add_arguments` declares the options, with
    defaults from the environment. `run` executes the command and returns the exit code; it imports the command's
    modules inside the function, so that --help is quick. A command that `needs_store` is wrong usage if both --store
    and ARCO_STORE are missing, unless it has an option --url, and that is given."""

    name: str
    summary: str
    examples: str
    add_arguments: Callable[[argparse.ArgumentParser, Mapping[str, str]], None]
    run: Callable[[argparse.Namespace], int]
    needs_store: bool = True


def add_catalog(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    """Declares the options that select a catalog: --store, --realm, --warehouse and --allowed-location."""
    for option in (STORE, REALM, WAREHOUSE, ALLOWED):
        option.add_to(parser, environment)


def add_server(parser: argparse.ArgumentParser) -> None:
    """Declares the options that select a server in place of the store: --url and --token-file."""
    parser.add_argument(
        "--url", metavar="URL", help="send the requests to this server, in place of working on the store"
    )
    parser.add_argument(
        "--token-file", metavar="FILE", help="of --url: a file with the token to send, in place of that of `arco login`"
    )


def action_name(text: str) -> str:
    """Parses the action of a command that has `list`, which may be written `ls`, as the command for tables is."""
    return "list" if text == "ls" else text


def check_options(parsed: argparse.Namespace, command: str, options: Mapping[str, Sequence[str]]) -> None:
    """Ends the process with 2 and a message if an option is given that belongs to other actions of a command than the
    chosen one. `options` has the actions of each option, by the option's attribute."""
    for option, actions in options.items():
        if getattr(parsed, option) not in (None, False) and parsed.action not in actions:
            flag = option.strip("_").replace("_", "-")
            parsed.parser.error(f"--{flag} is for arco {command} {' and '.join(actions)}")


def add_json(parser: argparse.ArgumentParser, prints: str) -> None:
    """Declares `--json`, whose help is "print" with the given words."""
    parser.add_argument("--json", action="store_true", help=f"print {prints}")


def add_wide(parser: argparse.ArgumentParser) -> None:
    """Declares `--wide`, which prints all columns."""
    parser.add_argument("--wide", action="store_true", help="print all columns, whatever the terminal's width")


def add_at(parser: argparse.ArgumentParser, shows: str) -> None:
    """Declares `--at TIME`, whose help is "show ... at this time" with the given words."""
    parser.add_argument("--at", type=instant, metavar="TIME", help=f"show {shows} at this time, such as {EXAMPLE_TIME}")


def add_table(parser: argparse.ArgumentParser, help_text: str = "the table") -> None:
    """Declares the positional argument NAMESPACE.TABLE."""
    parser.add_argument("table", metavar=TABLE, help=help_text)


@dataclass(frozen=True, slots=True)
class CatalogOptions:
    """Selects the catalog of a command: the store, the realm (None for the one at the store's root, if there is one)
    and its warehouse. `allowed` are URLs where its tables may be besides its own folder. The environment configures the
    stores."""

    store: str
    warehouse: str
    allowed: Sequence[str] = ()
    realm: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, parsed: argparse.Namespace) -> "CatalogOptions":
        """Returns the values of the options that `add_catalog` declares."""
        return cls(parsed.store, parsed.warehouse, parsed.allowed_location, parsed.realm, parsed.environment)


@dataclass(frozen=True, slots=True)
class ManagementOptions:
    """Where a command that manages a realm sends its requests: to the server at `url`, with the token in `token_file`
    or else that of `arco login`; if `url` is None, to the realm in the store of `catalog`. The warehouse of `catalog`
    names the catalog in both cases."""

    catalog: CatalogOptions
    url: str | None = None
    token_file: str | None = None

    @classmethod
    def of(cls, parsed: argparse.Namespace) -> "ManagementOptions":
        """Returns the values of the options that `add_server` and `add_catalog` declare."""
        return cls(CatalogOptions.of(parsed), parsed.url, parsed.token_file)
