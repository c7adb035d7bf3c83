"""Declares the options of `arco serve`, one for each variable of the server, and starts the server in one process or in
many."""

import argparse
from collections.abc import Mapping

from arco_catalog.cli.capacity import usual_workers
from arco_catalog.cli.command import Command
from arco_catalog.cli.options import option_of
from arco_catalog.config import variables
from arco_catalog.config.parsing import MAX_WORKERS

SERVE = tuple(option_of(variable) for variable in variables.SERVER)

EXAMPLES = """\
An S3 store takes region, keys and endpoint from the usual AWS_* variables.
Several servers may serve one store; each sees every change at once.
Traces are sent if the usual OTEL_* variables are set.
Ctrl-C stops the server after it has answered the requests under way.

examples:
  arco serve --store file:/var/lib/arco
  arco serve --store s3://bucket/catalog --allowed-location s3://raw/a s3://b
  ARCO_STORE=memory: arco serve --port 0
"""


def add_arguments(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    """Declares the options of `arco serve`, and those by which a supervisor gives a worker its socket, `--listener`,
    and its own standard output for audit lines, `--audit-descriptor`, and leaves the event feed to another worker,
    `--no-feed`."""
    for option in SERVE:
        option.add_to(parser, environment)
    parser.add_argument("--listener", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--audit-descriptor", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--no-feed", dest="fills_feed", action="store_false", help=argparse.SUPPRESS)


def run(parsed: argparse.Namespace) -> int:
    """Serves catalogs until a signal stops it, or too many workers have died: with `--workers` processes, by default as
    many as `usual_workers` returns, under a supervisor; in this process alone if that is one. `--listener` makes it the
    worker of a supervisor. Returns the exit code."""
    if parsed.listener is not None:
        from arco_catalog.cli.parent import end_with_parent

        end_with_parent()  # before the imports of a server, which take most of its start
    if parsed.workers is None:
        parsed.workers = usual_workers(parsed.store, parsed.request_memory + parsed.cache_memory, MAX_WORKERS)
    if parsed.workers > 1:
        from arco_catalog.cli.workers import run as supervise

        return supervise(parsed, parsed.arguments)
    from arco_catalog.cli import serve
    from arco_catalog.cli.serve_options import ServeOptions

    return serve.run(ServeOptions.of(parsed))


COMMAND = Command("serve", "serve a catalog over a store", EXAMPLES, add_arguments, run)
