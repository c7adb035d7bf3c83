"""Entries of manifests are read as their writers mean them, in any range, and no further than they are needed."""

import struct
import tracemalloc
from collections.abc import Callable, Sequence
from copy import deepcopy
from decimal import Decimal
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arco_catalog.iceberg.content_files import ContentFile, EntryStatus, FileContent, FileStatistics, Partition
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.iceberg.partition import PartitionSpec
from arco_catalog.state import avro
from arco_catalog.state.avro_schema import Unreadable
from arco_catalog.state.avro_skippers import Patterns
from arco_catalog.state.avro_values import encode_long
from arco_catalog.state.entry_statistics import bounds_reader, counts_reader
from arco_catalog.state.manifest_entries import EntrySelection, read_entries
from tools.support.avro_files import avro_file
from tools.support.entry_files import (
    UNPARTITIONED,
    entry,
    entry_file,
    entry_schema,
    field,
    identity_spec,
    listed,
    optional,
    read_files,
)


def spec(*types: str) -> tuple[PartitionSpec, Sequence[str]]:
    """A spec with fields p0, p1 and so on, whose results have these types."""
    return identity_spec(*(f"p{number}" for number in range(len(types)))), types


LONGS = st.integers(-(1 << 63), (1 << 63) - 1)
COUNTS = st.none() | st.dictionaries(st.integers(1, 300), st.integers(0, 1 << 62), max_size=90)
BOUNDS = st.none() | st.dictionaries(st.integers(1, 300), st.binary(max_size=70), max_size=90)


