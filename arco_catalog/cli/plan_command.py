"""Declares the arguments of `arco plan`, and starts the command with them."""

import argparse
from collections.abc import Mapping

from arco_catalog.cli.command import CatalogOptions, Command, add_catalog, add_json, add_table

EXAMPLES = """\
Shows what a scan of a table reads, and what rules out the rest: the partitions
of whole manifests, the partitions of files, the statistics of columns. It reads
the manifests, and no data.

A condition is SQL: comparisons of a column with a value, IN, BETWEEN, LIKE with
a prefix, IS NULL, IS NAN, AND, OR, NOT. Texts and dates are in single quotes.

examples:
  arco plan shop.orders --where "day >= DATE '2026-11-01' AND region = 'eu'"
  arco plan shop.orders --where "id IN (1, 2, 3)" --store s3://bucket --json
"""


def add_arguments(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    """Declares the arguments and options of `arco plan`."""
    add_table(parser)
    parser.add_argument("--where", metavar="CONDITION", help="the condition of the scan [default all rows]")
    add_catalog(parser, environment)
    add_json(parser, "the counts as a JSON object")


def run(parsed: argparse.Namespace) -> int:
    """Runs `arco plan`, and returns the exit code."""
    from arco_catalog.cli import plan

    return plan.run(CatalogOptions.of(parsed), parsed.table, parsed.where, as_json=parsed.json)


COMMAND = Command("plan", "show what a scan reads, and what rules out the rest", EXAMPLES, add_arguments, run)
