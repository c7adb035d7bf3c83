"""Tests whether a file may have matching rows, by the counts and bounds of its columns (as the reference
implementation's `InclusiveMetricsEvaluator`)."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from arco_catalog.iceberg.content_files import FileStatistics
from arco_catalog.iceberg.expressions.binding import BoundPredicate
from arco_catalog.iceberg.expressions.conditions import NEGATIVE, RangeTest, is_floating, range_test
from arco_catalog.iceberg.expressions.expression import Operation
from arco_catalog.iceberg.expressions.transform_values import (
    ORDER_PRESERVING,
    Transform,
    transform_function,
    transform_name,
)
from arco_catalog.iceberg.expressions.values import Decoder, Value, bound_decoder
from arco_catalog.iceberg.schema import Column

StatisticsTest: TypeAlias = Callable[[FileStatistics], bool]


def statistics_test(predicate: BoundPredicate) -> StatisticsTest | bool:
    """Returns the test of a predicate by the statistics of a file: it is false only for files without a matching row.
    `True` if the statistics show nothing of it."""
    operation = predicate.condition.operation
    if operation is Operation.IS_NULL:
        return null_test(predicate.column) if transform_name(predicate.transform) in ORDER_PRESERVING else True
    if operation is Operation.NOT_NULL:
        return _not_only_nulls(predicate.column.id)
    if operation is Operation.IS_NAN:
        return _nan_test(predicate.column.id)
    if operation is Operation.NOT_NAN:
        return _not_only_nans(predicate.column.id)
    in_range = _bounds_test(predicate)
    return _negative_test(predicate, in_range) if operation in NEGATIVE else _positive_test(predicate, in_range)


def _positive_test(predicate: BoundPredicate, in_range: StatisticsTest | None) -> StatisticsTest:
    """Returns the test of a condition that neither null nor NaN meets: the column may have other values, and one within
    the bounds may meet it. `in_range` is the test of the bounds, None without one."""
    has_values = _not_only_nulls(predicate.column.id)
    if is_floating(predicate.column_type):
        not_null, not_nan = has_values, _not_only_nans(predicate.column.id)
        has_values = lambda statistics: not_null(statistics) and not_nan(statistics)  # noqa: E731
    if in_range is None:
        return has_values
    return lambda statistics: in_range(statistics) and has_values(statistics)


def _negative_test(predicate: BoundPredicate, in_range: StatisticsTest | None) -> StatisticsTest | bool:
    """Returns the test of a condition that null and NaN meet, too: one of these may be there, or a value within the
    bounds may meet it. True without a test of the bounds (`in_range`)."""
    if in_range is None:
        return True
    may_be_null = null_test(predicate.column)
    if is_floating(predicate.column_type):
        column_id = predicate.column.id
        return lambda statistics: may_be_null(statistics) or may_be_nan(statistics, column_id) or in_range(statistics)
    return lambda statistics: may_be_null(statistics) or in_range(statistics)


def null_test(column: Column) -> StatisticsTest:
    """Returns the test whether the column may be null in a row. For a column inside a struct, a row in which that is
    null may be counted nowhere: only for such a column it is also true if the count of values is missing or is not
    that of the file's rows."""
    column_id = column.id

    def may_be_null(statistics: FileStatistics) -> bool:
        counts = statistics.null_value_counts
        return counts is None or counts.get(column_id) != 0

    if column.parent is None:
        return may_be_null

    def may_be_null_in_struct(statistics: FileStatistics) -> bool:
        values = statistics.value_counts
        return may_be_null(statistics) or values is None or values.get(column_id) != statistics.record_count

    return may_be_null_in_struct


def _not_only_nulls(column_id: int) -> StatisticsTest:
    """Returns a test whether a file may have a value of the column that is not null."""
    return _not_only(column_id, lambda statistics: statistics.null_value_counts)


def _not_only_nans(column_id: int) -> StatisticsTest:
    """Returns a test whether a file may have a value of the column that is not NaN."""
    return _not_only(column_id, lambda statistics: statistics.nan_value_counts)


