"""How a job reaches the catalog's server: its command line, and the connection that this names."""

import argparse
from collections.abc import Mapping
from pathlib import Path

from arco_catalog.state.runtime import Runtime
from reconciler.system.opened import SystemTables

ALL_ROLES = "PRINCIPAL_ROLE:ALL"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares where the catalog answers, and who asks."""
    parser.add_argument("--uri", required=True, help="where the catalog answers: http://127.0.0.1:8181")
    parser.add_argument("--catalog", help="the name by which clients ask for it [default that of --warehouse]")
    parser.add_argument("--trino-catalog", help="what Trino calls it, for views [default the same name]")
    parser.add_argument("--trino-owner", help="Trino's user as whom views run that hide rows [default who asks]")
    parser.add_argument("--credential-file", type=Path, help="file with CLIENT_ID:CLIENT_SECRET of the pipeline")
    parser.add_argument(
        "--property",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of PyIceberg's for the catalog or its files; several times",
    )


def system_tables(parsed: argparse.Namespace, runtime: Runtime) -> SystemTables:
    """The tables of `system` in the catalog that the options name."""
    properties = {**settings(parsed.property, "--property"), **credential(parsed)}
    named = parsed.catalog or parsed.warehouse
    return SystemTables.connect(parsed.uri, named, properties, runtime, parsed.trino_catalog, parsed.trino_owner)


def credential(parsed: argparse.Namespace) -> Mapping[str, str]:
    """What the pipeline's principal logs in with; nothing, if no file is named."""
    if parsed.credential_file is None:
        return {}
    return {"credential": parsed.credential_file.read_text().strip(), "scope": ALL_ROLES}


def settings(said: list[str], option: str) -> Mapping[str, str]:
    """Settings that are written as NAME=VALUE."""
    found: dict[str, str] = {}
    for each in said:
        name, equals, value = each.partition("=")
        if not equals:
            raise SystemExit(f"reconciler: {option} takes NAME=VALUE, not {each!r}")
        found[name] = value
    return found
