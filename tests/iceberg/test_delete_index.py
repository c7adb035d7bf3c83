"""Each data file gets the delete files that the specification applies to it, and no other ones without need."""

import math
import struct
import tracemalloc
from collections.abc import Iterator, Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arco_catalog.iceberg.content_files import ContentFile, FileContent, FileStatistics, Partition
from arco_catalog.iceberg.delete_index import FILE_PATH_ID, MAX_COMPARED, DeleteIndex
from arco_catalog.iceberg.errors import BadRequest, Unsupported
from arco_catalog.iceberg.partition import PartitionSpec
from arco_catalog.iceberg.partition_keys import PartitionKeys, dropped_columns
from arco_catalog.iceberg.schema import Column, Schema, StructField

SPECS: Mapping[int, PartitionSpec] = {
    0: {"spec-id": 0, "fields": []},
    1: {"spec-id": 1, "fields": [{"source-id": 1, "field-id": 1000, "name": "p", "transform": "identity"}]},
    2: {"spec-id": 2, "fields": [{"source-id": 1, "field-id": 1000, "name": "p", "transform": "void"}]},
}
COLUMN_JSON: Mapping[str, StructField] = {
    name: {"id": number, "name": name, "type": "int", "required": False} for number, name in ((1, "a"), (2, "b"))
}
COLUMNS = {1: Column(1, "a", "int", False), 2: Column(2, "b", "string", True), 3: Column(3, "c", "double", False)}


def file(
    content: FileContent = FileContent.DATA,
    number: int = 1,
    path: str = "data",
    spec: int = 0,
    partition: Partition = (),
    statistics: FileStatistics | None = None,
    file_format: str = "parquet",
    **rest: object,
) -> ContentFile:
    return ContentFile(
        content,
        path,
        file_format,
        spec,
        partition,
        statistics or FileStatistics(1),
        10,
        number,
        **rest,  # type: ignore[arg-type]
    )


def positions(number: int, path: str = "positions", **rest: object) -> ContentFile:
    return file(FileContent.POSITION_DELETES, number, path, **rest)  # type: ignore[arg-type]


def equality(number: int, path: str = "equality", ids: Sequence[int] = (1,), **rest: object) -> ContentFile:
    return file(FileContent.EQUALITY_DELETES, number, path, equality_ids=[*ids], **rest)  # type: ignore[arg-type]


def vector(number: int, of: str = "data", **rest: object) -> ContentFile:
    return positions(number, "v.puffin", file_format="puffin", referenced_data_file=of, content_offset=4, **rest)


def found(data: ContentFile, *deletes: ContentFile) -> Sequence[ContentFile]:
    return DeleteIndex(deletes, SPECS, COLUMNS).deletes_of(data)


def test_deletes_of_positions_apply_to_files_of_their_sequence_number_and_equality_deletes_to_older_files() -> None:
    deletes = [make(number) for number in (1, 2, 3) for make in (positions, equality)]
    assert found(file(number=2), *deletes) == [equality(3), positions(2), positions(3)]


def test_deletes_apply_within_their_partition_and_spec() -> None:
    data = file(spec=1, partition=(5,))
    here = [make(2, spec=1, partition=(5,)) for make in (equality, positions)]
    elsewhere = [make(2, spec=1, partition=(6,)) for make in (equality, positions)]
    assert found(data, *here, *elsewhere, positions(2, spec=0), positions(2, spec=2, partition=(None,))) == here


@pytest.mark.parametrize("spec", [0, 2], ids=["no_fields", "void_fields"])
def test_equality_deletes_without_a_partition_apply_to_all_partitions(spec: int) -> None:
    everywhere = equality(2, spec=spec, partition=() if spec == 0 else (None,))
    assert found(file(spec=1, partition=(5,)), everywhere) == [everywhere]


@pytest.mark.parametrize(
    ("one", "other", "same"), [(math.nan, float("nan"), True), (0.0, -0.0, False), (1.5, 1.5, True)]
)
def test_float_partitions_are_compared_as_java_does(one: float, other: float, same: bool) -> None:
    deletes = positions(2, spec=1, partition=(other,))
    assert found(file(spec=1, partition=(one,)), deletes) == ([deletes] if same else [])


