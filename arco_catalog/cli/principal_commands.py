"""Declares the arguments of `arco principals`, and starts the command with them."""

import argparse
from collections.abc import Mapping

from arco_catalog.cli.command import Command, ManagementOptions, action_name, add_catalog, add_json, add_server

EXAMPLES = """\
A principal is a person or service that logs in to a realm. What it may do is
granted to roles: arco roles assign ROLE --to PRINCIPAL. Works on the store
directly, as the operator, or with --url on a server, with the grants of the
token. Secrets are printed once.

examples:
  arco principals create spark --store s3://bucket/lake
  arco principals list --url https://catalog.example.com --token-file token
  arco principals show spark --json --store s3://bucket/lake
  arco principals update ada --store s3://bucket/lake \\
      --property 'arco.subject=https://login.example.com 00u1a2b3'
  arco principals rotate spark --store s3://bucket/lake
  arco principals reset spark --store s3://bucket/lake
  arco principals drop spark --store s3://bucket/lake
"""
ACTIONS = ("list", "create", "show", "update", "rotate", "reset", "drop")


def add_arguments(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    """Declares the arguments and options of `arco principals`."""
    parser.add_argument(
        "action",
        type=action_name,
        choices=ACTIONS,
        help="what to do; rotate makes a new secret and keeps the last one valid, reset makes all earlier ones invalid",
    )
    parser.add_argument("name", metavar="PRINCIPAL", nargs="?", help="the principal; `list` takes none")
    parser.add_argument(
        "--property",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="of create and update: set a property; may be given several times",
    )
    parser.add_argument(
        "--remove-property", action="append", default=[], metavar="KEY", help="of update: remove this property"
    )
    parser.add_argument(
        "--must-rotate", action="store_true", help="of create: it may do nothing before it has rotated the secret"
    )
    add_server(parser)
    add_catalog(parser, environment)
    add_json(parser, "principals in the form of the management API")


def run(parsed: argparse.Namespace) -> int:
    """Runs `arco principals`, and returns the exit code. Exits with 2 if PRINCIPAL is missing, or given to `list`, or
    if an update names no property."""
    from arco_catalog.cli import principals

    if (parsed.name is None) != (parsed.action == "list"):
        one = parsed.action == "list"
        parsed.parser.error("list takes no PRINCIPAL" if one else f"{parsed.action} takes a PRINCIPAL")
    if parsed.action == "update" and not (parsed.property or parsed.remove_property):
        parsed.parser.error("arco principals update takes a change, such as --property KEY=VALUE")
    arguments = principals.PrincipalArguments(parsed.property, parsed.remove_property, parsed.must_rotate)
    options = ManagementOptions.of(parsed)
    return principals.run(options, parsed.action, parsed.name, arguments, as_json=parsed.json)


COMMAND = Command("principals", "list, make, show, change and drop principals of a realm", EXAMPLES, add_arguments, run)
