"""Long JSON documents, read and written piece by piece.

orjson holds Python's lock for as long as one call takes, 10 to 60 ms for each MB that it reads: while one thread reads
a document of tens of megabytes in one call, no other thread does anything. Here no call gets more than a piece, and
between two pieces any other thread has its turn. What comes of it is the same.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias, cast

Container: TypeAlias = list[object] | dict[str, object]
Read: TypeAlias = Callable[[bytes], object]
Write: TypeAlias = Callable[[object], bytes]

PIECE_BYTES = 256 << 10
"""How much one call reads or writes, unless it is one string or number: some 5 ms, 15 at worst."""
MAX_DEPTH = 1_024
"""How many arrays and objects orjson reads that lie in each other."""
SHARES = 64
"""A long array or object is written, and let go of, in so many steps at least: a few large members may hide among small
ones."""
SPLIT_DEPTH = 16
"""Arrays and objects that lie deeper are written whole: Python's own stack is short."""

USUAL_DEPTH = 4
"""How deep a member of a metadata file nests, mostly."""

_BRACKET = re.compile(rb"[\[\]{}]")
_UNMATCHED = re.compile(rb"([\]}]*)([\[{]*)")
_SOMETHING = re.compile(rb"[^ \t\r\n]")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_CLOSES = {b"[": b"]", b"{": b"}"}


class Unsplit(ValueError):
    """The document cannot be read piece by piece: it is none, or neither an array nor an object."""


def read_in_pieces(data: bytes, read: Read, piece_bytes: int = PIECE_BYTES) -> object:
    """One array or object, of which `read` is given one piece after the other. Raises what `read` raises, and
    `Unsplit`.

    Each piece ends before a comma that stands in no string, so it is read knowing which arrays and objects are open at
    its beginning. It has first the rest of those that it closes, innermost first, and then members of the one
    that stays open, the last of which may be open itself at its end. `read` is given each such run of members
    within brackets of its own and judges whether it is JSON.
    """
    start = _after_blanks(data)
    if data[start : start + 1] not in _CLOSES:
        raise Unsplit("neither an array nor an object")
    outermost: list[object] = []
    opened: list[Container] = [outermost]
    while start < len(data):
        piece = _piece(data, start, piece_bytes)
        _take(piece, opened, read)
        start = piece.end
    if len(opened) != 1 or len(outermost) != 1:
        raise Unsplit("not one whole document")
    return outermost[0]


@dataclass(frozen=True, slots=True)
class _Piece:
    """Bytes from `start` to `end`. `parts` is what lies around and in its strings, by turns; `outside` is all that lies
    around them, with a quote in place of each string."""

    data: bytes
    start: int
    end: int
    parts: Sequence[bytes]
    outside: bytes

    def places(self, ats: Iterable[int]) -> Iterator[int]:
        """Where in the data the bytes stand that are at these places, in ascending order, in `outside`."""
        strings = before = part = 0
        for at in ats:
            more = self.outside.count(b'"', part, at)
            if more:
                strings += more
                rest = len(self.parts) - 2 * strings
                if 2 * more < rest:
                    before += _length(self.parts, 2 * strings - 2 * more, 2 * strings) + 1
                else:
                    before = self.end - self.start - _length(self.parts, 2 * strings, len(self.parts))
                part = self.outside.rfind(b'"', part, at) + 1
            yield self.start + before + at - part


def _length(parts: Sequence[bytes], first: int, last: int) -> int:
    """Of those parts with the quotes between them."""
    return sum(map(len, islice(parts, first, last))) + last - first - 1


def _piece(data: bytes, start: int, size: int) -> _Piece:
    """The next piece: up to a comma, or to the end; as long as it takes, where a single string is longer."""
    while True:
        window = data[start : start + size]
        plain = window.replace(b"\\\\", b"__").replace(b'\\"', b"__")
        parts = plain.split(b'"')
        end = len(window)
        if start + end == len(data):
            break
        parts, end = _up_to_last_comma(parts, end)
        if end:
            break
        size *= 2
    if len(parts) % 2 == 0:
        raise Unsplit("it ends in a string")
    return _Piece(data, start, start + end, parts, b'"'.join(parts[::2]))


