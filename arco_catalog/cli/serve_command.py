"""`arco serve` on the command line: its options, each an environment variable too."""

import argparse
from collections.abc import Mapping

from arco_catalog.cli.capacity import usual_workers
from arco_catalog.cli.command import ALLOWED, STORE, WAREHOUSE, Command
from arco_catalog.cli.options import MultiOption, Option, Switch
from arco_catalog.config import variables
from arco_catalog.config.parsing import MAX_WORKERS

SERVE = (
    STORE,
    Option("--host", variables.HOST),
    Option("--port", variables.PORT),
    WAREHOUSE,
    ALLOWED,
    MultiOption("--allowed-host", variables.ALLOWED_HOSTS),
    MultiOption("--allowed-origin", variables.ALLOWED_ORIGINS),
    Switch("--allow-location-overlap", variables.ALLOW_LOCATION_OVERLAP),
    Switch("--allow-table-location-overlap", variables.ALLOW_TABLE_LOCATION_OVERLAP),
    Switch("--allow-catalog-location-overlap", variables.ALLOW_CATALOG_LOCATION_OVERLAP),
    Option("--idempotency-dialect", variables.IDEMPOTENCY_DIALECT),
    Option("--idempotency-enabled", variables.IDEMPOTENCY_ENABLED),
    Option("--idempotency-lifetime", variables.IDEMPOTENCY_LIFETIME),
    Option("--metrics", variables.METRICS),
    Switch("--gzip", variables.GZIP),
    Option("--log-format", variables.LOG_FORMAT),
    Option("--metrics-namespace", variables.METRICS_NAMESPACE),
    Option("--log-level", variables.LOG_LEVEL),
    Option("--workers", variables.WORKERS),
    Option("--max-connections", variables.MAX_CONNECTIONS),
    Option("--request-memory", variables.REQUEST_MEMORY),
    Option("--cache-memory", variables.CACHE_MEMORY),
    Option("--max-body", variables.MAX_BODY),
    Option("--max-metadata", variables.MAX_METADATA),
    Option("--purge-mode", variables.PURGE_MODE),
    Option("--purge-undrop-window", variables.PURGE_UNDROP_WINDOW),
    Switch("--purge-trust-locations", variables.PURGE_TRUST_LOCATIONS),
    Switch("--purge-whole-location", variables.PURGE_WHOLE_LOCATION),
    Option("--tasks", variables.TASKS),
    MultiOption("--task-property", variables.TASK_PROPERTIES),
    Switch("--quiet", variables.QUIET),
    MultiOption("--realm", variables.REALM),
    MultiOption("--auth", variables.AUTH),
    Option("--token-key-file", variables.TOKEN_KEY_FILE),
    Option("--vending-lifetime", variables.VENDING_LIFETIME),
    Option("--vending-keys-file", variables.VENDING_KEYS_FILE),
    Option("--base-path", variables.BASE_PATH),
    Option("--namespace-separator", variables.NAMESPACE_SEPARATOR),
    Option("--tls-cert", variables.TLS_CERT),
    Option("--tls-key", variables.TLS_KEY),
    Option("--tls-client-ca", variables.TLS_CLIENT_CA),
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
    """Serves, with `--workers` processes."""
    if parsed.listener is not None:
        from arco_catalog.cli.parent import end_with_parent

        end_with_parent()  # before the imports of a server, which take most of its start
    if parsed.workers is None:
        parsed.workers = usual_workers(parsed.store, parsed.request_memory + parsed.cache_memory, MAX_WORKERS)
    if parsed.workers > 1:
        from arco_catalog.cli.workers import run as supervise

        return supervise(parsed, parsed.arguments)
    from arco_catalog.cli import serve

    return serve.run(serve.ServeOptions.of(parsed))


COMMAND = Command("serve", "serve a catalog over a store", EXAMPLES, add_arguments, run)
