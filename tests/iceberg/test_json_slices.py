"""Long documents are read slice by slice, and mean exactly what the parser makes of them in one call."""

import json
from collections.abc import Callable

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arco_catalog.iceberg.json import MAX_CALL_BYTES, MAX_CALL_VALUES, MalformedJson, count_values, dumps, loads
from arco_catalog.iceberg.json_slices import (
    MAX_DEPTH,
    MAX_STRING_BYTES,
    SLICE_BYTES,
    WINDOW_BYTES,
    read_in_slices,
)
from tests.iceberg.big_table import big_table
from tests.iceberg.strategies import json_values
from tests.iceberg.values import Json

DENSE = 3 * MAX_CALL_VALUES
MEMBERS = 6
"""Of a document of long strings: it is several times as long as what one call may get."""
HOSTILE = {
    "empty arrays": b"[" + b"[]," * DENSE + b"1]",
    "arrays of one": b"[" + b"[1]," * DENSE + b"1]",
    "objects of one": b"[" + b'{"a":1},' * DENSE + b"1]",
    "numbers": b'{"a":[' + b"1000," * DENSE + b"1]}",
    "members": b"{" + b'"a":"abc",' * DENSE + b'"b":1}',
    "deep": b"[" + (b"[" * 200 + b"1" + b"]" * 200 + b",") * 2_000 + b"1]",
}
SPELLINGS: list[Callable[[Json], str]] = [
    json.dumps,
    lambda value: json.dumps(value, indent=1),
    lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":")),
]
EDITS = [b"", b"[", b"]", b"{", b"}", b",", b":", b'"', b"\\", b" ", b"1", b'"a":', b"\xff", b"\x00"]


def outcome(read: Callable[[], object]) -> bytes | None:
    """What is read, written again; None where the document is refused."""
    try:
        return orjson.dumps(read())
    except ValueError:
        return None


@settings(max_examples=5 * settings().max_examples)
@given(value=json_values, other=json_values, data=st.data())
def test_slices_mean_what_one_call_means(value: Json, other: Json, data: st.DataObject) -> None:
    spelled = data.draw(st.sampled_from(SPELLINGS))
    text = spelled(value)
    if data.draw(st.booleans()):  # names that come twice, and the empty one
        text = f'{{"a":{text},"b":1,"a":{spelled(other)},"":[1,{{"":2}}],"":{text}}}'
    document = text.encode(errors="replace")
    if data.draw(st.booleans()):
        place = data.draw(st.integers(0, len(document)))
        rest = document[place + data.draw(st.integers(0, 1)) :]
        document = document[:place] + data.draw(st.sampled_from(EDITS)) + rest

    for slice_bytes in (-1, 0, 3, 11):
        assert outcome(lambda size=slice_bytes: read_in_slices(document, orjson.loads, size)) == outcome(  # type: ignore[misc]
            lambda: orjson.loads(document)
        )


@pytest.mark.parametrize("part", [b'\\"', b"\\\\"], ids=["escaped quotes", "backslashes"])
def test_a_long_name_before_a_split_member_is_read(part: bytes) -> None:
    """The start of the name is found by one pass over it."""
    document = b'{"' + part * 1_000_000 + b'":[' + b"1000," * DENSE + b"1]}"
    assert read_in_slices(document, orjson.loads) == orjson.loads(document)


