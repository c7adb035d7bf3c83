"""Which files, manifests and partitions are left out, case by case."""

import math
from decimal import Decimal
from functools import reduce
from itertools import product
from operator import eq, ge, gt, le, lt, ne
from struct import pack
from typing import Any

import pytest

from arco_catalog.iceberg.content_files import FileStatistics
from arco_catalog.iceberg.expressions.expression import (
    FALSE,
    TRUE,
    And,
    Expression,
    Literal,
    Not,
    Operation,
    Or,
    Predicate,
    Term,
)
from arco_catalog.iceberg.expressions.filters import ScanFilter, SpecFilter
from arco_catalog.iceberg.expressions.residuals import MAX_REMEMBERED, MAX_REMEMBERED_LENGTH, MAX_REMEMBERED_PREDICATES
from arco_catalog.iceberg.expressions.transform_values import transform_function
from arco_catalog.iceberg.manifests import FieldSummary
from tests.iceberg.expressions.samples import schema_of, spec_of
from tests.iceberg.values import column, schema, struct

LT, LT_EQ, GT, GT_EQ = Operation.LT, Operation.LT_EQ, Operation.GT, Operation.GT_EQ
EQ, NOT_EQ, IN, NOT_IN = Operation.EQ, Operation.NOT_EQ, Operation.IN, Operation.NOT_IN
IS_NULL, NOT_NULL, IS_NAN, NOT_NAN = Operation.IS_NULL, Operation.NOT_NULL, Operation.IS_NAN, Operation.NOT_NAN
STARTS, NOT_STARTS = Operation.STARTS_WITH, Operation.NOT_STARTS_WITH


COMPARED = {LT: lt, LT_EQ: le, GT: gt, GT_EQ: ge, EQ: eq, NOT_EQ: ne}


def predicate(operation: Operation, *values: Any, name: str = "c1", transform: str = "identity") -> Predicate:
    return Predicate(operation, Term(name, transform), tuple(map(Literal, values)))


def bound(expression: Expression, *types: str, spec: Any = None) -> SpecFilter:
    return ScanFilter(expression, schema_of(types), {0: spec or spec_of()}, True).for_spec(0)


def integer(value: int) -> bytes:
    return pack("<i", value)


INTS = FileStatistics(50, {1: 50}, {1: 0}, None, {1: integer(30)}, {1: integer(79)})


@pytest.mark.parametrize(
    ("operation", "literals", "kept"),
    [
        (LT, [30], False),
        (LT, [31], True),
        (LT_EQ, [29], False),
        (LT_EQ, [30], True),
        (GT, [79], False),
        (GT, [78], True),
        (GT_EQ, [80], False),
        (GT_EQ, [79], True),
        (EQ, [29], False),
        (EQ, [30], True),
        (EQ, [79], True),
        (EQ, [80], False),
        (NOT_EQ, [30], True),
        (IN, [10, 29], False),
        (IN, [80, 90], False),
        (IN, [29, 80], False),
        (IN, [29, 30], True),
        (IN, [79, 90, 10], True),
        (IN, [*range(-1000, 0)], False),
        (NOT_IN, [*range(100)], True),
        (IS_NULL, [], False),
        (NOT_NULL, [], True),
    ],
)
def test_bounds_leave_a_file_out(operation: Operation, literals: list[int], kept: bool) -> None:
    assert bound(predicate(operation, *literals), "int").file_may_match(INTS) is kept


@pytest.mark.parametrize("operation", [LT, LT_EQ, GT, GT_EQ, EQ, IN, NOT_EQ, NOT_IN])
@pytest.mark.parametrize("bounds", [None, {}, {1: b""}, {1: b"\x01"}, {2: integer(5)}])
def test_without_bounds_of_the_column_a_file_is_kept(operation: Operation, bounds: Any) -> None:
    values = (0, 200) if operation in (IN, NOT_IN) else (5,)
    test = bound(predicate(operation, *values), "int").file_may_match
    assert test(INTS._replace(lower_bounds=bounds, upper_bounds=bounds))


