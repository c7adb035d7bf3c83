"""Declares `ls`, `search`, `info`, `register`, `rename` and `drop`, for tables and views."""

import argparse
from collections.abc import Mapping

from arco_catalog.cli.command import TABLE, CatalogOptions, Command, add_at, add_catalog, add_json, add_table
from arco_catalog.cli.options import positive

LS_EXAMPLES = """\
Lists the namespaces, tables and views in a namespace, or at the top. Dots part
the levels of a name; a level that holds a dot is put in quotes.

examples:
  arco ls --store file:/var/lib/arco
  arco ls sales --store file:/var/lib/arco
  arco ls -R --json --store s3://bucket/catalog
  arco ls sales --at 2026-11-22T10:30:00Z --store file:/var/lib/arco
"""
SEARCH_EXAMPLES = """\
Searches for namespaces, tables and views by words of their names. A new word of
a name starts at each dot, dash, underscore and blank, and at capitals as in
FactOrders. A word of the name, or of the namespace around it, must start with
each WORD; a word of the name itself with the last one. The exit code is 1 if
nothing is found.

examples:
  arco search orders --store file:/var/lib/arco
  arco search sales ord --type table --store file:/var/lib/arco
"""
INFO_EXAMPLES = """\
Shows a table's or view's schema, its newest snapshots, its size as its
summaries have it, and what is wrong with it. Nothing is written, and of the
table's files only the metadata file is read.

examples:
  arco info sales.orders --store file:/var/lib/arco
  arco info sales.orders --limit 100 --json --store s3://bucket/catalog
"""
REGISTER_EXAMPLES = """\
Registers an existing metadata file as a table or view, as REST's register does.
The file must lie in the catalog's own folder or below an --allowed-location,
which `arco serve` then needs, too.

examples:
  arco register sales.orders s3://lake/orders/metadata/00007-5c.metadata.json \\
      --parents --allowed-location s3://lake --store s3://bucket/catalog
"""
DROP_EXAMPLES = """\
Drops a table or view, as a drop through REST does. No file is deleted, and
`arco undrop` brings it back. With --purge a table's files are deleted when the
time to undo the drop has passed, by `arco serve` or `arco tasks run`.

examples:
  arco drop sales.orders --store file:/var/lib/arco
"""
RENAME_EXAMPLES = """\
Gives a table or view another name, in any existing namespace. The files and
the location stay.

examples:
  arco rename sales.orders archive.orders_2025 --store file:/var/lib/arco
"""
KINDS = ("namespace", "table", "view", "generic-table", "semantic-model")
"""The types of objects, as a search takes them."""


