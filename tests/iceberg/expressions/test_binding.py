from decimal import Decimal
from typing import Any

import pytest

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.expressions.binding import Binder, BoundPredicate
from arco_catalog.iceberg.expressions.conditions import Condition
from arco_catalog.iceberg.expressions.expression import (
    FALSE,
    TRUE,
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
from arco_catalog.iceberg.schema import Schema, columns_by_id
from tests.iceberg.expressions.samples import schema_of
from tests.iceberg.values import column, schema, struct

LT, LT_EQ, GT, GT_EQ = Operation.LT, Operation.LT_EQ, Operation.GT, Operation.GT_EQ
EQ, NOT_EQ, IN, NOT_IN = Operation.EQ, Operation.NOT_EQ, Operation.IN, Operation.NOT_IN
IS_NULL, NOT_NULL, IS_NAN, NOT_NAN = Operation.IS_NULL, Operation.NOT_NULL, Operation.IS_NAN, Operation.NOT_NAN


def predicate(operation: Operation, name: str | int = "c1", *values: Any, transform: str = "identity") -> Predicate:
    return Predicate(operation, Term(name, transform), tuple(map(Literal, values)))


def bind(expression: Expression, of: Schema, *, case_sensitive: bool = True) -> Any:
    return Binder(columns_by_id(of), case_sensitive=case_sensitive).bind(expression)


def condition(operation: Operation, type_name: str, *values: Any, transform: str = "identity") -> Any:
    """The condition or constant that a predicate of a column of this type is bound to."""
    found = bind(predicate(operation, "c1", *values, transform=transform), schema_of([type_name]))
    return found.condition if isinstance(found, BoundPredicate) else found


@pytest.mark.parametrize(
    ("type_name", "literal", "value"),
    [
        ("boolean", True, True),
        ("int", 1, 1),
        ("long", 2**62, 2**62),
        ("float", 0.1, 0.10000000149011612),
        ("float", 1, 1.0),
        ("double", 2, 2.0),
        ("double", 0.1, 0.1),
        ("decimal(9,2)", 3, Decimal("3.00")),
        ("decimal(9,2)", 1.005, Decimal("1.01")),
        ("decimal(9,2)", -1.005, Decimal("-1.01")),
        ("decimal(9,2)", "1.5", Decimal("1.50")),
        ("decimal(9,2)", "15e-1", Decimal("1.50")),
        ("date", 3, 3),
        ("date", "1970-01-04", 3),
        ("time", 5, 5),
        ("time", "00:00", 0),
        ("timestamp", 7, 7),
        ("timestamp", "1970-01-01T00:00:00.000007", 7),
        ("timestamp", "1969-12-31T23:59:59.9999999", -1),
        ("timestamptz", "1970-01-01T01:00:00+01:00", 0),
        ("timestamp_ns", 7, 7_000),
        ("timestamp_ns", "1970-01-01T00:00:00.000000007", 7),
        ("timestamptz_ns", "1970-01-01T00:00:00.000000007Z", 7),
        ("string", "x", "x"),
        ("uuid", "F79C3E09-677c-4bbd-a479-3f349cb785e7", bytes.fromhex("f79c3e09677c4bbda4793f349cb785e7")),
        ("fixed[2]", "0aFF", b"\x0a\xff"),
        ("binary", "", b""),
    ],
)
def test_a_literal_is_converted_to_the_type_of_its_column(type_name: str, literal: Any, value: Any) -> None:
    assert condition(LT, type_name, literal) == Condition(LT, (value,))


@pytest.mark.parametrize(
    ("type_name", "literal"),
    [
        ("boolean", 1),
        ("boolean", "true"),
        ("int", "1"),
        ("int", 1.0),
        ("int", True),
        ("long", 1.5),
        ("float", "1.0"),
        ("decimal(9,2)", "x"),
        ("decimal(9,2)", "1e999999999"),
        ("decimal(9,2)", "9" * 100),
        ("decimal(9,2)", True),
        ("decimal(9,500)", 1),
        ("decimal(9,500)", 1.5),
        ("decimal(9,500)", "1.5"),
        ("decimal(9,999999999)", 0),
        ("date", "1970-01-04T00:00:00"),
        ("date", 1.0),
        ("time", "x"),
        ("timestamp", "1970-01-01"),
        ("timestamp", "1970-01-01T00:00:00Z"),
        ("timestamp", "+400000-01-01T00:00:00"),
        ("timestamptz", "1970-01-01T00:00:00"),
        ("timestamp_ns", 2**62),
        ("timestamp_ns", "2500-01-01T00:00:00"),
        ("string", 1),
        ("uuid", "f79c3e09"),
        ("fixed[2]", "00"),
        ("fixed[2]", "00zz"),
        ("binary", "0"),
        ("unknown", 1),
        ("variant", 1),
        ("geometry(srid:1)", "POINT (1 1)"),
    ],
)
def test_a_literal_without_a_conversion_is_refused(type_name: str, literal: Any) -> None:
    for operation in (EQ, GT, IN):
        with pytest.raises(BadRequest, match=r"Invalid value for conversion|Cannot parse"):
            condition(operation, type_name, literal)


@pytest.mark.parametrize(
    ("of_literal", "literal", "type_name", "value"),
    [
        ("int", 1, "decimal(9,2)", Decimal("1.00")),
        ("float", 1, "double", 1.0),
        ("date", "1970-01-02", "date", 1),
        ("timestamp", "1970-01-02T01:00:00", "date", 1),
        ("timestamp_ns", "1970-01-01T00:00:00.000001999", "timestamp", 1),
        ("timestamptz", "1970-01-01T00:00:00.000001+00:00", "timestamptz_ns", 1000),
        ("decimal(4,1)", "1.5", "decimal(9,2)", Decimal("1.50")),
        ("uuid", "f79c3e09-677c-4bbd-a479-3f349cb785e7", "uuid", bytes.fromhex("f79c3e09677c4bbda4793f349cb785e7")),
        ("binary", "0aff", "fixed[2]", b"\x0a\xff"),
        ("fixed[2]", "0aff", "binary", b"\x0a\xff"),
    ],
)
def test_a_literal_with_a_type_is_read_by_it(of_literal: str, literal: Any, type_name: str, value: Any) -> None:
    typed = Predicate(EQ, Term("c1"), (Literal(literal, of_literal),))
    found = bind(typed, schema_of([type_name]))
    assert found.condition == Condition(EQ, (value,))
    again = bind(found.original, schema_of([type_name]))  # as a client reads it that knows no types of literals
    assert again.condition == found.condition


@pytest.mark.parametrize(
    ("of_literal", "literal"), [("int", "1"), ("int", 2**31), ("date", 1), ("string", 1), ("struct", 1), ("x", 1)]
)
def test_a_literal_that_is_no_value_of_its_type_is_refused(of_literal: str, literal: Any) -> None:
    with pytest.raises(BadRequest, match="Cannot parse a literal"):
        bind(Predicate(EQ, Term("c1"), (Literal(literal, of_literal),)), schema_of(["int"]))


ABOVE, BELOW = 2**31, -(2**31) - 1


@pytest.mark.parametrize(
    ("operation", "literal", "constant"),
    [
        (LT, ABOVE, True),
        (LT_EQ, ABOVE, True),
        (NOT_EQ, ABOVE, True),
        (GT, ABOVE, False),
        (GT_EQ, ABOVE, False),
        (EQ, ABOVE, False),
        (LT, BELOW, False),
        (LT_EQ, BELOW, False),
        (EQ, BELOW, False),
        (GT, BELOW, True),
        (GT_EQ, BELOW, True),
        (NOT_EQ, BELOW, True),
        (IN, ABOVE, False),
        (NOT_IN, BELOW, True),
    ],
)
def test_a_literal_beyond_the_type_decides_for_all_rows(operation: Operation, literal: int, constant: bool) -> None:
    assert condition(operation, "int", literal) == Constant(constant)
    assert condition(operation, "date", literal) == Constant(constant)
    assert condition(operation, "float", 3.5e38 if literal > 0 else -3.5e38) == Constant(constant)


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (LT, Condition(LT_EQ, (Decimal("-1.24"),))),
        (LT_EQ, Condition(LT_EQ, (Decimal("-1.24"),))),
        (GT, Condition(GT, (Decimal("-1.24"),))),
        (GT_EQ, Condition(GT, (Decimal("-1.24"),))),
        (EQ, FALSE),
        (NOT_EQ, TRUE),
        (IN, FALSE),
    ],
)
def test_a_decimal_between_two_values_of_the_type_is_compared_exactly(operation: Operation, expected: Any) -> None:
    assert condition(operation, "decimal(9,2)", "-1.235") == expected


