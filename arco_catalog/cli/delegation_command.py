"""Declares the options of `arco delegation-service`, and starts the service with them."""

import argparse
from collections.abc import Mapping

from arco_catalog.cli.command import Command
from arco_catalog.cli.options import MultiOption, Option, option_of
from arco_catalog.config import variables

_OWN_FLAGS = {
    variables.DELEGATION_PORT: Option("--port", variables.DELEGATION_PORT),
    variables.DELEGATION_ALLOWED_LOCATIONS: MultiOption(
        "--delegation-location", variables.DELEGATION_ALLOWED_LOCATIONS
    ),
    variables.DELEGATION_ALLOWED_ENDPOINTS: MultiOption(
        "--delegation-endpoint", variables.DELEGATION_ALLOWED_ENDPOINTS
    ),
}
"""Flags of this command that are shorter than the names of their variables."""
OPTIONS = tuple(_OWN_FLAGS.get(variable) or option_of(variable) for variable in variables.DELEGATION_SERVICE)

EXAMPLES = """\
Purges tables for catalogs that send it tasks over HTTP: those of this store,
and others, whose tasks name the metadata file and credentials. Deletes files
only in the locations that are allowed here, which are none by default.

examples:
  arco delegation-service --store s3://bucket/catalog --auth internal \\
      --delegation-location s3://lake/tables
  arco delegation-service --store file:/var/lib/arco --tls-cert crt \\
      --tls-key key --tls-client-ca ca --delegation-location file:/data
"""


def add_arguments(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    """Declares the options of `arco delegation-service`."""
    for option in OPTIONS:
        option.add_to(parser, environment)


def run(parsed: argparse.Namespace) -> int:
    """Runs the delegation service until a signal stops it, and returns the exit code."""
    from arco_catalog.cli import delegation_service

    return delegation_service.run(delegation_service.DelegationOptions.of(parsed))


COMMAND = Command("delegation-service", "purge tables for other catalogs", EXAMPLES, add_arguments, run)
