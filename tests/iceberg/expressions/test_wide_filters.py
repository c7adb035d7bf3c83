from functools import reduce
from struct import pack
from typing import Any

import pytest
from hypothesis import given, settings

from arco_catalog.iceberg.content_files import FileStatistics
from arco_catalog.iceberg.expressions import projections, wide_filters
from arco_catalog.iceberg.expressions.expression import (
    FALSE,
    And,
    Expression,
    Literal,
    Not,
    Operation,
    Or,
    Predicate,
    Term,
)
from arco_catalog.iceberg.expressions.expression_json import MAX_DEPTH, expression_json, parse_expression
from arco_catalog.iceberg.expressions.filters import ScanFilter, SpecFilter
from arco_catalog.iceberg.expressions.projections import LITERAL_LENGTH, MAX_PROJECTED
from arco_catalog.iceberg.expressions.wide_filters import MAX_TESTED
from arco_catalog.iceberg.manifests import FieldSummary
from tests.iceberg.expressions import test_pruning_laws as laws
from tests.iceberg.expressions.samples import evaluated, partition_of, schema_of, spec_of, statistics_of, summaries_of

EQ = Operation.EQ


def equal(column: str, *values: Any, operation: Operation = EQ) -> Predicate:
    return Predicate(operation, Term(column), tuple(map(Literal, values)))


def any_of(parts: list[Expression]) -> Expression:
    while len(parts) > 1:
        parts = [reduce(Or, parts[first : first + 2]) for first in range(0, len(parts), 2)]
    return parts[0]


def all_of(parts: list[Expression]) -> Expression:
    return reduce(And, parts)


def upsert(count: int) -> Expression:
    """The filter by which PyIceberg finds the rows that an upsert replaces."""
    return any_of([And(equal("c1", 10 * each), equal("c2", f"k{each:04d}")) for each in range(count)])


def bound(expression: Expression, spec: Any = None) -> SpecFilter:
    return ScanFilter(expression, schema_of(["long", "string"]), {0: spec or spec_of()}, True).for_spec(0)


def file(lower: int, upper: int, first: str = "k0000", last: str = "k9999") -> FileStatistics:
    lowers, uppers = {1: pack("<q", lower), 2: first.encode()}, {1: pack("<q", upper), 2: last.encode()}
    return FileStatistics(5, {1: 5, 2: 5}, {1: 0, 2: 0}, None, lowers, uppers)


