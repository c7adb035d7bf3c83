"""Rows, filters of them whose matches are known, and the partitions, statistics and summaries that writers compute."""

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from arco_catalog.iceberg.content_files import FileStatistics
from arco_catalog.iceberg.expressions.expression import (
    SETS,
    UNARY,
    And,
    Constant,
    Expression,
    Literal,
    Not,
    Operation,
    Or,
    Predicate,
    Term,
)
from arco_catalog.iceberg.expressions.transform_values import result_type, transform_function
from arco_catalog.iceberg.expressions.values import Value, parse_value, value_json
from arco_catalog.iceberg.manifests import FieldSummary
from arco_catalog.iceberg.partition import PartitionSpec
from arco_catalog.iceberg.schema import Schema

Row = Mapping[int, Value | None]
Matches = Callable[[Row], bool]
Order = Callable[[Value], Any]

HOUR = 3_600 * 10**6
DAY = 24 * HOUR
_TIMES = [0, -1, 1, HOUR, -HOUR, HOUR - 1, DAY, -DAY, -DAY - 1, 31 * DAY, -31 * DAY, 365 * DAY, 10**16, -(10**16)]
_TEXTS = ["", "a", "ab", "abc", "abd", "abcd", "b", "ba", "é", "é\ud7ff", "\uffff", "😀", "😀😀", "a😀b", "\U0010ffff"]
_UUIDS = [bytes(16), b"\x01" + bytes(15), b"\x80" + bytes(15), bytes(7) + b"\x01\x80" + bytes(7), b"\xff" * 16]

POOLS: dict[str, Sequence[Value]] = {
    "boolean": [False, True],
    "int": [-25, -11, -10, -9, -1, 0, 1, 5, 9, 10, 11, 19, 20, 2**31 - 1],
    "long": [-25, -11, -10, -1, 0, 1, 5, 9, 10, 11, 20, 2**40, 2**63 - 1],
    "float": [-1.5, -0.0, 0.0, 1.0, 2.5, math.inf, -math.inf, math.nan],
    "double": [-1.5, -0.0, 0.0, 1.0, 2.5, math.inf, -math.inf, math.nan],
    "decimal(9,2)": [Decimal(each).scaleb(-2) for each in (-1001, -1000, -999, -1, 0, 1, 50, 99, 100, 1000, 1001)],
    "date": [-400, -366, -365, -32, -31, -1, 0, 1, 30, 31, 59, 364, 365, 800],
    "time": [0, 1, HOUR, DAY - 1],
    "timestamp": _TIMES,
    "timestamptz": _TIMES,
    "timestamp_ns": [each * 100 for each in _TIMES],
    "timestamptz_ns": [each * 100 for each in _TIMES],
    "string": _TEXTS,
    "uuid": _UUIDS,
    "fixed[2]": [bytes(2), b"\x00\x01", b"\x7f\xff", b"\x80\x00", b"\xff\xff"],
    "binary": [b"", b"\x00", b"a", b"ab", b"abc", b"\x7f", b"\x80", b"\xff", b"\xff\xff"],
}
TYPES = sorted(POOLS)
_OF_TIMESTAMPS = ("identity", "bucket[3]", "year", "month", "day", "hour")
TRANSFORMS: dict[str, Sequence[str]] = {
    **dict.fromkeys(["boolean", "float", "double"], ("identity",)),
    **dict.fromkeys(["time", "uuid", "fixed[2]"], ("identity", "bucket[3]")),
    **dict.fromkeys(["int", "long"], ("identity", "bucket[3]", "truncate[10]")),
    **dict.fromkeys(["timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"], _OF_TIMESTAMPS),
    "date": ["identity", "bucket[3]", "year", "month", "day"],
    "decimal(9,2)": ["identity", "bucket[3]", "truncate[50]"],
    "string": ["identity", "bucket[3]", "truncate[1]", "truncate[2]"],
    "binary": ["identity", "bucket[3]", "truncate[1]"],
}

_PREFIXES = (Operation.STARTS_WITH, Operation.NOT_STARTS_WITH)
_OF_NAN = (Operation.IS_NAN, Operation.NOT_NAN)
_TESTS: dict[Operation, Callable[[Any, Any], bool]] = {
    Operation.LT: lambda value, literal: value < literal,
    Operation.LT_EQ: lambda value, literal: value <= literal,
    Operation.GT: lambda value, literal: value > literal,
    Operation.GT_EQ: lambda value, literal: value >= literal,
    Operation.EQ: lambda value, literal: value == literal,
    Operation.STARTS_WITH: lambda value, literal: value.startswith(literal),
}
_NEGATED = {
    Operation.NOT_EQ: Operation.EQ,
    Operation.NOT_IN: Operation.IN,
    Operation.NOT_STARTS_WITH: Operation.STARTS_WITH,
    Operation.NOT_NULL: Operation.IS_NULL,
    Operation.NOT_NAN: Operation.IS_NAN,
}
_REVERSED = {
    Operation.LT: Operation.GT_EQ,
    Operation.LT_EQ: Operation.GT,
    Operation.GT: Operation.LT_EQ,
    Operation.GT_EQ: Operation.LT,
}


