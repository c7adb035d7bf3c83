"""Declares the arguments of `arco diff`, and starts the command with them."""

import argparse
from collections.abc import Mapping

from arco_catalog.cli.command import CatalogOptions, Command, add_catalog, add_json, add_table

EXAMPLES = """\
Shows what differs between two versions of a table or view: columns, layout,
properties, branches and tags, size, snapshots; of views the SQL. A version is
named by the number of its metadata file, by its id in the timeline, or as
snapshot:ID, the version that added the snapshot.

examples:
  arco diff sales.orders 3 7 --store file:/var/lib/arco
  arco diff sales.orders snapshot:3051729675574597004 --store s3://bucket
"""


def add_arguments(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    """Declares the arguments and options of `arco diff`."""
    add_table(parser, "the table or view")
    parser.add_argument("before", metavar="FROM", help="the version to compare with")
    parser.add_argument("after", metavar="TO", nargs="?", help="the version that is compared [default the current one]")
    add_catalog(parser, environment)
    add_json(parser, "the comparison as a JSON object")


def run(parsed: argparse.Namespace) -> int:
    """Runs `arco diff`, and returns the exit code."""
    from arco_catalog.cli import diff

    return diff.run(CatalogOptions.of(parsed), parsed.table, parsed.before, parsed.after, as_json=parsed.json)


COMMAND = Command("diff", "show what differs between two versions", EXAMPLES, add_arguments, run)
