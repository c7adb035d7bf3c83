"""Declares the arguments of `arco lineage`, and starts the command with them."""

import argparse
from collections.abc import Mapping

from arco_catalog.cli.command import CatalogOptions, Command, add_catalog, add_json, add_table

EXAMPLES = """\
Shows what runs read to write a table, and what they wrote after they had read
it, by stored OpenLineage events and receipts: those of the last days, and of
the days of the table's commits.

examples:
  arco lineage sales.orders --store file:/var/lib/arco
  arco lineage sales.orders --direction upstream --depth 3 --store s3://bucket
"""


def add_arguments(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    """Declares the arguments and options of `arco lineage`."""
    add_table(parser, "the table")
    add_catalog(parser, environment)
    choices = ("both", "upstream", "downstream")
    parser.add_argument("--direction", choices=choices, default="both", help="what to show [default both]")
    parser.add_argument(
        "--depth", type=int, choices=range(1, 6), default=1, help="how many edges from the table to go [default 1]"
    )
    add_json(parser, "the graph as a JSON object")


def run(parsed: argparse.Namespace) -> int:
    """Runs `arco lineage`, and returns the exit code."""
    from arco_catalog.cli import lineage

    return lineage.run(CatalogOptions.of(parsed), parsed.table, parsed.direction, parsed.depth, as_json=parsed.json)


COMMAND = Command("lineage", "show what a table was made from, and what was made from it", EXAMPLES, add_arguments, run)
