"""Tests whether a manifest may have files with matching rows, by the summaries of its partition fields (as the
reference implementation's `ManifestEvaluator`)."""

from collections.abc import Callable
from typing import TypeAlias

from arco_catalog.iceberg.expressions.conditions import NEGATIVE, Condition, is_floating, range_test
from arco_catalog.iceberg.expressions.expression import Operation
from arco_catalog.iceberg.expressions.values import Decoder, bound_decoder
from arco_catalog.iceberg.manifests import FieldSummary

SummaryTest: TypeAlias = Callable[[FieldSummary], bool]


def summary_test(condition: Condition, type_name: str) -> SummaryTest:
    """Returns the test of a condition on a partition field of this type: it is false only for manifests that have no
    file whose partition meets the condition."""
    simple = _SIMPLE.get(condition.operation)
    if simple is not None:
        return _without_nulls_alone(type_name) if condition.operation is Operation.NOT_NULL else simple
    if condition.operation in NEGATIVE:
        return _negative_test(condition, type_name)
    return _positive_test(condition, type_name)


def _positive_test(condition: Condition, type_name: str) -> SummaryTest:
    """Returns a test whether a value between the bounds of a summary may meet the condition; without a lower bound none
    does, since all are null or NaN."""
    read, test = _reader(type_name), range_test(condition, type_name, text_as_bytes=True)
    assert test is not None  # every comparison is about the order of values

    def may_match(summary: FieldSummary) -> bool:
        lower, upper = summary.lower_bound, summary.upper_bound
        if lower is None:
            return False  # all values are null or NaN
        return test(read(lower), None if upper is None else read(upper))

    return may_match


def _negative_test(condition: Condition, type_name: str) -> SummaryTest:
    """Returns a test for conditions that null and NaN may meet, too: true if one of these may be there by the summary,
    or a bound is missing, or if a value between the bounds may meet the condition."""
    read, test = _reader(type_name), range_test(condition, type_name, text_as_bytes=True)
    assert test is not None  # every comparison is about the order of values
    has_nan = is_floating(type_name)

    def may_match(summary: FieldSummary) -> bool:
        lower, upper = summary.lower_bound, summary.upper_bound
        if summary.contains_null or lower is None or upper is None or (has_nan and summary.contains_nan is not False):
            return True
        return test(read(lower), read(upper))

    return may_match


def _reader(type_name: str) -> Decoder:
    """Returns the decoder of a summary's bounds; a text stays bytes."""
    return bytes if type_name == "string" else bound_decoder(type_name)


def _without_nulls_alone(type_name: str) -> SummaryTest:
    """Returns a test whether a partition field may have values that are not null."""
    if is_floating(type_name):  # without bounds there may be NaN
        return lambda summary: (
            not summary.contains_null or summary.lower_bound is not None or summary.contains_nan is not False
        )
    return lambda summary: not summary.contains_null or summary.lower_bound is not None


def _may_be_number(summary: FieldSummary) -> bool:
    """Whether a partition field may have values that are not NaN."""
    return summary.contains_nan is not True or summary.contains_null or summary.lower_bound is not None


_SIMPLE: dict[Operation, SummaryTest] = {
    Operation.IS_NULL: lambda summary: summary.contains_null,
    Operation.NOT_NULL: lambda summary: True,
    Operation.IS_NAN: lambda summary: summary.contains_nan is not False,
    Operation.NOT_NAN: _may_be_number,
}