def test_a_set_keeps_the_literals_that_the_type_has_once() -> None:
    assert condition(IN, "int", 1, ABOVE, 2, 1) == Condition(IN, (1, 2))
    assert condition(NOT_IN, "int", 1, 1) == Condition(NOT_EQ, (1,))
    assert condition(IN, "int") == FALSE


@pytest.mark.parametrize(
    ("transform", "source", "literal", "value"),
    [
        ("day", "timestamp", "1970-01-04", 3),
        ("year", "timestamp_ns", 48, 48),
        ("bucket[4]", "string", 3, 3),
        ("truncate[2]", "string", "ab", "ab"),
        ("TRUNCATE[2]", "decimal(9,2)", "1.00", Decimal("1.00")),
    ],
)
def test_a_transform_is_compared_with_values_of_its_result(
    transform: str, source: str, literal: Any, value: Any
) -> None:
    assert condition(EQ, source, literal, transform=transform) == Condition(EQ, (value,))


@pytest.mark.parametrize(
    ("transform", "source"),
    [
        ("hour", "date"),
        ("bucket[4]", "double"),
        ("new", "int"),
        ("truncate[1]", "uuid"),
        ("bucket", "int"),
        ("year", "x"),
    ],
)
def test_a_transform_that_cannot_be_computed_is_refused(transform: str, source: str) -> None:
    of = schema_of([source])
    with pytest.raises(BadRequest):
        bind(predicate(EQ, "c1", 1, transform=transform), of)