@pytest.mark.parametrize("operation", [LT, LT_EQ, GT, GT_EQ, EQ, IN, NOT_NULL, STARTS])
def test_a_column_of_nulls_alone_meets_no_condition_on_values(operation: Operation) -> None:
    values = ("a", "b") if operation is IN else () if operation is NOT_NULL else ("a",)
    test = bound(predicate(operation, *values), "string").file_may_match
    assert not test(FileStatistics(5, {1: 5}, {1: 5}))
    assert test(FileStatistics(5, {1: 5}, {1: 4}))
    assert test(FileStatistics(5, {1: 5}, None))
    assert test(FileStatistics(5, None, {1: 5}))
    assert test(FileStatistics(5, {}, {1: 5}))
    assert test(FileStatistics(5, {}, {}))


def test_one_value_alone_meets_no_condition_that_excludes_it() -> None:
    one = FileStatistics(5, {1: 5}, {1: 0}, {1: 0}, {1: integer(3)}, {1: integer(3)})
    for excluded in (predicate(NOT_EQ, 3), predicate(NOT_IN, 3, 4), Not(predicate(EQ, 3))):
        test = bound(excluded, "int").file_may_match
        assert not test(one)
        assert test(one._replace(null_value_counts={1: 1}))
        assert test(one._replace(null_value_counts=None))
        assert test(one._replace(upper_bounds={1: integer(4)}))
    assert bound(predicate(NOT_IN, 4, 5), "int").file_may_match(one)


def test_nan_is_outside_of_bounds_and_no_null() -> None:
    half, one = pack("<d", 0.5), pack("<d", 1.0)
    numbers = FileStatistics(5, {1: 5}, {1: 0}, {1: 0}, {1: half}, {1: one})
    only_nan = FileStatistics(5, {1: 5}, {1: 0}, {1: 5})
    is_nan, not_nan = (bound(predicate(each), "double").file_may_match for each in (IS_NAN, NOT_NAN))
    assert (is_nan(numbers), is_nan(only_nan), not_nan(numbers), not_nan(only_nan)) == (False, True, True, False)
    assert not is_nan(FileStatistics(5, {1: 5}, {1: 5}))
    assert is_nan(numbers._replace(nan_value_counts=None))
    for operation in (LT, LT_EQ, GT, GT_EQ, EQ):
        assert not bound(predicate(operation, 0.7), "double").file_may_match(only_nan)
    unique = numbers._replace(upper_bounds={1: half})
    other = bound(predicate(NOT_EQ, 0.5), "double").file_may_match
    assert not other(unique)
    assert other(unique._replace(nan_value_counts={1: 1}))
    assert other(unique._replace(nan_value_counts=None))
    unreliable = numbers._replace(lower_bounds={1: pack("<d", math.nan)})
    assert bound(predicate(LT, 0.1), "double").file_may_match(unreliable)


TEXTS = FileStatistics(5, {1: 5}, {1: 0}, None, {1: b"abc"}, {1: "abd😀".encode()})


@pytest.mark.parametrize(
    ("operation", "prefix", "kept"),
    [
        (STARTS, "a", True),
        (STARTS, "ab", True),
        (STARTS, "abcx", True),
        (STARTS, "abb", False),
        (STARTS, "abe", False),
        (STARTS, "b", False),
        (STARTS, "", True),
        (NOT_STARTS, "ab", False),
        (NOT_STARTS, "a", False),
        (NOT_STARTS, "abc", True),
        (NOT_STARTS, "b", True),
        (LT, "abc", False),
        (LT, "abca", True),
        (GT, "abd😀", False),
        (GT, "abd\uffff", True),
    ],
)
def test_bounds_of_text_leave_a_file_out(operation: Operation, prefix: str, kept: bool) -> None:
    test = bound(predicate(operation, prefix), "string").file_may_match
    assert test(TEXTS) is kept
    if operation is NOT_STARTS:
        assert test(TEXTS._replace(null_value_counts={1: 1}))


