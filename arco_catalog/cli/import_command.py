"""The arguments of `arco import`, and how the command starts with them."""

import argparse
from collections.abc import Mapping

from arco_catalog.cli.command import CatalogOptions, Command, add_catalog, add_json
from arco_catalog.cli.options import positive

EXAMPLES = """\
Registers tables of another catalog. Without --apply it only reports what it
would do. A table that is registered from the same metadata file already is left
as it is, so a run that was stopped goes on where it was. Files are neither
copied nor moved: no client may commit through the other catalog any more. The
exit code is 1 if some table could not be registered.

sources:
  folder LOCATION   a warehouse of Hadoop's catalog (version-hint.text)
  list FILE         lines NAMESPACE.TABLE METADATA_LOCATION; - is standard input
  catalog NAME      a catalog that PyIceberg reads (Hive, Glue, SQL, and REST,
                    which Nessie and Polaris speak), as PyIceberg's settings and
                    the options -P KEY=VALUE describe it
  realm --from URL  a server of Polaris's management API: catalogs with tables
                    and views, principals with new secrets, roles, grants;
                    --compare shows how both sides compare

examples:
  arco import folder s3://old/warehouse --allowed-location s3://old/warehouse \\
      --store s3://bucket/catalog
  arco import list tables.txt --apply --store file:/var/lib/arco
  arco import catalog hive -P type=hive -P uri=thrift://metastore:9083 \\
      --only sales --json --store s3://bucket/catalog
  arco login https://polaris.example.com --client-id ID --secret-file secret
  arco import realm --from https://polaris.example.com --apply --secrets new \\
      --store s3://bucket/catalog --allowed-location s3://old/warehouse
  arco import realm --from https://polaris.example.com --compare \\
      --store s3://bucket/catalog --allowed-location s3://old/warehouse
"""


def add_arguments(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    """Adds the arguments and options of `arco import`."""
    parser.add_argument("kind", choices=("folder", "list", "catalog", "realm"), help="what to import from")
    parser.add_argument("source", metavar="SOURCE", nargs="?", help="its location, file or name; none for a realm")
    parser.add_argument(
        "-P",
        "--property",
        action="append",
        default=[],
        dest="properties",
        metavar="KEY=VALUE",
        help="a property of the catalog that PyIceberg reads; may be given several times",
    )
    add_catalog(parser, environment)
    parser.add_argument("--apply", action="store_true", help="make the changes, rather than print what would be done")
    parser.add_argument("--only", metavar="NAMESPACE", help="import only this namespace of the source and those inside")
    parser.add_argument("--into", metavar="NAMESPACE", help="put the namespaces of the source below this one")
    _add_realm(parser)
    parser.add_argument(
        "--limit", type=positive, metavar="N", help="print at most so many lines of one result [default all]"
    )
    add_json(parser, "the report, as a JSON object")


def _add_realm(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `arco import realm`."""
    parser.add_argument("--from", dest="from_url", metavar="URL", help="of a realm: the root of its server")
    parser.add_argument(
        "--token-file",
        metavar="FILE",
        help="of a realm: a file with the token, in place of that of `arco login`",
    )
    parser.add_argument(
        "--catalog",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME",
        dest="catalogs",
        help="of a realm: import these of its catalogs [default all]",
    )
    parser.add_argument(
        "--secrets",
        metavar="FILE",
        help="of a realm: add new secrets to this file, which you alone may read, rather than print them; the report "
        "names principals without a line in it",
    )
    parser.add_argument("--compare", action="store_true", help="of a realm: change nothing, and show the differences")
    parser.add_argument(
        "--refresh",
        action="store_true",
        help="of a realm: take over later changes of the source: tables and views, unless this catalog has "
        "committed to them, and properties of namespaces",
    )


def run(parsed: argparse.Namespace) -> int:
    """Runs `arco import`, and returns the exit code. Exits with 2 as `_run_realm` does; for another kind than a realm
    without SOURCE, and with options of a realm; and for -P with a folder or list."""
    of_realm = parsed.from_url, parsed.token_file, parsed.secrets, *parsed.catalogs
    if parsed.kind == "realm":
        return _run_realm(parsed)
    if parsed.source is None:
        parsed.parser.error(f"import {parsed.kind} takes a SOURCE")
    if any(of_realm) or parsed.compare or parsed.refresh:
        parsed.parser.error(
            "--from, --token-file, --catalog, --secrets, --compare and --refresh are only for `arco import realm`"
        )
    if parsed.properties and parsed.kind != "catalog":
        parsed.parser.error("-P sets properties for PyIceberg, and works only with `arco import catalog`: leave it out")
    from arco_catalog.cli import import_tables

    return import_tables.run(
        CatalogOptions.of(parsed),
        import_tables.ImportOptions(
            parsed.kind,
            parsed.source,
            parsed.properties,
            apply=parsed.apply,
            only=parsed.only,
            into=parsed.into,
            limit=parsed.limit,
            as_json=parsed.json,
        ),
    )


def _run_realm(parsed: argparse.Namespace) -> int:
    """Runs `arco import realm`, and returns the exit code. Exits with 2 without --from, with a SOURCE, and for options
    that do not go together."""
    if parsed.from_url is None or parsed.source is not None:
        parsed.parser.error("import realm takes --from URL, and no SOURCE")
    if parsed.properties or parsed.only or parsed.into:
        parsed.parser.error("leave out -P, --only and --into: `arco import realm` keeps all names as they are")
    if parsed.compare and (parsed.apply or parsed.refresh):
        parsed.parser.error("--compare changes nothing: leave out --apply and --refresh")
    from arco_catalog.cli import import_realm

    options = import_realm.RealmOptions(
        parsed.from_url.rstrip("/"),
        parsed.token_file,
        parsed.catalogs,
        parsed.secrets,
        apply=parsed.apply,
        compare=parsed.compare,
        refresh=parsed.refresh,
        limit=parsed.limit,
        as_json=parsed.json,
    )
    return import_realm.run(CatalogOptions.of(parsed), options)


COMMAND = Command("import", "register the tables of another catalog, or copy a realm", EXAMPLES, add_arguments, run)
