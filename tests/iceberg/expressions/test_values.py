import math
import struct
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter
from pyiceberg.conversions import to_bytes
from pyiceberg.types import PrimitiveType

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.expressions import iso_times
from arco_catalog.iceberg.expressions.values import Value, decode_bound, parse_value, value_json
from tests.iceberg.expressions.samples import POOLS, TYPES, bound_bytes

_TYPES: TypeAdapter[PrimitiveType] = TypeAdapter(PrimitiveType)


@pytest.mark.parametrize("type_name", TYPES)
def test_a_bound_is_decoded_as_it_was_written(type_name: str) -> None:
    for value in POOLS[type_name]:
        if value == value:
            assert decode_bound(type_name, bound_bytes(type_name, value)) == value


@pytest.mark.parametrize("type_name", sorted({*TYPES} - {"uuid", "fixed[2]", "timestamp_ns", "timestamptz_ns"}))
def test_bounds_that_pyiceberg_writes_are_decoded(type_name: str) -> None:
    for value in POOLS[type_name]:
        if value == value:
            assert decode_bound(type_name, to_bytes(_TYPES.validate_python(type_name), value)) == value


@pytest.mark.parametrize(
    ("promoted", "data", "value"),
    [
        ("long", struct.pack("<i", -7), -7),
        ("double", struct.pack("<f", 1.5), 1.5),
        ("decimal(20,2)", b"\xff", Decimal("-0.01")),
        ("timestamp", struct.pack("<i", -1), -86_400 * 10**6),
        ("timestamp_ns", struct.pack("<i", 2), 2 * 86_400 * 10**9),
    ],
)
def test_a_bound_from_before_its_type_was_promoted_is_decoded(promoted: str, data: bytes, value: Value) -> None:
    assert decode_bound(promoted, data) == value


@pytest.mark.parametrize(
    ("type_name", "data"),
    [
        ("int", b"\x01\x00"),
        ("decimal(9,999999999)", b"\x01"),
        ("int", bytes(8)),
        ("long", b""),
        ("boolean", b""),
        ("boolean", b"\x00\x00"),
        ("float", bytes(8)),
        ("double", struct.pack("<d", math.nan)),
        ("float", struct.pack("<f", math.nan)),
        ("decimal(9,2)", b""),
        ("decimal(38,2)", bytes(17)),
        ("string", b"\xff"),
        ("uuid", bytes(15)),
        ("timestamptz", bytes(3)),
        ("variant", b"\x01"),
        ("geometry", bytes(16)),
        ("unknown", b"\x01"),
        ("no such type", b"\x01"),
    ],
)
def test_bytes_that_are_no_value_of_the_type_are_no_bound(type_name: str, data: bytes) -> None:
    assert decode_bound(type_name, data) is None


@given(type_name=st.sampled_from([*TYPES, "variant", "geometry(srid:1)", "unknown", "struct", "x"]), data=st.binary())
def test_no_bytes_fail(type_name: str, data: bytes) -> None:
    decode_bound(type_name, data)


@pytest.mark.parametrize("type_name", TYPES)
def test_the_json_form_of_a_value_is_read_as_that_value(type_name: str) -> None:
    for value in POOLS[type_name]:
        if not isinstance(value, float) or math.isfinite(value):
            assert parse_value(type_name, value_json(type_name, value)) == value


