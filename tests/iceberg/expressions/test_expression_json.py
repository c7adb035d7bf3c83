import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.expressions import BooleanExpression

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.expressions.expression import (
    FALSE,
    TRUE,
    And,
    Expression,
    Literal,
    Not,
    Operation,
    Or,
    Predicate,
    Term,
)
from arco_catalog.iceberg.expressions.expression_json import (
    MAX_DEPTH,
    MAX_LITERALS,
    MAX_NODES,
    MAX_TEXT,
    expression_json,
    parse_expression,
)
from tests.iceberg.expressions.samples import TYPES, Filter, filters
from tests.iceberg.strategies import json_values

LT, EQ, IN = Operation.LT, Operation.EQ, Operation.IN
BY_NAME = {"type": "reference", "name": "a"}


def predicate(operation: Operation, column: str | int = "a", *literals: Any, transform: str = "identity") -> Predicate:
    return Predicate(operation, Term(column, transform), tuple(map(Literal, literals)))


@pytest.mark.parametrize(
    ("form", "expression"),
    [
        (True, TRUE),
        (False, FALSE),
        ({"type": "true"}, TRUE),
        ({"type": "false"}, FALSE),
        ({"type": "literal", "value": False}, FALSE),
        ({"type": "is-null", "term": "a"}, predicate(Operation.IS_NULL)),
        ({"type": "IS_NULL", "term": "a"}, predicate(Operation.IS_NULL)),
        ({"type": "is-null", "child": BY_NAME}, predicate(Operation.IS_NULL)),
        ({"type": "not-nan", "child": {"type": "reference", "id": 7}}, predicate(Operation.NOT_NAN, 7)),
        ({"type": "lt", "term": "a", "value": 1}, predicate(LT, "a", 1)),
        ({"type": "lt", "term": {"type": "reference", "term": "a"}, "value": 1}, predicate(LT, "a", 1)),
        ({"type": "lt", "term": "a", "value": {"type": "literal", "value": 1}}, predicate(LT, "a", 1)),
        ({"type": "lt", "left": BY_NAME, "right": 1}, predicate(LT, "a", 1)),
        ({"type": "lt", "left": 1, "right": BY_NAME}, predicate(Operation.GT, "a", 1)),
        ({"type": "gt-eq", "left": 1, "right": BY_NAME}, predicate(Operation.LT_EQ, "a", 1)),
        (
            {"type": "eq", "left": BY_NAME, "right": {"type": "literal", "value": "1970-01-01", "data-type": "date"}},
            Predicate(EQ, Term("a"), (Literal("1970-01-01", "date"),)),
        ),
        ({"type": "in", "term": "a", "values": [1, {"type": "literal", "value": 2}]}, predicate(IN, "a", 1, 2)),
        ({"type": "in", "child": BY_NAME, "values": []}, predicate(IN)),
        (
            {"type": "in", "child": BY_NAME, "values": {"type": "literals", "values": [1], "data-type": "long"}},
            Predicate(IN, Term("a"), (Literal(1, "long"),)),
        ),
        (
            {"type": "eq", "term": {"type": "transform", "transform": "bucket[4]", "term": "a"}, "value": 1},
            predicate(EQ, "a", 1, transform="bucket[4]"),
        ),
        (
            {"type": "eq", "left": {"type": "apply", "function": "bucket", "arguments": [4, BY_NAME]}, "right": 1},
            predicate(EQ, "a", 1, transform="bucket[4]"),
        ),
        (
            {
                "type": "eq",
                "left": {
                    "type": "apply",
                    "function": {"catalog": "iceberg_functions", "identifier": ["Year"]},
                    "arguments": [BY_NAME],
                },
                "right": 1,
            },
            predicate(EQ, "a", 1, transform="year"),
        ),
        ({"type": "not", "child": {"type": "eq", "term": "a", "value": "x"}}, Not(predicate(EQ, "a", "x"))),
        ({"type": "and", "left": True, "right": False}, And(TRUE, FALSE)),
        ({"type": "or", "left": True, "right": False}, Or(TRUE, FALSE)),
    ],
)
def test_both_forms_are_read(form: Any, expression: Expression) -> None:
    assert parse_expression(form) == expression


_TERM = {"type": "is-null", "term": "a"}


