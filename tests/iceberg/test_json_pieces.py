"""Long documents are written in pieces, and hostile ones are refused in one pass."""

import orjson
import pytest
from hypothesis import given

from arco_catalog.iceberg.json import LONG_BYTES, MalformedJson, dumps, dumps_long, loads
from arco_catalog.iceberg.json_pieces import (
    PIECE_BYTES,
    let_go,
    write_in_pieces,
)
from arco_catalog.iceberg.outline import LARGE_BYTES, let_long_parts_go
from tests.iceberg.big_table import big_table, snapshot
from tests.iceberg.strategies import json_values
from tests.iceberg.values import Json

LONG: Json = {
    "snapshots": [snapshot(number) for number in range(20_000)],
    "names": {f"n{n}": [n] for n in range(40_000)},
}


def test_no_step_of_writing_writes_much_more_than_a_piece() -> None:
    lengths: list[int] = []

    def counted(value: object) -> bytes:
        lengths.append(len(dumps(value)))  # type: ignore[arg-type]
        return dumps(value)  # type: ignore[arg-type]

    written = write_in_pieces(LONG, counted)
    assert written == dumps(LONG)
    assert max(lengths) <= 2 * PIECE_BYTES
    assert len(lengths) < 1_000


def test_a_document_of_ordinary_size_is_read_by_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    ordinary: Json = {"snapshots": [snapshot(number) for number in range(10_000)]}
    lengths = parsed_lengths(monkeypatch)
    assert loads(b" " + dumps(ordinary)) == ordinary
    assert lengths == [len(dumps(ordinary)) + 1]


@pytest.mark.parametrize("unit", [b"[", b'{"":', b"[" + b" " * 399, b"[1234567890123456789012,"])
def test_eight_megabytes_of_brackets_are_refused_in_one_pass(unit: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = parsed_lengths(monkeypatch)
    data = unit * (8_000_000 // len(unit))
    with pytest.raises(MalformedJson, match=r"recursion limit|depth"):
        loads(data)
    assert sum(lengths) <= 1.1 * len(data)


def parsed_lengths(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The bytes of each call of the parser from now on."""
    lengths: list[int] = []
    parse = orjson.loads

    def counted(data: bytes) -> object:
        lengths.append(len(data))
        return parse(data)

    monkeypatch.setattr(orjson, "loads", counted)
    return lengths


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


@pytest.mark.parametrize("fields", [1, 100])
def test_the_long_parts_of_a_document_are_let_go_of_however_many_fields_it_has(fields: int) -> None:
    parts: list[Json] = [[{"a": [each]}] for each in range(fields)]
    document: dict[str, Json] = {"refs": {"main": {}}, **{f"x{each}": part for each, part in enumerate(parts)}}
    let_long_parts_go(document, LARGE_BYTES)
    assert parts == [[]] * fields
    assert document["refs"] == {"main": {}}


@pytest.mark.parametrize("depth", [0, 2, 40])
def test_long_strings_are_written_in_pieces_wherever_they_are(depth: int) -> None:
    member: Json = {"n" * 300_000: "\n" * 300_000}
    for _ in range(depth):
        member = [member]
    document: Json = {"x": [*["a"] * 2_000, *[member] * 9], "y": "\n" * 300_000}
    calls: list[int] = []

    def counted(value: object) -> bytes:
        written = dumps(value)  # type: ignore[arg-type]
        calls.append(len(written))
        return written

    assert write_in_pieces(document, counted) == dumps(document)
    assert max(calls) <= 2 * PIECE_BYTES


def test_lists_nested_as_deep_as_the_parser_reads_them_are_written() -> None:
    document = b'{"a":' + b"[" * 1_000 + b"]" * 1_000 + b"}"
    assert write_in_pieces(loads(document), lambda part: dumps(part)) == document  # type: ignore[arg-type]
