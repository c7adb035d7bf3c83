"""The `arco` command: the command line, its subcommands, and the servers that it runs."""

from arco_catalog.cli.program import main

__all__ = ["main"]
