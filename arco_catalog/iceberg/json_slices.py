"""Reads long JSON documents slice by slice.

The parser holds Python's lock until a call ends, so a document of millions of values would delay every other thread by
seconds. Here a call parses about a slice, rarely much more than `WINDOW_BYTES`, and other threads run between two
calls. One linear pass finds the brackets and commas at which a document may be split; the parser parses, and so checks,
everything between two of them.
"""

import re
from collections.abc import Callable
from typing import TypeAlias, cast

from storage_backends.lazy_dataclass import dataclass

Parse: TypeAlias = Callable[[bytes], object]

SLICE_BYTES = 64 << 10
"""The bytes that one call parses, unless they are one name or number: some 87,000 values at most."""
MAX_DEPTH = 1_024
"""Maximum depth of nested arrays and objects, which is also the parser's."""
MAX_STRING_BYTES = 8 << 20
"""Maximum bytes of one string in the document. A name is not split."""
MAX_PART_BYTES = 20 << 20
"""Maximum bytes between two places at which a document may be split: a name, its string, and a window around them."""

_BLANK = b" \t\r\n"
WINDOW_BYTES = 1 << 20
"""Maximum bytes that one call of a pattern reads: a pattern holds the lock, too, and one call of the parser parses all
that it matches."""

# Possessive and bounded throughout: each call ends soon, and tries no byte in many ways.
_FILLER = rb'[^",\[\]{}]{0,65536}+'
_STRING = rb'"[^"\\]{0,65536}+(?:\\.[^"\\]{0,65536}+){0,256}+"'
_SHORT = rb'"[^"\\]{0,4096}+(?:\\.[^"\\]{0,4096}+){0,16}+"'
_BETWEEN = rb'[^"\[\]{}]{0,4096}+'
_FLAT = rb"[\[{]" + _BETWEEN + rb"(?:" + _SHORT + _BETWEEN + rb"){0,64}+[\]}]"
_SMALL = rb"[\[{]" + _BETWEEN + rb"(?:(?:" + _SHORT + rb"|" + _FLAT + rb")" + _BETWEEN + rb"){0,64}+[\]}]"
"""A container of few members, whose own containers are flat. Most containers are such, and they are never split."""
_MEMBER = _FILLER + rb"(?:(?:" + _STRING + rb"|" + _SMALL + rb")" + _FILLER + rb"){0,4}+"
_MEMBERS = re.compile(rb"((?:" + _MEMBER + rb",){0,1000}+)" + _MEMBER, re.DOTALL)
_INSIDE_STRING = re.compile(rb'[^"\\]{0,1000000}+(?:\\.[^"\\]{0,65536}+){0,4000}+', re.DOTALL)
_HIGH_SURROGATE = re.compile(rb"\\u[dD][89abAB]")
_COLON = re.compile(rb"[ \t\r\n]*+:")
_OPENING, _CLOSING = b"[{", {ord("]"): ord("["), ord("}"): ord("{")}
_QUOTE, _BACKSLASH = ord('"'), ord("\\")


def read_in_slices(data: bytes, parse: Parse, slice_bytes: int = SLICE_BYTES) -> object:
    """Returns the result of `parse` for the document, composed from its results for slices. Raises what `parse` raises,
    and `ValueError` for a document that is not valid as a whole, that nests more than 1,024 levels deep, or that has
    more than 8 MiB in a string or 20 MiB without a bracket or a comma between values."""
    return _Reader(data, parse, slice_bytes).read()


@dataclass(slots=True)
class _Container:
    """An array or object of the document that is not complete yet. `value` has the members that were parsed so far,
    None if none were. The bytes from `parsed_to` to the present position are not parsed yet."""

    start: int
    parsed_to: int
    value: list[object] | dict[str, object] | None = None


