"""Conditions on the values of one type, and what follows from them for a value, and for all values of a range.

Engines order two types differently: UUIDs by unsigned bytes, as the specification requires, or as the reference
implementation does, by two signed numbers; -0.0 before 0.0, or equal to it. A range is excluded, and a value's
condition is certain, where both orders agree.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

from arco_catalog.iceberg.expressions.expression import ORDERINGS, Operation
from arco_catalog.iceberg.expressions.values import Value
from storage_backends.lazy_dataclass import dataclass

Key: TypeAlias = Any
"""What a value is compared by."""
Order: TypeAlias = Callable[[Value], Key]
RangeTest: TypeAlias = Callable[[Key | None, Key | None], bool]
Decision: TypeAlias = Callable[[Value | None], bool | None]

UNMET_BY_NULL = frozenset(
    {
        Operation.EQ,
        Operation.IN,
        Operation.GT,
        Operation.GT_EQ,
        Operation.STARTS_WITH,
        Operation.IS_NAN,
        Operation.NOT_NULL,
    }
)
NEGATIVE = frozenset({Operation.NOT_EQ, Operation.NOT_IN, Operation.NOT_STARTS_WITH})
"""What null meets."""


@dataclass(frozen=True, slots=True)
class Condition:
    """What a value must be to match: an operation with its literals as values of the type."""

    operation: Operation
    values: tuple[Value, ...] = ()


def is_floating(type_name: str) -> bool:
    """Whether values of the type with this name may be NaN: it is `float` or `double`."""
    return type_name in ("float", "double")


def decision(condition: Condition, type_name: str) -> Decision:
    """Returns a function that decides whether a value meets the condition. It returns None where engines differ: null
    under `<`, `<=` and the conditions that null meets by Iceberg's logic and not by SQL's; NaN under `>` and `>=`;
    and where the orders of the type do not agree."""
    operation, null = condition.operation, _met_by_null(condition.operation)
    if operation in (Operation.IS_NULL, Operation.NOT_NULL):
        is_null = operation is Operation.IS_NULL
        return lambda value: (value is None) is is_null
    if operation in (Operation.IS_NAN, Operation.NOT_NAN):
        is_nan = operation is Operation.IS_NAN
        return lambda value: (value != value) is is_nan
    tests = [_value_test(condition, order) for order in _orders(condition, type_name)]
    decide = tests[0] if len(tests) == 1 else _agreement(tests)
    if not is_floating(type_name):
        return lambda value: null if value is None else decide(value)
    nan = None if operation in (Operation.GT, Operation.GT_EQ) else operation in NEGATIVE
    return lambda value: null if value is None else nan if value != value else decide(value)


def _met_by_null(operation: Operation) -> bool | None:
    """Returns False for an operation that null does not meet, and None for every other: engines differ, except for the
    two that `decision` handles before, IS_NULL and NOT_NAN."""
    return False if operation in UNMET_BY_NULL else None


def _agreement(tests: Sequence[Callable[[Value], bool]]) -> Decision:
    """Returns a decision that is the result of all tests if these agree, else None."""

    def decide(value: Value | None) -> bool | None:
        results = {test(cast(Value, value)) for test in tests}
        return results.pop() if len(results) == 1 else None

    return decide


def range_test(condition: Condition, type_name: str, *, text_as_bytes: bool = False) -> RangeTest | None:
    """Returns a function of the least and the greatest value of a range, each None if it is unknown: whether a value
    between them may meet the condition. None if the condition is not about the order of values. Text is compared as
    UTF-8 if `text_as_bytes`: its bounds are not decoded then."""
    if type_name == "uuid" and condition.operation in ORDERINGS:
        return _uuid_range_test(condition)
    orders: Sequence[Order | None] = _orders(condition, type_name)
    if text_as_bytes and type_name == "string":
        values = tuple(cast(str, value).encode() for value in condition.values)
        return _range_test(Condition(condition.operation, values), None)
    tests = [test for order in orders if (test := _range_test(condition, order)) is not None]
    if len(tests) < 2:
        return tests[0] if tests else None
    first, second = tests
    return lambda lower, upper: first(lower, upper) or second(lower, upper)


def _uuid_range_test(condition: Condition) -> RangeTest:
    """Returns the test of a range of UUIDs, whose bounds may be by either order, whatever the order of the comparison.
    The orders agree on first halves with equal first bits. All second halves are taken to be in the range."""
    unsigned, signed = _range_test(condition, None), _range_test(condition, _uuid_as_signed_numbers)
    assert unsigned is not None  # every comparison is about the order of values
    assert signed is not None
    half = 1 << 63

    def may_meet(lower: Key | None, upper: Key | None) -> bool:
        if lower is None or upper is None or lower[0] >> 7 != upper[0] >> 7:
            return True
        first, last = lower[:8], upper[:8]
        return unsigned(first + bytes(8), last + b"\xff" * 8) or signed(
            first + half.to_bytes(8, "big"), last + (half - 1).to_bytes(8, "big")
        )

    return may_meet


def _orders(condition: Condition, type_name: str) -> Sequence[Order | None]:
    """Returns the orders of a type's values in which engines may evaluate a condition: None is that of Python's
    operators. The order in which 0.0 is greater than -0.0 is only among them if the condition has a zero."""
    if type_name == "uuid":
        return None, _uuid_as_signed_numbers
    if is_floating(type_name) and 0.0 in condition.values:
        return None, _with_sign_of_zero
    return (None,)


def _uuid_as_signed_numbers(value: Value) -> Key:
    """Returns the sort key of a UUID: its halves as signed numbers, as Java compares them."""
    data = cast(bytes, value)
    return int.from_bytes(data[:8], "big", signed=True), int.from_bytes(data[8:], "big", signed=True)


def _with_sign_of_zero(value: Value) -> Key:
    """Returns the sort key of a floating-point number, by which -0.0 is less than 0.0."""
    number = cast(float, value)
    return number, math.copysign(1.0, number)


def _value_test(condition: Condition, order: Order | None) -> Callable[[Value], bool]:
    """Returns a test whether one value, which is neither null nor NaN, meets a condition in this order; None is the
    order of Python's operators."""
    keys = [order(value) if order else value for value in condition.values]
    if condition.operation in (Operation.IN, Operation.NOT_IN):
        members, is_in = frozenset(keys), condition.operation is Operation.IN
        test: Callable[[Key], bool] = lambda value: (value in members) is is_in  # noqa: E731
    else:
        test = _COMPARISONS[condition.operation](keys[0])
    return test if order is None else lambda value: test(order(value))


