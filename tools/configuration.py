"""Writes docs/configuration.md, the reference of all variables and options, from their table and the parser:
`python -m tools.configuration`. With `--check`, it only compares."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from textwrap import fill

from arco_catalog.cli.options import MultiOption, Option, Switch
from arco_catalog.cli.program import SERVE, build_parser
from arco_catalog.config.variable import Variable
from arco_catalog.config.variables import (
    AUTHENTICATION,
    DELEGATION,
    DELIVERY,
    FUNCTIONS,
    POLICY,
    SERVER,
    STORE_SETTINGS,
    VENDING,
)
from tools.support.environment import PROJECT
from tools.support.generated_files import write_or_check

PAGE = PROJECT / "docs" / "configuration.md"
HEAD = """\
# Configuration

<!-- Made by `python -m tools.configuration`: do not edit. -->

Every option of `arco serve` can also be set by a variable; if both are set, the option counts. A size is a number with
KB, MB or GB behind it, or without a unit one of bytes. The variable of a switch is `true` or `false`. Commas separate
several values in one variable. For S3 stores the region, keys and endpoint come from the usual `AWS_*` variables, for
Azure stores the account, credentials and endpoint from the usual `AZURE_*` variables (see [Stores](stores.md)), for GCS
stores the credentials from the usual `GOOGLE_*` variables and an emulator's endpoint from `STORAGE_EMULATOR_HOST` (see
[Operating](operating.md)). The usual `OTEL_*` variables set where traces go.

## arco serve

| option | variable | default | meaning |
| --- | --- | --- | --- |
"""

FUNCTIONS_HEAD = """\
A function on Lambda has no options. It reads {shared} as `arco serve` does, with three exceptions: `ARCO_WAREHOUSE`
must be set; `ARCO_AUDIT_LOG` can only be `-`; and without `ARCO_METRICS_NAMESPACE` its metrics are in CloudWatch's
namespace `ArcoCatalog` (if the variable is set and empty, there are none). A function also reads these variables:"""
STORES_HEAD = """
## Stores

Every process that opens a store reads these variables. For a store on S3 such a process also reads the
usual `AWS_*` variables, and `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`. With
`AWS_REQUEST_CHECKSUM_CALCULATION=when_required` the process sends no checksum with the objects that it writes to S3.

| variable | default | meaning |
| --- | --- | --- |
"""
AUTHENTICATION_HEAD = """
## Authentication

The server and the functions read these variables to authenticate callers. At most one of the variables with keys that
sign tokens may be set.

| variable | default | meaning |
| --- | --- | --- |
"""
VENDING_HEAD = """
## Credentials for engines

The server and the functions read these variables to give engines access to files
([credentials for engines](locations.md#credentials-for-engines)).

| variable | default | meaning |
| --- | --- | --- |
"""
POLICY_HEAD = """
## Open Policy Agent

The server and the functions read these variables for a policy in [Open Policy Agent](opa.md).

| variable | default | meaning |
| --- | --- | --- |
"""
DELEGATION_HEAD = """
## Delegation

Every process that works on tasks reads the first six of these variables, and `arco delegation-service` the last four
([Delegation](delegation.md)).

| variable | default | meaning |
| --- | --- | --- |
"""
DELIVERY_HEAD = """
## Delivery of events

The server, `arco tasks run` and `arco events resend` read this variable to send [events](events.md#kafka) to Kafka.

| variable | default | meaning |
| --- | --- | --- |
"""
WIDTH = 120


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes or checks the page."""
    return write_or_check({PAGE: page()}, "tools.configuration", arguments)


def page() -> str:
    """The whole page, as Markdown."""
    functions = "\n## Functions\n\n" + "".join(_functions())
    return (
        HEAD
        + "".join(map(_row, SERVE))
        + functions
        + "".join(_authentication())
        + "".join(_policy())
        + "".join(_vending())
        + "".join(_delegation())
        + "".join(_delivery())
        + "".join(_stores())
        + "".join(_commands())
    )


def _row(option: Option) -> str:
    variable = option.variable
    many = "..." if isinstance(option, MultiOption) else ""
    flag = option.flag if isinstance(option, Switch) else f"{option.flag} {variable.metavar or ''}{many}".rstrip()
    return f"| `{flag}` | `{variable.name}` | {_default(variable)} | {_cell(variable.help)} |\n"


def _functions() -> Iterator[str]:
    """The variables of the functions: those that the server has too by name, the others in a table."""
    shared = [variable.name for variable in FUNCTIONS if variable in SERVER]
    yield fill(FUNCTIONS_HEAD.format(shared=", ".join(f"`{name}`" for name in shared)), WIDTH, break_on_hyphens=False)
    yield "\n\n| variable | default | meaning |\n| --- | --- | --- |\n"
    for variable in FUNCTIONS:
        if variable not in SERVER:
            yield _variable_row(variable)


def _authentication() -> Iterator[str]:
    """The variables that configure authentication."""
    yield AUTHENTICATION_HEAD
    yield from map(_variable_row, AUTHENTICATION)


def _policy() -> Iterator[str]:
    """The variables that configure the policy."""
    yield POLICY_HEAD
    yield from map(_variable_row, POLICY)


def _vending() -> Iterator[str]:
    """The variables that configure how engines get access to files."""
    yield VENDING_HEAD
    yield from map(_variable_row, VENDING)


def _delegation() -> Iterator[str]:
    """The variables that configure the delegation of purges."""
    yield DELEGATION_HEAD
    yield from map(_variable_row, DELEGATION)


def _delivery() -> Iterator[str]:
    """The variables that configure where events are sent."""
    yield DELIVERY_HEAD
    yield from map(_variable_row, DELIVERY)


def _stores() -> Iterator[str]:
    """The variables that every program reads when it opens a store."""
    yield STORES_HEAD
    yield from map(_variable_row, STORE_SETTINGS)


def _variable_row(variable: Variable[object]) -> str:
    return f"| `{variable.name}` | {_default(variable)} | {_cell(variable.help)} |\n"


def _default(variable: Variable[object]) -> str:
    return f"`{variable.default}`" if variable.default else ""


def _commands() -> Iterator[str]:
    """A section for each other command, with what its help lists."""
    for name, (summary, command) in build_parser({}).commands.items():
        if name == "serve":
            continue
        yield f"\n## arco {name}\n\n{_sentence(summary)}\n\n| argument | meaning |\n| --- | --- |\n"
        for action in command.declared:
            if action.dest != "help" and action.help != argparse.SUPPRESS:
                yield f"| `{_spelled(action)}` | {_cell(_expanded(action))} |\n"


def _spelled(action: argparse.Action) -> str:
    names = ", ".join(action.option_strings)
    value = "" if action.nargs == 0 else str(action.metavar or action.dest.upper())
    return f"{names} {value}".strip()


def _expanded(action: argparse.Action) -> str:
    return (action.help or "").replace("%%", "%")


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*")


if __name__ == "__main__":
    sys.exit(main())
