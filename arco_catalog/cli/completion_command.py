"""Declares the arguments of `arco completion`, and prints the completion script of a shell. The script is made from the
parser of the command line, so it has all commands, and the options that are not hidden."""

import argparse
from collections.abc import Mapping

from arco_catalog.cli.command import Command

SHELLS = ("bash", "zsh", "fish")
EXAMPLES = """\
Prints a script that lets a shell complete commands, options and their choices.

examples:
  source <(arco completion bash)      # in ~/.bashrc
  source <(arco completion zsh)       # in ~/.zshrc, below compinit
  arco completion fish | source       # in ~/.config/fish/config.fish
"""


def add_arguments(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    """Declares the argument for the shell."""
    parser.add_argument("shell", choices=SHELLS, help="which shell's script")


def run(parsed: argparse.Namespace) -> int:
    """Prints the completion script of a shell for all commands of the parser that `build_parser` makes. Returns 0."""
    from arco_catalog.cli.completion import script

    print(script(parsed.shell, parsed.build_parser({})), end="")
    return 0


COMMAND = Command(
    "completion", "print a script that completes commands", EXAMPLES, add_arguments, run, needs_store=False
)
