"""Formats tables and facts as commands print them: with colours if the output is a terminal and rich is installed, else
as plain text. Control characters, on which a terminal would act, are escaped."""

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
"""Headings of columns whose cells are read or copied whole."""
GAP = 2
"""Spaces between columns."""
STYLES = {
    "ok": "green",
    "registered": "green",
    "made": "green",
    "replaced": "green",
    "would register": "cyan",
    "would make": "cyan",
    "would replace": "cyan",
    "namespace": "blue",
    "warning": "yellow",
    "skipped": "dim",
    "already registered": "dim",
    "failed": "bold red",
    "missing": "bold red",
    "different": "bold red",
    "no counterpart": "yellow",
    "only here": "yellow",
}
"""The colours of cells, by their texts: types of objects, results of checks and outcomes of an import."""


def table(
    headings: Sequence[str], lines: Sequence[Sequence[str]], *, wide: bool | None = None, wide_only: Sequence[str] = ()
) -> str:
    """Formats lines under headings, with control characters escaped. On a terminal that is too narrow, columns
    `wide_only` are left out, one after the other, with a note of which, and other cells are folded between words. If
    that is not enough, or cells have to be folded and rich is not installed, each cell has a line of its own. Times,
    ids and names stay on one line each, so that they can be copied. With `wide`, and without a terminal, all columns
    are printed, each as wide as its longest cell; `wide` is None for a command without such an option."""
    cells = [[escaped(cell) for cell in line] for line in lines]
    if wide or not sys.stdout.isatty():
        return columns(headings, cells)
    width = get_terminal_size().columns
    shown, omitted = [*range(len(headings))], list[str]()
    for heading in wide_only:
        if _total(_longest(headings, cells, shown)) <= width:
            break
        shown.remove(headings.index(heading))
        omitted.append(heading)
    named, kept = [headings[number] for number in shown], [[line[number] for number in shown] for line in cells]
    widths = _fitted(named, kept, width)
    text = _records(named, kept) if widths is None else _drawn(named, kept, widths)
    return f"{text}\n(--wide shows {', '.join(omitted)})" if omitted else text


def _longest(headings: Sequence[str], cells: Sequence[Sequence[str]], shown: Sequence[int]) -> list[int]:
    """Returns the length of the longest cell, or of the heading if that is longer, of each of these columns."""
    return [max(len(line[number]) for line in (headings, *cells)) for number in shown]


def _total(widths: Sequence[int]) -> int:
    """Returns how many characters a line of columns of these widths takes."""
    return sum(widths) + GAP * (len(widths) - 1)


def _fitted(headings: Sequence[str], cells: Sequence[Sequence[str]], width: int) -> list[int] | None:
    """Returns the widths of the columns with which a line fits into `width`: the widest column is narrowed first, down
    to the longest word in it; columns of times, ids and names are not narrowed. Returns None if the line does not fit
    like this."""
    widths = _longest(headings, cells, range(len(headings)))
    least = [
        widths[number]
        if heading in UNBROKEN
        else max(len(word) for line in (headings, *cells) for word in (line[number].split() or [""]))
        for number, heading in enumerate(headings)
    ]
    if _total(least) > width:
        return None
    while _total(widths) > width:
        widest = max(
            (number for number in range(len(widths)) if widths[number] > least[number]), key=widths.__getitem__
        )
        widths[widest] -= 1
    return widths


def _records(headings: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    """Formats records with a line for each cell that has text, and an empty line between records."""
    records = [[fact for fact in zip(headings, line, strict=True) if fact[1]] for line in cells]
    label_width = max(map(len, headings), default=0)
    return "\n\n".join(facts([(label.ljust(label_width), cell) for label, cell in record]) for record in records)


def _drawn(headings: Sequence[str], cells: Sequence[Sequence[str]], widths: Sequence[int]) -> str:
    """Formats a table with columns of these widths, and with colours. Without rich or a terminal there are no colours,
    and if a cell does not fit then, all cells have lines of their own."""
    console = _terminal()
    if console is None:
        fits = list(widths) == _longest(headings, cells, range(len(widths)))
        return columns(headings, cells) if fits else _records(headings, cells)
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=None, padding=(0, GAP, 0, 0), pad_edge=False, header_style="bold")
    for heading, width in zip(headings, widths, strict=True):
        drawn.add_column(heading, width=width, no_wrap=heading in UNBROKEN)
    for line in cells:
        drawn.add_row(*(Text(cell, style=STYLES.get(cell, "")) for cell in line))
    console.width = max(_total(widths), 1)
    with console.capture() as captured:
        console.print(drawn)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def facts(rows: Sequence[tuple[str, str]]) -> str:
    """Formats facts, pairs of a label and a value, one on a line, with colours on a terminal if rich is installed.
    Labels are padded to one width; values are escaped."""
    width = max((len(label) for label, _ in rows), default=0)
    lines = [(label.ljust(width), escaped(value)) for label, value in rows]
    console = _terminal()
    if console is None:
        return "\n".join(f"{label}  {value}".rstrip() for label, value in lines)
    from rich.text import Text

    with console.capture() as captured:
        for label, value in lines:
            console.print(Text.assemble((label, "bold"), "  ", (value, STYLES.get(value, ""))), soft_wrap=True)
    return captured.get().rstrip("\n")


def failure_lines(title: str, found: Sequence[str], count: int) -> list[str]:
    """Returns the lines about records that could not be read, under a title: those in `found`, and how many more there
    are of `count` in all. Returns none if `found` is empty. Texts in `found` are escaped."""
    if not found:
        return []
    more = [f"  ... and {count - len(found):,} more"] if count > len(found) else []
    return ["", title, *(f"  {escaped(what)}" for what in found), *more]


def _terminal() -> "Console | None":
    """Returns the console for coloured output; None if the output is no terminal, or rich is not installed."""
    if not sys.stdout.isatty():
        return None
    try:
        from rich.console import Console
    except ModuleNotFoundError:
        return None
    return Console(highlight=False)
