"""Filters of rows as values: `true` and `false`, predicates of one column, and their combinations.

A filter has two truth values: a row matches or it does not. Null matches no comparison with a literal but `!=`,
`not in` and `not starts with`; NaN matches no `<`, `<=`, `>`, `>=`.
"""

from enum import StrEnum
from typing import TypeAlias

from arco_catalog.iceberg.json import JsonValue
from storage_backends.lazy_dataclass import dataclass


class Operation(StrEnum):
    """What a predicate tests, by the names of Iceberg's JSON form."""

    IS_NULL = "is-null"
    NOT_NULL = "not-null"
    IS_NAN = "is-nan"
    NOT_NAN = "not-nan"
    LT = "lt"
    LT_EQ = "lt-eq"
    GT = "gt"
    GT_EQ = "gt-eq"
    EQ = "eq"
    NOT_EQ = "not-eq"
    STARTS_WITH = "starts-with"
    NOT_STARTS_WITH = "not-starts-with"
    IN = "in"
    NOT_IN = "not-in"


UNARY = frozenset({Operation.IS_NULL, Operation.NOT_NULL, Operation.IS_NAN, Operation.NOT_NAN})
SETS = frozenset({Operation.IN, Operation.NOT_IN})
ORDERINGS = frozenset({Operation.LT, Operation.LT_EQ, Operation.GT, Operation.GT_EQ})

_OPPOSITES = (
    (Operation.IS_NULL, Operation.NOT_NULL),
    (Operation.IS_NAN, Operation.NOT_NAN),
    (Operation.LT, Operation.GT_EQ),
    (Operation.GT, Operation.LT_EQ),
    (Operation.EQ, Operation.NOT_EQ),
    (Operation.IN, Operation.NOT_IN),
    (Operation.STARTS_WITH, Operation.NOT_STARTS_WITH),
)
_NEGATIONS = {**dict(_OPPOSITES), **{other: one for one, other in _OPPOSITES}}

MIRRORED = {
    Operation.LT: Operation.GT,
    Operation.LT_EQ: Operation.GT_EQ,
    Operation.GT: Operation.LT,
    Operation.GT_EQ: Operation.LT_EQ,
    Operation.EQ: Operation.EQ,
    Operation.NOT_EQ: Operation.NOT_EQ,
}
"""What a comparison tests with its sides exchanged."""


@dataclass(frozen=True, slots=True)
class Term:
    """The value that a predicate tests: a column, by full name or by id, after a transform. Without one the transform
    is `identity`."""

    column: str | int
    transform: str = "identity"


@dataclass(frozen=True, slots=True)
class Literal:
    """A value in a filter as JSON, with the name of its type if the filter states it."""

    value: JsonValue
    type: str | None = None


@dataclass(frozen=True, slots=True)
class Predicate:
    """A test of one term: with no literal, with one, or with those of a set."""

    operation: Operation
    term: Term
    literals: tuple[Literal, ...] = ()


@dataclass(frozen=True, slots=True)
class Constant:
    """The filter that all rows match, or no row."""

    value: bool


@dataclass(frozen=True, slots=True)
class And:
    """The filter of the rows that match both sides."""

    left: "Expression"
    right: "Expression"


@dataclass(frozen=True, slots=True)
class Or:
    """The filter of the rows that match a side, or both."""

    left: "Expression"
    right: "Expression"


@dataclass(frozen=True, slots=True)
class Not:
    """The negation of its child, as `without_not` forms it: a row with null or NaN may match neither of the two."""

    child: "Expression"


Expression: TypeAlias = Constant | Predicate | And | Or | Not

TRUE, FALSE = Constant(True), Constant(False)


def and_(left: Expression, right: Expression) -> Expression:
    """Returns the filter of rows that match both. A side that is a constant disappears, or is the result."""
    if FALSE in (left, right):
        return FALSE
    return right if left == TRUE else left if right == TRUE else And(left, right)


def or_(left: Expression, right: Expression) -> Expression:
    """Returns the filter of rows that match one or both. A side that is a constant disappears, or is the result."""
    if TRUE in (left, right):
        return TRUE
    return right if left == FALSE else left if right == FALSE else Or(left, right)


def without_not(expression: Expression, *, negated: bool = False) -> Expression:
    """Returns the filter, or with `negated` the negation of it, with every `not` moved into the predicates, and
    without constants inside it. As in the reference implementation, the negation of `x < 1` is `x >= 1`: null and NaN
    match neither."""
    match expression:
        case Constant(value):
            return Constant(value is not negated)
        case Not(child):
            return without_not(child, negated=not negated)
        case Predicate(operation, term, literals):
            return Predicate(_NEGATIONS[operation], term, literals) if negated else expression
    sides = without_not(expression.left, negated=negated), without_not(expression.right, negated=negated)
    return and_(*sides) if isinstance(expression, And) is not negated else or_(*sides)
