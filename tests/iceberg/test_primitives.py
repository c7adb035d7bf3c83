"""Types by name and defaults by type (table spec, "Primitive Types", "JSON single-value serialization")."""

import pytest

from arco_catalog.iceberg.json import JsonValue
from arco_catalog.iceberg.primitives import base_name, canonical, is_default


@pytest.mark.parametrize(
    "name",
    [
        "boolean", "int", "long", "float", "double", "date", "time", "timestamp", "timestamptz", "timestamp_ns",
        "timestamptz_ns", "string", "uuid", "binary", "variant", "unknown",
        "fixed[16]", "fixed[ 16 ]", "decimal(9,2)",
        "decimal( 38 , 38 )", "geometry", "geometry(srid:3857)", "geography", "geography(srid:4269)",
        "geography(OGC:CRS84, karney)",
    ],
)  # fmt: skip
def test_types_of_the_specification_are_known(name: str) -> None:
    assert name.startswith(base_name(name))
    assert base_name(name)


@pytest.mark.parametrize(
    "name",
    ["", "INT", "integer", "varchar", "fixed", "fixed[]", "fixed[-1]", "decimal", "decimal(39,2)", "decimal(9)",
     "geometry()", "geometry( )", "geography(a, flat)", "struct", "list", "map", "int ", "fixed[16]x"],
)  # fmt: skip
def test_other_names_are_no_types(name: str) -> None:
    assert base_name(name) == ""


def test_blanks_in_parameters_mean_nothing() -> None:
    assert canonical("decimal(9, 2)") == canonical("decimal(9,2)")
    assert canonical("decimal(9, 2)") != canonical("decimal(9,3)")


DEFAULTS: list[tuple[str, list[JsonValue], list[JsonValue]]] = [
    ("boolean", [True, False], [1, "true", None]),
    ("int", [0, -(2**31), 2**31 - 1], [2**31, 1.0, True, "1"]),
    ("long", [2**63 - 1, -(2**63)], [2**63, 0.5, False]),
    ("float", [1.5, -0.0], [1, "1.5", True, float("inf"), 1e39]),
    ("double", [1e300], [1]),
    ("decimal(9,2)", ["14.20", "-1.00", "+0.01", "142E-2"], ["14.2", "14", 14.20, "x", ".20"]),
    ("decimal(9,-2)", [], ["1"]),
    ("date", ["2017-11-16", "-0001-01-01", "2000-02-29", "+12000-02-29"],
             ["2017-13-16", "2017-11-16T00:00:00", 17486, "2017-02-31", "1900-02-29", "12000-01-01", "+2017-01-01"]),
    ("time", ["22:31:08.123456", "22:31"], ["25:00:00", "22:31:08Z"]),
    ("timestamp", ["2017-11-16T22:31:08.123456"], ["2017-11-16", "2017-11-16T22:31:08+00:00"]),
    ("timestamptz", ["2017-11-16T22:31:08.123456+00:00", "2017-11-16T22:31:08Z"], ["2017-11-16T22:31:08+01:00"]),
    ("timestamp_ns", ["2017-11-16T22:31:08.123456789"], ["2017-11-16T22:31:08.1234567890", "2262-01-01T00:00"]),
    ("timestamptz_ns", ["2017-11-16T22:31:08.123456789+00:00"], ["2017-11-16T22:31:08.123456789"]),
    ("string", ["", "iceberg"], [1, ["a"]]),
    ("uuid", ["f79c3e09-677c-4bbd-a479-3f349cb785e7"], ["f79c3e09677c4bbda4793f349cb785e7", "no-uuid", "g" * 36]),
    ("fixed[2]", ["00fF"], ["00", "00ffaa", "zz00", 255]),
    ("binary", ["", "0001AB"], ["0", "xy"]),
    ("variant", [], [{}, "a", 1]),
    ("unknown", [], ["a"]),
    ("geometry", [], ["POINT (1 1)"]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values, _ in DEFAULTS for value in values])
def test_defaults_are_written_as_the_specification_says(name: str, value: JsonValue) -> None:
    assert is_default(name, value)


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, _, values in DEFAULTS for value in values])
def test_other_values_are_no_defaults(name: str, value: JsonValue) -> None:
    assert not is_default(name, value)
