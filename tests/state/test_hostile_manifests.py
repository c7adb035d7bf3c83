"""Manifests whose writers mean harm cost a reader a bounded amount of time and memory."""

import re
from collections.abc import Callable, Sequence

import pytest

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.state import avro_skippers
from arco_catalog.state.avro import AvroLimits, parse_blocks
from arco_catalog.state.avro_schema import MAX_SCHEMA_BYTES, MAX_TYPES, UnpacksTooLong, Unreadable
from arco_catalog.state.avro_values import encode_long
from arco_catalog.state.manifest_entries import EntrySelection, read_entries
from tools.support.avro_files import avro_file
from tools.support.entry_files import (
    EVERY,
    entry,
    entry_file,
    entry_schema,
    field,
    identity_spec,
    listed,
    ranges_of,
    read_files,
)


def fixed(size: int) -> JsonObject:
    return {"type": "fixed", "name": f"f{size}", "size": size}


def pair(number: int) -> JsonObject:
    return {
        "type": "record",
        "name": f"pair{number}",
        "fields": [field(1, "a", "string"), field(2, "b", fixed(number))],
    }


UNUSUAL: dict[str, tuple[Callable[[int], JsonValue], Callable[[int], object]]] = {
    "optional": (lambda number: ["null", fixed(number + 1)], lambda _: None),
    "arrays": (lambda number: {"type": "array", "items": pair(number + 1)}, lambda _: []),
    "texts": (lambda number: ["string", "bytes", "int", fixed(number + 1)], lambda _: 5),
}
"""Types of a field by its number, of which each takes an expression of its own, and values."""


@pytest.mark.parametrize("kind", UNUSUAL)
async def test_few_expressions_are_compiled_however_many_types_a_manifest_has(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To compile one takes a microsecond a byte: the 350 KB of a schema with thousands of types took four seconds."""
    type_of, value_of = UNUSUAL[kind]
    schema = entry_schema()
    added = [field(5_000 + number, f"x{number}", type_of(number)) for number in range(600)]
    fields = schema["fields"]
    assert isinstance(fields, list)
    values = {f"x{number}": value_of(number) for number in range(600)}
    body = entry_file([{**entry(number), **values} for number in range(3)], {**schema, "fields": [*fields, *added]})
    compiled: list[int] = []
    compile_pattern = re.compile

    def observed(pattern: bytes, flags: int = 0) -> "re.Pattern[bytes]":
        compiled.append(len(pattern))
        return compile_pattern(pattern, flags)

    monkeypatch.setattr(re, "compile", observed)
    assert [each.position for each in await read_files(body)] == [0, 1, 2]
    assert sum(compiled) < 1.2 * avro_skippers.MAX_PATTERN_BYTES
    assert len(compiled) < 1_000


def with_fields(fields: Sequence[JsonObject]) -> bytes:
    return avro_file({"type": "record", "name": "r", "fields": [*fields]}, [])


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (with_fields([field(number, f"{number}", "int") for number in range(MAX_TYPES)]), "more than 4,000 types"),
        (with_fields([field(1, "x" * MAX_SCHEMA_BYTES, "int")]), "more than 262,144 bytes"),
    ],
    ids=["types", "bytes"],
)
async def test_a_schema_beyond_what_a_table_needs_is_an_error(body: bytes, reason: str) -> None:
    with pytest.raises(Unreadable, match=reason):
        await read_files(body)


async def test_a_header_that_arrives_whole_is_bounded_too() -> None:
    body = with_fields([field(1, "a", "int")])
    blocks = parse_blocks(ranges_of(body), {}, lambda record: record, AvroLimits(header_bytes=40), lambda _: None)
    with pytest.raises(UnpacksTooLong, match="header of the Avro file has more than 40 bytes"):
        await anext(blocks)


async def test_a_partition_spec_of_a_thousand_fields_is_within_the_bounds() -> None:
    numbers = range(1_000)
    partition = [
        field(1_000 + each, f"a_rather_long_name_of_a_partition_field_{each}", ["null", "string"]) for each in numbers
    ]
    of = identity_spec(*(f"p{each}" for each in numbers))
    values = {str(each["name"]): "x" for each in partition}
    body = entry_file([entry(0, partition=values)], entry_schema(partition))
    [file] = await read_files(body, EntrySelection(of, ["string"] * len(numbers)))
    assert file.partition == ("x",) * len(numbers)


async def test_the_name_of_a_format_is_short() -> None:
    with pytest.raises(Unreadable, match="format"):
        await read_files(entry_file([entry(0, file_format="x" * 1_000)]))


async def test_the_values_of_a_partition_count_as_memory() -> None:
    """A file of five thousand entries had a gigabyte of them."""
    body = entry_file([entry(0, partition={"p": "x" * 100_000})], entry_schema([field(1_000, "p", "string")]))
    [file] = await read_files(body, EntrySelection(identity_spec("p"), ["string"]))
    assert file.memory > 100_000


async def test_few_entries_are_decoded_at_a_time() -> None:
    """Their statistics take some forty times as much memory as they have bytes."""
    counts = dict.fromkeys(range(1, 65), 1)
    entries = [entry(number, value_counts=counts, null_value_counts=counts) for number in range(3_000)]
    body = entry_file(entries)
    blocks = read_entries(ranges_of(body), listed(body), EVERY)
    sizes = [sum(file.memory for file in files) async for files in blocks]
    assert len(sizes) > 5
    assert max(sizes) < 8 << 20


async def test_an_array_of_items_that_take_no_bytes_is_an_error() -> None:
    """A union of no types took none: a hundred bytes kept a thread busy for good."""
    schema = entry_schema()
    fields = schema["fields"]
    assert isinstance(fields, list)
    empty = field(5_000, "x", {"type": "array", "items": []})
    body = avro_file({**schema, "fields": [empty, *fields]}, [(1, encode_long(1 << 40))])
    with pytest.raises(Unreadable, match="union of 0 types"):
        await read_files(body)
