"""Declares the arguments of `arco catalogs`, and starts the command with them."""

import argparse
from collections.abc import Mapping

from arco_catalog.cli.command import CatalogOptions, Command, action_name, add_catalog, add_json

EXAMPLES = """\
A realm has any number of catalogs, which clients pick by name as the warehouse.
Works on the store directly, without a login; servers see each change with the
next request. A catalog has to be empty to be dropped, without a purge that has
not ended, unless --cancel-purges keeps the files of the tables. undrop brings a
catalog back, with roles, grants and tombstones, unless another one has taken
its locations.

examples:
  arco catalogs list --store s3://bucket/lake
  arco catalogs create sales --store s3://bucket/lake
  arco catalogs update sales --store s3://bucket/lake --property owner=ada \\
      --storage-config '{"roleArn": "arn:aws:iam::123456789012:role/sales"}'
  arco catalogs show sales --json --store s3://bucket/lake
  arco catalogs drop sales --store s3://bucket/lake
  arco catalogs list --dropped --store s3://bucket/lake
  arco catalogs undrop sales --store s3://bucket/lake
"""
ACTIONS = ("list", "create", "show", "update", "drop", "undrop")


def add_arguments(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    """Declares the arguments and options of `arco catalogs`."""
    parser.add_argument(
        "action", type=action_name, choices=ACTIONS, help="what to do: list, create, show, update, drop or undrop"
    )
    parser.add_argument("name", metavar="CATALOG", nargs="?", help="the catalog; `list` takes none")
    parser.add_argument("--type", choices=("INTERNAL", "EXTERNAL"), help="the type of a new catalog [default INTERNAL]")
    parser.add_argument(
        "--default-base-location",
        metavar="URL",
        help="where tables lie that have no location of their own [default the folder of its name in the realm's]",
    )
    parser.add_argument(
        "--catalog-location",
        nargs="+",
        action="extend",
        default=[],
        metavar="PREFIX",
        help="where else its tables may lie, as far as an --allowed-location of the server reaches; an update "
        "replaces all that were given before",
    )
    parser.add_argument(
        "--storage-config",
        metavar="JSON",
        help="how its files are reached, as the management API's storageConfigInfo; an update changes what it names, "
        "and takes away what is null",
    )
    parser.add_argument(
        "--property",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="set a property; may be given several times",
    )
    parser.add_argument(
        "--remove-property", action="append", default=[], metavar="KEY", help="of an update: remove this property"
    )
    parser.add_argument(
        "--cancel-purges",
        action="store_true",
        help="of a drop: cancel the purges that have not begun, and name the tables. Their files stay",
    )
    parser.add_argument(
        "--dropped", action="store_true", help="of a list: catalogs without a name, and where their state is"
    )
    parser.add_argument(
        "--folder",
        dest="root",
        metavar="PREFIX",
        help="of an undrop: where the state of the catalog is, as `list --dropped` and `arco fsck --all` name it "
        "[default that of the only dropped catalog of this name]",
    )
    add_catalog(parser, environment)
    add_json(parser, "catalogs as the management API shows them")


def run(parsed: argparse.Namespace) -> int:
    """Runs `arco catalogs`, and returns the exit code. Exits with 2 if CATALOG is missing, or given to `list`, or if an
    update has no change."""
    from arco_catalog.cli import catalogs

    if (parsed.name is None) != (parsed.action == "list"):
        parsed.parser.error("list takes no CATALOG" if parsed.action == "list" else f"{parsed.action} takes a CATALOG")
    arguments = catalogs.CatalogArguments(
        parsed.type,
        parsed.default_base_location,
        parsed.catalog_location,
        parsed.storage_config,
        parsed.property,
        parsed.remove_property,
        parsed.cancel_purges,
        parsed.root,
    )
    if parsed.action == "update" and not arguments.has_changes:
        parsed.parser.error("update takes a change, such as --property KEY=VALUE or --catalog-location PREFIX")
    options = CatalogOptions.of(parsed)
    return catalogs.run(options, parsed.action, parsed.name, arguments, dropped=parsed.dropped, as_json=parsed.json)


COMMAND = Command(
    "catalogs", "list, make, show, change, drop and undrop catalogs of a realm", EXAMPLES, add_arguments, run
)