class _Reader:
    """Reads one document slice by slice."""

    def __init__(self, data: bytes, parse: Parse, slice_bytes: int) -> None:
        self._data = data
        self._parse = parse
        self._slice_bytes = slice_bytes
        self._open: list[_Container] = []

    def read(self) -> object:
        """Reads the document slice by slice, and returns its value. Raises `ValueError`."""
        data, position = self._data, 0
        while position < len(data):
            found = _MEMBERS.match(data, position, position + WINDOW_BYTES)
            assert found is not None  # every part of the pattern may be empty
            end = found.end()
            if found.end(1) > position:
                self._split_at(found.end(1) - 1)
            if end == len(data):
                break
            if data[end] in _OPENING:
                self._begin(end)
                position = end + 1
            elif data[end] in _CLOSING:
                position = end + 1
                closed = self._end(end)
                if not self._open:
                    return self._whole(closed, position)
            elif end > position:
                position = end
            elif data[end] == _QUOTE:
                position = self._after_string(end)
                if position - end > self._slice_bytes:
                    self._split_string(end, position)
            else:  # a comma, which ends a member that is longer than the pattern
                position = end + 1
        if self._open:
            raise ValueError("the JSON document ends inside an array or object")
        return self._parse_part(data)

    def _begin(self, start: int) -> None:
        """Opens a container at the bracket. Raises `ValueError` if it nests too deep, or if other content is before the
        first one."""
        if not self._open and self._data[:start].strip(_BLANK):
            raise ValueError(f"unexpected content before the first bracket of the JSON document, at position {start}")
        if len(self._open) == MAX_DEPTH:
            raise ValueError(
                f"the JSON document nests arrays and objects more than {MAX_DEPTH:,} levels deep (recursion limit)"
            )
        self._open.append(_Container(start, start + 1))

    def _split_at(self, comma: int) -> None:
        """Parses the unparsed members of the innermost open container before a comma, if they have more bytes than a
        slice."""
        if self._open and comma - self._open[-1].parsed_to > self._slice_bytes:
            self._parse_to(self._open[-1], comma)

    def _end(self, position: int) -> _Container:
        """Ends the innermost open container at this closing bracket, and returns it. One that was split is parsed
        to the end, and added to the container around it; else the unparsed members of that, with this one, are parsed
        if they have more bytes than a slice. Raises `ValueError` if no container is open or the bracket is not of its
        kind, and as `_parse_to` does."""
        if not self._open or self._data[self._open[-1].start] != _CLOSING[self._data[position]]:
            raise ValueError(
                f"the closing bracket at position {position} of the JSON document does not match the last open one, "
                "or none is open"
            )
        closed = self._open.pop()
        if closed.value is not None:
            self._parse_to(closed, position)
        if self._open:
            outer = self._open[-1]
            if closed.value is not None:
                self._attach(outer, closed.start, closed.value)
                outer.parsed_to = position + 1
            elif position + 1 - outer.parsed_to > self._slice_bytes:
                self._parse_to(outer, position + 1)
        return closed

    def _whole(self, root: _Container, end: int) -> object:
        """Returns the document's value after its last bracket. Raises `ValueError` if more than blanks follow."""
        if root.value is None:
            return self._parse_part(self._data)
        if self._data[end:].strip(_BLANK):
            raise ValueError(f"unexpected content after the end of the JSON document, at position {end}")
        return root.value

    def _parse_to(self, container: _Container, end: int) -> None:
        """Parses the unparsed members of a container, up to `end`, where a member ends, and adds them to it. Raises
        `ValueError` if a value is missing before a comma, or a comma between values, and as `_parse_part` does."""
        text = self._data[container.parsed_to : end].strip(_BLANK)
        if container.value is None and not text:
            raise ValueError(f"no value precedes the comma at position {end} of the JSON document")
        if container.value is not None and text:
            text = _without(text, text[:1], container.parsed_to, first=True)
        self._add(container, text)
        container.parsed_to = end

    def _attach(self, outer: _Container, start: int, member: object) -> None:
        """Adds a container or string that was parsed in slices, and begins at `start`, to the container that has it as
        a member, after the members before it, which are parsed now."""
        text = self._data[outer.parsed_to : start].strip(_BLANK)
        name = None
        if self._data[outer.start] == ord("{"):
            text, name = self._split_name(text)
        if text or outer.value is not None:
            text = _without(text, text[-1:], start, first=False)
            if outer.value is None and not text:
                raise ValueError(f"no value precedes the comma before position {start} of the JSON document")
            if outer.value is not None and text:
                text = _without(text, text[:1], outer.parsed_to, first=True)
        self._add(outer, text)
        if isinstance(outer.value, list):
            outer.value.append(member)
        else:
            cast("dict[str, object]", outer.value)[cast(str, name)] = member

    def _add(self, container: _Container, text: bytes) -> None:
        """Reads a slice of members, and adds them to their container."""
        is_array = self._data[container.start] == ord("[")
        if container.value is None:
            container.value = [] if is_array else {}
        if not text:
            return
        members = self._parse_part(b"[%b]" % text if is_array else b"{%b}" % text)
        if isinstance(container.value, list):
            container.value += cast("list[object]", members)
        else:
            container.value |= cast("dict[str, object]", members)

    def _parse_part(self, text: bytes) -> object:
        """Parses a slice of the document. Raises `ValueError` for one that is too long, and what the parser raises."""
        if len(text) > MAX_PART_BYTES:
            raise ValueError(
                f"the JSON document has {len(text):,} bytes without a bracket or a comma between values, "
                f"and at most {MAX_PART_BYTES:,} are allowed"
            )
        return self._parse(text)

    def _split_name(self, text: bytes) -> tuple[bytes, str]:
        """Returns the text of the members before the member whose name and colon end the text, and that name. Raises
        `ValueError` if the text does not end with a name and a colon."""
        quoted = text[:-1].rstrip(_BLANK)
        if text[-1:] != b":" or quoted[-1:] != b'"':
            raise ValueError("an object in the JSON document has a value without a name or a colon before it")
        start = quoted.rfind(b'"', 0, len(quoted) - 1)
        while start > 0 and _is_escaped(quoted, start):
            start = quoted.rfind(b'"', 0, start)
        name = self._parse_part(quoted[start:]) if start >= 0 else None
        if not isinstance(name, str):
            raise ValueError("an object in the JSON document has a value without a name")
        return quoted[:start].strip(_BLANK), name

    def _split_string(self, start: int, end: int) -> None:
        """Reads a long string between two positions in pieces, and adds it to the innermost open container; does
        nothing if the string is a name or the whole document."""
        if not self._open or _COLON.match(self._data, end):
            return
        parts: list[str] = []
        position, last = start + 1, end - 1
        while position < last:
            cut = self._string_cut(position, last)
            parts.append(cast(str, self._parse(b'"%b"' % self._data[position:cut])))
            position = cut
        self._attach(self._open[-1], start, "".join(parts))
        self._open[-1].parsed_to = end

    def _string_cut(self, position: int, last: int) -> int:
        """Returns where the piece of a string that begins at a position may end: before `last`, the closing quote, and
        not within a character or between two escapes that are one."""
        found = _INSIDE_STRING.match(self._data, position, min(last, position + max(self._slice_bytes, 1)))
        assert found is not None  # the pattern may be empty
        cut = found.end()
        if cut < last and (start := _unfinished(found[0])) is not None:
            cut = position + start
        while position < cut < last and self._data[cut] & 0xC0 == 0x80:  # this byte continues a character
            cut -= 1
        return cut if cut > position else last  # the parser refuses what can't be split

    def _after_string(self, start: int) -> int:
        """Returns the position after the string that starts at `start`. Raises `ValueError` if it has no end or is too
        long."""
        position = start + 1
        while True:
            found = _INSIDE_STRING.match(self._data, position, position + WINDOW_BYTES)
            assert found is not None
            end = found.end()
            if end == len(self._data) or (end == position and self._data[end] != _QUOTE):
                raise ValueError("the JSON document ends inside a string")
            if end - start > MAX_STRING_BYTES:
                raise ValueError(
                    f"the string at position {start} is longer than {MAX_STRING_BYTES:,} bytes, which is a fixed limit"
                )
            if self._data[end] == _QUOTE:
                return end + 1
            position = end


def _without(text: bytes, comma: bytes, position: int, *, first: bool) -> bytes:
    """Returns the text without the comma with which it begins (`first`) or ends. Raises `ValueError` if the comma is
    missing, or if nothing follows the comma with which it begins."""
    rest = (text[1:] if first else text[:-1]).strip(_BLANK)
    if comma != b"," or (first and not rest):
        raise ValueError(f"a value or a comma is missing in the JSON document near position {position}")
    return rest


def _is_escaped(text: bytes, position: int) -> bool:
    """Whether an odd number of backslashes is before a position."""
    start = position
    while start > 0 and text[start - 1] == _BACKSLASH:  # without a copy of the text for each quote of a long name
        start -= 1
    return (position - start) % 2 == 1


def _unfinished(piece: bytes) -> int | None:
    """Returns where the last character of a piece of a string begins, if that is made of escapes and not complete; else
    None."""
    for start in range(max(0, len(piece) - 11), len(piece) - 1):
        if piece.startswith(b"\\u", start):
            before = piece[:start]
            is_escaped = (len(before) - len(before.rstrip(b"\\"))) % 2 == 1
            if not is_escaped and (start + 6 > len(piece) or _HIGH_SURROGATE.match(piece, start)):
                return start
    return None