def test_bounds_of_transformed_columns_leave_a_file_out_where_order_is_kept() -> None:
    hour = 3_600 * 10**6
    day = FileStatistics(5, {1: 5}, {1: 0}, None, {1: pack("<q", 0)}, {1: pack("<q", 23 * hour)})
    assert not bound(predicate(EQ, 1, transform="day"), "timestamp").file_may_match(day)
    assert bound(predicate(EQ, 0, transform="day"), "timestamp").file_may_match(day)
    assert not bound(predicate(NOT_EQ, 0, transform="day"), "timestamp").file_may_match(day)
    assert not bound(predicate(GT, 23, transform="hour"), "timestamp").file_may_match(day)
    for bucket in range(4):
        assert bound(predicate(EQ, bucket, transform="bucket[4]"), "timestamp").file_may_match(day)
    assert not bound(predicate(STARTS, "b", transform="truncate[1]"), "string").file_may_match(TEXTS)


def test_a_file_without_rows_is_left_out_by_any_filter() -> None:
    empty, unknown = FileStatistics(0), FileStatistics(-1)
    assert bound(TRUE, "int").file_may_match(empty)
    assert bound(Or(predicate(IS_NULL), Not(FALSE)), "int").file_may_match(empty)
    for expression in (predicate(IS_NULL), predicate(LT, 2**40)):
        assert not bound(expression, "int").file_may_match(empty)
        assert bound(expression, "int").file_may_match(unknown)
    assert not bound(FALSE, "int").file_may_match(INTS)


def test_a_field_is_null_where_a_struct_around_it_is() -> None:
    nested: Any = schema(column(1, "s", struct(column(2, "x"))))
    test = ScanFilter(predicate(IS_NULL, name="s.x"), nested, {0: spec_of()}, True).for_spec(0).file_may_match
    assert not test(FileStatistics(5, {2: 5}, {2: 0}))
    assert test(FileStatistics(5, {2: 4}, {2: 0}))
    assert test(FileStatistics(5, None, {2: 0}))


def test_parts_of_a_filter_are_combined() -> None:
    low, high = predicate(LT, 30), predicate(LT, 31)
    for expression, kept in (
        (And(low, high), False),
        (And(high, high), True),
        (Or(low, high), True),
        (Or(low, low), False),
        (Or(Or(low, low), low), False),
        (Or(Or(low, low), high), True),
        (And(And(high, high), low), False),
        (Not(predicate(LT, 79)), True),
        (Not(And(high, predicate(GT_EQ, 30))), True),
        (Not(Or(high, predicate(GT_EQ, 30))), False),
    ):
        assert bound(expression, "int").file_may_match(INTS) is kept


def test_a_scan_reads_the_statistics_of_the_columns_in_its_filter() -> None:
    expression = Or(And(predicate(LT, 1), predicate(GT, 0, name="c3")), predicate(LT, 2**40, name="c2"))
    assert ScanFilter(expression, schema_of(["int"] * 3), {}, True).column_ids == frozenset()  # it is always true
    both = And(predicate(LT, 1), Not(predicate(GT, 0, name="c3")))
    assert ScanFilter(both, schema_of(["int"] * 3), {}, True).column_ids == {1, 3}


DAYS = spec_of((1, "day"))


