"""Partition and sort transforms by name (table spec, "Partition Transforms")."""

import re

from arco_catalog.iceberg import primitives
from arco_catalog.iceberg.errors import BadRequest

_WITH_PARAMETER = re.compile(r"(bucket|truncate)\[([0-9]{1,9})\]")
_KNOWN = frozenset({"identity", "year", "month", "day", "hour", "void", "bucket", "truncate"})

_TIMESTAMPS = frozenset({"timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"})
_SOURCES = {
    "year": _TIMESTAMPS | {"date"},
    "month": _TIMESTAMPS | {"date"},
    "day": _TIMESTAMPS | {"date"},
    "hour": _TIMESTAMPS,
    "bucket": _TIMESTAMPS | {"int", "long", "decimal", "date", "time", "string", "uuid", "fixed", "binary"},
    "truncate": frozenset({"int", "long", "decimal", "string", "binary"}),
}
_NOT_BY_IDENTITY = frozenset({"geometry", "geography", "variant"})


def canonical(transform: str) -> str:
    """Returns one spelling for equal transforms: known ones in lower case, others as they are."""
    lower = transform.lower()
    return lower if lower in _KNOWN or _WITH_PARAMETER.fullmatch(lower) else transform


def check_transform(transform: str) -> None:
    """Raises `BadRequest` for `bucket` or `truncate` without a valid parameter, which is an integer of 1 to 9 digits
    and not 0.

    Unknown transforms are accepted: readers must ignore those that they do not know.
    """
    name = canonical(transform)
    found = _WITH_PARAMETER.fullmatch(name)
    if found is None:
        if re.match(r"(bucket|truncate)\b", name, re.IGNORECASE):
            raise BadRequest(
                f"Invalid transform: {transform} (expected bucket[N] or truncate[W], with a number of at most 9 digits)"
            )
    elif int(found[2]) == 0:
        what = "number of buckets" if found[1] == "bucket" else "truncate width"
        raise BadRequest(f"Invalid {what}: 0 (must be > 0)")


def parameter_of(transform: str) -> int:
    """Returns the parameter of `bucket` or `truncate`, 0 without a valid one."""
    found = _WITH_PARAMETER.fullmatch(canonical(transform))
    return 0 if found is None else int(found[2])


def is_void(transform: str) -> bool:
    """Whether the result of the transform is always null, whatever its source, even a column that was dropped."""
    return canonical(transform) == "void"


def can_transform(transform: str, type_name: str) -> bool:
    """Whether the transform accepts values of this primitive type. True for `void` and for unknown transforms."""
    name = canonical(transform).partition("[")[0]
    source = primitives.base_name(type_name)
    if name == "identity":
        return source not in _NOT_BY_IDENTITY
    return source in _SOURCES[name] if name in _SOURCES else True