def _add_ls(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    """Adds the arguments of `arco ls` to the parser: the namespace, --recursive, the options that select a catalog,
    --limit, --at and --json."""
    parser.add_argument("namespace", metavar="NAMESPACE", nargs="?", help="the namespace [default the top]")
    parser.add_argument("-R", "--recursive", action="store_true", help="list the namespaces inside, too, at all levels")
    add_catalog(parser, environment)
    parser.add_argument("--limit", type=positive, metavar="N", help="list this many [default all]")
    add_at(parser, "what there was")
    add_json(parser, "a JSON array of types, namespaces and names")


def _ls(parsed: argparse.Namespace) -> int:
    """Runs `arco ls`, and returns the exit code."""
    from arco_catalog.cli import ls

    return ls.run(
        CatalogOptions.of(parsed),
        parsed.namespace,
        parsed.limit,
        at_ms=parsed.at,
        recursive=parsed.recursive,
        as_json=parsed.json,
    )


def _add_search(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    """Adds the arguments of `arco search` to the parser: the words, --type, the options that select a catalog, --limit
    and --json."""
    parser.add_argument("words", metavar="WORD", nargs="+", help="how words of the name start")
    parser.add_argument(
        "--type",
        choices=KINDS,
        metavar="TYPE",
        help=f"only objects of this type: {', '.join(KINDS[:-1])} or {KINDS[-1]}",
    )
    add_catalog(parser, environment)
    parser.add_argument("--limit", type=positive, default=50, metavar="N", help="list this many [default 50]")
    add_json(parser, "a JSON array of types, namespaces and names")


def _search(parsed: argparse.Namespace) -> int:
    """Runs `arco search`, and returns the exit code."""
    from arco_catalog.cli import search

    return search.run(CatalogOptions.of(parsed), parsed.words, parsed.type, parsed.limit, as_json=parsed.json)


def _add_info(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    """Adds the arguments of `arco info` to the parser: the table, the options that select a catalog, --limit and
    --json."""
    add_table(parser, "the table or view")
    add_catalog(parser, environment)
    parser.add_argument("--limit", type=positive, default=10, metavar="N", help="show this many snapshots [default 10]")
    add_json(parser, "the summary as a JSON object")


def _info(parsed: argparse.Namespace) -> int:
    """Runs `arco info`, and returns the exit code."""
    from arco_catalog.cli import info

    return info.run(CatalogOptions.of(parsed), parsed.table, parsed.limit, as_json=parsed.json)


def _add_register(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    """Adds the arguments of `arco register` to the parser: the name, the metadata file, the options that select a
    catalog, --parents, --view, --overwrite and --json."""
    add_table(parser, "the name to give")
    parser.add_argument("metadata", metavar="METADATA_LOCATION", help="the metadata file, as an absolute URI")
    add_catalog(parser, environment)
    parser.add_argument("-p", "--parents", action="store_true", help="make the namespaces that are missing")
    parser.add_argument("--view", action="store_true", help="register the file as a view")
    parser.add_argument("--overwrite", action="store_true", help="replace the table that has the name")
    add_json(parser, "what was registered, as a JSON object")


def _register(parsed: argparse.Namespace) -> int:
    """Runs `arco register`, and returns the exit code. Exits with 2 for --overwrite with --view."""
    from arco_catalog.cli import register

    if parsed.view and parsed.overwrite:
        parsed.parser.error("--overwrite is for tables: leave it out with --view")
    return register.run(
        CatalogOptions.of(parsed),
        parsed.table,
        parsed.metadata,
        parents=parsed.parents,
        view=parsed.view,
        overwrite=parsed.overwrite,
        as_json=parsed.json,
    )


def _add_drop(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    """Adds the arguments of `arco drop` to the parser: the table, the options that select a catalog, --purge and
    --json."""
    add_table(parser, "the table or view")
    add_catalog(parser, environment)
    parser.add_argument(
        "--purge",
        action="store_true",
        help="of a table: delete the files, too, once the time to undo the drop has passed",
    )
    add_json(parser, "what was dropped, as a JSON object")


def _drop(parsed: argparse.Namespace) -> int:
    """Runs `arco drop`, and returns the exit code."""
    from arco_catalog.cli import drop

    return drop.run(CatalogOptions.of(parsed), parsed.table, purge=parsed.purge, as_json=parsed.json)


def _add_rename(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    """Adds the arguments of `arco rename` to the parser: the table, the new name, the options that select a catalog,
    and --json."""
    add_table(parser, "the table or view")
    parser.add_argument("to", metavar=f"NEW_{TABLE}", help="the new name")
    add_catalog(parser, environment)
    add_json(parser, "what was renamed, as a JSON object")


def _rename(parsed: argparse.Namespace) -> int:
    """Runs `arco rename`, and returns the exit code."""
    from arco_catalog.cli import rename

    return rename.run(CatalogOptions.of(parsed), parsed.table, parsed.to, as_json=parsed.json)


COMMANDS = (
    Command("ls", "list namespaces, tables and views", LS_EXAMPLES, _add_ls, _ls),
    Command("search", "search for namespaces, tables and views", SEARCH_EXAMPLES, _add_search, _search),
    Command("info", "show a table's schema, snapshots, size and health", INFO_EXAMPLES, _add_info, _info),
    Command("register", "register a metadata file as a table or view", REGISTER_EXAMPLES, _add_register, _register),
    Command("rename", "give a table or view another name", RENAME_EXAMPLES, _add_rename, _rename),
    Command("drop", "drop a table or view; no file is deleted", DROP_EXAMPLES, _add_drop, _drop),
)
