"""Declares the arguments of `arco realms`, and starts the command with them."""

import argparse
from collections.abc import Mapping

from arco_catalog.cli.command import CatalogOptions, Command, action_name, add_catalog, add_json

EXAMPLES = """\
`arco bootstrap` makes a realm. list lists every object of the store, since each
realm has a prefix of its own; show reads one realm. A realm is dropped when it
has no catalogs: all principals, roles and grants go at once, servers let in no
principal any more, and only `arco bootstrap --reopen` makes the realm anew.
Dropped catalogs stay in the store, and can be undropped then.

examples:
  arco realms list --store s3://bucket/lake
  arco realms show --realm acme --store s3://bucket/lake
  arco realms drop --realm acme --principals-are-lost --store s3://bucket/lake
"""
ACTIONS = ("list", "show", "drop")


def add_arguments(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    """Declares the arguments and options of `arco realms`."""
    parser.add_argument("action", type=action_name, choices=ACTIONS, help="what to do: list, show or drop")
    parser.add_argument(
        "--principals-are-lost", action="store_true", help="confirm a drop, with all principals, roles and grants"
    )
    add_catalog(parser, environment)
    add_json(parser, "realms as JSON")


def run(parsed: argparse.Namespace) -> int:
    """Runs `arco realms`, and returns the exit code."""
    from arco_catalog.cli import realms

    options = CatalogOptions.of(parsed)
    if parsed.action == "list":
        return realms.run_list(options, as_json=parsed.json)
    if parsed.action == "show":
        return realms.run_show(options, as_json=parsed.json)
    return realms.run_drop(options, confirmed=parsed.principals_are_lost, as_json=parsed.json)


COMMAND = Command("realms", "list, show and drop realms", EXAMPLES, add_arguments, run)
