"""The commands of who operates a catalog: what its records say, what is wrong with its store, what mends it."""

import argparse
from collections.abc import Mapping

from arco_catalog.cli.command import CatalogOptions, Command, add_catalog, add_json, add_table
from arco_catalog.cli.options import positive
from arco_catalog.config import variables

RECEIPTS_EXAMPLES = """\
Separate the levels of a name by dots; quote a level that contains a dot.
If no table has the name now, the commits of all dropped tables that had it are
listed. To list one of them, give its entity id, which `arco history` shows.

examples:
  arco receipts sales.orders --store file:/var/lib/arco
  arco receipts 01KAN0Y7Q2M3C4D5E6F7G8H9JK --store file:/var/lib/arco
  arco receipts '"sales.2026".orders' --store s3://bucket/catalog --json
"""
HISTORY_EXAMPLES = """\
Lists creations, registrations, renames and drops, newest first, as far back as
history is kept, and in a realm grants and roles of the catalog. --realm-history
lists changes of the realm's catalogs, principals and principal roles instead.
--all also lists the registry's internal commits.

examples:
  arco history --store file:/var/lib/arco
  arco history --limit 1000 --json --store s3://bucket/catalog
"""
SHOW_EXAMPLES = """\
Shows the catalog's records of a table or view: its pointer and recent commits,
a transaction's intent on it, and the idempotency keys of requests on it that
are in progress or were left unfinished. Writes nothing.

examples:
  arco show sales.orders --store file:/var/lib/arco
"""
UNDROP_EXAMPLES = """\
Restores the table or view that was dropped last under the name, with its
entity id, location and history, even if a purge was requested. Fails if the
name or location is in use again, or if its metadata file or a manifest list of
its snapshots is missing.

examples:
  arco undrop sales.orders --store s3://bucket/catalog
"""
RECONCILE_EXAMPLES = """\
Writes the receipts of commits whose writers crashed, in every catalog of a
realm. It is safe to interrupt, to run twice at once and to run beside live
servers; the next run resumes.
The exit code is 1 if some metadata could not be read.

examples:
  arco reconcile --dry-run --store s3://bucket/catalog
  arco reconcile --seconds 600 --json --store s3://bucket/catalog
"""
INIT_EXAMPLES = """\
Makes an empty catalog in a store, after seeing that the store keeps what
commits rest on. A folder is made, a bucket has to be there. Where there is
such a catalog already nothing is done. Not needed before `arco serve`, whose
first write makes the catalog too.

examples:
  arco init --store file:/var/lib/arco
  arco init --store s3://bucket/catalog --warehouse lake
"""
BOOTSTRAP_EXAMPLES = """\
Makes a realm: principals, roles and grants, and any number of catalogs, for
`arco serve --auth`. Takes the catalog of --warehouse into it, or makes one.
Prints the credentials of the root principal, which manages the realm, once;
--reset-root replaces them when they are lost.

examples:
  arco bootstrap --store file:/var/lib/arco
  arco bootstrap --store s3://bucket/catalog --realm acme --json
  arco bootstrap --store file:/var/lib/arco --reset-root
"""
FSCK_EXAMPLES = """\
Reads everything that the catalog has stored (registry, pointers, current
metadata files, receipts, markers, transactions, claims) and lists what does not
fit together, with a code, what it means and what mends it: docs/fsck.md. Writes
nothing, and may run beside live servers. The exit code is 1 if an error was
found.

examples:
  arco fsck --store file:/var/lib/arco
  arco fsck --json --store s3://bucket/catalog
"""
DOCTOR_EXAMPLES = """\
Checks what has to be so before a catalog can work: the packages installed, the
credentials, whether the store answers, how far its clock is from this one's,
whether the catalog is there, whether the store keeps conditional writes (two
objects are written under _probe/ and deleted again, only where there is a
catalog), and whether every --allowed-location can be read. The exit code is 1
if a check fails.

With a URL it examines that store instead, catalog or not: what a catalog needs
of it is tried with some 40 objects under _probe/, which are deleted again, by
connections of our own and by the vendor's SDK, one after the other. The exit
code is 1 if a check fails, or if the two differ.

examples:
  arco doctor --store file:/var/lib/arco
  arco doctor s3://bucket/prefix
  arco doctor gs://bucket --pages
  arco doctor --store s3://bucket/catalog --json
"""


