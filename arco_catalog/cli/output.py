"""Tables and facts as commands print them: with colours where people look at a terminal and rich is installed, else as
plain text. What a terminal would act on is escaped."""

import sys
from collections.abc import Sequence
from shutil import get_terminal_size
from typing import TYPE_CHECKING

from arco_catalog.cli.columns import columns
from arco_catalog.state.characters import escaped

if TYPE_CHECKING:
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
"""Headings of columns whose cells are read or copied whole."""
FOLDED = 12
"""Characters to which any other column may be narrowed."""
GAP = 2
"""Spaces between columns."""
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


def table(
    headings: Sequence[str], lines: Sequence[Sequence[str]], *, wide: bool | None = None, wide_only: Sequence[str] = ()
) -> str:
    """Lines under headings. On a terminal that is too narrow, the columns `wide_only` are left out, and times, ids and
    names stay on one line each, so that they can be copied. `wide` prints all columns, each as wide as it needs to be;
    None where the command has no such option."""
    cells = [[escaped(cell) for cell in line] for line in lines]
    if wide or not sys.stdout.isatty():
        return columns(headings, cells)
    width = get_terminal_size().columns
    omitted = [heading for heading in wide_only if _width(headings, cells) > width]
    shown = [number for number, heading in enumerate(headings) if heading not in omitted]
    text = _drawn([headings[number] for number in shown], [[line[number] for number in shown] for line in cells], width)
    return f"{text}\n(--wide shows {', '.join(omitted)})" if omitted else text


def _drawn(headings: Sequence[str], cells: Sequence[Sequence[str]], width: int) -> str:
    """A table with colours, where rich is installed."""
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
    """How many characters a line of the table takes."""
    return sum(max(map(len, column)) + GAP for column in zip(headings, *cells, strict=True)) - GAP


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