@pytest.mark.parametrize("count", [MAX_TESTED // 2, MAX_TESTED])
def test_an_upsert_of_many_rows_finds_its_files_by_each_column(count: int) -> None:
    found = bound(upsert(count))
    assert found.file_may_match(file(10, 10))
    assert not found.file_may_match(file(11, 19))
    assert not found.file_may_match(file(10 * count, 20 * count))
    assert not found.file_may_match(file(10, 10, first="l"))


def test_an_upsert_of_many_rows_finds_its_partitions() -> None:
    whole = upsert(MAX_TESTED)
    found = bound(whole, spec_of((1, "truncate[100]"), (2, "identity")))
    assert found.partition_may_match((0, "k0000"))
    assert not found.partition_may_match((0, "x"))
    assert found.residual((10 * MAX_TESTED, "k0000")) is FALSE
    assert found.residual((0, "k0000")) == bound(whole).residual(())
    summary = FieldSummary(False, None, pack("<q", 0), pack("<q", 0))
    assert found.manifest_may_match([summary, FieldSummary(False, None, b"a", b"l")])
    assert not found.manifest_may_match([summary, FieldSummary(False, None, b"l", b"z")])


def test_alternatives_without_a_column_in_common_say_nothing() -> None:
    parts: list[Expression] = [equal("c1", each) for each in range(MAX_TESTED)]
    found = bound(any_of([*parts, equal("c2", "x")]))
    assert found.file_may_match(file(-9, -9))
    assert found.partition_may_match(())


def test_of_alternatives_that_require_many_columns_the_first_ones_are_tested() -> None:
    columns = [*range(1, MAX_TESTED + 11)]
    parts = [all_of([equal(f"c{each}", row) for each in columns]) for row in (1, 2)]
    whole = ScanFilter(any_of(parts), schema_of(["long"] * len(columns)), {0: spec_of()}, True).for_spec(0)
    outside = {each: pack("<q", 9) for each in columns}

    def may_match(column: int) -> bool:
        return whole.file_may_match(
            FileStatistics(5, {}, {}, None, {column: outside[column]}, {column: outside[column]})
        )

    assert [may_match(each) for each in (1, MAX_TESTED, MAX_TESTED + 1, MAX_TESTED + 10)] == [False, False, True, True]


def test_of_many_conditions_the_first_ones_are_tested() -> None:
    above = [equal("c1", each, operation=Operation.GT) for each in range(MAX_TESTED)]
    found = bound(all_of([*above[:400], equal("c2", "a")]))
    assert not found.file_may_match(file(1000, 1000))
    found = bound(all_of([upsert(MAX_TESTED), equal("c2", "k0001")]))
    assert not found.file_may_match(file(11, 19))
    assert not found.file_may_match(file(10, 10, first="k0002"))


@settings(max_examples=100)
@given(laws.cases())
def test_no_row_is_lost_by_a_weaker_filter(case: laws.Case) -> None:
    types, sample, rows, spec = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wide_filters, "MAX_TESTED", 1)
        found = laws.bound(types, sample, spec)
        partitions = [partition_of(types, spec, row) for row in rows]
        for row, partition in zip(rows, partitions, strict=True):
            assert evaluated(found.residual(partition), types, row) == sample.matches(row)
        if any(sample.matches(row) for row in rows):
            assert found.file_may_match(statistics_of(types, rows))
            assert found.manifest_may_match(summaries_of(found.partition_types, partitions))


@pytest.mark.parametrize("join", [And, Or])
def test_a_long_filter_is_written_no_deeper_than_it_was_read(join: Any) -> None:
    parts: list[Expression] = [equal("c1", each) for each in range(4000)]
    whole = bound(any_of(parts) if join is Or else Not(any_of(parts))).residual(())
    assert depth(expression_json(whole)) == 13
    chain = reduce(join, parts[:400])
    assert depth(expression_json(bound(chain).residual(()))) == 10
    assert bound(reduce(join, parts[:3])).residual(()) == join(join(*parts[:2]), parts[2])


@pytest.mark.parametrize("spec", [spec_of(), spec_of((1, "identity"))])
def test_a_filter_of_all_levels_is_tested(spec: Any) -> None:
    form = expression_json(equal("c1", 5))
    for level in range(MAX_DEPTH - 1):
        form = {"type": ("and", "or", "not")[level % 3], "left": form, "right": expression_json(equal("c1", level))}
        if level % 3 == 2:
            form = {"type": "not", "child": form["left"]}
    found = bound(parse_expression(form), spec)
    partition = (5,) if spec["fields"] else ()
    assert found.file_may_match(file(5, 5)) in (True, False)
    assert found.manifest_may_match([FieldSummary(False)] if partition else None) in (True, False)
    assert found.residual_json(partition) is not None


def depth(form: Any) -> int:
    return 1 + max(depth(form[side]) for side in ("left", "right")) if "left" in form else 1


def test_literals_are_transformed_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    values = equal("c1", *range(MAX_PROJECTED // 2 - 1), operation=Operation.IN)
    specs = {each: spec_of((1, f"bucket[{each + 1}]")) for each in range(4)}
    found = ScanFilter(values, schema_of(["long"]), specs, True)
    kept = [found.for_spec(each).partition_may_match((10**6,)) for each in range(4)]
    assert kept == [False, False, True, True]
    monkeypatch.setattr(projections, "MAX_PROJECTED", 10 * MAX_PROJECTED)
    again = ScanFilter(values, schema_of(["long"]), specs, True)
    assert not again.for_spec(3).partition_may_match((10**6,))


def test_equal_residuals_share_their_json() -> None:
    found = bound(equal("c1", 1), spec_of((2, "identity")))
    assert found.residual_json(("a",)) is found.residual_json(("b",))
    assert found.residual_json(("a",)) == {"type": "eq", "term": "c1", "value": 1}
    assert bound(equal("c1", 1), spec_of((1, "identity"))).residual_json((1,)) is True


def test_a_long_literal_counts_as_many() -> None:
    """Hashing two megabytes for each of a thousand fields would take ten minutes."""
    long = "a" * (MAX_PROJECTED * LITERAL_LENGTH // 2)
    specs = {each: spec_of((1, f"bucket[{each + 2}]")) for each in range(3)}
    found = ScanFilter(equal("c1", long), schema_of(["string"]), specs, True)
    assert [found.for_spec(each).partition_may_match((-1,)) for each in range(3)] == [False, True, True]
