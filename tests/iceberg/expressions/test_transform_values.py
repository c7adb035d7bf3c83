from decimal import Decimal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter
from pyiceberg.transforms import parse_transform
from pyiceberg.types import IcebergType

from arco_catalog.iceberg.expressions.transform_values import murmur3, result_type, transform_function
from arco_catalog.iceberg.expressions.values import Value
from tests.iceberg.expressions.samples import POOLS, TRANSFORMS, TYPES

_TYPES: TypeAdapter[IcebergType] = TypeAdapter(IcebergType)


def signed(number: int) -> int:
    return number - 2**32 if number >= 2**31 else number


@pytest.mark.parametrize(
    ("data", "hash_of_it"),
    [
        (b"", 0),
        ((34).to_bytes(8, "little"), 2017239379),
        ((17_486).to_bytes(8, "little"), -653330422),
        ((81_068_000_000).to_bytes(8, "little"), -662762989),
        (b"iceberg", 1210000089),
        (UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7").bytes, 1488055340),
        (b"\x00\x01\x02\x03", -188683207),
        (b"\x05\x8c", -500754589),
    ],
)
def test_hashes_are_those_of_the_specification(data: bytes, hash_of_it: int) -> None:
    assert signed(murmur3(data)) == hash_of_it


@given(st.binary(max_size=40))
def test_hashes_are_those_of_another_library(data: bytes) -> None:
    import mmh3

    assert signed(murmur3(data)) == mmh3.hash(data)


@pytest.mark.parametrize("type_name", TYPES)
def test_transforms_give_what_pyiceberg_gives(type_name: str) -> None:
    of_type = _TYPES.validate_python(type_name)
    for name in TRANSFORMS[type_name]:
        oracle = parse_transform(name).transform(of_type)
        ours = transform_function(name, type_name)
        assert ours is not None
        for value in POOLS[type_name]:
            assert repr(ours(value)) == repr(oracle(value))


@pytest.mark.parametrize(
    ("transform", "type_name", "value", "result"),
    [
        ("truncate[10]", "int", -(2**31), 2**31 - 2),
        ("truncate[10]", "long", -(2**63), 2**63 - 2),
        ("truncate[50]", "decimal(9,2)", Decimal("10.65"), Decimal("10.50")),
        ("truncate[1]", "string", "😀a", "😀"),
        ("bucket[16]", "decimal(9,2)", Decimal("14.20"), (-500754589 & 0x7FFFFFFF) % 16),
        ("TRUNCATE[2]", "string", "abc", "ab"),
        ("year", "date", -719_529, -1971),
        ("hour", "timestamp_ns", -1, -1),
        ("day", "timestamp", -1, -1),
        ("month", "date", -1, -1),
    ],
)
def test_a_value_is_transformed(transform: str, type_name: str, value: Value, result: Value) -> None:
    apply = transform_function(transform, type_name)
    assert apply is not None
    assert apply(value) == result


@pytest.mark.parametrize(
    ("transform", "type_name"),
    [("void", "int"), ("new", "int"), ("hour", "date"), ("year", "string"), ("truncate[1]", "uuid"), ("identity", "x")],
)
def test_there_is_no_function_for_what_is_unknown(transform: str, type_name: str) -> None:
    assert transform_function(transform, type_name) is None


@pytest.mark.parametrize(
    "transform", ["bucket", "bucket[0]", "truncate[x]", "truncate[9999999999]", "bucket[4", "[4]", "day[3]"]
)
def test_there_is_no_function_without_a_valid_parameter(transform: str) -> None:
    assert transform_function(transform, "int") is None
    assert transform_function(transform, "date") is None
    assert result_type(transform, "date") == "string"


@pytest.mark.parametrize(
    ("transform", "result"),
    [
        ("bucket[2]", "int"),
        ("day", "date"),
        ("month", "int"),
        ("void", "long"),
        ("new", "string"),
        ("identity", "long"),
    ],
)
def test_a_transform_has_a_type_of_results(transform: str, result: str) -> None:
    assert result_type(transform, "long") == result
