"""The commands of who operates a catalog: what its records say, what is wrong with its store, what mends it."""

import argparse
from collections.abc import Mapping

from arco_catalog.cli.command import CatalogOptions, Command, add_catalog, add_json, add_table
from arco_catalog.cli.options import positive

RECEIPTS_EXAMPLES = """\
Dots part the levels of a name; a level that holds a dot is put in quotes.
Where the name means nothing now, the commits of all that was dropped under it
are listed. The id of an entity, as `arco history` shows it, lists one of them.

examples:
  arco receipts sales.orders --store file:/var/lib/arco
  arco receipts 01KAN0Y7Q2M3C4D5E6F7G8H9JK --store file:/var/lib/arco
  arco receipts '"sales.2026".orders' --store s3://bucket/catalog --json
"""
HISTORY_EXAMPLES = """\
Every creation, registration, rename and drop, newest first, as far back as the
history was kept. What the protocols do for themselves is shown with --all.

examples:
  arco history --store file:/var/lib/arco
  arco history --limit 1000 --json --store s3://bucket/catalog
"""
SHOW_EXAMPLES = """\
Shows what the records say of a table or view: its pointer and recent moves, a
transaction's intent on it, and the idempotency keys under which requests that
name it are under way or were left unfinished. Nothing is written.

examples:
  arco show sales.orders --store file:/var/lib/arco
"""
UNDROP_EXAMPLES = """\
What was dropped last under the name comes back with its entity, its location
and its history, whether a purge was asked for or not. Refused if the name or
the location was taken meanwhile, or if files are gone: its metadata file and
the manifest lists of its snapshots are looked for first.

examples:
  arco undrop sales.orders --store s3://bucket/catalog
"""
RECONCILE_EXAMPLES = """\
Writes the receipts that died with their writers. It may be ended at any time,
run twice at once, and run beside live servers; the next run goes on from there.
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
DOCTOR_EXAMPLES = """\
Checks what has to be so before a catalog can work: the packages installed, the
credentials, whether the store answers, how far its clock is from this one's,
whether the catalog is there, whether the store keeps conditional writes (two
objects are written under _probe/ and deleted again, only where there is a
catalog), and whether every --allowed-location can be read. The exit code is 1
if a check fails.

examples:
  arco doctor --store file:/var/lib/arco
  arco doctor --store s3://bucket/catalog --json
"""


def _add_receipts(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    add_table(parser, "the table or view, or the id of its entity")
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
    parser.add_argument("--all", action="store_true", help="show fences and the registry's own commits too")
    add_json(parser, "whole operations, as a JSON array")


def _history(parsed: argparse.Namespace) -> int:
    from arco_catalog.cli import history

    return history.run(CatalogOptions.of(parsed), parsed.limit, own=parsed.all, as_json=parsed.json)


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
        help="bring it back although manifest lists are gone or can't be looked at; never without its metadata file",
    )
    add_json(parser, "what was restored, as a JSON object")


def _undrop(parsed: argparse.Namespace) -> int:
    from arco_catalog.cli import undrop

    return undrop.run(CatalogOptions.of(parsed), parsed.table, force=parsed.force, as_json=parsed.json)


def _add_reconcile(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    add_catalog(parser, environment)
    parser.add_argument("--dry-run", action="store_true", help="say what is missing and why, and write nothing")
    parser.add_argument(
        "--seconds", type=positive, metavar="N", help="stop after this long; the next run goes on from there"
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


def _add_doctor(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    add_catalog(parser, environment)
    add_json(parser, "every check, as a JSON object")


def _doctor(parsed: argparse.Namespace) -> int:
    from arco_catalog.cli import doctor

    return doctor.run(CatalogOptions.of(parsed), as_json=parsed.json)


COMMANDS = (
    Command("init", "make an empty catalog in a store", INIT_EXAMPLES, _add_init, _init),
    Command("doctor", "check the store, and say what is wrong with it", DOCTOR_EXAMPLES, _add_doctor, _doctor),
    Command("receipts", "list the commits of a table, newest first", RECEIPTS_EXAMPLES, _add_receipts, _receipts),
    Command("history", "list who made, renamed and dropped what", HISTORY_EXAMPLES, _add_history, _history),
    Command("show", "show what the records say of a table", SHOW_EXAMPLES, _add_show, _show),
    Command("undrop", "bring back a table or view that was dropped", UNDROP_EXAMPLES, _add_undrop, _undrop),
    Command("reconcile", "see to it that every commit has its receipt", RECONCILE_EXAMPLES, _add_reconcile, _reconcile),
)
