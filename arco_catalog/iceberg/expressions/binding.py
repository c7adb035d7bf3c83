"""Filters bound to a schema: columns by id, literals as values of their columns' types, and no `not`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias, TypeVar

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.expressions.conditions import NEGATIVE, Condition, is_floating
from arco_catalog.iceberg.expressions.expression import (
    SETS,
    UNARY,
    And,
    Constant,
    Expression,
    Literal,
    Not,
    Operation,
    Predicate,
    Term,
    without_not,
)
from arco_catalog.iceberg.expressions.literals import Between, Beyond, Bound, convert
from arco_catalog.iceberg.expressions.transform_values import (
    ORDER_PRESERVING,
    result_type,
    transform_function,
    transform_name,
)
from arco_catalog.iceberg.expressions.values import value_json
from arco_catalog.iceberg.schema import Column, Columns, type_name
from storage_backends.lazy_dataclass import dataclass

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BoundPredicate:
    """A condition on the values of a column after a transform. `type` is the type of these values; `original` is the
    predicate as clients read it, with the column's name and without types of literals."""

    column: Column
    transform: str
    type: str
    condition: Condition
    original: Predicate

    @property
    def column_type(self) -> str:
        """The name of the column's type."""
        return type_name(self.column.type)


@dataclass(frozen=True, slots=True)
class Conjunction:
    """The bound filter of rows that match all parts."""

    parts: tuple["BoundFilter", ...]


@dataclass(frozen=True, slots=True)
class Disjunction:
    """The bound filter of rows that match a part at least."""

    parts: tuple["BoundFilter", ...]


BoundFilter: TypeAlias = Constant | BoundPredicate | Conjunction | Disjunction


class Binder:
    """Binds filters to the columns of a schema: replaces names by columns, and literals by values of the types of
    columns. Unless `case_sensitive`, names of columns are compared in lower case."""

    def __init__(self, columns: Columns, *, case_sensitive: bool) -> None:
        self._columns = columns
        self._lower_case = None if case_sensitive else _by_lower_case(columns.ids)

    def bind(self, expression: Expression) -> BoundFilter:
        """Returns the filter with columns and values in place of names and literals. Raises `BadRequest` for a column
        that does not exist or is inside a list or map, for a name that several columns have in lower case if case is
        ignored, and for literals, transforms and tests (of NaN or a prefix) that don't fit its type."""
        return self._bind(without_not(expression))

    def _bind(self, expression: Expression) -> BoundFilter:
        """Binds an expression without NOT to the columns of the schema; constants inside it disappear, or decide the
        result. Fails as `bind` does."""
        if isinstance(expression, Constant):
            return expression
        if isinstance(expression, Predicate):
            return self._bind_predicate(expression)
        assert not isinstance(expression, Not)
        sides = self._bind(expression.left), self._bind(expression.right)
        return _joined(sides, is_all=isinstance(expression, And))

    def _bind_predicate(self, predicate: Predicate) -> BoundFilter:
        """Binds a predicate to its column. Returns a constant if the result does not depend on values. Fails for a
        transform that the column's type does not have, and as `_column`, `_unary` and `_condition` do."""
        column = self._column(predicate.term)
        of_column, transform = type_name(column.type), predicate.term.transform
        if transform_name(transform) == "void":
            return Constant(predicate.operation in NEGATIVE | {Operation.IS_NULL, Operation.NOT_NAN})
        if transform != "identity" and transform_function(transform, of_column) is None:
            raise BadRequest(
                f"Cannot bind the filter: {transform[:100]} cannot transform {of_column} values from {column.name!r}: "
                "it is unknown, has an invalid parameter, or is not for this type"
            )
        of_term = result_type(transform, of_column)
        if predicate.operation in UNARY:
            condition = _unary(predicate.operation, column, transform, of_term)
        else:
            condition = _condition(predicate, column, of_term)
        if isinstance(condition, Constant):
            return condition
        return BoundPredicate(column, transform, of_term, condition, _original(predicate, column, of_term))

    def _column(self, term: Term) -> Column:
        """Returns the column of a term. Raises `BadRequest` if there is none or it is inside a list or map, and as
        `_id_of` does if several columns have the name."""
        named = term.column
        column_id = named if isinstance(named, int) else self._id_of(named)
        column = None if column_id is None else self._columns.get(column_id)
        if column is None:
            raise BadRequest(f"Cannot find field {str(named)[:200]!r} in the schema of the scan")
        if any(type_name(outer.type) != "struct" for outer in column.ancestors):
            raise BadRequest(f"Cannot filter by {column.name[:200]!r}, which is inside a list or map")
        return column

    def _id_of(self, name: str) -> int | None:
        """Returns the id of the column with a name; None without one. Fails if the filter ignores case and more than
        one column has this name in lower case."""
        if self._lower_case is None:
            return self._columns.ids.get(name)
        found = self._lower_case.get(name.lower(), ())
        if len(found) > 1:
            raise BadRequest(f"Cannot find field {name[:200]!r}: several columns have this name in lower case")
        return found[0] if found else None


def predicates_in(bound: BoundFilter) -> Iterator[BoundPredicate]:
    """Yields every predicate of a bound filter, in no order; constants are none."""
    left = [bound]
    while left:
        part = left.pop()
        if isinstance(part, Conjunction | Disjunction):
            left += part.parts
        elif isinstance(part, BoundPredicate):
            yield part


