"""The command line: what can be said, and who does it. Flags win over environment variables.

A command's code is imported when it runs, so that help is quick.
"""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version

from arco_catalog.cli.failure import Failure
from arco_catalog.cli.options import (
    Gathered,
    Option,
    Switch,
    dialect,
    log_format,
    log_level,
    port,
    positive,
    size,
    warehouse,
    workers,
)
from arco_catalog.operations.variables import (
    ALLOW_LOCATION_OVERLAP,
    ALLOWED_LOCATIONS,
    CACHE_MEMORY,
    MAX_BODY,
    MAX_METADATA,
    REQUEST_MEMORY,
)
from arco_catalog.state.characters import escaped

INTERRUPTED = 130
EXTRAS = {"uvicorn": "serve", "uvloop": "serve", "httptools": "serve"}
"""What installs a module that is not there."""
STORES = "file:/absolute/path, s3://bucket/prefix or memory:"

STORE = Option("--store", "ARCO_STORE", f"where everything is kept: {STORES}", metavar="URL")
WAREHOUSE = Option("--warehouse", "ARCO_WAREHOUSE", "name of the catalog", "arco", warehouse, "NAME")
SERVE = (
    STORE,
    Option("--host", "ARCO_HOST", "address to listen on", "127.0.0.1", metavar="H"),
    Option("--port", "ARCO_PORT", "port to listen on; 0 takes a free one", "8181", port, "P"),
    WAREHOUSE,
    Gathered(
        "--allowed-location",
        ALLOWED_LOCATIONS,
        "where tables may lie besides the catalog's own folder: several at once or several times; in the variable, "
        "commas between them",
        metavar="PREFIX",
    ),
    Gathered(
        "--allowed-host",
        "ARCO_ALLOWED_HOSTS",
        "name under which clients reach the server, besides addresses and localhost: others are refused on loopback, "
        "and everywhere once one is allowed; * allows any",
        metavar="NAME",
    ),
    Switch("--allow-location-overlap", ALLOW_LOCATION_OVERLAP, "let tables lie in each other's locations"),
    Option(
        "--idempotency-dialect",
        "ARCO_IDEMPOTENCY_DIALECT",
        "whose Idempotency-Key to speak: iceberg (a UUIDv7) or polaris (any text)",
        "iceberg",
        dialect,
        "DIALECT",
    ),
    Switch("--gzip", "ARCO_GZIP", "compress large answers for clients that accept it"),
    Option(
        "--log-format",
        "ARCO_LOG_FORMAT",
        "text, or json: an object a line, with a line for each request whatever the level",
        "text",
        log_format,
        "FORMAT",
    ),
    Option(
        "--metrics-namespace",
        "ARCO_METRICS_NAMESPACE",
        "put CloudWatch's embedded metrics into the JSON lines, under this namespace",
        metavar="NAME",
    ),
    Option(
        "--log-level",
        "ARCO_LOG_LEVEL",
        "debug (with a line for each request), info, warning or error",
        "warning",
        log_level,
        "LEVEL",
    ),
    Option(
        "--workers",
        "ARCO_WORKERS",
        "processes that serve side by side; more than one is worth it where there are cores to spare",
        "1",
        workers,
        "N",
    ),
    Option(
        "--max-connections",
        "ARCO_MAX_CONNECTIONS",
        "connections of one process at most; fewer where its limit of open files is lower",
        "512",
        positive,
        "N",
    ),
    Option(
        "--request-memory",
        REQUEST_MEMORY,
        "what requests under way may take together: the others wait for it, and are answered 503",
        "256MB",
        size,
        "SIZE",
    ),
    Option("--cache-memory", CACHE_MEMORY, "what all caches of a process may take", "100MB", size, "SIZE"),
    Option("--max-body", MAX_BODY, "how large a request's body may be", "8MB", size, "SIZE"),
    Option("--max-metadata", MAX_METADATA, "how large a metadata file may be, unpacked", "64MB", size, "SIZE"),
    Switch("--quiet", "ARCO_QUIET", "print no settings to paste"),
)

ABOUT = "A serverless Apache Iceberg REST catalog whose only state is an object store."
MORE = "`arco COMMAND --help` says more of each."
SERVE_EXAMPLES = """\
An S3 store takes region, keys and endpoint from the usual AWS_* variables.
Several servers may serve one store, and each sees every change at once.
Traces go where the usual OTEL_* variables say, if they say so.
Ctrl-C ends a server when the requests under way are answered.

examples:
  arco serve --store file:/var/lib/arco
  arco serve --store s3://bucket/catalog --allowed-location s3://raw/a s3://b
  ARCO_STORE=memory: arco serve --port 0
"""
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