def _not_only(column_id: int, counts_of: Callable[[FileStatistics], Mapping[int, int] | None]) -> StatisticsTest:
    """Returns the test whether the column may have values besides the ones that `counts_of` counts: false only if the
    file has both numbers and they are equal."""

    def may_have_others(statistics: FileStatistics) -> bool:
        values, counted = statistics.value_counts, counts_of(statistics)
        if values is None or counted is None:
            return True
        count = values.get(column_id)
        return count is None or count != counted.get(column_id)

    return may_have_others


def _nan_test(column_id: int) -> StatisticsTest:
    """Returns a test whether a file may have a NaN in the column."""
    has_values = _not_only_nulls(column_id)
    return lambda statistics: has_values(statistics) and may_be_nan(statistics, column_id)


def may_be_nan(statistics: FileStatistics, column_id: int) -> bool:
    """Whether a column of floating-point numbers may be NaN in a row: true unless the file's number of NaN in it is
    0, so also if that is unknown."""
    counts = statistics.nan_value_counts
    return counts is None or counts.get(column_id) != 0


def _bounds_test(predicate: BoundPredicate) -> StatisticsTest | None:
    """Returns the test whether a value between the column's bounds may meet the condition; None if the bounds say
    nothing of it: a bound's transform bounds the transforms of values only if these keep their order."""
    is_plain = predicate.transform == "identity"
    if transform_name(predicate.transform) not in ORDER_PRESERVING:
        return None
    test = range_test(predicate.condition, predicate.type, text_as_bytes=is_plain)
    if test is None:
        return None
    column_id, read, operation = predicate.column.id, _reader(predicate), predicate.condition.operation
    if predicate.type == "uuid":  # of which one bound does not suffice
        return _range_test(column_id, read, test)
    if operation in _OF_LOWER:
        return _lower_test(column_id, read, test)
    return _upper_test(column_id, read, test) if operation in _OF_UPPER else _range_test(column_id, read, test)


def _reader(predicate: BoundPredicate) -> Decoder:
    """Returns the function that reads a bound of the column, transformed as the predicate's term is; a text that is not
    transformed stays bytes."""
    column_type = predicate.column_type
    if predicate.transform != "identity":
        apply = transform_function(predicate.transform, column_type)
        assert apply is not None  # binding has refused any other
        return _transformed(bound_decoder(column_type), apply)
    return bytes if column_type == "string" else bound_decoder(column_type)


def _transformed(decode: Decoder, apply: Transform) -> Decoder:
    """Returns a decoder of bounds that applies a transform to the value."""

    def read(data: bytes) -> Value | None:
        value = decode(data)
        return None if value is None else apply(value)

    return read


def _lower_test(column_id: int, read: Decoder, test: RangeTest) -> StatisticsTest:
    """Returns a test of the lower bound of a column, which a file without that bound passes. `test` gets the bound as
    `read` decodes it, and None as the upper one."""

    def in_range(statistics: FileStatistics) -> bool:
        bounds = statistics.lower_bounds
        bound = None if bounds is None else bounds.get(column_id)
        return bound is None or test(read(bound), None)

    return in_range


def _upper_test(column_id: int, read: Decoder, test: RangeTest) -> StatisticsTest:
    """Returns a test of the upper bound of a column, which a file without that bound passes. `test` gets None as the
    lower bound, and the upper one as `read` decodes it."""

    def in_range(statistics: FileStatistics) -> bool:
        bounds = statistics.upper_bounds
        bound = None if bounds is None else bounds.get(column_id)
        return bound is None or test(None, read(bound))

    return in_range


def _range_test(column_id: int, read: Decoder, test: RangeTest) -> StatisticsTest:
    """Returns a test of both bounds of a column, as `read` decodes them; a missing one is None for `test`."""

    def in_range(statistics: FileStatistics) -> bool:
        lowers, uppers = statistics.lower_bounds, statistics.upper_bounds
        lower = None if lowers is None else lowers.get(column_id)
        upper = None if uppers is None else uppers.get(column_id)
        return test(None if lower is None else read(lower), None if upper is None else read(upper))

    return in_range


_OF_LOWER = frozenset({Operation.LT, Operation.LT_EQ})
_OF_UPPER = frozenset({Operation.GT, Operation.GT_EQ})
"""Comparisons that one bound excludes; the other is not decoded for them."""
