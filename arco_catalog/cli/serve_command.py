"""`arco serve` on the command line: its options, each an environment variable too."""

import argparse
from collections.abc import Mapping

from arco_catalog.cli.command import ALLOWED, STORE, WAREHOUSE, Command
from arco_catalog.cli.options import (
    MultiOption,
    Option,
    Switch,
    dialect,
    log_format,
    log_level,
    port,
    positive,
    size,
    workers,
)
from arco_catalog.operations.variables import (
    ALLOW_LOCATION_OVERLAP,
    CACHE_MEMORY,
    MAX_BODY,
    MAX_METADATA,
    REQUEST_MEMORY,
)

SERVE = (
    STORE,
    Option("--host", "ARCO_HOST", "address to listen on", "127.0.0.1", metavar="H"),
    Option("--port", "ARCO_PORT", "port to listen on; 0 takes a free one", "8181", port, "P"),
    WAREHOUSE,
    ALLOWED,
    MultiOption(
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

EXAMPLES = """\
An S3 store takes region, keys and endpoint from the usual AWS_* variables.
Several servers may serve one store, and each sees every change at once.
Traces go where the usual OTEL_* variables say, if they say so.
Ctrl-C ends a server when the requests under way are answered.

examples:
  arco serve --store file:/var/lib/arco
  arco serve --store s3://bucket/catalog --allowed-location s3://raw/a s3://b
  ARCO_STORE=memory: arco serve --port 0
"""


def add_arguments(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    """Declares the options, and one that the processes of one server use among themselves."""
    for option in SERVE:
        option.add_to(parser, environment)
    parser.add_argument("--listener", type=int, help=argparse.SUPPRESS)


def run(parsed: argparse.Namespace) -> int:
    """Serves, with as many workers as were asked for."""
    if parsed.workers > 1:
        from arco_catalog.cli.workers import run as supervise

        return supervise(parsed, parsed.arguments)
    from arco_catalog.cli import serve

    return serve.run(serve.ServeOptions.of(parsed))


COMMAND = Command("serve", "serve a catalog over a store", EXAMPLES, add_arguments, run)
