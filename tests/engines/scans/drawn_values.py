"""Values of every primitive type as single-value JSON, few of each, so that rows, bounds and literals often meet."""

from random import Random

from arco_catalog.iceberg.json import JsonValue

VALUES: dict[str, list[JsonValue]] = {
    "boolean": [False, True],
    "int": [-(10**9), -7, -1, 0, 1, 5, 34, 10**9],  # less than one width from its end, Java truncates beyond it
    "long": [-(10**18), -(2**31) - 1, -1, 0, 1, 5, 34, 2**31, 10**18],
    "float": ["NaN", "-Infinity", -1.5, "-0.0", 0.0, 0.1, 1.5, 3.4e38, "Infinity"],
    "double": ["NaN", "-Infinity", -1.5, "-0.0", 0.0, 0.1, 1.5, 1e300, "Infinity"],
    "decimal(9, 2)": ["-14.20", "-0.01", "0.00", "0.05", "14.20", "1234567.89"],
    "decimal(38, 10)": ["-14.2000000000", "0.0000000000", "0.0000000001", "99999999999999.0000000000"],
    "date": ["1969-12-31", "1970-01-01", "1970-01-02", "2017-11-16", "2024-02-29", "0001-01-01", "9999-12-31"],
    "time": ["00:00:00", "00:00:00.000001", "12:34:56.789", "23:59:59.999999"],
    "timestamp": [
        "1969-12-31T23:59:59.999999",
        "1970-01-01T00:00:00",
        "2017-11-16T22:31:08.000001",
        "2017-11-16T22:59:59",
        "2024-02-29T00:00:00",
        "1899-12-31T23:00:00",
    ],
    "timestamptz": [
        "1969-12-31T23:59:59.999999+00:00",
        "1970-01-01T00:00:00+00:00",
        "2017-11-16T22:31:08.000001+00:00",
        "2017-12-01T00:00:00+00:00",
        "2024-02-29T00:00:00+00:00",
    ],
    "timestamp_ns": [
        "1969-12-31T23:59:59.999999999",
        "1970-01-01T00:00:00",
        "2017-11-16T22:31:08.000001001",
        "2017-11-16T22:31:08.000001999",
        "2024-02-29T00:00:00",
    ],
    "timestamptz_ns": [
        "1969-12-31T23:59:59.999999999+00:00",
        "2017-11-16T22:31:08.000001001+00:00",
        "2024-02-29T00:00:00+00:00",
    ],
    "string": [
        "",
        "a",
        "ab",
        "abc",
        "abd",
        "b",
        "iceberg",
        "Iceberg",
        "abcdefghijklmnopqrst",  # longer than the 16 characters of a bound
        "abcdefghijklmnopqrsu",
        "ä",
        "\uffff",
        "\U0001f600",
        "\U0001f600x",
        "a\U0010ffff\U0010ffff",
    ],
    "uuid": [  # none of the upper half, which Java takes for less than all others, and writers of files do not
        "00000000-0000-0000-0000-000000000000",
        "00000000-0000-0000-0000-000000000001",
        "3f349cb7-85e7-4bbd-a479-f79c3e09677c",
        "79ca63e3-0d1f-4b8a-9d0c-4f3c6a0b5f01",
        "7fffffff-ffff-ffff-7fff-ffffffffffff",
    ],
    "fixed[3]": ["000000", "61FF00", "7FFFFF", "800000", "FFFFFF"],
    "binary": ["", "00", "61", "6162", "7F", "80", "FFFF", "FFFF01"],
}
OLD_TYPES = tuple(name for name in VALUES if not name.endswith("_ns"))
"""Those of formats 1 and 2."""

TRANSFORMS: dict[str, tuple[str, ...]] = {
    "boolean": ("identity",),
    "int": ("identity", "bucket[3]", "truncate[10]"),
    "long": ("identity", "bucket[3]", "truncate[10]"),
    "float": ("identity",),
    "double": ("identity",),
    "decimal(9, 2)": ("identity", "bucket[3]", "truncate[10]"),
    "decimal(38, 10)": ("identity", "bucket[3]", "truncate[50]"),
    "date": ("identity", "bucket[3]", "year", "month", "day"),
    "time": ("identity", "bucket[3]"),
    "timestamp": ("identity", "bucket[3]", "year", "month", "day", "hour"),
    "timestamptz": ("identity", "bucket[3]", "year", "month", "day", "hour"),
    "timestamp_ns": ("identity", "bucket[3]", "year", "month", "day", "hour"),
    "timestamptz_ns": ("identity", "bucket[3]", "year", "month", "day", "hour"),
    "string": ("identity", "bucket[3]", "truncate[1]", "truncate[2]"),
    "uuid": ("identity", "bucket[3]"),
    "fixed[3]": ("bucket[3]",),  # Java writes the values of a fixed partition field as bytes, against the file's schema
    "binary": ("identity", "bucket[3]", "truncate[1]"),
}
PROMOTIONS = {"int": "long", "float": "double", "decimal(9, 2)": "decimal(18, 2)"}
VALUES["decimal(18, 2)"] = [*VALUES["decimal(9, 2)"], "1234567890123.45"]
TRANSFORMS["decimal(18, 2)"] = TRANSFORMS["decimal(9, 2)"]


def value(random: Random, type_name: str, nulls: float = 0.2) -> JsonValue:
    return None if random.random() < nulls else random.choice(VALUES[type_name])
