"""Conditions on the values of a partition field that follow from a condition on its source column.

An inclusive projection is met by the partition of each row that meets the condition. A strict one is met by a partition
only if each of its rows meets the condition.
"""

from collections.abc import Callable
from decimal import Decimal
from typing import cast

from arco_catalog.iceberg.expressions.binding import BoundPredicate
from arco_catalog.iceberg.expressions.conditions import Condition
from arco_catalog.iceberg.expressions.expression import UNARY, Operation
from arco_catalog.iceberg.expressions.transform_values import TIMES, Transform, transform_function, transform_name
from arco_catalog.iceberg.expressions.values import Value, decimal_scale
from arco_catalog.iceberg.primitives import base_name
from arco_catalog.iceberg.transforms import canonical

MAX_PROJECTED = 20_000
"""Maximum literals that are transformed for the partition specs of a table, together; a long one counts as several. A
spec may have a thousand fields, and a filter as many literals."""
LITERAL_LENGTH = 64
"""Characters or bytes of a literal that count as one: the hash of a megabyte takes a third of a second."""

_LESS = (Operation.LT, Operation.LT_EQ)
_GREATER = (Operation.GT, Operation.GT_EQ)


class Projections:
    """The projections of the predicates of one filter to partition fields, as far as they have `MAX_PROJECTED` literals
    together. The predicates after these have no projections, and exclude no file by a partition."""

    def __init__(self) -> None:
        self._left = MAX_PROJECTED
        self._found: dict[tuple[int, str], tuple[Condition | None, Condition | None]] = {}

    def of(self, predicate: BoundPredicate, transform: str) -> tuple[Condition | None, Condition | None]:
        """Returns the inclusive and the strict projection of a predicate to a field with this transform of its column,
        computed once; None for a missing one. A pair that comes after `MAX_PROJECTED` literals, or exceeds them, has
        None for both; a pair that was computed before keeps the result."""
        key = id(predicate), transform
        found = self._found.get(key)
        if found is None:
            self._left -= 1 if transform == predicate.transform else 1 + sum(map(_weight, predicate.condition.values))
            if self._left < 0:
                return None, None
            found = self._found[key] = inclusive(predicate, transform), strict(predicate, transform)
        return found


def _weight(value: Value) -> int:
    """Returns how many literals a value counts for: more if it is long."""
    return 1 + len(value) // LITERAL_LENGTH if isinstance(value, str | bytes) else 1


def inclusive(predicate: BoundPredicate, transform: str) -> Condition | None:
    """Returns the inclusive projection of a predicate to the field with this transform of its column; None if every
    partition may have a row that matches."""
    return _projected(predicate, transform, _inclusive)


def strict(predicate: BoundPredicate, transform: str) -> Condition | None:
    """Returns the strict projection of a predicate to the field with this transform of its column; None if no
    partition is certain to have matching rows alone."""
    return _projected(predicate, transform, _strict)


_Project = Callable[[Condition, str, str, Transform], Condition | None]


def _projected(predicate: BoundPredicate, transform: str, project: _Project) -> Condition | None:
    """Returns the condition on the values of a partition field that follows from a predicate on its source; None if
    there is none. `project` is inclusive or strict."""
    transform, name = canonical(transform), transform_name(transform)
    condition = predicate.condition
    apply = transform_function(transform, predicate.column_type)
    if apply is None:  # an unknown transform, void, or a type that the transform does not accept
        return None
    if predicate.transform == transform or (predicate.transform == "identity" and condition.operation in UNARY):
        return condition
    if predicate.transform != "identity" or (name == "truncate" and _wraps(condition, apply)):
        return None
    return project(condition, name, predicate.column_type, apply)


def _wraps(condition: Condition, apply: Transform) -> bool:
    """Whether the literal of `<`, `<=`, `>` or `>=` is so low that truncation of the number before it leads below all
    numbers, and wraps around. False for any other operation, also `=`."""
    if condition.operation not in (*_LESS, *_GREATER) or not isinstance(value := condition.values[0], int):
        return False
    return cast(int, apply(value - 1)) >= value


