"""A part of an index of deletes gives a data file the delete files that all of them together give it."""

import zlib
from collections.abc import Callable, Sequence
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arco_catalog.iceberg.content_files import ContentFile, FileStatistics
from arco_catalog.iceberg.delete_index import FILE_PATH_ID, DeleteIndex
from arco_catalog.iceberg.partition_keys import PartitionKeys
from arco_catalog.state.delete_parts import (
    InvalidPart,
    PartHeader,
    PartReader,
    encode_part,
    lookup_hashes,
    read_header,
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


def read_all(
    part: bytes, *data: ContentFile, memory: int = 1_000, check: Callable[[], None] = lambda: None
) -> Sequence[ContentFile]:
    reader = PartReader(part, lookup_hashes(data, KEYS), check)
    found: list[ContentFile] = []
    while not reader.ended:
        found += reader.read(memory)
    return found


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
    assert [some.deletes_of(each) for each in data] == [every.deletes_of(each) for each in data]


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
    assert list(map(repr, found)) == list(map(repr, every))


def test_the_statistics_of_positions_are_left_out_but_for_bounds_of_paths() -> None:
    bounds = {FILE_PATH_ID: b"data", FILE_PATH_ID - 1: b"\0" * 8}
    [found] = selected([positions(2, statistics=FileStatistics(7, {1: 7}, {1: 0}, None, bounds, bounds))], file())
    assert found.statistics == FileStatistics(7, None, None, None, {FILE_PATH_ID: b"data"}, {FILE_PATH_ID: b"data"})


def test_rows_for_other_data_files_are_not_decoded() -> None:
    other = [vector(2, of=f"f{number}") for number in range(100)]
    assert selected([*other, vector(2, of="data")], file()) == [vector(2, of="data")]


def test_the_header_has_the_columns_of_equality_deletes() -> None:
    part = encode_part([equality(2, ids=(1, 9)), equality(3, ids=(2,)), positions(1)], KEYS)
    assert read_header(part[:100]) == PartHeader(3, frozenset({1, 2, 9}), len(part.partition(b"\n")[2]))


def test_equal_deletes_give_equal_bytes() -> None:
    deletes = [equality(2), vector(3)]
    assert encode_part(deletes, KEYS) == encode_part([*deletes], KEYS)


HEADER = b'{"version":1,"files":1,"columns":[]}\n'


@pytest.mark.parametrize(
    "part",
    [b"", b"[]\n", b'{"version":1,"files":1,"columns":[]}\n', b'{"version":1'],
    ids=["nothing", "no_object", "another_version", "no_json"],
)
def test_what_has_no_header_is_no_part(part: bytes) -> None:
    with pytest.raises(InvalidPart):
        read_header(part)


def test_the_files_of_a_part_are_read_a_few_at_a_time() -> None:
    part = encode_part([equality(number) for number in range(2, 102)], KEYS)
    reader = PartReader(part, lookup_hashes([file()], KEYS), lambda: None)
    sizes: list[int] = []
    while not reader.ended:
        sizes.append(len(reader.read(10 * equality(2).memory)))
    assert sum(sizes) == 100
    assert max(sizes) == 11


def test_a_deadline_ends_the_reading_of_a_part_in_which_nothing_is_found() -> None:
    part = encode_part((positions(2, f"p{number}", spec=1, partition=(number,)) for number in range(9_000)), KEYS)
    calls: list[None] = []

    def check() -> None:
        calls.append(None)
        if len(calls) == 3:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        read_all(part, file(), check=check)


ALL = encode_part([equality(2)], KEYS)


def row(document: bytes) -> bytes:
    """A part of one row, which all data files find."""
    key = zlib.decompress(ALL.partition(b"\n")[2])[:16]
    return HEADER + zlib.compress(key + document + b"\n")


@pytest.mark.parametrize(
    "part",
    [
        HEADER + b"no zlib",
        HEADER + zlib.compress(b"x" * 1_000)[:-4],
        row(b"{"),
        row(b"5"),
        row(b"[1]"),
        row(b'[{"m":[1,2]}]'),
        row(b'[{"x":"1"}]'),
        row(b'[{"d":"no"}]'),
        row(b"[[]" + b",[]" * 20 + b"]"),
    ],
)
def test_a_corrupt_part_is_an_error(part: bytes) -> None:
    with pytest.raises(InvalidPart):
        read_all(part, file())


def test_content_of_an_unknown_kind_is_an_error() -> None:
    rows = zlib.decompress(ALL.partition(b"\n")[2])
    with pytest.raises(InvalidPart):
        read_all(HEADER + zlib.compress(rows.replace(b"[2,", b"[7,", 1)), file())
