"""Conditions on rows of system tables. PyIceberg's own constructors are typed as those of Pydantic's models are."""

from collections.abc import Collection

from pyiceberg.expressions import And, BooleanExpression, EqualTo, GreaterThan, GreaterThanOrEqual, In, IsNull, LessThan


def equal(column: str, value: str | int | bool) -> BooleanExpression:
    """A column has a value."""
    return EqualTo(column, value)  # type: ignore[call-arg, arg-type]


def among(column: str, values: Collection[str]) -> BooleanExpression:
    """A column has one of some values."""
    return In(column, [*values])  # type: ignore[call-arg, arg-type]


def between(column: str, first: str, end: str) -> BooleanExpression:
    """A column has a value from `first` on, and before `end`."""
    begun = GreaterThanOrEqual(column, first)  # type: ignore[call-arg, arg-type]
    return And(begun, LessThan(column, end))  # type: ignore[call-arg, arg-type]


def after(column: str, value: int) -> BooleanExpression:
    """A column has a greater value."""
    return GreaterThan(column, value)  # type: ignore[call-arg, arg-type]


def missing(column: str) -> BooleanExpression:
    """A column is null."""
    return IsNull(column)  # type: ignore[arg-type, call-arg]


def both(one: BooleanExpression, other: BooleanExpression) -> BooleanExpression:
    """Both hold."""
    return And(one, other)