@pytest.mark.parametrize(
    ("type_name", "value", "written"),
    [
        ("boolean", True, True),
        ("int", 34, 34),
        ("double", 1.0, 1.0),
        ("double", math.nan, "NaN"),
        ("float", -math.inf, "-Infinity"),
        ("decimal(4,2)", Decimal("14.2"), "14.20"),
        ("decimal(9,0)", Decimal(14), "14"),
        ("date", 17_486, "2017-11-16"),
        ("date", -719_529, "-0001-12-31"),
        ("date", 3_000_000, "+10183-09-21"),
        ("time", 81_068_123_456, "22:31:08.123456"),
        ("time", 0, "00:00:00"),
        ("timestamp", 1_510_871_468_000_000, "2017-11-16T22:31:08"),
        ("timestamptz", 1_510_871_468_123_456, "2017-11-16T22:31:08.123456+00:00"),
        ("timestamp_ns", 1_510_871_468_123_456_789, "2017-11-16T22:31:08.123456789"),
        ("timestamptz_ns", -1, "1969-12-31T23:59:59.999999999+00:00"),
        ("string", "iceberg", "iceberg"),
        ("uuid", bytes.fromhex("f79c3e09677c4bbda4793f349cb785e7"), "f79c3e09-677c-4bbd-a479-3f349cb785e7"),
        ("fixed[4]", b"\x00\x01\x02\xff", "000102FF"),
        ("binary", b"", ""),
        ("unknown", "x", None),
        ("int", None, None),
    ],
)
def test_values_have_the_json_form_of_the_specification(type_name: str, value: Value, written: object) -> None:
    assert value_json(type_name, value) == written


@pytest.mark.parametrize(
    ("type_name", "value"),
    [
        ("int", 2**31),
        ("int", "1"),
        ("int", True),
        ("boolean", 1),
        ("double", "1.0"),
        ("date", "2017-13-01"),
        ("timestamp", "2017-11-16T22:31:08+00:00"),
        ("timestamptz", "2017-11-16T22:31:08"),
        ("uuid", "f79c3e09"),
        ("fixed[4]", "0001"),
        ("binary", "0"),
        ("decimal(9,2)", "1.5"),
        ("variant", 1),
        ("struct", {}),
        ("string", None),
    ],
)
def test_json_that_is_no_value_of_the_type_is_refused(type_name: str, value: object) -> None:
    with pytest.raises(BadRequest):
        parse_value(type_name, value)  # type: ignore[arg-type]


@given(st.integers(-(10**8), 10**8))
def test_a_date_is_read_as_it_is_written(days: int) -> None:
    assert iso_times.parse_date(iso_times.date_text(days)) == days


@given(st.integers(-(10**24), 10**24))
def test_a_timestamp_is_read_as_it_is_written(nanos: int) -> None:
    assert iso_times.parse_timestamp(iso_times.timestamp_text(nanos), zoned=False) == nanos
    assert iso_times.parse_timestamp(f"{iso_times.timestamp_text(nanos)}Z", zoned=True) == nanos


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("1970-01-01T01:00:00+01:00", 0),
        ("1970-01-01T00:00-00:30", 1_800 * 10**6),
        ("1970-01-01t00:00:00.5Z", 500_000),
        ("1969-12-31T23:59:59.999999+00:00:00", -1),
    ],
)
def test_a_timestamp_may_have_another_offset(text: str, micros: int) -> None:
    assert iso_times.parse_timestamp(text, zoned=True) == micros * 1000


@pytest.mark.parametrize(
    "text",
    ["", "1970", "1970-02-30", "70-01-01", "1970-1-1", "1970-01-01 ", "10000-01-01", "+1970-01-01", "٠٠٠٠-٠١-٠١"],
)
def test_other_text_is_no_date(text: str) -> None:
    with pytest.raises(BadRequest):
        iso_times.parse_date(text)


@pytest.mark.parametrize("text", ["24:00", "23:60", "1:00", "10", "10:00:00.1234567890", "10:00:60", ""])
def test_other_text_is_no_time(text: str) -> None:
    with pytest.raises(BadRequest):
        iso_times.parse_time(text)


@pytest.mark.parametrize("text", ["1970-01-01T00:00:00+19:00", "1970-01-01T00:00:00", "1970-01-01T00:00:00+1"])
def test_other_text_is_no_timestamp_with_an_offset(text: str) -> None:
    with pytest.raises(BadRequest):
        iso_times.parse_timestamp(text, zoned=True)