def is_met(operation: Operation, value: Value | None, literals: Sequence[Value]) -> bool:
    """Whether a value meets a predicate, by the specification of expressions."""
    if operation in _NEGATED:
        return not is_met(_NEGATED[operation], value, literals)
    if operation is Operation.IS_NULL:
        return value is None
    if value is None:
        return False
    if operation is Operation.IS_NAN:
        return isinstance(value, float) and math.isnan(value)
    if operation is Operation.IN:
        return any(value == literal for literal in literals)
    return _TESTS[operation](value, literals[0])


@dataclass(frozen=True)
class Filter:
    """A filter, and which rows match it and its negation."""

    expression: Expression
    matches: Matches
    negation: Matches


def schema_of(types: Sequence[str], *, required: bool = False) -> Schema:
    fields = [
        {"id": position, "name": f"c{position}", "type": each, "required": required}
        for position, each in enumerate(types, 1)
    ]
    return {"type": "struct", "fields": fields}  # type: ignore[typeddict-item]


def spec_of(*fields: tuple[int, str]) -> PartitionSpec:
    named = [
        {"source-id": source, "transform": transform, "name": f"p{position}", "field-id": 1000 + position}
        for position, (source, transform) in enumerate(fields)
    ]
    return {"spec-id": 0, "fields": named}  # type: ignore[typeddict-item]


def values_of(type_name: str) -> st.SearchStrategy[Value]:
    return st.sampled_from(POOLS[type_name])


def _literal_values(type_name: str) -> st.SearchStrategy[Value]:
    pool = POOLS[type_name]
    return st.sampled_from([each for each in pool if not isinstance(each, float) or math.isfinite(each)])


def _operations(of_term: str) -> Sequence[Operation]:
    without = () if of_term == "string" else _PREFIXES
    without_nan = () if of_term in ("float", "double") else _OF_NAN
    return [each for each in Operation if each not in (*without, *without_nan)]


@st.composite
def predicates(draw: st.DrawFn, types: Sequence[str]) -> Filter:
    """A predicate of a column of these types, or of a transform of one."""
    column = draw(st.integers(1, len(types)))
    of_column = types[column - 1]
    transform = draw(st.sampled_from(["identity", "identity", *TRANSFORMS[of_column]]))
    apply = transform_function(transform, of_column)
    assert apply is not None
    of_term = result_type(transform, of_column)
    operation = draw(st.sampled_from(_operations(of_term)))
    count = 0 if operation in UNARY else draw(st.integers(1, 4)) if operation in SETS else 1
    literals = [apply(draw(_literal_values(of_column))) for _ in range(count)]
    term = Term(f"c{column}", transform)
    expression = Predicate(operation, term, tuple(Literal(value_json(of_term, each)) for each in literals))

    def test(wanted: Operation, row: Row) -> bool:
        value = row[column]
        return is_met(wanted, None if value is None else apply(value), literals)

    opposite = _REVERSED.get(operation)
    return Filter(
        expression,
        lambda row: test(operation, row),
        lambda row: test(opposite, row) if opposite else not test(operation, row),
    )


def filters(types: Sequence[str]) -> st.SearchStrategy[Filter]:
    """Filters of several predicates."""
    return st.recursive(
        predicates(types),
        lambda inner: st.builds(_and, inner, inner) | st.builds(_or, inner, inner) | st.builds(_not, inner),
        max_leaves=4,
    )


def _and(one: Filter, other: Filter) -> Filter:
    return Filter(
        And(one.expression, other.expression),
        lambda row: one.matches(row) and other.matches(row),
        lambda row: one.negation(row) or other.negation(row),
    )


def _or(one: Filter, other: Filter) -> Filter:
    return Filter(
        Or(one.expression, other.expression),
        lambda row: one.matches(row) or other.matches(row),
        lambda row: one.negation(row) and other.negation(row),
    )


def _not(one: Filter) -> Filter:
    return Filter(Not(one.expression), one.negation, one.matches)


