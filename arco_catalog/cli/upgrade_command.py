"""Declares the arguments of `arco upgrade`, and starts the command with them."""

import argparse
from collections.abc import Mapping

from arco_catalog.cli.command import CatalogOptions, Command, add_catalog, add_json

EXAMPLES = """\
Raises the version of the registry: of a catalog, or of a realm and all its
catalogs. In version 2 processes that change names at once commit for each
other. From then on servers and commands of an older program fail, and there is
no way back: replace all of them first. If an older program has committed within
a day, the command changes nothing, and ends with 1. An older server that only
reads, or only commits to tables, does not show.

examples:
  arco upgrade --dry-run --store s3://bucket/catalog
  arco upgrade --store s3://bucket/catalog
"""


def add_arguments(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    """Declares the options of `arco upgrade`."""
    add_catalog(parser, environment)
    parser.add_argument("--dry-run", action="store_true", help="print what would be done; write nothing")
    parser.add_argument(
        "--force", action="store_true", help="upgrade even if an older program has committed within a day"
    )
    add_json(parser, "each registry with its versions, as a JSON object")


def run(parsed: argparse.Namespace) -> int:
    """Runs `arco upgrade`, and returns the exit code."""
    from arco_catalog.cli import upgrade

    return upgrade.run(CatalogOptions.of(parsed), dry=parsed.dry_run, force=parsed.force, as_json=parsed.json)


COMMAND = Command("upgrade", "raise the version of the registry", EXAMPLES, add_arguments, run)
