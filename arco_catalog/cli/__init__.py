"""The `arco` command."""

from arco_catalog.cli.program import main

__all__ = ["main"]