@pytest.mark.parametrize(
    "form",
    [
        None,
        1,
        "true",
        [],
        {},
        {"type": None},
        {"type": "count", "term": "a"},
        {"type": "is-null"},
        {"type": "is-null", "term": None},
        {"type": "is-null", "term": "a", "value": 1},
        {"type": "is-null", "term": "a", "child": BY_NAME},
        {"type": "is-null", "child": "a"},
        {"type": "is-null", "child": {"type": "reference", "id": "1"}},
        {"type": "is-null", "child": {"type": "reference", "id": True}},
        {"type": "is-null", "child": {"type": "reference", "id": 1, "name": "a"}},
        {"type": "is-null", "child": {"type": "reference"}},
        {"type": "lt", "term": "a"},
        {"type": "lt", "term": "a", "value": None},
        {"type": "lt", "term": "a", "value": [1]},
        {"type": "lt", "term": "a", "value": {"type": "literal"}},
        {"type": "lt", "term": "a", "value": {"type": "literal", "value": None}},
        {"type": "lt", "term": "a", "value": {"value": 1}},
        {"type": "lt", "term": "a", "value": {"type": "literal", "value": 1, "data-type": None}},
        {"type": "lt", "term": "a", "values": [1]},
        {"type": "lt", "term": "a", "value": 2**63},
        {"type": "lt", "term": "a", "value": float("inf")},
        {"type": "lt", "term": "a", "value": float("nan")},
        {"type": "lt", "term": "a", "right": 1},
        {"type": "lt", "left": BY_NAME, "right": BY_NAME},
        {"type": "lt", "left": 1, "right": 2},
        {"type": "starts-with", "left": "a", "right": BY_NAME},
        {"type": "in", "term": "a", "values": 1},
        {"type": "in", "term": "a", "values": [None]},
        {"type": "in", "term": "a", "values": [[1]]},
        {"type": "in", "term": "a", "value": 1},
        {"type": "in", "term": "a", "values": {"type": "literals", "values": [1]}},
        {"type": "and", "left": True},
        {"type": "and", "left": True, "right": None},
        {"type": "not"},
        {"type": "not", "child": "true"},
        {"type": "literal", "value": 1},
        {"type": "true", "value": False},
        {"type": "eq", "term": {"type": "transform", "transform": 1, "term": "a"}, "value": 1},
        {
            "type": "eq",
            "term": {
                "type": "transform",
                "transform": "day",
                "term": {"type": "transform", "transform": "day", "term": "a"},
            },
            "value": 1,
        },
        {"type": "eq", "term": {"type": "extract", "term": "a"}, "value": 1},
        {"type": "eq", "left": {"type": "apply", "function": "f", "arguments": []}, "right": 1},
        {"type": "eq", "left": {"type": "apply", "function": ["s", "f"], "arguments": [BY_NAME]}, "right": 1},
        {"type": "eq", "left": {"type": "apply", "function": "bucket", "arguments": ["4", BY_NAME]}, "right": 1},
        {
            "type": "eq",
            "left": {"type": "apply", "function": {"catalog": "c", "identifier": ["f"]}, "arguments": [BY_NAME]},
            "right": 1,
        },
    ],
)
def test_what_cannot_be_read_is_refused_alone_and_inside(form: Any) -> None:
    for each in (form, {"type": "or", "left": _TERM, "right": form}, {"type": "not", "child": form}):
        with pytest.raises(BadRequest):
            parse_expression(each)


@given(json_values)
def test_any_json_is_read_or_refused(value: Any) -> None:
    with contextlib.suppress(BadRequest):
        parse_expression(value)


@given(
    st.dictionaries(
        st.sampled_from(["type", "term", "value", "values", "left", "right", "child"]),
        json_values | st.sampled_from([*Operation, "and", "or", "not", _TERM]),
    )
)
def test_any_object_like_a_filter_is_read_or_refused(value: Any) -> None:
    with contextlib.suppress(BadRequest):
        parse_expression(value)


@given(filters(TYPES))
def test_a_filter_is_read_as_it_is_written(sample: Filter) -> None:
    assert parse_expression(expression_json(sample.expression)) == sample.expression


@pytest.mark.parametrize(
    ("expression", "parsed"),
    [
        (TRUE, "AlwaysTrue()"),
        (FALSE, "AlwaysFalse()"),
        (predicate(LT, "a", 1), "LessThan(term=Reference(name='a'), literal=LongLiteral(1))"),
        (Not(predicate(Operation.IS_NULL)), "Not(child=IsNull(term=Reference(name='a')))"),
        (
            And(predicate(EQ, "a", "x"), predicate(Operation.NOT_NAN)),
            "And(left=EqualTo(term=Reference(name='a'), literal=literal('x')), right=NotNaN(term=Reference(name='a')))",
        ),
    ],
)
def test_pyiceberg_reads_what_is_written(expression: Expression, parsed: str) -> None:
    found = BooleanExpression.model_validate(expression_json(expression))
    assert repr(found) == parsed


def nested(levels: int) -> Any:
    form: Any = _TERM
    for _ in range(levels - 1):
        form = {"type": "not", "child": form}
    return form


def test_a_filter_may_be_deep_and_not_too_deep() -> None:
    assert expression_json(parse_expression(nested(MAX_DEPTH))) == nested(MAX_DEPTH)
    with pytest.raises(BadRequest, match="nested 500 deep"):
        parse_expression(nested(MAX_DEPTH + 1))


def balanced(levels: int) -> Any:
    return _TERM if levels == 0 else {"type": "or", "left": balanced(levels - 1), "right": balanced(levels - 1)}


def test_a_filter_may_not_have_too_many_predicates() -> None:
    parse_expression(balanced(12))
    assert MAX_NODES < 2**14
    with pytest.raises(BadRequest, match="at most 10,000 comparisons and combinations"):
        parse_expression(balanced(13))


def test_a_filter_may_not_have_too_many_literals() -> None:
    half: Any = {"type": "in", "term": "a", "values": [1] * (MAX_LITERALS // 2)}
    parse_expression({"type": "or", "left": half, "right": half})
    with pytest.raises(BadRequest, match="at most 20,000 literals"):
        parse_expression({"type": "or", "left": half, "right": {**half, "values": [*half["values"], 1]}})


def test_a_filter_may_not_have_too_much_text() -> None:
    parse_expression({"type": "in", "term": "a", "values": ["x" * (MAX_TEXT - 1)]})
    with pytest.raises(BadRequest, match="characters"):
        parse_expression({"type": "in", "term": "a", "values": ["x" * MAX_TEXT]})
