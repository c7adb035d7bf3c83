"""Declares the arguments of `arco grants`, and starts the command with them."""

import argparse
from collections.abc import Mapping

from arco_catalog.cli.command import Command, ManagementOptions, action_name, add_catalog, add_json, add_server

EXAMPLES = """\
Grants are privileges of a catalog role on the catalog or, if WHAT is given, on
a table, namespace, view or policy, and on everything inside. check answers
whether a principal has a privilege, and by which roles and grant; its exit code
is 1 if not. WHO is a principal, or - for the owner of the token. who lists the
principals with access to WHAT, by which roles and grants. Works on the store
directly, as the operator, or with --url on a server, with the grants of
the token. Where servers query a policy of Open Policy Agent, only check with
--url takes it into account.

examples:
  arco grants add readers TABLE_READ_DATA sales.orders --store s3://bucket/lake
  arco grants add readers TABLE_LIST sales --namespace --store s3://bucket/lake
  arco grants list readers --store s3://bucket/lake
  arco grants check spark TABLE_READ_DATA sales.orders --store s3://bucket/lake
  arco grants who sales.orders TABLE_READ_DATA --store s3://bucket/lake
  arco grants check - TABLE_DROP sales.orders --url https://catalog.example.com
  arco grants revoke readers TABLE_LIST sales --namespace --cascade \\
      --store s3://bucket/lake
"""
ACTIONS = ("list", "add", "revoke", "check", "who")
WORDS = {
    "list": ("[ROLE]", range(2)),
    "add": ("ROLE PRIVILEGE [WHAT]", range(2, 4)),
    "revoke": ("ROLE PRIVILEGE [WHAT]", range(2, 4)),
    "check": ("WHO PRIVILEGE [WHAT]", range(2, 4)),
    "who": ("WHAT [PRIVILEGE]", range(1, 3)),
}
"""The arguments that each action takes, and how many there may be."""
KINDS = ("namespace", "view", "policy")


def add_arguments(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    """Declares the arguments and options of `arco grants`."""
    parser.add_argument("action", type=action_name, choices=ACTIONS, help="what to do: list, add, revoke, check or who")
    parser.add_argument(
        "words",
        metavar="ROLE|WHO PRIVILEGE WHAT",
        nargs="*",
        help="the catalog role, or of check the principal; the privilege; a table, unless an option gives another type",
    )
    for kind in KINDS:
        parser.add_argument(f"--{kind}", dest="kind", action="store_const", const=kind, help=f"WHAT is a {kind}")
    parser.add_argument(
        "--cascade", action="store_true", help="of revoke: revoke the privilege on everything inside WHAT, too"
    )
    add_server(parser)
    add_catalog(parser, environment)
    add_json(parser, "grants in the form of the management API")


def run(parsed: argparse.Namespace) -> int:
    """Runs `arco grants`, and returns the exit code. Exits with 2 for too few or too many arguments, for an option that
    does not belong to the action, for --namespace, --view or --policy without WHAT, and for `check -` without --url."""
    from arco_catalog.cli import grants

    usage, counts = WORDS[parsed.action]
    if len(parsed.words) not in counts:
        parsed.parser.error(f"{parsed.action} takes {usage}")
    if parsed.action == "who":
        return _who(parsed)
    who, privilege, what = (*parsed.words, None, None, None)[:3]
    if parsed.kind is not None and what is None:
        parsed.parser.error(f"--{parsed.kind} needs WHAT, the name of the {parsed.kind}; list takes neither")
    if parsed.action == "check" and who == "-" and parsed.url is None:
        parsed.parser.error("check - needs --url: at the store it is the operator, whose grants are not checked")
    if parsed.cascade and parsed.action != "revoke":
        parsed.parser.error("--cascade belongs to revoke")
    options = ManagementOptions.of(parsed)
    if parsed.action == "list":
        return grants.run_list(options, who, as_json=parsed.json)
    grant = grants.parse_grant(privilege, what, parsed.kind)
    if parsed.action == "check":
        return grants.run_check(options, who, grant, as_json=parsed.json)
    return grants.run_change(options, parsed.action, who, grant, cascade=parsed.cascade, as_json=parsed.json)


def _who(parsed: argparse.Namespace) -> int:
    """Runs `arco grants who`, and returns the exit code. Exits with 2 for --policy and --cascade."""
    from arco_catalog.cli import grants

    what, privilege = (*parsed.words, None)[:2]
    if parsed.kind == "policy" or parsed.cascade:
        parsed.parser.error("who takes neither --policy nor --cascade")
    securable = grants.parse_securable(what, parsed.kind)
    return grants.run_who(ManagementOptions.of(parsed), securable, privilege, as_json=parsed.json)


COMMAND = Command(
    "grants", "list, add, revoke and check privileges in a catalog, and who has access", EXAMPLES, add_arguments, run
)