def _add_receipts(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    add_table(parser, "the table or view, or its entity id")
    add_catalog(parser, environment)
    parser.add_argument("--limit", type=positive, metavar="N", help="list this many of a table, the newest")
    add_json(parser, "whole receipts, as a JSON array")


def _receipts(parsed: argparse.Namespace) -> int:
    from arco_catalog.cli import receipts

    return receipts.run(CatalogOptions.of(parsed), parsed.table, parsed.limit, as_json=parsed.json)


def _add_history(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    add_catalog(parser, environment)
    parser.add_argument(
        "--limit", type=positive, default=50, metavar="N", help="show this many operations [default 50]"
    )
    parser.add_argument("--all", action="store_true", help="also show fences and the registry's internal commits")
    parser.add_argument(
        "--realm-history",
        action="store_true",
        help="show what happened to the realm: catalogs, principals, and the roles that they have",
    )
    add_json(parser, "whole operations, as a JSON array")


def _history(parsed: argparse.Namespace) -> int:
    from arco_catalog.cli import history

    return history.run(
        CatalogOptions.of(parsed), parsed.limit, of_realm=parsed.realm_history, own=parsed.all, as_json=parsed.json
    )


def _add_show(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    add_table(parser)
    add_catalog(parser, environment)
    add_json(parser, "everything, as a JSON object")


def _show(parsed: argparse.Namespace) -> int:
    from arco_catalog.cli import show

    return show.run(CatalogOptions.of(parsed), parsed.table, as_json=parsed.json)


def _add_undrop(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    add_table(parser)
    add_catalog(parser, environment)
    parser.add_argument(
        "--force",
        action="store_true",
        help="restore it even if manifest lists are missing or can't be read; the metadata file must exist",
    )
    add_json(parser, "what was restored, as a JSON object")


def _undrop(parsed: argparse.Namespace) -> int:
    from arco_catalog.cli import undrop

    return undrop.run(CatalogOptions.of(parsed), parsed.table, force=parsed.force, as_json=parsed.json)


def _add_reconcile(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    add_catalog(parser, environment)
    parser.add_argument(
        "--dry-run", action="store_true", help="list missing receipts and why they are missing; write nothing"
    )
    parser.add_argument(
        "--seconds", type=positive, metavar="N", help="stop after this many seconds; the next run resumes there"
    )
    add_json(parser, "counts, and up to 100 missing receipts and 100 failures, as JSON")


def _reconcile(parsed: argparse.Namespace) -> int:
    from arco_catalog.cli import reconcile

    return reconcile.run(CatalogOptions.of(parsed), parsed.seconds, dry=parsed.dry_run, as_json=parsed.json)


def _add_init(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    add_catalog(parser, environment)
    add_json(parser, "what was made, as a JSON object")


def _init(parsed: argparse.Namespace) -> int:
    from arco_catalog.cli import init

    return init.run(CatalogOptions.of(parsed), as_json=parsed.json)


def _add_bootstrap(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    add_catalog(parser, environment)
    parser.add_argument("--reset-root", action="store_true", help="give the root principal new credentials")
    add_json(parser, "the credentials, as a JSON object")


def _bootstrap(parsed: argparse.Namespace) -> int:
    from arco_catalog.cli import bootstrap

    return bootstrap.run(CatalogOptions.of(parsed), reset_root=parsed.reset_root, as_json=parsed.json)


def _add_doctor(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    parser.add_argument("url", nargs="?", metavar="URL", help="examine this store, by every client that reaches it")
    parser.add_argument(
        "--pages", action="store_true", help="with a URL: also list 1,001 objects, which cost a cent or two to write"
    )
    add_catalog(parser, environment)
    add_json(parser, "every check, as a JSON object")


def _doctor(parsed: argparse.Namespace) -> int:
    if parsed.url is not None:
        from arco_catalog.cli import store_doctor

        return store_doctor.run(parsed.url, parsed.environment, pages=parsed.pages, as_json=parsed.json)
    if parsed.pages:
        parsed.parser.error("--pages is for a URL: arco doctor URL --pages")
    if parsed.store is None:
        parsed.parser.error(f"URL, --store or {variables.STORE.name} is required: {variables.STORES}")
    from arco_catalog.cli import doctor

    return doctor.run(CatalogOptions.of(parsed), as_json=parsed.json)


def _add_fsck(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    add_catalog(parser, environment)
    add_json(parser, "every finding, as a JSON object")


def _fsck(parsed: argparse.Namespace) -> int:
    from arco_catalog.cli import fsck

    return fsck.run(CatalogOptions.of(parsed), as_json=parsed.json)


COMMANDS = (
    Command("init", "make an empty catalog in a store", INIT_EXAMPLES, _add_init, _init),
    Command(
        "bootstrap",
        "make a realm, with a root principal that manages it",
        BOOTSTRAP_EXAMPLES,
        _add_bootstrap,
        _bootstrap,
    ),
    Command(
        "doctor",
        "check the store, and say what is wrong with it",
        DOCTOR_EXAMPLES,
        _add_doctor,
        _doctor,
        needs_store=False,
    ),
    Command("fsck", "read all that the catalog has stored, and say what is wrong", FSCK_EXAMPLES, _add_fsck, _fsck),
    Command("receipts", "list the commits of a table, newest first", RECEIPTS_EXAMPLES, _add_receipts, _receipts),
    Command(
        "history", "list creations, renames and drops, and who made them", HISTORY_EXAMPLES, _add_history, _history
    ),
    Command("show", "show the catalog's records of a table", SHOW_EXAMPLES, _add_show, _show),
    Command("undrop", "restore a dropped table or view", UNDROP_EXAMPLES, _add_undrop, _undrop),
    Command("reconcile", "write missing receipts of commits", RECONCILE_EXAMPLES, _add_reconcile, _reconcile),
)