_COMPARISONS: dict[Operation, Callable[[Key], Callable[[Key], bool]]] = {
    Operation.LT: lambda literal: lambda value: value < literal,
    Operation.LT_EQ: lambda literal: lambda value: value <= literal,
    Operation.GT: lambda literal: lambda value: value > literal,
    Operation.GT_EQ: lambda literal: lambda value: value >= literal,
    Operation.EQ: lambda literal: lambda value: value == literal,
    Operation.NOT_EQ: lambda literal: lambda value: value != literal,
    Operation.STARTS_WITH: lambda literal: lambda value: value.startswith(literal),
    Operation.NOT_STARTS_WITH: lambda literal: lambda value: not value.startswith(literal),
}


def _range_test(condition: Condition, order: Order | None) -> RangeTest | None:
    """Returns a test whether any value between two bounds can meet a condition, in this order (None is that of Python's
    operators); None for an operation without such a test."""
    if condition.operation not in _RANGES:
        return None
    test = _RANGES[condition.operation]([order(value) if order else value for value in condition.values])
    if order is None:
        return test
    return lambda lower, upper: test(None if lower is None else order(lower), None if upper is None else order(upper))


def _equal_in_range(keys: Sequence[Key]) -> RangeTest:
    """Returns a test whether the literal is between the bounds."""
    literal = keys[0]
    return lambda lower, upper: (lower is None or lower <= literal) and (upper is None or literal <= upper)


def _one_in_range(keys: Sequence[Key]) -> RangeTest:
    """Returns a test whether any literal is between the bounds."""
    ascending = sorted(set(keys))
    count, greatest = len(ascending), ascending[-1]

    def test(lower: Key | None, upper: Key | None) -> bool:
        if lower is None:
            return upper is None or ascending[0] <= upper
        if lower > greatest:
            return False
        first = bisect_left(ascending, lower)
        return first < count and (upper is None or ascending[first] <= upper)

    return test


def _other_in_range(keys: Sequence[Key]) -> RangeTest:
    """Returns a test whether any value but the literals can be between the bounds: false only if both bounds are one
    literal."""
    excluded = frozenset(keys)
    return lambda lower, upper: lower is None or lower != upper or lower not in excluded


def _prefix_in_range(keys: Sequence[Key]) -> RangeTest:
    """Returns a test whether a text with the prefix can be between the bounds."""
    prefix = keys[0]
    length = len(prefix)
    return lambda lower, upper: (
        (lower is None or lower[:length] <= prefix) and (upper is None or upper[:length] >= prefix)
    )


def _other_prefix_in_range(keys: Sequence[Key]) -> RangeTest:
    """Returns a test whether a text without the prefix can be between the bounds: false only if both bounds have it."""
    prefix = keys[0]
    return lambda lower, upper: (
        lower is None or upper is None or not (lower.startswith(prefix) and upper.startswith(prefix))
    )


_RANGES: dict[Operation, Callable[[Sequence[Key]], RangeTest]] = {
    Operation.LT: lambda keys: lambda lower, upper: lower is None or lower < keys[0],
    Operation.LT_EQ: lambda keys: lambda lower, upper: lower is None or lower <= keys[0],
    Operation.GT: lambda keys: lambda lower, upper: upper is None or upper > keys[0],
    Operation.GT_EQ: lambda keys: lambda lower, upper: upper is None or upper >= keys[0],
    Operation.EQ: _equal_in_range,
    Operation.NOT_EQ: _other_in_range,
    Operation.IN: _one_in_range,
    Operation.NOT_IN: _other_in_range,
    Operation.STARTS_WITH: _prefix_in_range,
    Operation.NOT_STARTS_WITH: _other_prefix_in_range,
}
