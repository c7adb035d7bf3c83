"""Long JSON documents, written and freed part by part.

orjson keeps Python's lock until a call ends: while one thread writes a document of tens of megabytes in
one call, no other thread does anything. Here no call gets more than a piece, and between two pieces any other thread
has its turn. The bytes are those of one call.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import TypeAlias, cast

Write: TypeAlias = Callable[[object], bytes]

PIECE_BYTES = 256 << 10
"""How much one call writes, unless it is one string or number: some 5 ms, 15 at worst."""
SHARES = 64
"""A long array or object is written, and let go of, in so many steps at least: a few large members may hide among small
ones."""
SPLIT_DEPTH = 16
"""Arrays and objects that lie deeper are written whole: Python's own stack is short."""


def write_in_pieces(value: object, write: Write, piece_bytes: int = PIECE_BYTES) -> bytes:
    """What `write` makes of the value, of which it is given one part after the other. Raises what `write` raises."""
    return b"".join(_written(value, write, piece_bytes, SPLIT_DEPTH))


def _written(value: object, write: Write, piece_bytes: int, depth: int) -> Iterator[bytes]:
    """Members by the run, each twice as long as the one before while that comes to little; one by one, and each in
    pieces of its own, where that comes to much."""
    if not isinstance(value, list | dict) or not value or depth == 0:
        yield write(value)
        return
    brackets = (b"[", b"]") if isinstance(value, list) else (b"{", b"}")
    members = iter(value) if isinstance(value, list) else iter(value.items())
    most = 1 + len(value) // SHARES
    number = 1
    before = brackets[0]
    while run := list(islice(members, number)):
        yield before
        before = b","
        size = 0
        for part in _run(run, isinstance(value, dict), write, piece_bytes, depth - 1):
            size += len(part)
            yield part
        number = 1 if size > piece_bytes else min(2 * number, most) if 2 * size <= piece_bytes else number
    yield brackets[1]


def _run(run: list[object], named: bool, write: Write, piece_bytes: int, depth: int) -> Iterator[bytes]:
    if len(run) > 1:
        yield write(dict(cast("list[tuple[str, object]]", run)) if named else run)[1:-1]
    elif named:
        [(name, member)] = cast("list[tuple[str, object]]", run)
        yield write(name)
        yield b":"
        yield from _written(member, write, piece_bytes, depth)
    else:
        yield from _written(run[0], write, piece_bytes, depth)


def let_go(document: object) -> None:
    """Empties an array or object that nobody needs any more, part by part. Python frees whatever one step drops within
    that step, with its global lock held; so each step drops little."""
    left = [document]
    while left:
        container = left.pop()
        if isinstance(container, list | dict):
            share = len(container) // SHARES
            if share == 0:
                left += container if isinstance(container, list) else container.values()
                container.clear()
            elif isinstance(container, list):
                while container:
                    del container[-share:]
            else:
                while container:
                    container.popitem()
