"""The arguments of `arco expire`, which start the command."""

import argparse
from collections.abc import Mapping

from arco_catalog.cli.command import CatalogOptions, Command, add_catalog, add_json, add_table
from arco_catalog.cli.options import positive

EXAMPLES = """\
Removes the snapshots, branches and tags of a table that have expired, by the
policy that applies to it, else by its properties history.expire.*. The files
that only they need are deleted two days later, by `arco serve` or
`arco tasks run`. Workers do this by themselves where a policy of the type
system.snapshot-expiry requires it.

examples:
  arco expire shop.orders --dry-run --store s3://bucket/catalog
  arco expire shop.orders --max-age-days 7 --store s3://bucket/catalog
"""


def add_arguments(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    """Adds the arguments and options of `arco expire`."""
    add_table(parser, "the table")
    parser.add_argument("--max-age-days", type=positive, metavar="N", help="remove snapshots that are older")
    parser.add_argument("--keep", type=positive, metavar="N", help="keep so many snapshots of each branch at least")
    parser.add_argument("--dry-run", action="store_true", help="show what would be removed, and write nothing")
    add_catalog(parser, environment)
    add_json(parser, "the result as a JSON object")


def run(parsed: argparse.Namespace) -> int:
    """Runs `arco expire`, and returns the exit code."""
    from arco_catalog.cli import expire
    from arco_catalog.planning.upkeep_policy import DAY_MS, SnapshotExpiry

    age_ms = None if parsed.max_age_days is None else parsed.max_age_days * DAY_MS
    settings = SnapshotExpiry(age_ms, parsed.keep)
    return expire.run(CatalogOptions.of(parsed), parsed.table, settings, dry=parsed.dry_run, as_json=parsed.json)


COMMAND = Command("expire", "remove expired snapshots of a table", EXAMPLES, add_arguments, run)
