"""Makes conditions on rows of system tables, with the types that PyIceberg's constructors, which are Pydantic's,
lack."""

from collections.abc import Collection

from pyiceberg.expressions import And, BooleanExpression, EqualTo, GreaterThan, GreaterThanOrEqual, In, IsNull, LessThan


def equal(column: str, value: str | int | bool) -> BooleanExpression:
    """Returns the condition that the column equals the value."""
    return EqualTo(column, value)  # type: ignore[call-arg, arg-type]


def one_of(column: str, values: Collection[str]) -> BooleanExpression:
    """Returns the condition that the column equals one of the values."""
    return In(column, [*values])  # type: ignore[call-arg, arg-type]


def between(column: str, first: str, end: str) -> BooleanExpression:
    """Returns the condition that the column is `first` or greater, and less than `end`."""
    not_less = GreaterThanOrEqual(column, first)  # type: ignore[call-arg, arg-type]
    return And(not_less, LessThan(column, end))  # type: ignore[call-arg, arg-type]


def after(column: str, value: int) -> BooleanExpression:
    """Returns the condition that the column is greater than the value."""
    return GreaterThan(column, value)  # type: ignore[call-arg, arg-type]


def missing(column: str) -> BooleanExpression:
    """Returns the condition that the column is null."""
    return IsNull(column)  # type: ignore[arg-type, call-arg]


def both(one: BooleanExpression, other: BooleanExpression) -> BooleanExpression:
    """Returns the condition that both conditions hold."""
    return And(one, other)