def test_a_file_of_positions_for_one_data_file_applies_to_that_alone() -> None:
    bound = {FILE_PATH_ID: b"data"}
    by_bounds = positions(2, "bounds", statistics=FileStatistics(1, lower_bounds=bound, upper_bounds=bound))
    by_field = positions(2, "field", referenced_data_file="data")
    wide = FileStatistics(1, lower_bounds=bound, upper_bounds={FILE_PATH_ID: b"dbta"})
    of_many = positions(2, "many", statistics=wide)
    assert [each.path for each in found(file(), by_bounds, by_field, of_many)] == ["many", "bounds", "field"]
    assert found(file(path="other"), by_bounds, by_field, of_many) == [of_many]


def test_a_deletion_vector_replaces_files_of_positions_and_no_equality_deletes() -> None:
    one = vector(3)
    others = [positions(3), positions(3, "for it", referenced_data_file="data"), equality(3)]
    assert found(file(), one, *others) == [equality(3), one]
    assert found(file(path="other"), one, *others) == [equality(3), positions(3)]


def test_deletion_vectors_that_contradict_the_table_are_errors() -> None:
    with pytest.raises(BadRequest, match="two deletion vectors"):
        DeleteIndex([vector(2), vector(3)], SPECS, COLUMNS)
    with pytest.raises(BadRequest, match="names no data file"):
        DeleteIndex([vector(2)._replace(referenced_data_file=None)], SPECS, COLUMNS)
    with pytest.raises(BadRequest, match="older"):
        found(file(number=3), vector(2))
    with pytest.raises(BadRequest, match="another partition"):
        found(file(spec=1, partition=(1,)), vector(2))
    with pytest.raises(BadRequest, match="another partition"):
        found(file(spec=1, partition=(1,)), positions(2, spec=1, partition=(2,), referenced_data_file="data"))


def test_a_partition_value_that_was_lost_with_its_column_contradicts_none() -> None:
    lost = file(spec=1, partition=(None,))
    for deletes in (vector(2), positions(2, referenced_data_file="data")):
        of_partition = deletes._replace(spec_id=1, partition=(2,))
        assert found(lost, of_partition) == [of_partition]


def known(nulls: int | None = None, low: int | None = None, high: int = 0, rows: int = 10) -> FileStatistics:
    """Statistics with this number of nulls in column 1, if it is known, and these bounds."""
    counts = {} if nulls is None else {"null_value_counts": {1: nulls}, "value_counts": {1: rows}}
    bounds = (
        {}
        if low is None
        else {"lower_bounds": {1: struct.pack("<i", low)}, "upper_bounds": {1: struct.pack("<i", high)}}
    )
    return FileStatistics(rows, **counts, **bounds)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("deletes", "data", "applies"),
    [
        (known(0, 1, 5), known(0, 5, 9), True),
        (known(0, 1, 5), known(0, 6, 9), False),
        (known(0, 7, 8), known(0, 1, 6), False),
        (known(0, 7, 8), known(0), True),
        (known(0), known(0, 1, 6), True),
        (known(0), known(10), False),
        (known(1), known(10), True),
        (known(10), known(0), False),
        (known(1), known(0), True),
        (known(1, 1, 2), known(1, 8, 9), True),
        (known(None, 1, 2), known(1, 8, 9), True),
        (known(0, 1, 2), known(1, 8, 9), False),
        (known(1, 1, 2), known(0, 8, 9), False),
    ],
)
def test_equality_deletes_whose_values_a_file_lacks_do_not_apply(
    deletes: FileStatistics, data: FileStatistics, applies: bool
) -> None:
    one = equality(2, statistics=deletes)
    assert found(file(statistics=data), one) == ([one] if applies else [])


def test_bounds_of_a_required_column_are_compared_without_counts_of_nulls() -> None:
    one = equality(2, ids=(2,), statistics=FileStatistics(10, lower_bounds={2: b"a"}, upper_bounds={2: b"b"}))
    lower = FileStatistics(10, lower_bounds={2: b"c"}, upper_bounds={2: b"d"})
    assert found(file(statistics=lower), one) == []