@pytest.mark.parametrize(
    ("operation", "literal", "kept"),
    [
        (LT, "1970-01-11T00:00:00", False),
        (LT, "1970-01-11T00:00:00.000001", True),
        (LT_EQ, "1970-01-11T00:00:00", True),
        (GT, "1970-01-20T23:59:59.999999", False),
        (GT_EQ, "1970-01-20T23:59:59.999999", True),
        (EQ, "1970-01-21T00:00:00", False),
        (EQ, "1970-01-20T12:00:00", True),
        (NOT_EQ, "1970-01-11T00:00:00", True),
    ],
)
def test_summaries_of_days_leave_a_manifest_out(operation: Operation, literal: str, kept: bool) -> None:
    found = bound(predicate(operation, literal), "timestamp", spec=DAYS)
    assert found.partition_types == ["date"]
    assert found.manifest_may_match([FieldSummary(False, None, integer(10), integer(19))]) is kept
    assert found.manifest_may_match(None)
    assert found.manifest_may_match([])  # fewer summaries than the spec has fields


@pytest.mark.parametrize(
    ("operation", "summary", "kept"),
    [
        (IS_NULL, FieldSummary(False), False),
        (IS_NULL, FieldSummary(True), True),
        (NOT_NULL, FieldSummary(True), False),
        (NOT_NULL, FieldSummary(True, None, b"a", b"b"), True),
        (EQ, FieldSummary(True), False),
        (EQ, FieldSummary(False, None, b"a", None), True),
        (EQ, FieldSummary(False, None, b"y", b"z"), False),
        (NOT_EQ, FieldSummary(False, None, b"x", b"x"), False),
        (NOT_EQ, FieldSummary(True, None, b"x", b"x"), True),
        (NOT_EQ, FieldSummary(False, None, b"x", b"y"), True),
        (NOT_EQ, FieldSummary(True), True),
        (STARTS, FieldSummary(False, None, b"xa", b"xb"), True),
        (STARTS, FieldSummary(False, None, b"y", b"z"), False),
        (NOT_STARTS, FieldSummary(False, None, b"xa", b"xb"), False),
        (NOT_STARTS, FieldSummary(True, None, b"xa", b"xb"), True),
    ],
)
def test_summaries_of_text_leave_a_manifest_out(operation: Operation, summary: FieldSummary, kept: bool) -> None:
    values = () if operation in (IS_NULL, NOT_NULL) else ("x",)
    found = bound(predicate(operation, *values), "string", spec=spec_of((1, "identity")))
    assert found.manifest_may_match([summary]) is kept


@pytest.mark.parametrize(
    ("operation", "summary", "kept"),
    [
        (IS_NAN, FieldSummary(False, False), False),
        (IS_NAN, FieldSummary(False, None), True),
        (NOT_NAN, FieldSummary(False, True), False),
        (NOT_NAN, FieldSummary(True, True), True),
        (NOT_NULL, FieldSummary(True, True), True),
        (NOT_NULL, FieldSummary(True, False), False),
        (NOT_EQ, FieldSummary(False, False, pack("<d", 1), pack("<d", 1)), False),
        (NOT_EQ, FieldSummary(False, True, pack("<d", 1), pack("<d", 1)), True),
        (NOT_EQ, FieldSummary(False, None, pack("<d", 1), pack("<d", 1)), True),
    ],
)
def test_summaries_of_floats_leave_a_manifest_out(operation: Operation, summary: FieldSummary, kept: bool) -> None:
    found = bound(
        predicate(operation, *([1.0] if operation is NOT_EQ else [])), "double", spec=spec_of((1, "identity"))
    )
    assert found.manifest_may_match([summary]) is kept


A_DAY = And(predicate(GT_EQ, "1970-01-11T00:00:00"), predicate(LT, "1970-01-12T00:00:00"))


