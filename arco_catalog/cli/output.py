"""Tables and facts as commands print them: with colours where people look at a terminal and rich is installed, else as
plain text. What a terminal would act on is escaped."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from arco_catalog.cli.columns import columns
from arco_catalog.state.characters import escaped

if TYPE_CHECKING:
    from rich.console import Console

STYLES = {
    "ok": "green",
    "registered": "green",
    "would register": "cyan",
    "namespace": "blue",
    "warning": "yellow",
    "skipped": "dim",
    "already registered": "dim",
    "failed": "bold red",
}
"""Colours of cells that say what something is, or how it is."""


def table(headings: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Lines under headings."""
    cells = [[escaped(cell) for cell in line] for line in lines]
    console = _terminal()
    if console is None:
        return columns(headings, cells)
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for heading in headings:
        drawn.add_column(heading, overflow="fold")
    for line in cells:
        drawn.add_row(*(Text(cell, style=STYLES.get(cell, "")) for cell in line))
    with console.capture() as captured:
        console.print(drawn)
    return captured.get().rstrip("\n")


def facts(said: Sequence[tuple[str, str]]) -> str:
    """A fact a line: what it is, and how it is."""
    width = max((len(label) for label, _ in said), default=0)
    lines = [(label.ljust(width), escaped(value)) for label, value in said]
    console = _terminal()
    if console is None:
        return "\n".join(f"{label}  {value}".rstrip() for label, value in lines)
    from rich.text import Text

    with console.capture() as captured:
        for label, value in lines:
            console.print(Text.assemble((label, "bold"), "  ", (value, STYLES.get(value, ""))), soft_wrap=True)
    return captured.get().rstrip("\n")


def _terminal() -> "Console | None":
    """Where colours go; None if the output is no terminal, or rich is not installed."""
    if not sys.stdout.isatty():
        return None
    try:
        from rich.console import Console
    except ModuleNotFoundError:
        return None
    return Console(highlight=False)