def rows(types: Sequence[str]) -> st.SearchStrategy[Row]:
    return st.tuples(*(st.none() | values_of(each) for each in types)).map(lambda row: dict(enumerate(row, 1)))


def bound_bytes(type_name: str, value: Value) -> bytes:
    """The binary single-value form, written apart from the code under test."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, Decimal):
        return int(value.scaleb(2)).to_bytes(5, "big", signed=True)
    layouts = {"boolean": "<?", "int": "<i", "date": "<i", "float": "<f", "double": "<d"}
    return struct.pack(layouts.get(type_name, "<q"), value)


def total_order(value: Value) -> Any:
    """The order of the specification, with -0.0 before 0.0."""
    return (value, math.copysign(1, value)) if isinstance(value, float) else value


def java_order(value: Value) -> Any:
    """The order of Java's library, which compares UUIDs as two signed numbers."""
    return struct.unpack(">qq", value) if isinstance(value, bytes) and len(value) == 16 else total_order(value)


def _lower_cut(value: Value) -> Value:
    return value[:1] if isinstance(value, str | bytes) else value


def _upper_cut(value: Value) -> Value | None:
    """Text or bytes cut after one character, which is raised."""
    if not isinstance(value, str | bytes) or len(value) <= 1:
        return value
    if isinstance(value, bytes):
        return bytes([value[0] + 1]) if value[0] < 255 else None
    raised = 0xE000 if value[0] == "\ud7ff" else ord(value[0]) + 1
    return chr(raised) if raised <= 0x10FFFF else None


def statistics_of(
    types: Sequence[str],
    file: Sequence[Row],
    *,
    order: Order = total_order,
    cut: bool = False,
    without: frozenset[str] = frozenset(),
) -> FileStatistics:
    """Statistics as a writer computes them, some of them left out, the bounds whole or cut."""
    counts: dict[str, dict[int, Any]] = {name: {} for name in FileStatistics._fields[1:]}
    for column, of_column in enumerate(types, 1):
        present = [value for row in file if (value := row[column]) is not None]
        numbers = [value for value in present if value == value]
        counts["value_counts"][column], counts["null_value_counts"][column] = len(file), len(file) - len(present)
        if of_column in ("float", "double"):
            counts["nan_value_counts"][column] = len(present) - len(numbers)
        if numbers:
            lower, upper = min(numbers, key=order), max(numbers, key=order)
            least, greatest = (_lower_cut(lower), _upper_cut(upper)) if cut else (lower, upper)
            counts["lower_bounds"][column] = bound_bytes(of_column, least)
            if greatest is not None:
                counts["upper_bounds"][column] = bound_bytes(of_column, greatest)
    return FileStatistics(len(file), **{name: None if name in without else each for name, each in counts.items()})


def partition_of(types: Sequence[str], spec: PartitionSpec, row: Row) -> tuple[Value | None, ...]:
    found: list[Value | None] = []
    for field in spec["fields"]:
        value, apply = row[field["source-id"]], transform_function(field["transform"], types[field["source-id"] - 1])
        found.append(None if value is None or apply is None else apply(value))
    return tuple(found)


def summaries_of(
    types: Sequence[str], partitions: Sequence[tuple[Value | None, ...]], *, order: Order = total_order
) -> list[FieldSummary]:
    """The summaries of a manifest's partitions, by the types of the partition fields."""
    summaries = []
    for position, of_field in enumerate(types):
        present = [value for each in partitions if (value := each[position]) is not None]
        numbers = [value for value in present if value == value]
        summaries.append(
            FieldSummary(
                contains_null=len(present) < len(partitions),
                contains_nan=len(numbers) < len(present) if of_field in ("float", "double") else None,
                lower_bound=bound_bytes(of_field, min(numbers, key=order)) if numbers else None,
                upper_bound=bound_bytes(of_field, max(numbers, key=order)) if numbers else None,
            )
        )
    return summaries


def evaluated(expression: Expression, types: Sequence[str], row: Row) -> bool:
    """Whether a row matches a filter without `not` whose literals are in the JSON form of their types."""
    if isinstance(expression, Constant):
        return expression.value
    if isinstance(expression, Predicate):
        column = int(str(expression.term.column).removeprefix("c"))
        apply = transform_function(expression.term.transform, types[column - 1])
        assert apply is not None
        of_term, value = result_type(expression.term.transform, types[column - 1]), row[column]
        literals = [parse_value(of_term, literal.value) for literal in expression.literals]
        return is_met(expression.operation, None if value is None else apply(value), literals)
    assert not isinstance(expression, Not)
    sides = (evaluated(side, types, row) for side in (expression.left, expression.right))
    return all(sides) if isinstance(expression, And) else any(sides)
