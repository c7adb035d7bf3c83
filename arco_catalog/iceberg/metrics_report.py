"""The shapes that an engine's report on a scan or a commit must have (`ReportMetricsRequest` of the REST
specification)."""

from collections.abc import Mapping
from typing import Any

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.iceberg.shapes import (
    INT,
    LONG,
    NAME,
    OBJECT,
    STRING,
    STRINGS,
    Shape,
    ShapeError,
    list_of,
    map_of,
    quoted,
    record,
    unexpected,
)

COMMIT_REPORT, SCAN_REPORT = "commit-report", "scan-report"

_COUNTER = record(dict[str, Any], {"unit": STRING, "value": LONG})
_TIMER = record(dict[str, Any], {"time-unit": STRING, "count": LONG, "total-duration": LONG})


def _result(value: JsonValue) -> JsonObject:
    """Returns the value if it is a metric: a timer if it has a `time-unit`, else a counter. Fails for any other
    value."""
    return (_TIMER if "time-unit" in OBJECT(value) else _COUNTER)(value)


def _primitive(value: JsonValue) -> JsonValue:
    """Returns the value if it is a boolean, a number or a text. Fails for any other value."""
    if value is None or isinstance(value, list | dict):
        raise unexpected("a literal", value)
    return value


def _literals(value: JsonValue) -> JsonValue:
    """Returns the value if it is a list of literals, references and functions, as it is or under `values`. Fails for
    any other value."""
    if isinstance(value, dict):
        return record(dict[str, Any], {"values": list_of(_value)})(value)
    return list_of(_value)(value)


def _value(value: JsonValue) -> JsonValue:
    """Returns the value if it is a literal, a reference to a column, or a function of such values. Raises
    `ShapeError`."""
    if not isinstance(value, dict):
        return _primitive(value)
    return _by_type(value, _VALUES)


def _predicate(value: JsonValue) -> JsonValue:
    """Returns the value if it is a filter. A boolean stands for a filter that is always or never true. Raises
    `ShapeError`."""
    return value if isinstance(value, bool) else _by_type(value, _PREDICATES)


def _by_type(value: JsonValue, shapes: Mapping[str, Shape[object]]) -> JsonValue:
    """Returns the value if it passes the check of the `type` that it names. Fails for any other value, and for a type
    that is not in `shapes`."""
    kind = record(dict[str, Any], {"type": STRING})(value)["type"]
    if kind not in shapes:
        raise ShapeError(f"unknown expression {quoted(kind)} of the filter in a scan report").inside("type")
    shapes[kind](value)
    return value


def _columns(value: JsonValue) -> JsonValue:
    """Returns the value if it is a reference to a column by id or name. Fails for any other value."""
    fields = record(dict[str, Any], {}, {"id": INT, "name": STRING})(value)
    if "id" not in fields and "name" not in fields:
        raise ShapeError("a reference to a column in the filter of a scan report has neither the field 'id' nor 'name'")
    return value


_OPERANDS: Mapping[str, Shape[object]] = dict.fromkeys(("child", "term", "left", "right", "value"), _value)
_LEAF = record(dict[str, Any], {}, _OPERANDS)
_PREDICATES: Mapping[str, Shape[object]] = {
    **dict.fromkeys(("true", "false"), OBJECT),
    **dict.fromkeys(("and", "or"), record(dict[str, Any], {"left": _predicate, "right": _predicate})),
    "not": record(dict[str, Any], {"child": _predicate}),
    **dict.fromkeys(("is-null", "not-null", "is-nan", "not-nan"), _LEAF),
    **dict.fromkeys(("lt", "lt-eq", "gt", "gt-eq", "eq", "not-eq", "starts-with", "not-starts-with"), _LEAF),
    **dict.fromkeys(("in", "not-in"), record(dict[str, Any], {"values": _literals}, _OPERANDS)),
}
_VALUES: Mapping[str, Shape[object]] = {
    "literal": record(dict[str, Any], {"value": _primitive}),
    "reference": _columns,
    "transform": record(dict[str, Any], {"transform": STRING, "term": _value}),
    "apply": record(dict[str, Any], {"arguments": list_of(_value)}),
}

_SCAN = record(
    dict[str, Any],
    {
        "report-type": NAME,
        "table-name": STRING,
        "snapshot-id": LONG,
        "filter": _predicate,
        "schema-id": INT,
        "projected-field-ids": list_of(INT),
        "projected-field-names": list_of(STRING),
        "metrics": map_of(_result),
    },
    {"metadata": STRINGS},
)
_COMMIT = record(
    dict[str, Any],
    {
        "report-type": NAME,
        "table-name": STRING,
        "snapshot-id": LONG,
        "sequence-number": LONG,
        "operation": STRING,
        "metrics": map_of(_result),
    },
    {"metadata": STRINGS},
)


def is_of_commit(report: JsonObject) -> bool:
    """Whether a report is of a commit, by its type. If that is neither a commit's nor a scan's, because clients may
    define types, whether the report has a sequence number."""
    kind = report.get("report-type")
    return kind == COMMIT_REPORT or (kind != SCAN_REPORT and "sequence-number" in report)


def REPORT(value: JsonValue) -> JsonObject:  # noqa: N802 - as other shapes
    """Returns the value if it has the fields of a report of a scan or of a commit (`is_of_commit` decides which),
    whatever type it names. Raises `ShapeError`."""
    report = OBJECT(value)
    return (_COMMIT if is_of_commit(report) else _SCAN)(report)
