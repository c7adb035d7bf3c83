"""Declares the arguments of `arco lineage`, and starts the command with them."""

import argparse
from collections.abc import Mapping

from arco_catalog.cli.command import Command, ManagementOptions, add_catalog, add_json, add_server, add_table

EXAMPLES = """\
Shows what runs read to write a table, and what they wrote after they had read
it, by stored OpenLineage events and receipts: those of the last days, and of
the days of the table's commits. Edges of other days come from system.lineage,
if the pipeline has made that table and PyIceberg is installed. It also shows
which reported runs have no edge here, and why.

examples:
  arco lineage sales.orders --store file:/var/lib/arco
  arco lineage sales.orders --up --depth 3 --url https://catalog.example.com
"""


def add_arguments(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    """Declares the arguments and options of `arco lineage`."""
    add_table(parser, "the table")
    add_catalog(parser, environment)
    add_server(parser)
    parser.add_argument("--up", action="store_true", help="show only what it was made from")
    parser.add_argument("--down", action="store_true", help="show only what was made from it")
    parser.add_argument(
        "--depth", type=int, choices=range(1, 6), default=1, help="how many edges from the table to go [default 1]"
    )
    add_json(parser, "the graph as a JSON object")


def run(parsed: argparse.Namespace) -> int:
    """Runs `arco lineage`, and returns the exit code. Exits with 2 for --up with --down."""
    if parsed.up and parsed.down:
        parsed.parser.error("--up and --down exclude each other: leave both out for both directions")
    from arco_catalog.cli import lineage

    direction = "upstream" if parsed.up else "downstream" if parsed.down else "both"
    query = lineage.LineageArguments(parsed.table, direction, parsed.depth)
    return lineage.run(ManagementOptions.of(parsed), query, as_json=parsed.json)


COMMAND = Command("lineage", "show what a table was made from, and what was made from it", EXAMPLES, add_arguments, run)
