"""Declares the commands for operators of a catalog: `init`, `bootstrap`, `settings`, `doctor`, `fsck`, `receipts`,
`history`, `show`, `undrop`, `tasks`, `gc` and `reconcile`."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from arco_catalog.cli.command import (
    TABLE,
    CatalogOptions,
    Command,
    action_name,
    add_at,
    add_catalog,
    add_json,
    add_table,
    add_wide,
    check_options,
)
from arco_catalog.cli.options import positive
from arco_catalog.config import variables

if TYPE_CHECKING:
    from arco_catalog.cli.metrics_file import MetricsFile

SETTINGS_EXAMPLES = """\
Shows what the catalog records of how servers are to serve it, and changes it.
How Idempotency-Key is read belongs to the catalog, since a retry may reach
another server: variables of servers count only when a catalog is made. The
locations are those where tables may be besides the catalog's folder.

examples:
  arco settings --store s3://bucket/catalog
  arco settings --set-idempotency-dialect polaris --store s3://bucket/catalog
  arco settings --add-location s3://old-lake/sales --store s3://bucket/catalog
"""
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
  arco history --at '2026-11-22 10:30' --store file:/var/lib/arco
  arco history --table sales.orders --store file:/var/lib/arco
  arco history --limit 1000 --json --store s3://bucket/catalog
"""
SHOW_EXAMPLES = """\
Shows the catalog's records of a table or view: its pointer and last commits,
a transaction's intent on it, and the idempotency keys of requests on it that
are in progress or were left unfinished. With --at it shows what the name meant
at a time, and which metadata file was current. Writes nothing.

examples:
  arco show sales.orders --store file:/var/lib/arco
  arco show sales.orders --at 2026-11-22T10:30:00Z --store file:/var/lib/arco
"""
UNDROP_EXAMPLES = """\
Restores the table or view that was dropped last under the name, with its
entity id, location and history, even if a purge was requested. Fails if the
name or location is in use again, or if its metadata file or a manifest list of
its snapshots is missing.

examples:
  arco undrop sales.orders --store s3://bucket/catalog
"""
TASKS_EXAMPLES = """\
Lists the catalog's tasks: purges of dropped tables that wait, are under way or
have ended. `show` has the progress of one, with --follow until it ends. `run`
executes the tasks that are due, or one task, in this process, as `arco serve`
does beside requests; or with --spark on Spark, which also purges a table whose
files other tables refer to, and keeps those files. `retry` submits a failed
task again, which continues where it was.

examples:
  arco tasks --store s3://bucket/catalog
  arco tasks show TASK --follow --store s3://bucket/catalog
  arco tasks list --status failure --store s3://bucket/catalog
  arco tasks list --stuck --store s3://bucket/catalog
  arco tasks run --store s3://bucket/catalog
  arco tasks run --all --seconds 600 --store s3://bucket/catalog
  arco tasks run TASK --spark --store s3://bucket/catalog
  arco tasks retry TASK --store s3://bucket/catalog
"""
TASKS_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "status": ("list",),
    "stuck": ("list",),
    "correlation_id": ("list",),
    "follow": ("show",),
    "all": ("run",),
    "seconds": ("run",),
    "spark": ("run",),
}
"""The actions of `arco tasks` to which each option belongs, by the option's attribute."""
RECONCILE_EXAMPLES = """\
Writes the receipts of commits whose writers crashed, in every catalog of a
realm. It is safe to interrupt, to run twice at once and to run beside live
servers; the next run resumes.
The exit code is 1 if some metadata could not be read.

examples:
  arco reconcile --dry-run --store s3://bucket/catalog
  arco reconcile --seconds 600 --json --store s3://bucket/catalog
"""
GC_EXAMPLES = """\
Lists objects to which nothing in the catalog leads any more, and objects older
than the time for which they are kept: by kind, with count, size and reason.
Deletes them only with --delete.
It runs over every catalog of a realm, may be interrupted, and runs beside live
servers. Files of tables are never deleted, but for metadata files that never
became current, and manifest lists of appends that never applied.
ARCO_RECEIPT_RETENTION and ARCO_UNDROP_RETENTION set how long receipts, and
dropped tables, are kept. The exit code is 1 if some records could not be read:
they are kept.

examples:
  arco gc --store file:/var/lib/arco
  arco gc --delete --seconds 600 --store s3://bucket/catalog
"""
INIT_EXAMPLES = """\
Makes an empty catalog in a store, after a test of whether the store honours
conditional writes, on which commits rely. A folder is made, a bucket must
exist. If the catalog exists, nothing is done. Not needed before `arco serve`,
of which the first write makes the catalog, too.

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
  arco bootstrap --store file:/var/lib/arco --reopen
"""
FSCK_EXAMPLES = """\
Reads everything that the catalog has stored (registry, pointers, current
metadata files, receipts, markers, transactions, claims, tasks) and lists what
does not fit together, with a code, what it means and what mends it:
docs/fsck.md. Writes nothing, and may run beside live servers. The exit code is
1 if an error is left.

--data looks at the files of live tables, too: it reads the manifests of all
snapshots, and looks whether each file is there and has its size. Tables are
taken in the order of their names: one that was cut short goes on with --after.

--all checks a realm's own registry (catalogs, principals, roles) and every
catalog of it.

--repair lists the findings that can be mended without any risk, and with
--apply mends them, beside live servers, too.

examples:
  arco fsck --store file:/var/lib/arco
  arco fsck --data --after sales.orders --json --store s3://bucket/catalog
  arco fsck --data --table sales.orders --store s3://bucket/catalog
  arco fsck --all --store s3://bucket/catalog
  arco fsck --repair --apply --store s3://bucket/catalog
"""
DOCTOR_EXAMPLES = """\
Checks what a catalog needs: the installed packages, the credentials, whether
the store answers, how far the store's clock is from that of this machine,
whether the catalog exists, whether the store honours conditional writes (two
objects are written under _probe/ and deleted again, only where there is a
catalog), and whether every --allowed-location can be listed. The exit code is
1 if a check fails.

With a URL it examines that store instead, catalog or not: what a catalog needs
of it is tried with some 40 objects under _probe/, which are deleted again, by
connections of our own and by the vendor's SDK, one after the other. The exit
code is 1 if a check fails, or if the two differ.

examples:
  arco doctor --store file:/var/lib/arco
  arco doctor s3://bucket/prefix
  arco doctor gs://bucket --pages
  arco doctor --store s3://bucket/catalog --json
  arco doctor --auth token --store s3://bucket/catalog
"""


