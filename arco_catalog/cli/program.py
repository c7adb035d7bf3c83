"""The command line: what can be said, and who does it. Flags win over environment variables.

A command's code is imported when it runs, so that help is quick.
"""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version

from arco_catalog.cli.failure import Failure
from arco_catalog.cli.options import Gathered, Option, Switch, dialect, log_level, port, warehouse

INTERRUPTED = 130
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
        "ARCO_ALLOWED_LOCATIONS",
        "where tables may lie besides the catalog's own folder: several at once or several times; in the variable, "
        "commas between them",
        metavar="PREFIX",
    ),
    Switch("--allow-location-overlap", "ARCO_ALLOW_LOCATION_OVERLAP", "let tables lie in each other's locations"),
    Option(
        "--idempotency-dialect",
        "ARCO_IDEMPOTENCY_DIALECT",
        "whose Idempotency-Key to speak: iceberg (a UUIDv7) or polaris (any text)",
        "iceberg",
        dialect,
        "DIALECT",
    ),
    Option(
        "--log-level",
        "ARCO_LOG_LEVEL",
        "debug (with a line for each request), info, warning or error",
        "warning",
        log_level,
        "LEVEL",
    ),
    Switch("--quiet", "ARCO_QUIET", "print no settings to paste"),
)

ABOUT = "A serverless Apache Iceberg REST catalog whose only state is an object store."
MORE = "`arco COMMAND --help` says more of each."
SERVE_EXAMPLES = """\
An S3 store takes region, keys and endpoint from the usual AWS_* variables.
Several servers may serve one store, and each sees every change at once.
Ctrl-C ends a server when the requests under way are answered.

examples:
  arco serve --store file:/var/lib/arco
  arco serve --store s3://bucket/catalog --allowed-location s3://raw/a s3://b
  ARCO_STORE=memory: arco serve --port 0
"""
RECEIPTS_EXAMPLES = """\
Dots part the levels of a name; a level that holds a dot is put in quotes.

examples:
  arco receipts sales.orders --store file:/var/lib/arco
  arco receipts '"sales.2026".orders' --store s3://bucket/catalog --json
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
        if parsed.command == "serve":
            from arco_catalog.cli import serve

            return serve.run(serve.ServeOptions.of(parsed))
        from arco_catalog.cli import receipts

        return receipts.run(parsed.store, parsed.warehouse, parsed.table, as_json=parsed.json)
    except Failure as failure:
        print(f"arco: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED


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
    receipts = command("receipts", "list the commits of a table, newest first", RECEIPTS_EXAMPLES)
    receipts.add_argument("table", metavar="NAMESPACE.TABLE", help="the table")
    for option in (STORE, WAREHOUSE):
        option.add_to(receipts, environment)
    receipts.add_argument("--json", action="store_true", help="print whole receipts, as a JSON array")
    return parser
