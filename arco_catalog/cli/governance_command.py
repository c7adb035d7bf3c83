"""Declares the arguments of `arco governance`, and starts the command with them."""

import argparse
from collections.abc import Mapping

from arco_catalog.cli.command import TABLE, CatalogOptions, Command, add_catalog, add_json

EXAMPLES = """\
Shows or changes who owns a table, a view or a namespace, how good it is, and
its tags; and protects it. The names are arco.owner, arco.quality,
arco.protected (true: no drop, replacement or rename), arco.tag.NAME and, for
columns by their field ids, arco.column.FIELD-ID.tag.NAME. Clients see them as
labels.
Works on the store directly, without a login.

examples:
  arco governance show sales.orders --store file:/var/lib/arco
  arco governance set sales.orders arco.owner=finance arco.quality=checked \\
      arco.column.3.tag.pii=email --remove arco.tag.draft \\
      --store file:/var/lib/arco
  arco governance set sales arco.owner=finance --namespace --store s3://bucket
  arco governance set sales.orders arco.protected=true --store s3://bucket
"""
ACTIONS = ("show", "set")


def add_arguments(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    """Declares the arguments and options of `arco governance`."""
    parser.add_argument("action", choices=ACTIONS, help="what to do: show or set")
    parser.add_argument("name", metavar=TABLE, help="the table or view, or with --namespace the namespace")
    parser.add_argument("change", metavar="KEY=VALUE", nargs="*", help="of set: a key, and the value that it gets")
    parser.add_argument("--namespace", action="store_true", help="the name is a namespace's")
    parser.add_argument("--remove", action="append", default=[], metavar="KEY", help="of set: remove this key")
    add_catalog(parser, environment)
    add_json(parser, "the governance as a JSON object")


def run(parsed: argparse.Namespace) -> int:
    """Runs `arco governance`, and returns the exit code. Exits with 2 if `set` has no change, or `show` has one."""
    from arco_catalog.cli import governance

    given = bool(parsed.change or parsed.remove)
    if given != (parsed.action == "set"):
        parsed.parser.error("set takes KEY=VALUE or --remove" if not given else "show takes no KEY=VALUE or --remove")
    options = CatalogOptions.of(parsed)
    arguments = governance.GovernanceArguments(parsed.name, parsed.namespace, parsed.change, parsed.remove)
    return governance.run(options, arguments, writes=given, as_json=parsed.json)


COMMAND = Command("governance", "show and change owners, qualities and tags", EXAMPLES, add_arguments, run)