def _add_receipts(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    """Adds the arguments of `arco receipts` to the parser: the table, the options that select a catalog, --limit,
    --json and --wide."""
    add_table(parser, "the table or view, or its entity id")
    add_catalog(parser, environment)
    parser.add_argument(
        "--limit", type=positive, metavar="N", help="list the newest N commits of a table [default all]"
    )
    add_json(parser, "whole receipts, as a JSON array")
    add_wide(parser)


def _receipts(parsed: argparse.Namespace) -> int:
    """Runs `arco receipts`, and returns the exit code."""
    from arco_catalog.cli import receipts

    return receipts.run(CatalogOptions.of(parsed), parsed.table, parsed.limit, as_json=parsed.json, wide=parsed.wide)


def _add_history(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    """Adds the arguments of `arco history` to the parser: the options that select a catalog, --at, --limit, --table,
    --all, --realm-history, --json and --wide."""
    add_catalog(parser, environment)
    add_at(parser, "what had happened")
    parser.add_argument(
        "--limit", type=positive, default=50, metavar="N", help="show this many operations [default 50]"
    )
    parser.add_argument("--table", metavar=TABLE, help="show only what happened to this name, or to this entity id")
    parser.add_argument("--all", action="store_true", help="also show fences and the registry's internal commits")
    parser.add_argument(
        "--realm-history",
        action="store_true",
        help="show what happened to the realm: catalogs, principals, and the roles that they have",
    )
    add_json(parser, "whole operations, as a JSON array")
    add_wide(parser)


def _history(parsed: argparse.Namespace) -> int:
    """Runs `arco history`, and returns the exit code."""
    from arco_catalog.cli import history

    return history.run(
        CatalogOptions.of(parsed),
        parsed.limit,
        at_ms=parsed.at,
        table_name=parsed.table,
        of_realm=parsed.realm_history,
        own=parsed.all,
        as_json=parsed.json,
        wide=parsed.wide,
    )


def _add_show(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    """Adds the arguments of `arco show` to the parser: the table, the options that select a catalog, --at and
    --json."""
    add_table(parser)
    add_catalog(parser, environment)
    add_at(parser, "what the name meant and which metadata file was current")
    add_json(parser, "everything, as a JSON object")


def _show(parsed: argparse.Namespace) -> int:
    """Runs `arco show`, and returns the exit code."""
    from arco_catalog.cli import show

    return show.run(CatalogOptions.of(parsed), parsed.table, at_ms=parsed.at, as_json=parsed.json)


def _add_undrop(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    """Adds the arguments of `arco undrop` to the parser: the table, the options that select a catalog, --force and
    --json."""
    add_table(parser)
    add_catalog(parser, environment)
    parser.add_argument(
        "--force",
        action="store_true",
        help="restore it even if manifest lists are missing or can't be read; the metadata file must exist",
    )
    add_json(parser, "what was restored, as a JSON object")


def _undrop(parsed: argparse.Namespace) -> int:
    """Runs `arco undrop`, and returns the exit code."""
    from arco_catalog.cli import undrop

    return undrop.run(CatalogOptions.of(parsed), parsed.table, force=parsed.force, as_json=parsed.json)


def _add_tasks(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    """Adds the arguments of `arco tasks` to the parser: the action (`list` by default), the task, the options of single
    actions, the options that select a catalog, and --json. Whether an option suits the action is not tested here."""
    parser.add_argument(
        "action",
        nargs="?",
        type=action_name,
        choices=("list", "show", "run", "retry"),
        default="list",
        help="what to do [default list]",
    )
    parser.add_argument("task", nargs="?", metavar="TASK", help="the task's id; of run: this one, else what is due")
    parser.add_argument("--status", type=str.upper, metavar="STATUS", help="with list: tasks in this status alone")
    parser.add_argument(
        "--stuck",
        action="store_true",
        help="with list: purges that failed half-way. Each holds its table's locations and its catalog until retried",
    )
    parser.add_argument("--correlation-id", metavar="ID", help="with list: tasks with this correlation id alone")
    parser.add_argument("--follow", action="store_true", help="with show: print the task until it has ended")
    parser.add_argument(
        "--all", action="store_true", help="with run: in every catalog of the realm; with --json a line for each"
    )
    parser.add_argument(
        "--seconds", type=positive, metavar="N", help="with run --all: stop after this many; the next run goes on"
    )
    parser.add_argument(
        "--spark",
        action="store_true",
        help="with run: execute on Spark, which keeps files of other tables; failed tasks, too",
    )
    add_catalog(parser, environment)
    add_json(parser, "whole tasks, as JSON")


def _tasks(parsed: argparse.Namespace) -> int:
    """Runs `arco tasks`, and returns the exit code. Ends the process with 2 and a message if options or TASK
    don't fit the action, or --status is unknown."""
    from arco_catalog.cli import tasks
    from arco_catalog.state.task import Status

    options, task = CatalogOptions.of(parsed), parsed.task
    if parsed.action in ("show", "retry") and task is None:
        parsed.parser.error(f"arco tasks {parsed.action} TASK: the task's id is required")
    if parsed.action == "list" and task is not None:
        parsed.parser.error(f"arco tasks list takes no TASK: arco tasks show {task} shows one")
    check_options(parsed, "tasks", TASKS_OPTIONS)
    if parsed.status is not None and parsed.status not in [*Status]:
        parsed.parser.error(f"--status {parsed.status}: expected {', '.join(Status)}")
    if parsed.seconds is not None and not parsed.all:
        parsed.parser.error("--seconds is for arco tasks run --all")
    if parsed.spark and (parsed.json or parsed.seconds is not None):
        parsed.parser.error("leave out --seconds and --json with --spark")
    if parsed.spark:
        return tasks.run_on_spark(options, task, every=parsed.all)
    if parsed.action == "list":
        return tasks.run_list(options, parsed.status, parsed.correlation_id, stuck=parsed.stuck, as_json=parsed.json)
    if parsed.action == "show":
        return tasks.run_show(options, task, follow=parsed.follow, as_json=parsed.json)
    if parsed.action == "run" and parsed.all:
        return tasks.run_all(options, task, parsed.seconds, as_json=parsed.json)
    if parsed.action == "run":
        return tasks.run_due(options, task, as_json=parsed.json)
    return tasks.run_retry(options, task, as_json=parsed.json)


def _add_reconcile(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    """Adds the arguments of `arco reconcile` to the parser: the options that select a catalog, --dry-run, --seconds,
    the options for metrics, and --json."""
    add_catalog(parser, environment)
    parser.add_argument(
        "--dry-run", action="store_true", help="list missing receipts and why they are missing; write nothing"
    )
    parser.add_argument(
        "--seconds", type=positive, metavar="N", help="stop after this many seconds; the next run resumes there"
    )
    _add_metrics_options(parser)
    add_json(parser, "counts, and up to 100 missing receipts and 100 failures, as JSON")


def _reconcile(parsed: argparse.Namespace) -> int:
    """Runs `arco reconcile`, and returns the exit code."""
    from arco_catalog.cli import reconcile

    return reconcile.run(
        CatalogOptions.of(parsed),
        parsed.seconds,
        dry=parsed.dry_run,
        as_json=parsed.json,
        metrics_file=_metrics_file(parsed),
    )


def _add_gc(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    """Adds the arguments of `arco gc` to the parser: the options that select a catalog, --delete, --seconds, the
    options for metrics, and --json."""
    add_catalog(parser, environment)
    parser.add_argument("--delete", action="store_true", help="delete what is listed")
    parser.add_argument(
        "--seconds", type=positive, metavar="N", help="stop after this many seconds; the next run collects the rest"
    )
    _add_metrics_options(parser)
    add_json(parser, "counts by kind, as a JSON object")


def _add_metrics_options(parser: argparse.ArgumentParser) -> None:
    """Adds --metrics-file, and the option for the store's label in it."""
    parser.add_argument(
        "--metrics-file",
        type=Path,
        metavar="FILE",
        help="when the end is reached, write metrics to this file for Prometheus's node_exporter",
    )
    parser.add_argument(
        "--metrics-store",
        metavar="NAME",
        help="of --metrics-file: the metrics' label `store`, in place of the URL of the store or realm",
    )


def _metrics_file(parsed: argparse.Namespace) -> "MetricsFile | None":
    """Returns the file for metrics, None without one. Raises `CliError` if it can't be written: better now than after
    the work."""
    if parsed.metrics_file is None:
        return None
    from arco_catalog.cli.metrics_file import MetricsFile

    url = "/".join(filter(None, (parsed.store, parsed.realm)))
    file = MetricsFile(parsed.metrics_file, parsed.metrics_store or url)
    file.check()
    return file


def _gc(parsed: argparse.Namespace) -> int:
    """Runs `arco gc`, and returns the exit code."""
    from arco_catalog.cli import gc

    return gc.run(
        CatalogOptions.of(parsed),
        parsed.seconds,
        delete=parsed.delete,
        as_json=parsed.json,
        metrics_file=_metrics_file(parsed),
    )


def _add_init(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    """Adds the arguments of `arco init` to the parser: the options that select a catalog, and --json."""
    add_catalog(parser, environment)
    add_json(parser, "what was made, as a JSON object")


def _init(parsed: argparse.Namespace) -> int:
    """Runs `arco init`, and returns the exit code."""
    from arco_catalog.cli import init

    return init.run(CatalogOptions.of(parsed), as_json=parsed.json)


def _add_bootstrap(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    """Adds the arguments of `arco bootstrap` to the parser: the options that select a catalog, --reset-root, --reopen
    and --json."""
    add_catalog(parser, environment)
    parser.add_argument("--reset-root", action="store_true", help="give the root principal new credentials")
    parser.add_argument("--reopen", action="store_true", help="make the realm even if it was dropped before")
    add_json(parser, "the credentials, as a JSON object")


def _bootstrap(parsed: argparse.Namespace) -> int:
    """Runs `arco bootstrap`, and returns the exit code."""
    from arco_catalog.cli import bootstrap

    return bootstrap.run(
        CatalogOptions.of(parsed), reset_root=parsed.reset_root, reopen=parsed.reopen, as_json=parsed.json
    )


def _add_doctor(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    """Adds the arguments of `arco doctor` to the parser: the URL of a store, --pages, --auth, the options that select a
    catalog, and --json."""
    parser.add_argument("url", nargs="?", metavar="URL", help="examine this store, by every client that reaches it")
    parser.add_argument(
        "--pages", action="store_true", help="with a URL: also list 1,001 objects, which cost a cent or two to write"
    )
    parser.add_argument(
        "--auth",
        metavar="FILE",
        help="test whether a server with these variables would accept the token in this file, and why not",
    )
    add_catalog(parser, environment)
    add_json(parser, "every check, as a JSON object")


def _doctor(parsed: argparse.Namespace) -> int:
    """Runs `arco doctor` for a store's URL, for a token, or for a catalog, and returns the exit code. Exits with 2 for
    options that do not go together, and without a URL and a store."""
    if parsed.auth is not None and parsed.url is not None:
        parsed.parser.error("--auth is for the realm in --store, and takes no URL")
    if parsed.url is not None:
        from arco_catalog.cli import store_doctor

        return store_doctor.run(parsed.url, parsed.environment, pages=parsed.pages, as_json=parsed.json)
    if parsed.pages:
        parsed.parser.error("--pages is for the URL of a store, such as arco doctor gs://bucket --pages")
    if parsed.store is None:
        url = "URL, " if parsed.auth is None else ""
        parsed.parser.error(f"{url}--store or {variables.STORE.name} is required: {variables.STORES}")
    if parsed.auth is not None:
        from arco_catalog.cli import auth_doctor

        return auth_doctor.run(CatalogOptions.of(parsed), parsed.auth, as_json=parsed.json)
    from arco_catalog.cli import doctor

    return doctor.run(CatalogOptions.of(parsed), as_json=parsed.json)


def _add_fsck(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    """Adds the arguments of `arco fsck` to the parser: the options that select a catalog, --all, --data, --table,
    --after, --repair, --apply and --json. Which of them need another is not tested here."""
    add_catalog(parser, environment)
    parser.add_argument("--all", action="store_true", help="check the realm's own registry, and every catalog of it")
    parser.add_argument("--data", action="store_true", help="check the files of live tables, too")
    parser.add_argument(
        "--table",
        action="append",
        default=[],
        metavar=TABLE,
        help="with --data: check only the files of this table; may be given several times",
    )
    parser.add_argument(
        "--after", default="", metavar=TABLE, help="with --data: check only the files of tables with later names"
    )
    parser.add_argument("--repair", action="store_true", help="list what can be mended without any risk")
    parser.add_argument("--apply", action="store_true", help="with --repair: mend it, rather than only list it")
    add_json(parser, "every finding, as a JSON object")


def _fsck(parsed: argparse.Namespace) -> int:
    """Runs `arco fsck`, and returns the exit code."""
    from arco_catalog.cli import fsck

    wanted = fsck.FsckArguments(parsed.all, parsed.data, tuple(parsed.table), parsed.after, parsed.repair, parsed.apply)
    return fsck.run(CatalogOptions.of(parsed), wanted, as_json=parsed.json)


def _add_settings(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    """Adds the arguments of `arco settings` to the parser: the options that select a catalog, and that set the handling
    of idempotency keys or add and remove allowed locations; and --json."""
    add_catalog(parser, environment)
    parser.add_argument(
        "--set-idempotency-dialect",
        choices=variables.DIALECTS,
        help="the rules for Idempotency-Key: iceberg (a UUIDv7) or polaris (any text)",
    )
    parser.add_argument(
        "--set-idempotency-enabled",
        choices=("true", "false"),
        help="whether Idempotency-Key is taken: false ignores it, and clients learn that they need not send it",
    )
    parser.add_argument(
        "--add-location",
        nargs="+",
        action="extend",
        default=[],
        metavar="PREFIX",
        help="allow tables there, besides the catalog's folder, whatever --allowed-location a server or command has",
    )
    parser.add_argument(
        "--remove-location",
        nargs="+",
        action="extend",
        default=[],
        metavar="PREFIX",
        help="no longer allow tables there",
    )
    add_json(parser, "the settings, as a JSON object")


def _settings(parsed: argparse.Namespace) -> int:
    """Runs `arco settings`, and returns the exit code."""
    from arco_catalog.cli import settings
    from arco_catalog.state.key_settings import Dialect

    dialect, enabled = parsed.set_idempotency_dialect, parsed.set_idempotency_enabled
    changes = settings.Changes(
        None if dialect is None else Dialect(dialect),
        None if enabled is None else enabled == "true",
        parsed.add_location,
        parsed.remove_location,
    )
    return settings.run(CatalogOptions.of(parsed), changes, as_json=parsed.json)


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
        "settings",
        "show or change how servers are to serve the catalog",
        SETTINGS_EXAMPLES,
        _add_settings,
        _settings,
    ),
    Command(
        "doctor",
        "check the store, and report what is wrong with it",
        DOCTOR_EXAMPLES,
        _add_doctor,
        _doctor,
        needs_store=False,
    ),
    Command("fsck", "read all that the catalog has stored, and report what is wrong", FSCK_EXAMPLES, _add_fsck, _fsck),
    Command("receipts", "list the commits of a table, newest first", RECEIPTS_EXAMPLES, _add_receipts, _receipts),
    Command(
        "history", "list creations, renames and drops, and who made them", HISTORY_EXAMPLES, _add_history, _history
    ),
    Command("show", "show the catalog's records of a table", SHOW_EXAMPLES, _add_show, _show),
    Command("undrop", "restore a dropped table or view", UNDROP_EXAMPLES, _add_undrop, _undrop),
    Command("tasks", "list tasks such as purges, follow, run and retry them", TASKS_EXAMPLES, _add_tasks, _tasks),
    Command("gc", "list, or delete, what the catalog needs no longer", GC_EXAMPLES, _add_gc, _gc),
    Command("reconcile", "write missing receipts of commits", RECONCILE_EXAMPLES, _add_reconcile, _reconcile),
)
