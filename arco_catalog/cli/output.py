"""Formats tables and facts for printing: with colours if stdout is a terminal and rich is installed, else as plain
text. Control characters are escaped."""

import sys
from collections.abc import Sequence
from shutil import get_terminal_size
from typing import TYPE_CHECKING

from arco_catalog.cli.columns import columns
from arco_catalog.state.characters import escaped

if TYPE_CHECKING:  # rich is optional
    from rich.console import Console

UNBROKEN = frozenset(
    {
        "TIME (UTC)",
        "COMMITTED (UTC)",
        "NEXT (UTC)",
        "OLDEST (UTC)",
        "SNAPSHOT",
        "COMMIT",
        "ENTITY",
        "TASK",
        "ID",
        "NAME",
    }
)
"""Headings of columns whose cells are never broken into lines, so that they can be copied."""
FOLDED = 12
"""Width in characters to which other columns may be narrowed."""
GAP = 2
"""Width in characters of the space between columns."""
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
"""Colours of cells with a type or a status."""


def table(
    headings: Sequence[str], lines: Sequence[Sequence[str]], *, wide: bool | None = None, wide_only: Sequence[str] = ()
) -> str:
    """Formats lines under headings. On a terminal that is too narrow, the columns `wide_only` are omitted, and columns
    are narrowed except those with times, ids and names, which can be copied. With `wide` all columns are printed at
    full width; it is None for a command without that option."""
    cells = [[escaped(cell) for cell in line] for line in lines]
    if wide or not sys.stdout.isatty():
        return columns(headings, cells)
    width = get_terminal_size().columns
    omitted = [heading for heading in wide_only if _width(headings, cells) > width]
    shown = [number for number, heading in enumerate(headings) if heading not in omitted]
    text = _drawn([headings[number] for number in shown], [[line[number] for number in shown] for line in cells], width)
    return f"{text}\n(--wide shows {', '.join(omitted)})" if omitted else text


def _drawn(headings: Sequence[str], cells: Sequence[Sequence[str]], width: int) -> str:
    """Draws a table with colours, or without if rich is not installed."""
    console = _terminal()
    if console is None:
        return columns(headings, cells)
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for heading in headings:
        drawn.add_column(heading, overflow="fold", no_wrap=heading in UNBROKEN)
    for line in cells:
        drawn.add_row(*(Text(cell, style=STYLES.get(cell, "")) for cell in line))
    narrowed = [
        [cell if heading in UNBROKEN else cell[:FOLDED] for heading, cell in zip(headings, line, strict=True)]
        for line in cells
    ]
    console.width = max(width, _width([heading[:FOLDED] for heading in headings], narrowed))
    with console.capture() as captured:
        console.print(drawn)
    return captured.get().rstrip("\n")


def _width(headings: Sequence[str], cells: Sequence[Sequence[str]]) -> int:
    """Returns the width of a table in characters."""
    return sum(max(map(len, column)) + GAP for column in zip(headings, *cells, strict=True)) - GAP


def facts(pairs: Sequence[tuple[str, str]]) -> str:
    """Formats pairs of label and value, one on a line, with the values aligned."""
    width = max((len(label) for label, _ in pairs), default=0)
    lines = [(label.ljust(width), escaped(value)) for label, value in pairs]
    console = _terminal()
    if console is None:
        return "\n".join(f"{label}  {value}".rstrip() for label, value in lines)
    from rich.text import Text

    with console.capture() as captured:
        for label, value in lines:
            console.print(Text.assemble((label, "bold"), "  ", (value, STYLES.get(value, ""))), soft_wrap=True)
    return captured.get().rstrip("\n")


def _terminal() -> "Console | None":
    """Returns a console for colours, or None if stdout is not a terminal or rich is not installed."""
    if not sys.stdout.isatty():
        return None
    try:
        from rich.console import Console
    except ModuleNotFoundError:
        return None
    return Console(highlight=False)
