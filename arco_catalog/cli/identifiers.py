"""Table names as people type them: `a.b.t`, and `"a.b".t` for a level that holds a dot."""

import re
from collections.abc import Sequence

from arco_catalog.cli.failure import Failure

_LEVEL = re.compile(r'"((?:[^"]|"")+)"|([^".]+)')


def parse_identifier(text: str) -> tuple[tuple[str, ...], str]:
    """Namespace and table. A quote inside quotes is written twice. Raises `Failure`."""
    levels: list[str] = []
    position = 0
    while (level := _LEVEL.match(text, position)) is not None:
        levels.append(level[2] if level[1] is None else level[1].replace('""', '"'))
        position = level.end() + 1
        if level.end() == len(text):
            break
        if text[level.end()] != ".":
            raise _not_a_table(text)
    if level is None or len(levels) < 2:
        raise _not_a_table(text)
    return tuple(levels[:-1]), levels[-1]


def spelled(levels: Sequence[str]) -> str:
    """Levels as one would type them."""
    return ".".join(_quoted(level) if "." in level or '"' in level else level for level in levels)


def _quoted(level: str) -> str:
    return '"' + level.replace('"', '""') + '"'


def _not_a_table(text: str) -> Failure:
    return Failure(f'{text!r} is no NAMESPACE.TABLE, such as sales.orders, a.b.orders or "sales.2026".orders')