def _inclusive(condition: Condition, name: str, source_type: str, apply: Transform) -> Condition | None:
    """Returns a condition that every partition with a matching row meets; None if there is none. `apply` is the
    transform called `name`, of values of `source_type`."""
    operation, values = condition.operation, condition.values
    if operation in (Operation.EQ, Operation.IN):
        found = Condition(operation, tuple(apply(value) for value in values))
        return _with_older_values(found) if _may_be_one_higher(name, source_type) else found
    if name == "bucket":
        return None
    if operation in _LESS:
        result = apply(_neighbour(values[0], -1, source_type) if operation is Operation.LT else values[0])
        older = _may_be_one_higher(name, source_type) and cast(int, result) < 0
        return Condition(Operation.LT_EQ, (cast(int, result) + 1 if older else result,))
    if operation in _GREATER:
        result = apply(_neighbour(values[0], 1, source_type) if operation is Operation.GT else values[0])
        return Condition(Operation.GT_EQ, (result,))
    return _projected_prefix(condition, apply, is_strict=False)


def _strict(condition: Condition, name: str, source_type: str, apply: Transform) -> Condition | None:
    """Returns a condition that only partitions meet of which every row matches; None if there is none. `apply` is the
    transform called `name`, of values of `source_type`."""
    operation, values = condition.operation, condition.values
    if operation in (Operation.NOT_EQ, Operation.NOT_IN):
        found = Condition(operation, tuple(apply(value) for value in values))
        return _with_older_values(found) if _may_be_one_higher(name, source_type) else found
    if name == "bucket":
        return None
    if operation in _LESS:
        return Condition(
            Operation.LT, (apply(_neighbour(values[0], 1, source_type) if operation is Operation.LT_EQ else values[0]),)
        )
    if operation in _GREATER:
        result = apply(_neighbour(values[0], -1, source_type) if operation is Operation.GT_EQ else values[0])
        older = _may_be_one_higher(name, source_type) and cast(int, result) <= 0
        return Condition(Operation.GT, (cast(int, result) + 1 if older else result,))
    return _projected_prefix(condition, apply, is_strict=True)


def _projected_prefix(condition: Condition, apply: Transform, *, is_strict: bool) -> Condition | None:
    """Projects `starts with` and `not starts with` to text that is truncated, with `is_strict` strictly; None for any
    other operation, and if no condition follows. A prefix that truncation leaves as it is may be as long as the width:
    then it is the whole text of the field."""
    if condition.operation not in (Operation.STARTS_WITH, Operation.NOT_STARTS_WITH):
        return None
    is_positive = condition.operation is Operation.STARTS_WITH
    prefix = cast(str, condition.values[0])
    cut = cast(str, apply(prefix))
    if cut == prefix:
        return condition
    return Condition(condition.operation, (cut,)) if is_positive is not is_strict else None


def _neighbour(value: Value, step: int, source_type: str) -> Value:
    """Returns the next value of a type of integers (such as dates and times, too) or decimals for the `step` 1, the one
    before for -1; any other value as it is."""
    if isinstance(value, Decimal):
        return value + Decimal(step).scaleb(-decimal_scale(source_type))
    return value + step if isinstance(value, int) else value


def _may_be_one_higher(name: str, source_type: str) -> bool:
    """Whether partition values of times before 1970 may be one too high: early writers rounded up, not down."""
    return name in TIMES and not (name == "day" and base_name(source_type) == "date")


def _with_older_values(condition: Condition) -> Condition:
    """Returns the condition with, for every negative number, also the number that is one higher, which an early writer
    gave; `=` becomes IN by that, `!=` becomes NOT IN."""
    numbers = cast(tuple[int, ...], condition.values)
    values = dict.fromkeys(
        result for number in numbers for result in ((number, number + 1) if number < 0 else (number,))
    )
    if len(values) == len(condition.values):
        return condition
    is_positive = condition.operation in (Operation.EQ, Operation.IN)
    return Condition(Operation.IN if is_positive else Operation.NOT_IN, tuple(values))
