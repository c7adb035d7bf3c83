"""Writes long JSON documents, and frees them, part by part.

orjson holds Python's lock until a call ends: while one thread writes a document of tens of megabytes in one call, no
other thread runs. Here one call writes about a piece, and between two calls other threads run. The bytes are equal
to those of one call.
"""

from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import TypeAlias, cast

from storage_backends.lazy_dataclass import dataclass

Write: TypeAlias = Callable[[object], bytes]

PIECE_BYTES = 64 << 10
"""The bytes that one call writes, unless strings are long: this takes some 5 ms, at worst 15."""
STRING_PIECE = 32 << 10
"""Maximum characters of a string that one call writes: those that need an escape take ten times as long as others."""
SHARES = 64
"""Minimum number of steps in which a long array or object is written or freed: a few large members may be among small
ones."""


def write_in_pieces(value: object, write: Write, piece_bytes: int = PIECE_BYTES, *, weigh: bool = True) -> bytes:
    """Returns the bytes that `write` makes of the value, composed from the bytes that it makes of the value's parts.
    With `weigh` the characters in the strings of each part are counted before it is written, which takes a pass over
    all values. Raises what `write` raises."""
    return b"".join(_Writer(write, piece_bytes, weigh).written(value))


@dataclass(slots=True)
class _Container:
    """An array or object that is being written: its remaining members, in an object pairs of name and value. `number`
    is how many are written next, and `max_number` the maximum of that. `start` is the position in the output at which
    the last run began, None before the first."""

    members: Iterator[object]
    is_object: bool
    max_number: int
    number: int = 1
    start: int | None = None


class _Writer:
    """Writes the JSON of a value: the members of arrays and objects in runs. Each run is twice as long as the one
    before as long as their bytes are few. If they are many, it writes the members one by one, each in pieces."""

    def __init__(self, write: Write, piece_bytes: int, weigh: bool) -> None:
        self._write = write
        self._piece_bytes = piece_bytes
        self._weigh = weigh
        self._size = 0
        self._open: list[_Container] = []

    def written(self, value: object) -> Iterator[bytes]:
        """Yields the JSON of a value in parts, in order."""
        for part in self._parts(value):
            self._size += len(part)
            yield part

    def _parts(self, value: object) -> Iterator[bytes]:
        """Yields the parts of the JSON of a value."""
        yield from self._begin(value)
        while self._open:
            container = self._open[-1]
            self._adapt(container)
            run = list(islice(container.members, container.number))
            if not run:
                self._open.pop()
                yield b"}" if container.is_object else b"]"
                continue
            if len(run) > 1 and self._weigh and _is_heavy(run, self._piece_bytes):
                container.members, container.number = chain(run, container.members), 1
                run = [next(container.members)]
            if container.start is not None:
                yield b","
            container.start = self._size
            yield from self._run(run, container.is_object)

    def _adapt(self, container: _Container) -> None:
        """Sets how many members of a container are written next: one if the last run had more bytes than a piece; twice
        as many as before, up to the maximum, if it had half a piece or less."""
        if container.start is None:
            return
        size = self._size - container.start
        if size > self._piece_bytes:
            container.number = 1
        elif 2 * size <= self._piece_bytes:
            container.number = min(2 * container.number, container.max_number)

    def _begin(self, value: object) -> Iterator[bytes]:
        """Yields the JSON of a value without members, or only the opening bracket of an array or object that has
        some, which `_parts` then continues."""
        if isinstance(value, list | dict) and value:
            members = iter(value) if isinstance(value, list) else iter(value.items())
            is_object = isinstance(value, dict)
            self._open.append(_Container(cast("Iterator[object]", members), is_object, 1 + len(value) // SHARES))
            yield b"{" if is_object else b"["
        elif isinstance(value, str) and len(value) > STRING_PIECE:
            yield from self._string(value)
        else:
            yield self._write(value)

    def _string(self, text: str) -> Iterator[bytes]:
        """Writes a long string in pieces. The form of a character does not depend on others, so a string may be split
        between any two."""
        yield b'"'
        for start in range(0, len(text), STRING_PIECE):
            yield self._write(text[start : start + STRING_PIECE])[1:-1]
        yield b'"'

    def _run(self, run: list[object], is_object: bool) -> Iterator[bytes]:
        """Yields the JSON of some members of a container, without its brackets. Of a member that comes by itself and is
        an array or object with members, only the opening bracket (`_begin`); in an object the name and colon precede
        it."""
        if len(run) > 1:
            yield self._write(dict(cast("list[tuple[str, object]]", run)) if is_object else run)[1:-1]
        elif is_object:
            [(name, member)] = cast("list[tuple[str, object]]", run)
            yield from self._begin(name)
            yield b":"
            yield from self._begin(member)
        else:
            yield from self._begin(run[0])


def _is_heavy(run: list[object], budget: int) -> bool:
    """Whether the strings in these members, at every level, have more characters than the budget."""
    left = [*run]
    while left:
        value = left.pop()
        if isinstance(value, str):
            budget -= len(value)
            if budget < 0:
                return True
        elif isinstance(value, dict):
            left += value
            left += value.values()
        elif isinstance(value, list | tuple):
            left += value
    return False


def let_go(document: object) -> None:
    """Empties an array or object that is no longer needed. One with `SHARES` members or more drops them share by share;
    another one at once, and then the arrays and objects inside it are emptied in the same way, so they must not be in
    use elsewhere. Python frees all that one step drops within that step, with its global lock held; so each step drops
    little."""
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
