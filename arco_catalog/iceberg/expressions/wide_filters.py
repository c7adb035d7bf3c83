"""Filters of so many predicates that testing all of them for every file would take longer than to read the files:
weaker filters are tested in their place, of at most `MAX_TESTED` predicates.

An upsert by two columns, for example, has a filter of thousands of pairs, `(a = 1 and b = 2) or (a = 3 and b = 4) ...`.
Its rows have one of these values in `a`, and one in `b`.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from arco_catalog.iceberg.expressions.binding import (
    BoundFilter,
    BoundPredicate,
    Conjunction,
    Disjunction,
    predicates_in,
)
from arco_catalog.iceberg.expressions.conditions import Condition
from arco_catalog.iceberg.expressions.expression import TRUE, Constant, Operation
from arco_catalog.iceberg.expressions.values import Value

MAX_TESTED = 500
"""Maximum predicates that are tested for a file, which takes half a millisecond."""

_BY_COLUMN = Mapping[int, tuple[BoundPredicate, Iterable[Value]]]


def weakened(bound: BoundFilter) -> BoundFilter:
    """Returns the filter itself if it has at most `MAX_TESTED` predicates. Otherwise one that is met by all rows that
    meet it: of alternatives, that a column has one of the values that they require of it, for each column of which all
    do, up to `MAX_TESTED` columns; of parts that must all match, the first ones, weakened in the same way, with
    `MAX_TESTED` predicates at most; else `TRUE`."""
    if _count(bound) <= MAX_TESTED:
        return bound
    if isinstance(bound, Disjunction):
        columns = islice(_columns_of_all(bound.parts).values(), MAX_TESTED)
        return _joined([_any_value(*column) for column in columns])
    if not isinstance(bound, Conjunction):
        return TRUE
    kept: list[BoundFilter] = []
    room = MAX_TESTED
    for part in bound.parts:
        weaker = weakened(part)
        room -= _count(weaker)
        if room >= 0 and not isinstance(weaker, Constant):
            kept.append(weaker)
    return _joined(kept)


def _count(bound: BoundFilter) -> int:
    """Returns the number of predicates in a filter."""
    return sum(1 for _ in predicates_in(bound))


def _columns_of_all(parts: Iterable[BoundFilter]) -> _BY_COLUMN:
    """Returns, by column id, the columns that every part requires to equal a value: an equality of the first part, and
    the values of all parts."""
    found: dict[int, tuple[BoundPredicate, list[Value]]] | None = None
    for part in parts:
        required = {equality.column.id: equality for equality in _equalities(part)}
        if found is None:
            found = {column_id: (equality, []) for column_id, equality in required.items()}
        found = {column_id: column for column_id, column in found.items() if column_id in required}
        for column_id, (_, values) in found.items():
            values += required[column_id].condition.values
    return found or {}


def _equalities(part: BoundFilter) -> Iterator[BoundPredicate]:
    """Yields the predicates that a part requires and that compare a column itself by `=` or IN."""
    for inner in part.parts if isinstance(part, Conjunction) else (part,):
        if isinstance(inner, BoundPredicate) and inner.transform == "identity" and inner.condition.operation in _EQUAL:
            yield inner


def _any_value(example: BoundPredicate, values: Iterable[Value]) -> BoundPredicate:
    """Returns the predicate that the column of `example` has any of these values."""
    condition = Condition(Operation.IN, tuple(dict.fromkeys(values)))
    return BoundPredicate(example.column, example.transform, example.type, condition, example.original)


def _joined(parts: list[BoundFilter]) -> BoundFilter:
    """Joins parts by AND; no part gives `true`."""
    if not parts:
        return TRUE
    return parts[0] if len(parts) == 1 else Conjunction(tuple(parts))


_EQUAL = (Operation.EQ, Operation.IN)
