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
from arco_catalog.config.variables import (
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
        "host name that requests may be sent to, besides IP addresses and localhost; other names are refused on "
        "loopback, and everywhere once one is allowed; * allows any",
        metavar="NAME",
    ),
    Switch("--allow-location-overlap", ALLOW_LOCATION_OVERLAP, "allow a table's location to be inside another's"),
    Option(
        "--idempotency-dialect",
        "ARCO_IDEMPOTENCY_DIALECT",
        "rules for Idempotency-Key: iceberg (a UUIDv7) or polaris (any text)",
        "iceberg",
        dialect,
        "DIALECT",
    ),
    Switch("--gzip", "ARCO_GZIP", "compress large answers for clients that accept it"),
    Option(
        "--log-format",
        "ARCO_LOG_FORMAT",
        "text, or json (one object per line, and a line for each request at any level)",
        "text",
        log_format,
        "FORMAT",
    ),
    Option(
        "--metrics-namespace",
        "ARCO_METRICS_NAMESPACE",
        "add CloudWatch embedded metrics of this namespace to the JSON lines",
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
        "number of processes; use more than one where there are spare cores",
        "1",
        workers,
        "N",
    ),
    Option(
        "--max-connections",
        "ARCO_MAX_CONNECTIONS",
        "maximum connections per process; lowered to fit the limit of open files",
        "512",
        positive,
        "N",
    ),
    Option(
        "--request-memory",
        REQUEST_MEMORY,
        "memory for all concurrent requests; others wait for up to 5 s, then get 503",
        "256MB",
        size,
        "SIZE",
    ),
    Option("--cache-memory", CACHE_MEMORY, "memory for all caches of a process", "100MB", size, "SIZE"),
    Option("--max-body", MAX_BODY, "maximum size of a request body", "8MB", size, "SIZE"),
    Option("--max-metadata", MAX_METADATA, "maximum size of a metadata file, uncompressed", "64MB", size, "SIZE"),
    Switch("--quiet", "ARCO_QUIET", "do not print client configuration at start"),
)

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