def _up_to_last_comma(parts: list[bytes], end: int) -> tuple[list[bytes], int]:
    """What comes before the last comma outside strings, and how long it is; nothing where there is none, or it is the
    first byte."""
    for number in range(len(parts) - 1, -1, -1):
        if number % 2 == 0:
            found = parts[number].rfind(b",")
            if found >= 0:
                return [*parts[:number], parts[number][:found]], end - len(parts[number]) + found
        end -= len(parts[number]) + 1
    return [], 0


def _take(piece: _Piece, opened: list[Container], read: Read) -> None:
    """Puts a piece's members where they belong, and leaves in `opened` what is open after it, outermost first."""
    ended, begun = _unmatched(piece.outside, MAX_DEPTH + 2 - len(opened))
    done = piece.start
    for place in piece.places(ended):
        if len(opened) == 1 or piece.data[place : place + 1] != (b"]" if isinstance(opened[-1], list) else b"}"):
            raise Unsplit(f"a bracket too many at byte {place:,}")
        _extend(opened.pop(), piece.data[done:place], read)
        done = place + 1
    places = list(piece.places(begun))
    ends = b"".join(_CLOSES[piece.data[place : place + 1]] for place in reversed(places))
    _extend(opened[-1], piece.data[done : piece.end] + ends, read)
    for at, place in zip(begun, places, strict=True):
        around = opened[-1]
        inner = around[-1] if isinstance(around, list) else around[cast(str, _name_before(piece, at, place, read))]
        opened.append(cast(Container, inner))


def _unmatched(outside: bytes, most: int) -> tuple[Sequence[int], Sequence[int]]:
    """Where the brackets stand that end what began before, and those that begin what does not end. Raises `Unsplit` if
    more than `most` lie in each other."""
    brackets = outside.translate(None, _NO_BRACKETS)
    for _ in range(USUAL_DEPTH):
        brackets = brackets.replace(b"{}", b"").replace(b"[]", b"")
    known = _UNMATCHED.fullmatch(brackets)  # else it nests deeper, and they are all looked at
    ending, beginning = (len(outside), len(outside)) if known is None else (len(known[1]), len(known[2]))
    ended = _without_partner(outside, b"[{", ending, most)
    begun = _without_partner(outside[::-1], b"]}", beginning, most)
    return ended, [len(outside) - 1 - at for at in reversed(begun)]


def _without_partner(text: bytes, partners: bytes, number: int, most: int) -> Sequence[int]:
    """Where the first `number` brackets stand that none of `partners` came before."""
    found: list[int] = []
    waiting = 0
    for match in _BRACKET.finditer(text):
        if len(found) == number:
            break
        if match[0] in partners:
            waiting += 1
            if waiting > most:
                raise Unsplit("it nests too deep")
        elif waiting:
            waiting -= 1
        else:
            found.append(match.start())
    return found


def _name_before(piece: _Piece, at: int, place: int, read: Read) -> object:
    """The name of the member whose value begins there."""
    string = piece.parts[2 * piece.outside.count(b'"', 0, at) - 1]
    end = piece.data.rfind(b'"', piece.start, place)
    return read(piece.data[end - 1 - len(string) : end + 1])


def _extend(container: Container, members: bytes, read: Read) -> None:
    """Adds members that come after those that are there already."""
    begin = _after_blanks(members)
    if begin == len(members):
        return
    if container:
        if members[begin : begin + 1] != b",":
            raise Unsplit("a comma is missing")
        begin += 1
    more = read(b"[%b]" % members[begin:] if isinstance(container, list) else b"{%b}" % members[begin:])
    if not more:
        raise Unsplit("a comma too many")
    if isinstance(container, list):
        container.extend(cast(list[object], more))
    else:
        container.update(cast(dict[str, object], more))


def _after_blanks(data: bytes) -> int:
    found = _SOMETHING.search(data)
    return len(data) if found is None else found.start()


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
