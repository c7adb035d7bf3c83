"""Tuples as values of states: a changed one is a new one."""

from typing import TypeVar

T = TypeVar("T")


def with_item(values: tuple[T, ...], place: int, value: T) -> tuple[T, ...]:
    """Returns the tuple with another value at a place."""
    return (*values[:place], value, *values[place + 1 :])