@pytest.mark.parametrize(
    ("expression", "spec", "partition", "residual"),
    [
        (A_DAY, spec_of((1, "day")), (10,), TRUE),
        (A_DAY, spec_of((1, "day")), (9,), FALSE),
        (A_DAY, spec_of((1, "hour")), (263,), TRUE),
        (A_DAY, spec_of((1, "month")), (0,), A_DAY),
        (A_DAY, spec_of((1, "month")), (1,), FALSE),
        (A_DAY, spec_of((1, "void")), (None,), A_DAY),
        (A_DAY, spec_of((1, "new")), ("x",), A_DAY),
        (A_DAY, spec_of((9, "day")), (10,), A_DAY),
        (A_DAY, spec_of((1, "month"), (1, "day")), (0, 10), TRUE),
        (predicate(EQ, 10, transform="day"), spec_of((1, "day")), (10,), TRUE),
        (predicate(EQ, 10, transform="day"), spec_of((1, "day")), (11,), FALSE),
        (predicate(EQ, 10, transform="day"), spec_of((1, "identity")), (11,), predicate(EQ, 10, transform="day")),
        (predicate(IS_NULL), spec_of((1, "bucket[4]")), (None,), TRUE),
        (predicate(IS_NULL), spec_of((1, "bucket[4]")), (1,), FALSE),
        (predicate(LT, 5), spec_of((1, "identity")), (None,), predicate(LT, 5)),
        (predicate(GT, 5), spec_of((1, "identity")), (None,), FALSE),
        (predicate(NOT_EQ, 5), spec_of((1, "identity")), (None,), predicate(NOT_EQ, 5)),
        (predicate(NOT_EQ, 5), spec_of((1, "identity")), (6,), TRUE),
        (Not(predicate(EQ, 5)), spec_of((1, "identity")), (5,), FALSE),
        (Or(predicate(EQ, 5), predicate(EQ, "x", name="c2")), spec_of((1, "identity")), (5,), TRUE),
        (
            Or(predicate(EQ, 5), predicate(EQ, "x", name="c2")),
            spec_of((1, "identity")),
            (6,),
            predicate(EQ, "x", name="c2"),
        ),
    ],
)
def test_a_partition_leaves_of_a_filter_what_it_does_not_show(
    expression: Expression, spec: Any, partition: Any, residual: Expression
) -> None:
    found = bound(expression, "timestamp", "string", spec=spec)
    assert found.residual(partition) == residual
    assert found.residual(partition) is found.residual(partition)
    assert found.partition_may_match(partition) is (residual != FALSE)


def uuid(first: int, last: int = 0) -> bytes:
    return bytes([first, *bytes(14), last])


@pytest.mark.parametrize(("lower", "upper"), [(0x00, 0xFF), (0x80, 0x7F)])
def test_bounds_of_uuids_are_in_either_order(lower: int, upper: int) -> None:
    summary = FieldSummary(False, None, uuid(lower), uuid(upper))
    file = FileStatistics(5, {1: 5}, {1: 0}, None, {1: uuid(lower)}, {1: uuid(upper)})
    for literal in ("00000000-0000-0000-0000-000000000001", "f0000000-0000-0000-0000-000000000001"):
        found = bound(predicate(EQ, literal), "uuid", spec=spec_of((1, "identity")))
        assert found.file_may_match(file)
        assert found.manifest_may_match([summary])
    for operation in (LT, LT_EQ, GT, GT_EQ):
        for literal in ("00000000-0000-0000-0000-000000000000", "f0000000-0000-0000-0000-000000000001"):
            assert bound(predicate(operation, literal), "uuid").file_may_match(file)
    one = FileStatistics(5, {1: 5}, {1: 0}, None, {1: uuid(1, 2)}, {1: uuid(1, 4)})
    for last, kept in ((1, False), (2, True), (4, True), (5, False)):
        text = f"01000000-0000-0000-0000-{last:012x}"
        assert bound(predicate(EQ, text), "uuid").file_may_match(one) is kept


