"""`arco delegation-service` on the command line."""

import argparse
from collections.abc import Mapping

from arco_catalog.cli.command import ALLOWED, STORE, WAREHOUSE, Command
from arco_catalog.cli.options import MultiOption, Option
from arco_catalog.config import variables

OPTIONS = (
    STORE,
    Option("--host", variables.HOST),
    Option("--port", variables.DELEGATION_PORT),
    WAREHOUSE,
    ALLOWED,
    MultiOption("--delegation-location", variables.DELEGATION_ALLOWED_LOCATIONS),
    MultiOption("--delegation-endpoint", variables.DELEGATION_ALLOWED_ENDPOINTS),
    MultiOption("--delegation-realm", variables.DELEGATION_REALMS),
    MultiOption("--allowed-host", variables.ALLOWED_HOSTS),
    Option("--idempotency-dialect", variables.IDEMPOTENCY_DIALECT),
    Option("--log-format", variables.LOG_FORMAT),
    Option("--metrics-namespace", variables.METRICS_NAMESPACE),
    Option("--log-level", variables.LOG_LEVEL),
    Option("--max-connections", variables.MAX_CONNECTIONS),
    Option("--request-memory", variables.REQUEST_MEMORY),
    Option("--cache-memory", variables.CACHE_MEMORY),
    Option("--max-body", variables.MAX_BODY),
    Option("--max-metadata", variables.MAX_METADATA),
    MultiOption("--task-property", variables.TASK_PROPERTIES),
    MultiOption("--realm", variables.REALM),
    MultiOption("--auth", variables.AUTH),
    Option("--token-key-file", variables.TOKEN_KEY_FILE),
    Option("--base-path", variables.BASE_PATH),
    Option("--tls-cert", variables.TLS_CERT),
    Option("--tls-key", variables.TLS_KEY),
    Option("--tls-client-ca", variables.TLS_CLIENT_CA),
)

EXAMPLES = """\
Purges tables for catalogs that ask it to over HTTP: those of this store, and
others, of which it is told the metadata file and credentials. Deletes nothing
outside of the locations that are allowed here, which are none by default.

examples:
  arco delegation-service --store s3://bucket/catalog --auth internal \\
      --delegation-location s3://lake/tables
  arco delegation-service --store file:/var/lib/arco --tls-cert crt \\
      --tls-key key --tls-client-ca ca --delegation-location file:/data
"""


def add_arguments(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    """Declares the options."""
    for option in OPTIONS:
        option.add_to(parser, environment)


def run(parsed: argparse.Namespace) -> int:
    """Serves until a signal says stop."""
    from arco_catalog.cli import delegation_service

    return delegation_service.run(delegation_service.DelegationOptions.of(parsed))


COMMAND = Command("delegation-service", "purge tables for catalogs that ask for it", EXAMPLES, add_arguments, run)