def of_column(column: Column, deletes: FileStatistics, data: FileStatistics) -> bool:
    """Whether equality deletes by a column apply to a data file, by the statistics of both."""
    index = DeleteIndex([equality(2, ids=(column.id,), statistics=deletes)], SPECS, {column.id: column})
    return bool(index.deletes_of(file(statistics=data)))


def between(low: bytes, high: bytes, **counts: Mapping[int, int]) -> FileStatistics:
    return FileStatistics(10, lower_bounds={3: low}, upper_bounds={3: high}, **counts)


def test_bounds_of_floats_rule_nothing_out_where_both_files_may_have_nan() -> None:
    one, five = struct.pack("<d", 1.0), struct.pack("<d", 5.0)
    for required in (False, True):
        column = Column(3, "c", "double", required)
        for nans, others, applies in [(1, 1, True), (1, 0, False), (0, 1, False), (0, None, False), (1, None, True)]:
            deletes = between(one, one, null_value_counts={3: 0}, nan_value_counts={3: nans})
            known = {} if others is None else {3: others}
            data = between(five, five, null_value_counts={3: 0}, nan_value_counts=known)
            assert of_column(column, deletes, data) is applies


@pytest.mark.parametrize("counts", [{3: 9}, {}], ids=["fewer_values_than_rows", "no_count"])
def test_a_required_column_is_null_in_the_rows_in_which_the_struct_around_it_is_null(counts: Mapping[int, int]) -> None:
    low, high = b"a", b"x"
    for outer_is_required in (False, True):
        column = Column(3, "s.c", "string", True, Column(1, "s", {"type": "struct", "fields": []}, outer_is_required))
        deletes = between(low, low, value_counts=counts, null_value_counts={3: 0})
        data = between(high, high, value_counts=counts, null_value_counts={3: 0})
        assert of_column(column, deletes, data) is not outer_is_required
        assert not of_column(column, deletes, data._replace(value_counts={3: 10}))


def test_bounds_of_uuids_are_compared_where_the_orders_of_all_writers_agree() -> None:
    column = Column(3, "c", "uuid", True)
    low, middle, high = (bytes([first]) + bytes(15) for first in (0x10, 0x20, 0x90))
    signed = between(high, low)  # by two signed numbers, 0x90... is below zero
    assert of_column(column, between(low, low), signed)
    assert of_column(column, between(low, middle), between(middle, middle))
    assert not of_column(column, between(low, low), between(middle, middle))
    second_halves = between(low[:8] + b"\x80" + bytes(7), low[:8] + b"\x10" + bytes(7))
    assert of_column(column, between(low, low), second_halves)


def test_equality_columns_are_compared_once_each_and_up_to_a_bound() -> None:
    columns = {number: Column(number, f"c{number}", "int", False) for number in range(2 * MAX_COMPARED)}
    repeated = [equality(2, ids=[1] * 100_000) for _ in range(20)]
    tracemalloc.start()
    try:
        index = DeleteIndex(repeated, SPECS, columns)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()
    assert index.column_ids == {1}
    assert len(DeleteIndex([equality(2, ids=[*columns])], SPECS, columns).column_ids) == MAX_COMPARED


def test_equality_columns_that_the_table_does_not_know_rule_nothing_out() -> None:
    one = equality(2, ids=(9,))
    assert found(file(), one) == [one]
    assert DeleteIndex([equality(2, ids=(1, 9, 3))], SPECS, COLUMNS).column_ids == {1, 3}


def found_after_a_drop(data: ContentFile, *deletes: ContentFile) -> Sequence[ContentFile]:
    """In a table whose column 1 was dropped, by which it was partitioned."""
    return DeleteIndex(deletes, SPECS, COLUMNS, frozenset({1})).deletes_of(data)


