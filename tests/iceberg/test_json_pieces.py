"""Long documents in pieces: the same as at once, and no step with more than a piece."""

import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arco_catalog.iceberg.json import LONG_BYTES, JsonValue, MalformedJson, dumps, dumps_long, loads
from arco_catalog.iceberg.json_pieces import (
    MAX_DEPTH,
    PIECE_BYTES,
    Unsplit,
    let_go,
    read_in_pieces,
    write_in_pieces,
)
from tests.iceberg.big_table import big_table, snapshot
from tests.iceberg.strategies import json_values
from tests.iceberg.values import Json

texts = st.text(st.sampled_from('ab,:[]{}"\\\n é'), max_size=6)
scalars = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    scalars | texts,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(texts, inner, max_size=5),
    max_leaves=30,
)
containers = st.lists(values, max_size=6) | st.dictionaries(texts, values, max_size=6)
sizes = st.sampled_from([1, 2, 3, 5, 8, 13, 40])


def at_once(data: bytes) -> JsonValue:
    return loads(data)


def outcome(data: bytes, size: int | None) -> tuple[bool, str]:
    """Whether the data are read, and what came of it, in order and with types."""
    try:
        return True, json.dumps(at_once(data) if size is None else read_in_pieces(data, at_once, size))
    except ValueError:
        return False, ""


@given(containers, sizes, st.sampled_from([None, 1]), st.booleans())
def test_a_document_in_pieces_is_the_document(value: Json, size: int, indent: int | None, ascii_only: bool) -> None:
    data = json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode()
    assert outcome(data, size) == outcome(data, None)


@given(containers, sizes, st.data())
def test_what_is_no_document_is_none_in_pieces_either(value: Json, size: int, choose: st.DataObject) -> None:
    data = json.dumps(value).encode()
    place = choose.draw(st.integers(1, len(data)))
    put = choose.draw(st.sampled_from([b"", b",", b"[", b"]", b"{", b"}", b'"', b"\\", b" ", b":", b"1", b"\xff"]))
    data = data[:place] + put + data[place + choose.draw(st.integers(0, 1)) :]
    assert outcome(data, size) == outcome(data, None)


@pytest.mark.parametrize(
    "data",
    [
        b'{"a":[1,2,3],"a":[4,5]}',
        b'{"a":1,"a":{"b":[1,2],"b":[3,4,5]},"c":2}',
        b'{"":[1,2],"":{"":[3,4]}}',
        b'{"\\u0061":[1,2,3],"a":[4,5,6]}',
    ],
)
def test_of_members_with_one_name_the_last_counts(data: bytes) -> None:
    for size in range(1, len(data) + 1):
        assert outcome(data, size) == outcome(data, None)


@pytest.mark.parametrize("brackets", [(b"[", b"]"), (b'{"a":', b"}")], ids=["arrays", "objects"])
def test_a_document_that_nests_too_deep_is_refused_in_pieces_too(brackets: tuple[bytes, bytes]) -> None:
    begin, end = brackets
    good, deeper = (begin * depth + b"1" + end * depth for depth in (MAX_DEPTH - 1, MAX_DEPTH + 1))
    depth, inner = 0, read_in_pieces(good, at_once, 16)
    while isinstance(inner, list | dict):
        depth, inner = depth + 1, inner[0] if isinstance(inner, list) else inner["a"]
    assert depth == MAX_DEPTH - 1
    with pytest.raises(ValueError, match=r"deep|depth"):
        read_in_pieces(deeper, at_once, 16)
    with pytest.raises(Unsplit, match="neither"):
        read_in_pieces(b'"text"', at_once)


LONG: Json = {
    "snapshots": [snapshot(number) for number in range(20_000)],
    "names": {f"n{n}": [n] for n in range(40_000)},
}


def test_no_step_of_reading_gets_more_than_a_piece() -> None:
    data = dumps(LONG)
    assert len(data) > 8 * PIECE_BYTES
    lengths: list[int] = []

    def counted(piece: bytes) -> JsonValue:
        lengths.append(len(piece))
        return loads(piece)

    assert read_in_pieces(data, counted) == LONG
    assert max(lengths) <= PIECE_BYTES + 64
    assert sum(lengths) < len(data) + 200 * len(lengths)


def test_no_step_of_writing_writes_much_more_than_a_piece() -> None:
    lengths: list[int] = []

    def counted(value: object) -> bytes:
        lengths.append(len(dumps(value)))  # type: ignore[arg-type]
        return dumps(value)  # type: ignore[arg-type]

    written = write_in_pieces(LONG, counted)
    assert written == dumps(LONG)
    assert max(lengths) <= 2 * PIECE_BYTES
    assert len(lengths) < 1_000


def test_long_documents_are_read_in_pieces_whoever_reads_them(monkeypatch: pytest.MonkeyPatch) -> None:
    data = dumps(LONG)
    assert len(data) > LONG_BYTES
    lengths: list[int] = []
    parse = orjson.loads

    def counted(piece: bytes) -> object:
        lengths.append(len(piece))
        return parse(piece)

    monkeypatch.setattr(orjson, "loads", counted)
    assert loads(b" " + data) == LONG
    assert max(lengths) <= PIECE_BYTES + 64


def test_a_long_document_that_is_none_is_refused() -> None:
    data = dumps(LONG)
    for broken in (data[:-1], data + b"]", data[:-2] + b",}}", data[: len(data) // 2], data + b",{}"):
        with pytest.raises(MalformedJson):
            loads(broken)
    assert loads(b'"' + b"a" * LONG_BYTES + b'"') == "a" * LONG_BYTES


@given(json_values)
def test_what_is_written_in_parts_is_what_is_written_at_once(value: Json) -> None:
    assert dumps_long(value, LONG_BYTES + 1) == dumps_long(value, 0) == dumps(value)
    assert write_in_pieces(value, lambda part: dumps(part), 4) == dumps(value)  # type: ignore[arg-type]


def test_what_is_let_go_of_is_empty() -> None:
    documents: list[Json] = [big_table(100), [1, [2, {"a": [3]}], {}], {"a": {"b": "c"}}, [[]] * 1000]
    for document in documents:
        let_go(document)
        assert not document
    let_go("text")