def test_void_is_null_in_every_row() -> None:
    assert condition(IS_NULL, "int", transform="void") == TRUE
    assert condition(NOT_NULL, "int", transform="void") == FALSE
    assert condition(EQ, "int", 1, transform="void") == FALSE
    assert condition(NOT_EQ, "int", 1, transform="void") == TRUE


def test_required_columns_are_never_null() -> None:
    required = schema_of(["int", "double"], required=True)
    assert bind(predicate(IS_NULL), required) == FALSE
    assert bind(predicate(NOT_NULL), required) == TRUE
    assert bind(predicate(IS_NULL, transform="truncate[2]"), required) == FALSE
    assert bind(predicate(IS_NULL, transform="bucket[2]"), required) != FALSE
    assert condition(IS_NULL, "unknown") == TRUE
    assert condition(NOT_NULL, "unknown") == FALSE


def test_a_required_field_of_an_optional_struct_may_be_null() -> None:
    nested: Any = schema(column(1, "s", struct(column(2, "x", required=True))))
    assert bind(predicate(IS_NULL, "s.x"), nested).condition == Condition(IS_NULL)
    assert bind(predicate(IS_NULL, "s"), nested).condition == Condition(IS_NULL)
    with pytest.raises(BadRequest):
        bind(predicate(EQ, "s", 1), nested)


@pytest.mark.parametrize("operation", [IS_NAN, NOT_NAN])
def test_only_floating_columns_are_tested_for_nan(operation: Operation) -> None:
    assert condition(operation, "float") == Condition(operation)
    with pytest.raises(BadRequest, match="has no NaN"):
        condition(operation, "int")


def test_only_text_has_prefixes() -> None:
    assert condition(Operation.STARTS_WITH, "string", "a") == Condition(Operation.STARTS_WITH, ("a",))
    with pytest.raises(BadRequest, match="must be a string"):
        condition(Operation.NOT_STARTS_WITH, "binary", "00")


def test_columns_are_found_by_name_and_by_id() -> None:
    of = schema_of(["int", "string"])
    assert bind(predicate(IS_NULL, "c2"), of).column.id == 2
    found = bind(predicate(EQ, 2, "x"), of)
    assert (found.column.id, found.original) == (2, predicate(EQ, "c2", "x"))
    for missing in ("c3", "C2", "", 3, -1):
        with pytest.raises(BadRequest, match="Cannot find field"):
            bind(predicate(IS_NULL, missing), of)


def test_case_is_ignored_on_request_unless_two_columns_differ_by_it() -> None:
    of: Any = schema(column(1, "Id"), column(2, "x"), column(3, "X"))
    assert bind(predicate(IS_NULL, "iD"), of, case_sensitive=False).column.id == 1
    with pytest.raises(BadRequest, match="several columns"):
        bind(predicate(IS_NULL, "x"), of, case_sensitive=False)
    assert bind(predicate(IS_NULL, "x"), of).column.id == 2


def test_elements_of_collections_are_no_columns_of_rows() -> None:
    of: Any = schema(column(1, "l", {"type": "list", "element-id": 2, "element": "int", "element-required": False}))
    with pytest.raises(BadRequest, match="inside a list or map"):
        bind(predicate(EQ, "l.element", 1), of)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (Not(predicate(LT, "c1", 1)), predicate(GT_EQ, "c1", 1)),
        (Not(predicate(GT, "c1", 1)), predicate(LT_EQ, "c1", 1)),
        (Not(predicate(EQ, "c1", 1)), predicate(NOT_EQ, "c1", 1)),
        (Not(Not(predicate(IN, "c1", 1, 2))), predicate(IN, "c1", 1, 2)),
        (Not(predicate(IS_NULL)), predicate(NOT_NULL)),
        (Not(TRUE), FALSE),
        (
            Not(And(predicate(LT, "c1", 1), Or(predicate(IS_NULL), FALSE))),
            Or(predicate(GT_EQ, "c1", 1), predicate(NOT_NULL)),
        ),
    ],
)
def test_a_negation_moves_into_the_predicates(expression: Expression, expected: Expression) -> None:
    of = schema_of(["int"])
    assert bind(expression, of) == bind(expected, of)


def test_constants_leave_a_filter() -> None:
    of = schema_of(["int"])
    above = predicate(LT, "c1", ABOVE)
    assert bind(And(predicate(IS_NULL), above), of) == bind(predicate(IS_NULL), of)
    assert bind(Or(predicate(IS_NULL), above), of) == TRUE
    assert bind(And(predicate(IS_NULL), Not(above)), of) == FALSE