@pytest.mark.parametrize("name", HOSTILE)
def test_no_call_of_the_parser_gets_more_than_a_slice(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    document = HOSTILE[name]
    wanted = orjson.loads(document)
    lengths: list[int] = []
    parse = orjson.loads

    def counted(data: bytes) -> object:
        lengths.append(len(data))
        return parse(data)

    monkeypatch.setattr(orjson, "loads", counted)
    assert loads(document) == wanted
    assert max(lengths) <= 2 * SLICE_BYTES
    assert sum(lengths) <= len(document) + 4 * len(lengths)


def test_a_large_table_is_the_same_in_slices() -> None:
    table = big_table(1_000)
    document = dumps(table)
    assert count_values(document) <= MAX_CALL_VALUES  # so this is compared with one call
    assert read_in_slices(document, orjson.loads, 1_000) == loads(document) == table


def test_strings_are_never_cut() -> None:
    text = '],[{}",\\' * 100_000
    document = dumps({"a": text, "b": [text, {text: [[]] * 10}]})
    assert read_in_slices(document, orjson.loads, 100) == orjson.loads(document)


@pytest.mark.parametrize(
    "document",
    [b"[" * (MAX_DEPTH + 1) + b" " * MAX_CALL_BYTES, b'{"a":' * (MAX_DEPTH + 1) + b" " * MAX_CALL_BYTES],
)
def test_a_long_document_that_nests_too_deep_is_refused(document: bytes) -> None:
    with pytest.raises(MalformedJson, match="recursion limit"):
        loads(document)


def test_integers_beyond_64_bits_survive_in_long_documents() -> None:
    document = b"[" + b"1," * (MAX_CALL_VALUES + 1) + b"123456789012345678901234567890]"
    assert loads(document)[-1] == 123456789012345678901234567890  # type: ignore[index]


def test_values_are_counted_without_parsing() -> None:
    assert count_values(b'{"a":[1,2,[]],"b":{}}') >= 7
    assert count_values(b"[]," * 5_000_000) == 10_000_000


def test_a_string_of_the_greatest_length_is_read_and_a_longer_one_is_refused() -> None:
    def document(length: int) -> bytes:
        return b'{"a":[1],"b":"' + b"x" * (length - 1) + b'","c":' + b" " * (MAX_CALL_BYTES + 1 - length) + b"2}"

    assert loads(document(MAX_STRING_BYTES))["c"] == 2  # type: ignore[call-overload,index]
    with pytest.raises(MalformedJson, match="the string at position 13 is longer than 8,388,608 bytes"):
        loads(document(MAX_STRING_BYTES + 1))


@pytest.mark.parametrize("part", [b"x", b"\\n", b'\\"'], ids=["letters", "escapes", "quotes"])
@pytest.mark.parametrize("nested", [False, True])
def test_no_call_of_the_parser_gets_more_than_one_long_string_and_a_window(part: bytes, nested: bool) -> None:
    string = b'"' + part * (900_000 // len(part)) + b'"'
    member = b"[" + b",".join([b"[" + string + b"]"] * 3) + b"]" if nested else string
    document = b'{"a":[' + b",".join([member] * MEMBERS) + b'],"b":1}'
    lengths: list[int] = []

    def counted(data: bytes) -> object:
        lengths.append(len(data))
        return orjson.loads(data)

    assert read_in_slices(document, counted) == orjson.loads(document)
    assert max(lengths) <= SLICE_BYTES + WINDOW_BYTES + len(string)


CHARACTERS = ["x", "\\n", "\\\\", '\\"', "\\u00e9", "é", "€", "😀", "\\ud83d\\ude00", "\\uD83D\\uDE00", "\\\\ud83d"]
BROKEN = ["\\ud83d", "\\ude00", "\\u12", "\\q", "\x01"]


@given(
    st.lists(st.sampled_from(CHARACTERS), min_size=1),
    st.lists(st.sampled_from(BROKEN), max_size=1),
    st.integers(0, 20),
    st.integers(-1, 30),
    st.sampled_from(
        ['{{"a":1,"b" : "{0}" , "c":[]}}', '["{0}"]', '[1,"{0}","{0}"]', '{{"{0}":"{0}"}}', '"{0}"', '["{0}" "{0}"]']
    ),
)
def test_a_string_in_pieces_is_the_string(
    characters: list[str], broken: list[str], place: int, slice_bytes: int, form: str
) -> None:
    # Only what is too long for the pattern of members is split: more than 256 escapes, or 64 KB without one.
    text = "".join(characters[:place] + broken + characters[place:])
    for long, size in ((text + "\\n" * 300, slice_bytes), ("y" * 70_000 + text, 999 + slice_bytes)):
        document = form.format(long).encode()
        assert outcome(lambda: read_in_slices(document, orjson.loads, size)) == outcome(  # noqa: B023
            lambda: orjson.loads(document)  # noqa: B023
        )


@pytest.mark.parametrize("part", [b"x", b"\\n", b'\\"', b"\\u00e9", "é".encode(), b"\\ud83d\\ude00"])
def test_no_call_of_the_parser_gets_more_than_a_piece_of_a_string(part: bytes) -> None:
    document = b'{"a":[1,"' + part * (MAX_STRING_BYTES // len(part) - 1) + b'"],"b":1}'
    lengths: list[int] = []

    def counted(data: bytes) -> object:
        lengths.append(len(data))
        return orjson.loads(data)

    assert read_in_slices(document, counted) == orjson.loads(document)
    assert max(lengths) <= SLICE_BYTES + len(b'""')
