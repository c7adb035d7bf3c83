"""Connects a job of the pipeline to the catalog's server: the options of the command line, and the connection that they
describe."""

import argparse
from collections.abc import Mapping
from pathlib import Path

from arco_catalog.state.runtime import Runtime
from reconciler.system.opened import SystemTables

ALL_ROLES = "PRINCIPAL_ROLE:ALL"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options for the catalog's server, the catalog's names and the pipeline's credentials to a parser."""
    parser.add_argument("--uri", required=True, help="the catalog's server, such as http://127.0.0.1:8181")
    parser.add_argument("--catalog", help="the catalog's name for clients [default that of --warehouse]")
    parser.add_argument("--trino-catalog", help="the catalog's name in Trino, for views [default the same name]")
    parser.add_argument(
        "--trino-owner", help="the Trino user as which views that hide rows run [default the user who queries them]"
    )
    login = parser.add_mutually_exclusive_group()
    login.add_argument("--credential-file", type=Path, help="file with CLIENT_ID:CLIENT_SECRET of the pipeline")
    login.add_argument("--token-file", type=Path, help="file with a token of the pipeline, which the job can't renew")
    parser.add_argument(
        "--property",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a property of PyIceberg for the catalog or the files; may be repeated",
    )


def system_tables(parsed: argparse.Namespace, runtime: Runtime) -> SystemTables:
    """Connects to the catalog's server `--uri`, to reach the tables of `system` there. Raises `SystemExit` for a bad
    `--property`, `OSError` if the file of the credential or token can't be read, and PyIceberg's errors of REST."""
    properties = {**settings(parsed.property, "--property"), **credential(parsed)}
    catalog = parsed.catalog or parsed.warehouse
    return SystemTables.connect(parsed.uri, catalog, properties, runtime, parsed.trino_catalog, parsed.trino_owner)


def credential(parsed: argparse.Namespace) -> Mapping[str, str]:
    """Returns the properties of Iceberg's clients by which the pipeline's principal logs in, with the content of
    `--credential-file` or `--token-file`; empty without these options. Raises `OSError` if the file can't be read."""
    if parsed.token_file is not None:
        return {"token": parsed.token_file.read_text().strip(), "token-refresh-enabled": "false"}
    if parsed.credential_file is None:
        return {}
    return {"credential": parsed.credential_file.read_text().strip(), "scope": ALL_ROLES}


def settings(values: list[str], option: str) -> Mapping[str, str]:
    """Reads the values of an option that takes NAME=VALUE, and returns them by name; of values of one name the last
    counts. Raises `SystemExit` with a message for another value."""
    found: dict[str, str] = {}
    for each in values:
        name, equals, value = each.partition("=")
        if not equals:
            raise SystemExit(f"reconciler: the option {option} takes NAME=VALUE, and {each!r} has no equals sign")
        found[name] = value
    return found
