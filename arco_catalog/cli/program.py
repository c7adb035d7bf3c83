"""The program `arco`: builds the parser of all commands, and runs the one that the arguments name. Flags override
environment variables."""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence

from arco_catalog.cli import (
    catalog_commands,
    completion_command,
    delegation_command,
    diff_command,
    events_command,
    expire_command,
    export_command,
    governance_command,
    grant_commands,
    import_command,
    lineage_command,
    login_command,
    operator_commands,
    pipeline_command,
    plan_command,
    principal_commands,
    prove_command,
    realm_commands,
    recovery_commands,
    role_commands,
    serve_command,
    table_commands,
    upgrade_command,
)
from arco_catalog.cli.errors import CliError
from arco_catalog.cli.parser import Parser, parse
from arco_catalog.cli.serve_command import SERVE
from arco_catalog.config.unknown import unknown_variables
from arco_catalog.config.variables import STORE, STORES
from arco_catalog.state.characters import escaped

__all__ = ["SERVE", "build_parser", "main"]

INTERRUPTED = 130
EXTRAS = {
    "uvicorn": "serve",
    "uvloop": "serve",
    "httptools": "serve",
    "prometheus_client": "metrics",
    "pyiceberg": "import",
    "aiohttp": "prove",
}
"""The extra that installs a module."""
COMMANDS = (
    serve_command.COMMAND,
    *table_commands.COMMANDS,
    import_command.COMMAND,
    export_command.COMMAND,
    diff_command.COMMAND,
    plan_command.COMMAND,
    expire_command.COMMAND,
    events_command.COMMAND,
    lineage_command.COMMAND,
    *operator_commands.COMMANDS,
    *recovery_commands.COMMANDS,
    upgrade_command.COMMAND,
    prove_command.COMMAND,
    pipeline_command.COMMAND,
    catalog_commands.COMMAND,
    realm_commands.COMMAND,
    principal_commands.COMMAND,
    role_commands.COMMAND,
    grant_commands.COMMAND,
    login_command.COMMAND,
    governance_command.COMMAND,
    delegation_command.COMMAND,
    completion_command.COMMAND,
)

ABOUT = "A serverless Apache Iceberg REST catalog whose only state is an object store."
MORE = "`arco COMMAND --help` describes a command."


def main(arguments: Sequence[str] | None = None, environment: Mapping[str, str] | None = None) -> int:
    """Runs one command with these arguments and environment, by default those of the process. Returns the exit code:
    that of the command, or, for a failure, which is reported in one line, 1 unless the error has another; 130 after
    Ctrl-C; 0 if the command ends early because the reader of stdout has closed it. Raises `SystemExit` with 2 for wrong
    usage, and with 0 for --help and --version."""
    code = 0
    try:
        try:
            code = _run(
                sys.argv[1:] if arguments is None else arguments, os.environ if environment is None else environment
            )
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # the reader of stdout has closed it, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else the interpreter's last flush would fail
    return code


def _run(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Reads the arguments, warns of unknown variables on stderr, and runs the command that the arguments name; without
    a command prints the help. Returns the exit code; writes a `CliError`, and the lack of a module that an extra
    installs, to stderr. Raises `SystemExit` for arguments that are no valid command, and for --help and
    --version."""
    parser = build_parser(environment)
    parsed = parse(parser, arguments)
    if parsed.command is None:
        parser.print_help()
        return 0
    command = next(each for each in COMMANDS if each.name == parsed.command)
    if command.needs_store and parsed.store is None and getattr(parsed, "url", None) is None:
        or_url = ", or --url," if hasattr(parsed, "url") else ""
        parsed.parser.error(f"--store or {STORE.name}{or_url} is required: {STORES}")
    parsed.arguments, parsed.build_parser = arguments, build_parser
    if getattr(parsed, "listener", None) is None:  # a worker's supervisor has printed them
        for line in unknown_variables(environment):
            print(f"arco: {escaped(line)}", file=sys.stderr)
    try:
        return command.run(parsed)
    except CliError as failure:
        print(f"arco: {escaped(str(failure))}", file=sys.stderr)
        return failure.code
    except ModuleNotFoundError as error:
        extra = EXTRAS.get(error.name or "")
        if extra is None:
            raise
        print(f"arco: {error.name} is not installed: install the extra '{extra}' of arco-catalog", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED


class _PrintVersion(argparse.Action):
    """The action of --version, which displays the version and exits. The version is read only then, since importing the
    reader of package metadata takes as long as the rest of the program."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(f"arco {version('arco-catalog')}")
        parser.exit()


def build_parser(environment: Mapping[str, str]) -> Parser:
    """Builds the parser of all commands, with the defaults of options from the environment."""
    parser = Parser("arco", description=ABOUT, epilog=MORE)
    parser.add_argument("--version", action=_PrintVersion, nargs=0, help="show program's version number and exit")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command")
    for command in COMMANDS:
        made = commands.add_parser(
            command.name,
            help=command.summary,
            description=f"{command.summary[0].upper()}{command.summary[1:]}.",
            epilog=command.examples,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        made.set_defaults(parser=made, environment=environment)
        command.add_arguments(made, environment)
        parser.commands[command.name] = command.summary, made
    return parser