@st.composite
def files(draw: st.DrawFn) -> dict[str, object]:
    """The statistics and optional fields of an entry."""
    counts = {name: draw(COUNTS) for name in ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts")}
    optional_long = st.none() | st.integers(0, 1 << 62)
    return {
        **counts,
        "lower_bounds": draw(BOUNDS),
        "upper_bounds": draw(BOUNDS),
        "key_metadata": draw(st.none() | st.binary(max_size=9)),
        "split_offsets": draw(st.none() | st.lists(optional_long.filter(lambda each: each is not None), max_size=70)),
        "sort_order_id": draw(st.none() | st.integers(0, 9)),
        "content_offset": draw(optional_long),
        "content_size_in_bytes": draw(optional_long),
        "referenced_data_file": draw(st.none() | st.text(max_size=200)),
    }


def kept(values: object, columns: frozenset[int] | None) -> object:
    """The part of the statistics of an entry that a reader of these columns returns."""
    if columns is None or not isinstance(values, dict):
        return values
    return {key: value for key, value in values.items() if key in columns} if columns else None


@settings(max_examples=60, deadline=None)
@given(st.lists(files(), min_size=1, max_size=5), st.none() | st.frozensets(st.integers(1, 90), max_size=80))
async def test_all_fields_are_read_with_the_statistics_of_the_columns_that_are_wanted(
    drawn: Sequence[dict[str, object]], columns: frozenset[int] | None
) -> None:
    body = entry_file([entry(number, **each) for number, each in enumerate(drawn)])
    found = await read_files(body, EntrySelection(UNPARTITIONED, [], columns))
    for number, (file, each) in enumerate(zip(found, drawn, strict=True)):
        named = ("value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")
        assert file == ContentFile(
            FileContent.DATA,
            f"s3://bucket/t/data/{number:05}.parquet",
            "parquet",
            0,
            (),
            FileStatistics(10, *(kept(each[name], columns) for name in named)),  # type: ignore[arg-type]
            1_000,
            7,
            7,
            EntryStatus.ADDED,
            99,
            number,
            kept(each["column_sizes"], columns),  # type: ignore[arg-type]
            **{name: each[name] for name in ("key_metadata", "split_offsets", "sort_order_id", "content_offset")},  # type: ignore[arg-type]
            content_size=each["content_size_in_bytes"],  # type: ignore[arg-type]
            referenced_data_file=each["referenced_data_file"],  # type: ignore[arg-type]
        )


STATUSES = st.lists(st.tuples(st.sampled_from([0, 1, 2]), st.none() | st.integers(0, 99)), min_size=1, max_size=30)


@settings(max_examples=60, deadline=None)
@given(STATUSES, st.data(), st.sampled_from([None, 1_000]), st.booleans())
async def test_any_split_of_a_manifest_gives_equal_entries(
    statuses: Sequence[tuple[int, int | None]], data: st.DataObject, first_row_id: int | None, added_only: bool
) -> None:
    entries = [
        entry(number, status, sequence_number=3, first_row_id=row_id, record_count=number + 1)
        for number, (status, row_id) in enumerate(statuses)
    ]
    body = entry_file(entries, block=200)
    manifest = listed(body, first_row_id=first_row_id)
    whole = await read_files(body, EntrySelection(UNPARTITIONED, [], added_only=added_only), manifest)
    cuts = [0, *sorted(data.draw(st.lists(st.integers(0, len(entries)), max_size=4))), None]
    parts: list[ContentFile] = []
    for first, end in pairwise(cuts):
        parts += await read_files(
            body, EntrySelection(UNPARTITIONED, [], first=first or 0, end=end, added_only=added_only), manifest
        )
    assert parts == whole
    live = (1,) if added_only else (0, 1)
    assert [each.position for each in whole] == [number for number, (each, _) in enumerate(statuses) if each in live]


async def test_an_added_entry_inherits_from_its_manifest_and_another_one_does_not() -> None:
    body = entry_file([entry(0), entry(1, 0, sequence_number=3, file_sequence_number=2, snapshot_id=5)])
    added, existing = await read_files(body)
    assert (added.sequence_number, added.file_sequence_number, added.snapshot_id) == (7, 7, 99)
    assert (existing.sequence_number, existing.file_sequence_number, existing.snapshot_id) == (3, 2, 5)


async def test_an_entry_that_was_not_added_must_state_its_sequence_number() -> None:
    body = entry_file([entry(0, 0)])
    with pytest.raises(Unreadable, match="sequence number"):
        await read_files(body)
    [file] = await read_files(body, manifest=listed(body, sequence_number=0))  # a table that was of version 1
    assert file.sequence_number == 0


async def test_row_ids_are_given_to_the_files_that_have_none_by_the_rows_before_them() -> None:
    entries = [
        entry(0, record_count=5),
        entry(1, 2, record_count=100, sequence_number=1),
        entry(2, 0, record_count=7, first_row_id=3, sequence_number=1),
        entry(3, record_count=1),
    ]
    body = entry_file(entries)
    assert [each.first_row_id for each in await read_files(body, manifest=listed(body, first_row_id=50))] == [50, 3, 55]


async def test_files_of_a_manifest_without_a_row_id_have_none_either() -> None:
    """As a table has it that was upgraded to version 3: its readers ignore what the entries state."""
    body = entry_file([entry(0, first_row_id=4)])
    [file] = await read_files(body)
    assert file.first_row_id is None


@pytest.mark.parametrize("version", [1, 2, 3])
async def test_a_manifest_of_each_format_version_is_read(version: int) -> None:
    body = entry_file([entry(0, snapshot_id=5)], entry_schema(version=version))
    [file] = await read_files(body)
    assert (file.content, file.snapshot_id, file.path) == (FileContent.DATA, 5, "s3://bucket/t/data/00000.parquet")


PARTITIONS: dict[str, tuple[str, JsonValue, object, object]] = {
    "boolean": ("boolean", "boolean", True, True),
    "int": ("int", "int", -7, -7),
    "promoted_to_long": ("long", "int", 7, 7),
    "date": ("date", {"type": "int", "logicalType": "date"}, 20_000, 20_000),
    "timestamp": ("timestamptz", {"type": "long", "adjust-to-utc": True, "logicalType": "timestamp-micros"}, -5, -5),
    "nanoseconds": ("timestamp_ns", {"type": "long", "logicalType": "timestamp-nanos"}, 5, 5),
    "float": ("float", "float", 0.5, 0.5),
    "double": ("double", "float", 0.5, 0.5),
    "string": ("string", "string", "é" * 90, "é" * 90),
    "binary": ("binary", "bytes", b"\0\xff", b"\0\xff"),
    "fixed": ("fixed[3]", {"type": "fixed", "name": "f3", "size": 3}, b"abc", b"abc"),
    "uuid": ("uuid", {"type": "fixed", "name": "u", "size": 16, "logicalType": "uuid"}, bytes(16), bytes(16)),
    "uuid_as_text": ("uuid", "string", str(UUID(int=5)), UUID(int=5).bytes),
    "decimal": (
        "decimal(9, 2)",
        {"type": "fixed", "name": "d", "size": 4},
        struct.pack(">i", -1234),
        Decimal("-12.34"),
    ),
    "decimal_of_bytes": ("decimal(38, 0)", "bytes", b"\x7f" * 16, Decimal(int.from_bytes(b"\x7f" * 16))),
}


@pytest.mark.parametrize("name", PARTITIONS)
async def test_a_partition_value_is_read_by_its_type_and_may_be_null(name: str) -> None:
    type_name, avro_type, written, value = PARTITIONS[name]
    schema = entry_schema([optional(1000, "p0", avro_type)])
    body = entry_file([entry(0, partition={"p0": written}), entry(1, partition={"p0": None})], schema)
    found = await read_files(body, EntrySelection(*spec(type_name)))
    assert [each.partition for each in found] == [(value,), (None,)]


async def test_partition_fields_are_found_by_their_ids() -> None:
    """A spec may have renamed a field, have fields in another order, and others than the manifest."""
    schema = entry_schema([field(1001, "old", "int"), field(1005, "gone", "int"), field(1000, "p1", "string")])
    body = entry_file([entry(0, partition={"old": 1, "gone": 2, "p1": "a"})], schema)
    [file] = await read_files(body, EntrySelection(*spec("string", "int", "int")))
    assert file.partition == ("a", 1, None)


async def test_a_partition_value_of_another_type_is_an_error() -> None:
    body = entry_file([entry(0, partition={"p0": "a"})], entry_schema([field(1000, "p0", "string")]))
    with pytest.raises(Unreadable, match="type int"):
        await read_files(body, EntrySelection(*spec("int")))


@pytest.mark.parametrize(
    ("of", "written"),
    [("string", "no UUID"), ("bytes", b"short"), ("bytes", bytes(17)), ("long", 5)],
    ids=["text", "short", "long", "number"],
)
async def test_what_is_no_uuid_is_an_error(of: str, written: object) -> None:
    body = entry_file([entry(0, partition={"p0": written})], entry_schema([field(1000, "p0", of)]))
    with pytest.raises(Unreadable):
        await read_files(body, EntrySelection(*spec("uuid")))


async def test_a_partition_is_judged_once_and_the_files_of_others_are_left_out() -> None:
    schema = entry_schema([field(1000, "p0", "int")])
    body = entry_file([entry(number, partition={"p0": number % 3}) for number in range(30)], schema)
    judged: list[Partition] = []

    def may_match(partition: Partition) -> bool:
        judged.append(partition)
        return partition == (1,)

    found = await read_files(body, EntrySelection(*spec("int"), may_match=may_match))
    assert [each.position for each in found] == [*range(1, 30, 3)]
    assert judged == [(0,), (1,), (2,)]


def changed_schema(name: str, of: JsonValue) -> JsonObject:
    """The schema of an entry with another type of one field of the file."""
    schema = deepcopy(entry_schema())
    for part in (schema, schema["fields"][-1]["type"]):  # type: ignore[index, call-overload]
        for each in part["fields"]:  # type: ignore[index, call-overload, union-attr]
            if each["name"] == name:  # type: ignore[index, call-overload]
                each["type"] = of  # type: ignore[index, call-overload]
    return schema


WRONG: dict[str, JsonValue] = {
    "file_path": "bytes",
    "record_count": ["null", "long"],
    "status": "double",
    "value_counts": {"type": "map", "values": "long"},
    "lower_bounds": {"type": "array", "items": "long"},
    "split_offsets": {"type": "array", "items": {"type": "array", "items": "long"}},
    "partition": "int",
    "data_file": "long",
}


@pytest.mark.parametrize("name", WRONG)
async def test_a_field_of_a_wrong_type_is_an_error(name: str) -> None:
    with pytest.raises(Unreadable):
        await read_files(avro_file(changed_schema(name, WRONG[name]), [(1, bytes(100))]))


@pytest.mark.parametrize("name", ["status", "partition", "file_path", "record_count"])
async def test_a_schema_without_a_field_that_each_entry_has_is_an_error(name: str) -> None:
    schema = changed_schema("", "")
    for part in (schema, schema["fields"][-1]["type"]):  # type: ignore[index, call-overload]
        part["fields"] = [each for each in part["fields"] if each["name"] != name]  # type: ignore[index, call-overload, union-attr]
    with pytest.raises(Unreadable, match="lack a field"):
        await read_files(avro_file(schema, [(1, bytes(100))]))


@pytest.mark.parametrize(
    "changes",
    [{"record_count": -1}, {"file_path": ""}, {"content": 3}, {"content": 1}, {"file_size_in_bytes": -1}],
    ids=lambda changes: next(iter(changes)),
)
async def test_an_impossible_value_is_an_error(changes: dict[str, object]) -> None:
    with pytest.raises(Unreadable):
        await read_files(entry_file([entry(0, **changes)]))


async def test_an_unknown_status_is_an_error() -> None:
    with pytest.raises(Unreadable, match="status"):
        await read_files(entry_file([entry(0, 3, sequence_number=1)]))


@settings(max_examples=150, deadline=None)
@given(st.data())
async def test_damaged_entries_are_errors_or_other_entries_and_never_anything_else(data: st.DataObject) -> None:
    full = entry(0, value_counts={1: 5, 2: 500}, lower_bounds={1: b"abc", 2: b"d" * 90}, split_offsets=[4, 400])
    body = bytearray(entry_file([full] * 3, codec="null"))
    start = body.rindex(b"Obj") + 3
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(start, len(body) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = await read_files(bytes(body))
    except Unreadable:
        return
    assert all(isinstance(each, ContentFile) for each in found)


def hostile_entry(offsets: bytes) -> bytes:
    """A manifest of one entry whose file has these bytes for the array of split offsets, and behind it."""
    head = encode_long(1) + b"\0\0\0"
    file = b"\0" + b"\x02a" + b"\x02b" + b"\x02\x02" + b"\0" * 6 + b"\0" + b"\x02" + offsets
    return avro_file(entry_schema(), [(1, head + file)])


async def test_statistics_of_too_many_columns_are_an_error() -> None:
    body = entry_file([entry(0, value_counts=dict.fromkeys(range(10_001), 1))])
    with pytest.raises(Unreadable, match="more than 10,000 columns"):
        await read_files(body)
    [file] = await read_files(body, EntrySelection(UNPARTITIONED, [], frozenset()))
    assert file.statistics.value_counts is None


@pytest.mark.parametrize("schema", ["null", ["null", "string"], "string", {"type": "array", "items": "int"}])
@pytest.mark.parametrize("reader_of", [counts_reader, bounds_reader])
def test_statistics_of_another_type_are_an_error(
    reader_of: Callable[[JsonValue, None, Patterns], object], schema: JsonValue
) -> None:
    with pytest.raises(Unreadable, match="statistics of an unknown form"):
        reader_of(schema, None, Patterns())


@pytest.mark.parametrize(
    "offsets",
    [
        encode_long(1 << 40),
        encode_long(3 << 20) + b"\2" * (3 << 20) + bytes(9),
        encode_long(-5) + b"\0",
        b"\xff" * 4_000_000,
    ],
    ids=["more_than_there_are", "many", "fewer_than_none", "a_number_without_an_end"],
)
async def test_a_hostile_array_is_an_error_and_takes_little_memory(offsets: bytes) -> None:
    body = hostile_entry(offsets)
    tracemalloc.start()
    try:
        with pytest.raises(Unreadable):
            await read_files(body)
        assert tracemalloc.get_traced_memory()[1] < 8 * len(body) + (16 << 20)
    finally:
        tracemalloc.stop()


async def test_long_partitions_that_do_not_match_are_not_kept() -> None:
    of, types = spec("string")
    drawn = [entry(number, partition={"p0": f"{number}" + "x" * (1 << 20)}) for number in range(60)]
    body = entry_file(drawn, entry_schema([optional(1000, "p0", "string")]))
    tracemalloc.start()
    try:
        assert await read_files(body, EntrySelection(of, types, may_match=lambda _: False)) == []
        assert tracemalloc.get_traced_memory()[1] < 40 << 20
    finally:
        tracemalloc.stop()


async def test_pyiceberg_s_manifests_are_read(tmp_path: Path) -> None:
    """Which have one block for each entry, and partition values by its own encoder."""
    from pyiceberg import manifest as theirs
    from pyiceberg.io.pyarrow import PyArrowFileIO
    from pyiceberg.partitioning import PartitionField as Field
    from pyiceberg.partitioning import PartitionSpec as Spec
    from pyiceberg.schema import Schema
    from pyiceberg.transforms import DayTransform, IdentityTransform
    from pyiceberg.typedef import Record
    from pyiceberg.types import DecimalType, NestedField, TimestampType, UUIDType

    schema = Schema(
        NestedField(1, "at", TimestampType()),
        NestedField(2, "price", DecimalType(9, 2)),
        NestedField(3, "u", UUIDType()),
    )
    fields = Field(1, 1000, DayTransform(), "day"), Field(2, 1001, IdentityTransform(), "price")
    of = Spec(*fields, Field(3, 1002, IdentityTransform(), "u"), spec_id=0)
    output = PyArrowFileIO().new_output(f"file://{tmp_path}/m.avro")
    written = theirs.DataFile.from_args(
        content=theirs.DataFileContent.DATA,
        file_path="s3://b/a.parquet",
        file_format=theirs.FileFormat.PARQUET,
        partition=Record(20_000, Decimal("12.34"), UUID(int=9).bytes),
        record_count=3,
        file_size_in_bytes=5,
        column_sizes={1: 11},
        value_counts={1: 3},
        null_value_counts={1: 0},
        nan_value_counts={},
        lower_bounds={1: b"12345678"},
        upper_bounds={1: b"87654321"},
        split_offsets=[4],
        sort_order_id=0,
        spec_id=0,
    )
    with theirs.write_manifest(2, of, schema, output, 77, "deflate") as writer:
        writer.add(theirs.ManifestEntry.from_args(status=1, snapshot_id=77, data_file=written))
        writer.existing(
            theirs.ManifestEntry.from_args(
                status=0, snapshot_id=7, sequence_number=2, file_sequence_number=2, data_file=written
            )
        )
    body = (tmp_path / "m.avro").read_bytes()
    partition_spec: PartitionSpec = {
        "spec-id": 0,
        "fields": [
            {
                "source-id": each.source_id,
                "field-id": each.field_id,
                "name": each.name,
                "transform": str(each.transform),
            }
            for each in of.fields
        ],
    }
    added, existing = await read_files(body, EntrySelection(partition_spec, ["date", "decimal(9, 2)", "uuid"], None))
    statistics = FileStatistics(3, {1: 3}, {1: 0}, {}, {1: b"12345678"}, {1: b"87654321"})
    assert (added.partition, added.statistics) == ((20_000, Decimal("12.34"), UUID(int=9).bytes), statistics)
    assert (added.column_sizes, added.split_offsets, added.size) == ({1: 11}, [4], 5)
    assert (added.sequence_number, existing.sequence_number, existing.snapshot_id) == (7, 2, 7)


async def test_reading_ends_with_the_last_entry_that_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avro, "CHUNK", 4_096)
    monkeypatch.setattr(avro, "SLICE_RECORDS", 10)
    body = entry_file([entry(number) for number in range(2_000)], codec="null", block=1_000)
    furthest = 0

    async def read_range(start: int, length: int) -> bytes:
        nonlocal furthest
        furthest = max(furthest, start)
        return BytesIO(body[start : start + length]).read()

    async for _ in read_entries(read_range, listed(body), EntrySelection(UNPARTITIONED, [], end=50)):
        pass
    assert furthest < len(body) // 10


async def test_blocks_before_the_first_entry_to_read_are_not_unpacked() -> None:
    body = bytearray(entry_file([entry(number) for number in range(300)], block=1_000))
    whole = await read_files(bytes(body))
    start = body.index(b"\x00", body.index(b"avro.schema")) + 16  # behind the header is the first block
    first_block = bytes(body).find(bytes(body[-16:]), start) + 16 + 4
    body[first_block + 6] ^= 0xFF
    with pytest.raises(Unreadable):
        await read_files(bytes(body))
    assert await read_files(bytes(body), EntrySelection(UNPARTITIONED, [], None, first=200)) == whole[200:]
