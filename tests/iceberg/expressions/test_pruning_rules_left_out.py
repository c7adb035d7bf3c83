"""Each rule of the tests of files, left out, is noticed by a case of `test_pruning.py`."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import pytest

from arco_catalog.iceberg.expressions import (
    binding,
    conditions,
    expression,
    literals,
    projections,
    residuals,
    statistics,
    summaries,
)
from arco_catalog.iceberg.expressions.conditions import Condition
from arco_catalog.iceberg.expressions.expression import FALSE, TRUE, And, Not, Operation, Or
from arco_catalog.iceberg.expressions.partition_fields import PartitionFields
from arco_catalog.iceberg.expressions.values import scaled
from tests.iceberg.expressions import test_pruning

Patch = pytest.MonkeyPatch


def replaced(owner: Any, name: str, change: Callable[[Any], Any]) -> Callable[[Patch], None]:
    """Returns what replaces a function or value of a module by one made of it."""
    return lambda patch: patch.setattr(owner, name, change(getattr(owner, name)))


def in_table(owner: Any, table: str, operation: Operation, value: Any) -> Callable[[Patch], None]:
    return lambda patch: patch.setitem(getattr(owner, table), operation, value)


def and_stays(negate: Any) -> Any:
    """A negation that does not exchange `and` and `or`."""

    def without_not(of: Any, *, negated: bool = False) -> Any:
        if isinstance(of, Not):
            return without_not(of.child, negated=not negated)
        if isinstance(of, And | Or):
            return type(of)(without_not(of.left, negated=negated), without_not(of.right, negated=negated))
        return negate(of, negated=negated)

    return without_not


def of_plain_column(project: Any) -> Any:
    """A projection that takes the transform of a term for none, as the reference implementation does for `identity`."""

    def inclusive(predicate: Any, transform: str) -> Any:
        if transform == "identity":
            return predicate.condition
        return project(predicate, transform)

    return inclusive


def always_inclusive(project: Any) -> Any:
    return lambda predicate, transform: projections.inclusive(predicate, transform)


def of_first_column(decisions: Any) -> Any:
    """Takes the first column for that of each predicate, so that fields are compared with those of others."""
    return lambda fields, each: decisions(fields, replace(each, column=replace(each.column, id=1)))


def as_true(residual_of: Any) -> Any:
    """Residuals that are true wherever a row may match."""

    def of_predicate(*arguments: Any) -> Any:
        found = residual_of(*arguments)
        return lambda partition: FALSE if found(partition) is FALSE else TRUE

    return of_predicate


def cut_prefix(condition: Any, apply: Any, *, is_strict: bool) -> Condition:
    return Condition(condition.operation, (apply(condition.values[0]),))


RANGES = conditions._RANGES
LIMIT: Any = lambda keys: lambda lower, upper: upper is not None and upper > keys[0]  # noqa: E731
UNCUT: Any = lambda keys: lambda lower, upper: upper is None or keys[0] >= upper  # noqa: E731
LOWEST: Any = lambda keys: lambda lower, upper: lower != keys[0]  # noqa: E731
HAS_VALUES: Any = lambda column: lambda file: not file.null_value_counts  # noqa: E731

RULES: dict[str, Callable[[Patch], None]] = {
    "a bound may be a value": in_table(conditions, "_RANGES", Operation.LT_EQ, RANGES[Operation.LT]),
    "an upper bound may be a value": in_table(conditions, "_RANGES", Operation.GT_EQ, RANGES[Operation.GT]),
    "an unknown bound excludes nothing": in_table(conditions, "_RANGES", Operation.GT, LIMIT),
    "bounds are cut to the length of a prefix": in_table(conditions, "_RANGES", Operation.STARTS_WITH, UNCUT),
    "a range has other values than one": in_table(conditions, "_RANGES", Operation.NOT_EQ, LOWEST),
    "null meets what excludes a value": replaced(statistics, "null_test", lambda _: lambda _: lambda _: False),
    "NaN meets what excludes a value": replaced(statistics, "may_be_nan", lambda _: lambda *_: False),
    "a column has values beside nulls": replaced(statistics, "_not_only_nulls", lambda _: HAS_VALUES),
    "both orders of UUIDs and zeros exclude": replaced(conditions, "_orders", lambda _: lambda *_: (None,)),
    "a bucket has no order": replaced(statistics, "ORDER_PRESERVING", lambda names: names | {"bucket"}),
    "a negation exchanges and and or": replaced(binding, "without_not", and_stays),
    "the opposite of < is >=": in_table(expression, "_NEGATIONS", Operation.LT, Operation.GT),
    "a summary with nulls may have null": replaced(summaries, "NEGATIVE", lambda _: frozenset()),
    "a summary of nulls may have values": replaced(
        summaries, "_without_nulls_alone", lambda _: lambda _: lambda summary: not summary.contains_null
    ),
    "the value next to a literal is projected": replaced(
        projections, "_neighbour", lambda found: lambda value, step, kind: found(value, 2 * step, kind)
    ),
    "the projected value is on the right side": replaced(
        projections, "_neighbour", lambda found: lambda value, step, kind: found(value, -step, kind)
    ),
    "an order is not projected to buckets": replaced(
        projections, "_inclusive", lambda found: lambda condition, _, *others: found(condition, "truncate", *others)
    ),
    "a term with a transform is no column": replaced(projections, "inclusive", of_plain_column),
    "all rows of a partition match": replaced(projections, "strict", always_inclusive),
    "engines differ about null": replaced(conditions, "_met_by_null", lambda _: lambda operation: True),
    "what is undecided stays in a residual": replaced(residuals, "_of_predicate", as_true),
    "a field has part of a longer prefix": replaced(projections, "_projected_prefix", lambda _: cut_prefix),
    "early writers rounded times up": replaced(projections, "_may_be_one_higher", lambda _: lambda *_: False),
    "a field shows values of its source": replaced(PartitionFields, "decisions", of_first_column),
    "a decimal between two values is neither": replaced(
        literals, "_from_decimal", lambda _: lambda value, base, kind: scaled(value, 2)
    ),
    "rows of a null struct have null": replaced(
        statistics,
        "null_test",
        lambda found: lambda column: found(replace(column, parent=None)),
    ),
}


def cases() -> Iterator[Callable[[], None]]:
    """Yields each case of each test of `test_pruning.py`."""
    for name, test in vars(test_pruning).items():
        if name.startswith("test_"):
            marks = [mark.args for mark in getattr(test, "pytestmark", [])]
            names = [
                [each.strip() for each in arguments.split(",")] if isinstance(arguments, str) else arguments
                for arguments, _ in marks
            ]
            for values in product(*(rows for _, rows in marks)):
                arguments: dict[str, Any] = {}
                for of, row in zip(names, values, strict=True):
                    arguments |= dict(zip(of, row if len(of) > 1 else [row], strict=True))
                yield partial(test, **arguments)


def run_all() -> int:
    """Returns how many cases there are, all of which pass. Raises `AssertionError` by the first that does not."""
    return len([case() for case in cases()])


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_left_out_is_noticed(rule: str, monkeypatch: Patch) -> None:
    RULES[rule](monkeypatch)
    with pytest.raises(AssertionError):
        run_all()


def test_no_case_fails_while_all_rules_are_kept() -> None:
    assert run_all() > 100