@pytest.mark.parametrize(
    ("operation", "first", "kept"),
    [(LT, 2, False), (LT, 4, True), (GT, 4, False), (GT, 2, True), (GT, 0x83, True), (LT_EQ, 0x83, True)],
)
def test_bounds_of_uuids_that_begin_with_a_time_exclude_others(operation: Operation, first: int, kept: bool) -> None:
    third = FileStatistics(5, {1: 5}, {1: 0}, None, {1: uuid(3, 2)}, {1: uuid(3, 1)})
    test = bound(predicate(operation, f"{first:02x}000000-0000-0000-0000-000000000000"), "uuid").file_may_match
    assert test(third) is kept
    assert test(third._replace(lower_bounds=None))
    assert test(third._replace(upper_bounds=None))


@pytest.mark.parametrize(
    ("operation", "literal", "spec", "partition", "residual"),
    [
        (EQ, "abc", spec_of((2, "truncate[2]")), ("ab",), None),
        (EQ, "abc", spec_of((2, "truncate[2]")), ("ac",), FALSE),
        (LT, "abc", spec_of((2, "truncate[2]")), ("aa",), TRUE),
        (LT, "abc", spec_of((2, "truncate[2]")), ("ab",), None),
        (STARTS, "a", spec_of((2, "truncate[2]")), ("ab",), TRUE),
        (STARTS, "ab", spec_of((2, "truncate[2]")), ("ab",), TRUE),
        (STARTS, "ab", spec_of((2, "truncate[2]")), ("a",), FALSE),
        (STARTS, "abc", spec_of((2, "truncate[2]")), ("ab",), None),
        (STARTS, "abc", spec_of((2, "truncate[2]")), ("b",), FALSE),
        (NOT_STARTS, "ab", spec_of((2, "truncate[2]")), ("ab",), FALSE),
        (NOT_STARTS, "abc", spec_of((2, "truncate[2]")), ("ab",), None),
        (NOT_STARTS, "abc", spec_of((2, "truncate[2]")), ("b",), TRUE),
        (LT, "abc", spec_of((2, "bucket[4]")), (0,), None),
        (GT, "abc", spec_of((2, "bucket[4]")), (3,), None),
        (EQ, "abc", spec_of((1, "identity")), (7,), None),
    ],
)
def test_a_partition_of_text_leaves_what_it_does_not_show(
    operation: Operation, literal: str, spec: Any, partition: Any, residual: Any
) -> None:
    whole = predicate(operation, literal, name="c2")
    assert bound(whole, "long", "string", spec=spec).residual(partition) == (residual or whole)


def test_a_decimal_between_two_values_is_neither() -> None:
    spec = spec_of((1, "identity"))
    below = bound(predicate(LT, "1.235"), "decimal(9,2)", spec=spec)
    assert below.residual((Decimal("1.23"),)) is TRUE
    assert below.residual((Decimal("1.24"),)) is FALSE
    assert bound(predicate(EQ, "1.235"), "decimal(9,2)", spec=spec).residual((Decimal("1.24"),)) is FALSE


def test_partitions_of_early_writers_may_be_one_too_high_before_1970() -> None:
    last_hour = predicate(EQ, "1969-12-31T23:30:00")
    found = bound(last_hour, "timestamp", spec=spec_of((1, "hour")))
    assert [found.residual((hour,)) for hour in (-2, -1, 0, 1)] == [FALSE, last_hour, last_hour, FALSE]
    other = bound(Not(last_hour), "timestamp", spec=spec_of((1, "hour")))
    assert [other.residual((hour,)) is TRUE for hour in (-2, -1, 0, 1)] == [True, False, False, True]
    until = bound(predicate(LT, "1969-12-01T00:00:00"), "timestamp", spec=spec_of((1, "month")))
    assert [until.partition_may_match((month,)) for month in (-3, -2, -1, 0)] == [True, True, True, False]
    since = bound(predicate(GT_EQ, "1969-12-01T00:00:00"), "timestamp", spec=spec_of((1, "month")))
    assert [since.residual((month,)) is TRUE for month in (-2, -1, 0, 1)] == [False, False, True, True]


