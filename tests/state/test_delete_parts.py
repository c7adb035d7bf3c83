"""A part of an index of deletes gives a data file the delete files that all of them together give it."""

import zlib
from collections.abc import Sequence
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arco_catalog.iceberg.content_files import ContentFile, FileStatistics
from arco_catalog.iceberg.delete_index import FILE_PATH_ID, DeleteIndex
from arco_catalog.iceberg.partition_keys import PartitionKeys
from arco_catalog.state import delete_parts
from arco_catalog.state.delete_parts import (
    MAX_BLOCK_BYTES,
    InvalidPart,
    encode_part,
    lookup_hashes,
    read_header,
    read_rows,
    rows_found,
)
from tests.iceberg.test_delete_index import (
    COLUMNS,
    NUMBERS,
    PLACES,
    SPECS,
    delete_files,
    equality,
    file,
    positions,
    vector,
)

KEYS = PartitionKeys(SPECS)


def read_all(part: bytes, *data: ContentFile) -> Sequence[ContentFile]:
    header = read_header(part)
    found: list[ContentFile] = []
    for block in rows_found(header, part[header.start : header.end], lookup_hashes(data, KEYS)):
        found += read_rows(part[block.start : block.start + block.size], block.rows)
    return found


def by_path(files: Sequence[ContentFile]) -> Sequence[ContentFile]:
    return sorted(files, key=lambda each: each.path)


def selected(deletes: Sequence[ContentFile], *data: ContentFile) -> Sequence[ContentFile]:
    return read_all(encode_part(deletes, KEYS), *data)


@given(st.lists(delete_files(), max_size=12), st.lists(st.tuples(NUMBERS, PLACES), min_size=1, max_size=3))
def test_the_selected_deletes_are_all_that_apply(
    deletes: Sequence[ContentFile], chosen: Sequence[tuple[int, tuple[int, tuple[object, ...]]]]
) -> None:
    numbered = [each._replace(path=f"{each.path}-{number}") for number, each in enumerate(deletes)]
    data = [file(number=number, spec=spec, partition=values) for number, (spec, values) in chosen]  # type: ignore[arg-type]
    some = DeleteIndex(selected(numbered, *data), SPECS, COLUMNS)
    every = DeleteIndex(numbered, SPECS, COLUMNS)
    for each in data:
        assert by_path(some.deletes_of(each)) == by_path(every.deletes_of(each))


def test_a_delete_file_is_as_it_was_before() -> None:
    bound = {FILE_PATH_ID: b"data"}
    values = (True, -5, 0.1, Decimal("-1.50"), "ä\n\0", b"\xff", None)
    every = [
        vector(3, content_size=44, sort_order_id=0, key_metadata=b"\0k", split_offsets=[4]),
        positions(2, statistics=FileStatistics(7, None, None, None, bound, bound)),
        equality(
            2, ids=(1, 3), statistics=FileStatistics(2, {1: 2}, {1: 0}, {3: 1}, {1: b"\0\0\0\0"}, {1: b"\1\0\0\0"})
        ),
        positions(4, spec=1, partition=values, file_sequence_number=3),
        positions(5, spec=1, partition=(float("inf"), -0.0)),
    ]
    data = file(), file(spec=1, partition=values), file(spec=1, partition=(float("inf"), -0.0))
    found = selected(every, *data)
    assert sorted(map(repr, found)) == sorted(map(repr, every))


def test_the_statistics_of_positions_are_left_out_but_for_bounds_of_paths() -> None:
    bounds = {FILE_PATH_ID: b"data", FILE_PATH_ID - 1: b"\0" * 8}
    [found] = selected([positions(2, statistics=FileStatistics(7, {1: 7}, {1: 0}, None, bounds, bounds))], file())
    assert found.statistics == FileStatistics(7, None, None, None, {FILE_PATH_ID: b"data"}, {FILE_PATH_ID: b"data"})


def test_rows_for_other_data_files_are_not_decoded() -> None:
    other = [vector(2, of=f"f{number}") for number in range(100)]
    assert selected([*other, vector(2, of="data")], file()) == [vector(2, of="data")]


def test_the_header_has_the_columns_of_equality_deletes() -> None:
    part = encode_part([equality(2, ids=(1, 9)), equality(3, ids=(2,)), positions(1)], KEYS)
    header = read_header(part[:100])
    assert header.columns == {1, 2, 9}
    assert header.files == 3
    assert header.end + sum(block.size for block in header.blocks) == len(part)


def test_equal_deletes_give_equal_bytes() -> None:
    deletes = [equality(2), vector(3)]
    assert encode_part(deletes, KEYS) == encode_part([*deletes], KEYS)


@pytest.mark.parametrize(
    "part",
    [
        b"",
        b"[]\n",
        b'{"version":2,"columns":[],"blocks":[]}\n',
        b'{"version":3',
        b'{"version":3,"columns":[],"blocks":[[1]]}\n',
        b'{"version":3,"columns":[],"blocks":[[-1,9]]}\n',
    ],
    ids=["nothing", "no_object", "another_version", "no_json", "half_a_block", "fewer_than_no_rows"],
)
def test_what_has_no_header_is_no_part(part: bytes) -> None:
    with pytest.raises(InvalidPart):
        read_header(part)


def test_a_data_file_needs_the_blocks_of_its_partition_and_of_deletes_for_all() -> None:
    """However many other partitions the part has, and wherever their deletes are in the manifests."""
    deletes = [positions(2, f"p{number}", spec=1, partition=(number % 50,)) for number in range(5_000)]
    part = encode_part([*deletes, equality(3)], KEYS)
    header = read_header(part)
    hashes = lookup_hashes([file(spec=1, partition=(7,))], KEYS)
    found = rows_found(header, part[header.start : header.end], hashes)
    assert sum(len(block.rows) for block in found) == 100 + 1
    assert len(header.blocks) > 10
    assert len(found) <= 3
    assert found[0].start == header.end


def test_a_block_ends_after_so_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delete_parts, "BLOCK_BYTES", 1)
    assert [block.rows for block in read_header(encode_part([equality(2), equality(3)], KEYS)).blocks] == [1, 1]


ALL = encode_part([equality(2)], KEYS)


def row(document: bytes) -> bytes:
    """A block of one row."""
    return zlib.compress(document)


@pytest.mark.parametrize(
    "block",
    [
        b"no zlib",
        zlib.compress(b"x" * 1_000)[:-4],
        zlib.compress(b" " * (MAX_BLOCK_BYTES + 1)),
        row(b"{"),
        row(b"5"),
        row(b"[1]"),
        row(b'[{"m":[1,2]}]'),
        row(b'[{"x":"1"}]'),
        row(b'[{"d":"no"}]'),
        row(b"[[]" + b",[]" * 19 + b"]"),
    ],
)
def test_a_corrupt_block_is_an_error(block: bytes) -> None:
    with pytest.raises(InvalidPart):
        read_rows(block, [0])


def test_a_row_that_a_block_lacks_is_an_error() -> None:
    with pytest.raises(InvalidPart):
        read_rows(zlib.compress(b"[]"), [1])


def test_a_table_of_another_length_is_an_error() -> None:
    header = read_header(ALL)
    with pytest.raises(InvalidPart):
        rows_found(header, ALL[header.start : header.end - 1], set())


def test_content_of_an_unknown_kind_is_an_error() -> None:
    header = read_header(ALL)
    rows = zlib.decompress(ALL[header.end :])
    assert len(read_rows(row(rows), [0])) == 1
    with pytest.raises(InvalidPart):
        read_rows(row(rows.replace(b"[2,", b"[7,", 1)), [0])