@pytest.mark.parametrize("partition", [(5,), (None,)], ids=["kept", "lost"])
@pytest.mark.parametrize("of_data", [(5,), (None,)], ids=["kept_in_the_data", "lost_in_the_data"])
def test_positions_are_found_where_a_partition_has_lost_the_value_of_a_dropped_column(
    partition: Partition, of_data: Partition
) -> None:
    """Java's library writes null when it rewrites a manifest after the drop. The rows would come back."""
    deletes = positions(2, spec=1, partition=partition)
    assert found_after_a_drop(file(spec=1, partition=of_data), deletes) == [deletes]


def test_values_of_a_dropped_column_that_are_not_lost_tell_partitions_apart() -> None:
    deletes = [make(2, spec=1, partition=(6,)) for make in (positions, equality)]
    assert found_after_a_drop(file(spec=1, partition=(5,)), *deletes) == []
    here = [make(2, spec=1, partition=(5,)) for make in (equality, positions)]
    assert found_after_a_drop(file(spec=1, partition=(5,)), *here, *deletes) == here


@pytest.mark.parametrize(("one", "other"), [((5,), (None,)), ((None,), (5,))], ids=["data", "deletes"])
def test_equality_deletes_of_perhaps_another_partition_are_for_clients_to_plan(
    one: Partition, other: Partition
) -> None:
    with pytest.raises(Unsupported, match="dropped column"):
        found_after_a_drop(file(spec=1, partition=one), equality(2, spec=1, partition=other))
    assert found_after_a_drop(file(number=3, spec=1, partition=one), equality(2, spec=1, partition=other)) == []
    assert found(file(spec=1, partition=one), equality(2, spec=1, partition=other)) == []


def test_equality_deletes_of_the_null_partition_apply_to_it_as_for_java() -> None:
    deletes = equality(2, spec=1, partition=(None,))
    assert found_after_a_drop(file(spec=1, partition=(None,)), deletes) == [deletes]


def test_a_column_is_dropped_if_a_later_schema_lacks_it() -> None:
    one, two, both = (Schema(type="struct", fields=[COLUMN_JSON[n] for n in names]) for names in ("a", "b", "ab"))
    assert dropped_columns({0: one, 1: both}) == frozenset()
    assert dropped_columns({0: both, 1: one}) == {2}
    assert dropped_columns({1: both, 0: two, 2: two}) == {1}


NUMBERS = st.integers(1, 4)
PATHS = st.sampled_from(["data", "other"])
PLACES: st.SearchStrategy[tuple[int, Partition]] = st.sampled_from(
    [(0, ()), (1, (5,)), (1, (6,)), (1, (None,)), (2, (None,))]
)


@st.composite
def delete_files(draw: st.DrawFn) -> ContentFile:
    number, (spec, partition) = draw(NUMBERS), draw(PLACES)
    if draw(st.booleans()):
        return equality(number, spec=spec, partition=partition)
    return positions(number, spec=spec, partition=partition)


def applies(delete: ContentFile, data: ContentFile) -> bool:
    """The rules of the specification, one by one."""
    here = (delete.spec_id, delete.partition) == (data.spec_id, data.partition)
    if delete.content == FileContent.EQUALITY_DELETES:
        return data.sequence_number < delete.sequence_number and (here or delete.spec_id in (0, 2))
    return data.sequence_number <= delete.sequence_number and here


@given(st.lists(delete_files(), max_size=12), NUMBERS, PLACES)
def test_an_index_finds_what_the_specification_applies(
    deletes: Sequence[ContentFile], number: int, place: tuple[int, Partition]
) -> None:
    data = file(number=number, spec=place[0], partition=place[1])
    expected = [each for each in deletes if applies(each, data)]
    assert sorted(found(data, *deletes)) == sorted(expected)


def test_a_partition_spec_is_read_when_a_file_has_it() -> None:
    """A table has any number of them."""

    class Specs(dict[int, PartitionSpec]):
        def __iter__(self) -> Iterator[int]:
            raise AssertionError("all specs were read")

        items = values = keys = __iter__  # type: ignore[assignment]

    keys = PartitionKeys(Specs(SPECS), frozenset({1}))
    assert [keys.is_partitioned(spec) for spec in (0, 1, 2, 9)] == [False, True, False, False]
    assert keys.lost(1) == {0}
