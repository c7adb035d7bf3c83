"""The arguments of `arco export`, and how the command starts with them."""

import argparse
from collections.abc import Mapping

from arco_catalog.cli.command import CatalogOptions, Command, add_catalog, add_json
from arco_catalog.cli.options import positive

EXAMPLES = """\
Writes a plan by which another catalog can register the tables and views of
this one: a JSON object on each line, a namespace before what is in it. With
--to it registers them at a server of Iceberg's REST API; without --apply it
only reports what it would do. What is there already is left as it is, so a run
that was stopped goes on where it was. Files are neither copied nor moved: from
then on, only one of the catalogs may commit to a table.

examples:
  arco export --store s3://bucket/catalog > plan.jsonl
  arco export --only sales --store s3://bucket/catalog
  arco export --to https://other.example.com/iceberg --to-warehouse main \\
      --store s3://bucket/catalog
  arco export --to https://other.example.com/iceberg --to-warehouse main \\
      --apply --token-file token --store s3://bucket/catalog
"""


def add_arguments(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    """Adds the arguments and options of `arco export`."""
    add_catalog(parser, environment)
    parser.add_argument("--only", metavar="NAMESPACE", help="export only this namespace and those inside")
    parser.add_argument("--to", metavar="URL", help="register at this server; its paths begin with /v1 below the URL")
    parser.add_argument("--to-warehouse", metavar="NAME", default="", help="of --to: the warehouse there")
    parser.add_argument(
        "--token-file", metavar="FILE", help="of --to: a file with the token, in place of that of `arco login`"
    )
    parser.add_argument("--apply", action="store_true", help="of --to: register, rather than print what would be done")
    parser.add_argument(
        "--replace",
        action="store_true",
        help="of --to: register again what is there with another metadata file, where what was committed is lost, and "
        "set the properties of namespaces that differ",
    )
    parser.add_argument(
        "--limit", type=positive, metavar="N", help="of --to: print at most so many lines of one result"
    )
    add_json(parser, "of --to: the report, as a JSON object")


def run(parsed: argparse.Namespace) -> int:
    """Runs `arco export`, and returns the exit code. Exits with 2 for options of --to without it."""
    if parsed.to is None and (
        parsed.apply or parsed.to_warehouse or parsed.token_file or parsed.replace or parsed.limit or parsed.json
    ):
        parsed.parser.error(
            "--to-warehouse, --token-file, --apply, --replace, --limit and --json go with --to URL; the plan without "
            "--to is JSON already, an object on each line"
        )
    from arco_catalog.cli import export

    options = export.ExportOptions(
        parsed.only,
        None if parsed.to is None else parsed.to.rstrip("/"),
        parsed.to_warehouse,
        parsed.token_file,
        apply=parsed.apply,
        replace=parsed.replace,
        limit=parsed.limit,
        as_json=parsed.json,
    )
    return export.run(CatalogOptions.of(parsed), options)


COMMAND = Command("export", "register the tables at another catalog, or print how", EXAMPLES, add_arguments, run)