def folded(
    bound: BoundFilter, leaf: Callable[[BoundPredicate], T | bool], joined: Callable[[list[T], bool], T]
) -> T | bool:
    """Returns one result for a filter: `leaf` gives that of a predicate, `joined` that of two or more parts, of which
    all must match if its second argument is true, else one. A part whose result is a boolean decides the result or is
    left out; a part that is left alone is the result."""
    if isinstance(bound, Constant):
        return bound.value
    if isinstance(bound, BoundPredicate):
        return leaf(bound)
    is_all = isinstance(bound, Conjunction)
    parts: list[T] = []
    for part in bound.parts:
        result = folded(part, leaf, joined)
        if not isinstance(result, bool):
            parts.append(result)
        elif result is not is_all:
            return result
    if not parts:
        return is_all
    return parts[0] if len(parts) == 1 else joined(parts, is_all)


def _by_lower_case(ids: Mapping[str, int]) -> Mapping[str, Sequence[int]]:
    """Returns the names of columns in lower case, each with the ids of all columns that have it."""
    found: dict[str, list[int]] = {}
    for name, column_id in ids.items():
        found.setdefault(name.lower(), []).append(column_id)
    return found


def _joined(sides: tuple[BoundFilter, BoundFilter], *, is_all: bool) -> BoundFilter:
    """Joins two sides by AND if `is_all`, else by OR. Constants disappear or decide the result, and parts of a side
    that is joined in the same way become parts of the result."""
    kind, parts = Conjunction if is_all else Disjunction, list[BoundFilter]()
    for side in sides:
        if isinstance(side, Constant):
            if side.value is not is_all:
                return side
        elif isinstance(side, kind):
            parts += side.parts
        else:
            parts.append(side)
    if not parts:
        return Constant(is_all)
    return parts[0] if len(parts) == 1 else kind(tuple(parts))


def _unary(operation: Operation, column: Column, transform: str, of_term: str) -> Condition | Constant:
    """Returns the condition of IS NULL, NOT NULL, IS NAN or NOT NAN; a constant if all values have one result. Fails
    for the last two if the type of the term, after the transform, has no NaN."""
    if operation in (Operation.IS_NAN, Operation.NOT_NAN):
        if not is_floating(of_term):
            raise BadRequest(
                f"{operation} cannot be used with the column {column.name[:200]!r}: the term has the type {of_term}, "
                "which has no NaN"
            )
        return Condition(operation)
    if column.is_never_null and transform_name(transform) in ORDER_PRESERVING:
        return Constant(operation is Operation.NOT_NULL)
    if of_term == "unknown":
        return Constant(operation is Operation.IS_NULL)
    return Condition(operation)


def _condition(predicate: Predicate, column: Column, of_term: str) -> Condition | Constant:
    """Returns the condition of a comparison, with literals of the term's type; a constant if all values have one
    result. Raises `BadRequest` for a literal that the type has no conversion for, and for a prefix of a term that is no
    string."""
    operation = predicate.operation
    if operation in (Operation.STARTS_WITH, Operation.NOT_STARTS_WITH) and of_term != "string":
        raise BadRequest(f"The term of {operation} must be a string, not {of_term}: {column.name[:200]!r}")
    try:
        bounds = [convert(literal, of_term) for literal in predicate.literals]
    except BadRequest as error:
        raise BadRequest(f"{error.message}, for the column {column.name[:200]!r}") from error
    if operation in SETS:
        return _set_condition(operation, bounds)
    return _comparison(operation, bounds[0])


def _set_condition(operation: Operation, bounds: list[Bound]) -> Condition | Constant:
    """Returns the condition of IN or NOT IN, without literals that no value can equal: for one literal that is left `=`
    or `!=`, for none a constant."""
    values = tuple(dict.fromkeys(bound for bound in bounds if not isinstance(bound, Beyond | Between)))
    is_in = operation is Operation.IN
    if not values:
        return Constant(not is_in)
    if len(values) == 1:
        return Condition(Operation.EQ if is_in else Operation.NOT_EQ, values)
    return Condition(operation, values)


def _comparison(operation: Operation, bound: Bound) -> Condition | Constant:
    """Returns the comparison with a value; for a literal between two values that with the lower one, and a constant for
    a literal outside of all values, or if no value can equal it."""
    if not isinstance(bound, Beyond | Between):
        return Condition(operation, (bound,))
    if operation in (Operation.EQ, Operation.NOT_EQ):
        return Constant(operation is Operation.NOT_EQ)
    is_less = operation in (Operation.LT, Operation.LT_EQ)
    if isinstance(bound, Beyond):
        return Constant(is_less is (bound is Beyond.ABOVE))
    return Condition(Operation.LT_EQ if is_less else Operation.GT, (bound.floor,))


def _original(predicate: Predicate, column: Column, of_term: str) -> Predicate:
    """Returns the predicate as clients read it: with the column's name (as the filter has it, or for an id as the
    schema has it), and with each literal whose type the filter states in the form of the term's type."""
    named = predicate.term.column
    term = predicate.term if isinstance(named, str) else Term(column.name, predicate.term.transform)
    literals = tuple(literal if literal.type is None else _untyped(literal, of_term) for literal in predicate.literals)
    return Predicate(predicate.operation, term, literals)


def _untyped(literal: Literal, of_term: str) -> Literal:
    """Returns a literal as JSON of the term's type; with the value as it is and no type if the literal is outside or
    between the values of the type."""
    bound = convert(literal, of_term)
    if isinstance(bound, Beyond | Between):
        return Literal(literal.value)
    return Literal(value_json(of_term, bound))
