"""Declares the arguments of `arco roles`, and starts the command with them."""

import argparse
from collections.abc import Mapping

from arco_catalog.cli.command import Command, ManagementOptions, action_name, add_catalog, add_json, add_server

EXAMPLES = """\
Principals have principal roles, and these have catalog roles, to which
privileges are granted: arco grants add. With --catalog-role a command is about
the catalog roles of the catalog that --warehouse names. Works on the store
directly, as the operator, or with --url on a server, with the grants of the
token.

examples:
  arco roles create engines --store s3://bucket/lake
  arco roles assign engines --to spark --store s3://bucket/lake
  arco roles create readers --catalog-role --store s3://bucket/lake
  arco roles assign readers --catalog-role --to engines --store s3://bucket/lake
  arco roles show readers --catalog-role --store s3://bucket/lake
  arco roles revoke engines --from spark --store s3://bucket/lake
  arco roles drop engines --store s3://bucket/lake
"""
ACTIONS = ("list", "create", "show", "assign", "revoke", "drop")


def add_arguments(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    """Declares the arguments and options of `arco roles`."""
    parser.add_argument(
        "action", type=action_name, choices=ACTIONS, help="what to do: list, create, show, assign, revoke or drop"
    )
    parser.add_argument("name", metavar="ROLE", nargs="?", help="the role; `list` takes none")
    parser.add_argument("--catalog-role", action="store_true", help="the role is one of the catalog, not of the realm")
    parser.add_argument(
        "--to", metavar="NAME", help="of assign: the principal, or of a catalog role the principal role, that gets it"
    )
    parser.add_argument(
        "--from", dest="giver", metavar="NAME", help="of revoke: the principal, or principal role, that loses it"
    )
    parser.add_argument(
        "--property",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="of create: set a property; may be given several times",
    )
    add_server(parser)
    add_catalog(parser, environment)
    add_json(parser, "roles in the form of the management API")


def run(parsed: argparse.Namespace) -> int:
    """Runs `arco roles`, and returns the exit code. Exits with 2 if ROLE is missing, or given to `list`; if `assign`
    has no --to or `revoke` no --from; and if another action has one of these."""
    from arco_catalog.cli import roles

    if (parsed.name is None) != (parsed.action == "list"):
        parsed.parser.error("list takes no ROLE" if parsed.action == "list" else f"{parsed.action} takes a ROLE")
    for action, flag, value in (("assign", "--to", parsed.to), ("revoke", "--from", parsed.giver)):
        if (value is not None) != (parsed.action == action):
            parsed.parser.error(f"{action} takes {flag}" if value is None else f"{flag} belongs to {action}")
    arguments = roles.RoleArguments(parsed.catalog_role, parsed.to or parsed.giver, parsed.property)
    options = ManagementOptions.of(parsed)
    return roles.run(options, parsed.action, parsed.name, arguments, as_json=parsed.json)


COMMAND = Command("roles", "list, make, show, assign, revoke and drop roles", EXAMPLES, add_arguments, run)
