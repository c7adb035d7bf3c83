"""Parses names of tables and namespaces as users type them: `a.b.t`, with quotes around a level that contains a dot."""

import re

from arco_catalog.cli.errors import CliError

_LEVEL = re.compile(r'"((?:[^"]|"")+)"|([^".]+)')


def parse_identifier(text: str) -> tuple[tuple[str, ...], str]:
    """Parses NAMESPACE.TABLE, and returns the levels of the namespace and the table's name. Raises `CliError` for fewer
    than two levels, and for a malformed name."""
    levels = _levels(text)
    if levels is None or len(levels) < 2:
        raise CliError(
            f'expected NAMESPACE.TABLE, got {text!r}; write it as sales.orders, a.b.orders or "sales.2026".orders'
        )
    return levels[:-1], levels[-1]


def parse_namespace(text: str) -> tuple[str, ...]:
    """Parses a namespace with one level or more, and returns the levels. Raises `CliError` for a malformed or empty
    one."""
    levels = _levels(text)
    if levels is None:
        raise CliError(
            f'expected a namespace such as sales, a.b or "sales.2026" (a level with a dot is in quotes), got {text!r}'
        )
    return levels


def _levels(text: str) -> tuple[str, ...] | None:
    """Returns the levels of a name, or None if it is invalid. A quote inside quotes is written twice."""
    levels: list[str] = []
    position = 0
    while (level := _LEVEL.match(text, position)) is not None:
        levels.append(level[2] if level[1] is None else level[1].replace('""', '"'))
        position = level.end() + 1
        if level.end() == len(text):
            return tuple(levels)
        if text[level.end()] != ".":
            return None
    return None