def main(arguments: Sequence[str] | None = None, environment: Mapping[str, str] | None = None) -> int:
    """Runs one command. Returns the exit code: 0, 1 for a failure that is told in one line, 130 if interrupted. Wrong
    usage exits with 2."""
    parser = build_parser(os.environ if environment is None else environment)
    parsed = parser.parse_args(arguments)
    if parsed.command is None:
        parser.print_help()
        return 0
    if parsed.store is None:
        parsed.parser.error(f"--store or {STORE.variable} is required: {STORES}")
    try:
        code = _run(parsed, sys.argv[1:] if arguments is None else arguments)
        sys.stdout.flush()
        return code
    except Failure as failure:
        print(f"arco: {escaped(str(failure))}", file=sys.stderr)
        return failure.code
    except ModuleNotFoundError as error:
        extra = EXTRAS.get(error.name or "")
        if extra is None:
            raise
        print(f"arco: {error.name} is not installed: pip install 'arco-catalog[{extra}]'", file=sys.stderr)
        return 1
    except BrokenPipeError:  # whoever read our output has enough of it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter fails to flush at its end
        return 0
    except KeyboardInterrupt:
        return INTERRUPTED


def _run(parsed: argparse.Namespace, arguments: Sequence[str]) -> int:
    where = parsed.store, parsed.warehouse
    match parsed.command:
        case "serve":
            if parsed.workers > 1:
                from arco_catalog.cli.workers import run as supervise

                return supervise(parsed, arguments)
            from arco_catalog.cli import serve

            return serve.run(serve.ServeOptions.of(parsed))
        case "receipts":
            from arco_catalog.cli import receipts

            return receipts.run(*where, parsed.table, as_json=parsed.json)
        case "history":
            from arco_catalog.cli import history

            return history.run(*where, parsed.limit, own=parsed.all, as_json=parsed.json)
        case "show":
            from arco_catalog.cli import show

            return show.run(*where, parsed.table, as_json=parsed.json)
        case "undrop":
            from arco_catalog.cli import undrop

            return undrop.run(*where, parsed.table, force=parsed.force, as_json=parsed.json)
        case "reconcile":
            from arco_catalog.cli import reconcile

            return reconcile.run(*where, parsed.seconds, dry=parsed.dry_run, as_json=parsed.json)
    raise AssertionError(parsed.command)


def build_parser(environment: Mapping[str, str]) -> argparse.ArgumentParser:
    """The grammar, its defaults taken from the environment."""
    parser = argparse.ArgumentParser("arco", description=ABOUT, epilog=MORE)
    parser.add_argument("--version", action="version", version=f"arco {version('arco-catalog')}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command")

    def command(name: str, does: str, epilog: str) -> argparse.ArgumentParser:
        made = commands.add_parser(
            name,
            help=does,
            description=f"{does[0].upper()}{does[1:]}.",
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        made.set_defaults(parser=made)
        return made

    serve = command("serve", "serve a catalog over a store", SERVE_EXAMPLES)
    for option in SERVE:
        option.add_to(serve, environment)
    serve.add_argument("--listener", type=int, help=argparse.SUPPRESS)  # between the processes of one server
    receipts = command("receipts", "list the commits of a table, newest first", RECEIPTS_EXAMPLES)
    history = command("history", "list who made, renamed and dropped what", HISTORY_EXAMPLES)
    show = command("show", "show what the records say of a table", SHOW_EXAMPLES)
    undrop = command("undrop", "bring back a table or view that was dropped", UNDROP_EXAMPLES)
    undrop.add_argument(
        "--force",
        action="store_true",
        help="bring it back although manifest lists are gone or can't be looked at; never without its metadata file",
    )
    reconcile = command("reconcile", "see to it that every commit has its receipt", RECONCILE_EXAMPLES)
    receipts.add_argument("table", metavar="NAMESPACE.TABLE", help="the table or view, or the id of its entity")
    for each in (show, undrop):
        each.add_argument("table", metavar="NAMESPACE.TABLE", help="the table")
    for each in (receipts, history, show, undrop, reconcile):
        for option in (STORE, WAREHOUSE):
            option.add_to(each, environment)
    history.add_argument(
        "--limit", type=positive, default=50, metavar="N", help="show this many operations [default 50]"
    )
    history.add_argument("--all", action="store_true", help="show fences and the registry's own commits too")
    reconcile.add_argument("--dry-run", action="store_true", help="say what is missing and why, and write nothing")
    reconcile.add_argument(
        "--seconds", type=positive, metavar="N", help="stop after this long; the next run goes on from there"
    )
    for each, whole in (
        (receipts, "whole receipts, as a JSON array"),
        (history, "whole operations, as a JSON array"),
        (show, "everything, as a JSON object"),
        (undrop, "what was restored, as a JSON object"),
        (reconcile, "counts, and up to 100 missing receipts and 100 failures, as JSON"),
    ):
        each.add_argument("--json", action="store_true", help=f"print {whole}")
    return parser