@pytest.mark.parametrize("bits", [32, 64])
def test_a_number_whose_truncation_is_below_all_numbers_is_found(bits: int) -> None:
    """Java's arithmetic wraps around: the partition of the least number is one of the greatest values."""
    of_type, least, greatest = "int" if bits == 32 else "long", -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    truncated = transform_function("truncate[10]", of_type)
    assert truncated is not None
    numbers = [least, least + 1, least + 7, least + 8, least + 9, -1, 0, 34, greatest - 1, greatest]
    for (operation, compared), literal, row in product(COMPARED.items(), numbers, numbers):
        tested = bound(predicate(operation, literal), of_type, spec=spec_of((1, "truncate[10]")))
        partition = truncated(row)
        single = pack("<i" if bits == 32 else "<q", partition)
        if compared(row, literal):
            assert tested.manifest_may_match([FieldSummary(False, None, single, single)])
            assert tested.partition_may_match((partition,))
        else:
            assert tested.residual((partition,)) != TRUE


def test_engines_that_order_nan_and_zeros_differently_have_one_residual() -> None:
    spec = spec_of((1, "identity"))
    above, zero = bound(predicate(GT, 1.0), "double", spec=spec), bound(predicate(EQ, 0.0), "double", spec=spec)
    assert above.residual((math.nan,)) == predicate(GT, 1.0)
    assert bound(predicate(LT, 1.0), "double", spec=spec).residual((math.nan,)) is FALSE
    assert bound(predicate(NOT_EQ, 1.0), "double", spec=spec).residual((math.nan,)) is TRUE
    assert zero.residual((0.0,)) is TRUE
    assert zero.residual((-0.0,)) == predicate(EQ, 0.0)


def test_a_residual_is_computed_again_when_many_others_were() -> None:
    found = bound(predicate(EQ, 5), "int", spec=spec_of((1, "identity")))
    first = found.residual((5,))
    for value in range(MAX_REMEMBERED + 1):
        found.residual((value,))
    assert found.residual((5,)) == first


def test_the_residual_of_a_long_partition_is_not_remembered() -> None:
    of_text = bound(predicate(EQ, 5, name="c2"), "string", "int", spec=spec_of((1, "identity")))
    for length, remembered in ((MAX_REMEMBERED_LENGTH, True), (MAX_REMEMBERED_LENGTH + 1, False)):
        partition = ("x" * length,)
        of_text.residual(partition)
        assert (partition in of_text._residuals._remembered) is remembered


def test_residuals_of_many_predicates_are_remembered_for_fewer_partitions() -> None:
    parts: list[Expression] = [predicate(GT, each, name="c2") for each in range(399)]
    found = bound(reduce(Or, parts), "int", "int", spec=spec_of((1, "identity")))
    first = found.residual((0,))
    for value in range(1, MAX_REMEMBERED_PREDICATES // 400):
        found.residual((value,))
    assert found.residual((0,)) is first
    found.residual((-1,))
    assert found.residual((0,)) is not first


def test_each_spec_of_a_table_has_its_own_tests() -> None:
    specs = {0: spec_of(), 1: spec_of((1, "day")), 2: spec_of((1, "month"))}
    found = ScanFilter(A_DAY, schema_of(["timestamp"]), specs, True)
    assert found.for_spec(1) is found.for_spec(1)
    assert found.for_spec(0).residual(()) == A_DAY
    assert found.for_spec(1).residual((0,)) is FALSE
    assert found.for_spec(2).residual((0,)) == A_DAY
    with pytest.raises(KeyError):
        found.for_spec(3)


def test_types_of_partition_fields_follow_their_sources() -> None:
    spec = spec_of((1, "identity"), (1, "bucket[4]"), (2, "truncate[2]"), (2, "void"), (3, "day"), (2, "new"))
    assert bound(TRUE, "timestamp", "string", spec=spec).partition_types == [
        "timestamp",
        "int",
        "string",
        "string",
        "unknown",
        "string",
    ]
