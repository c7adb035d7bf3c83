"""PyIceberg's planner, as a second opinion on which data files a scan needs."""

from collections.abc import Callable, Mapping, Sequence

from pyiceberg import expressions
from pyiceberg.expressions import AlwaysFalse, AlwaysTrue, And, BooleanExpression, Not, Or
from pyiceberg.table import DataScan, FileScanTask, StaticTable

from arco_catalog.iceberg.json import JsonValue
from tests.engines.scans.drawn_scans import DrawnScan

PREDICATES: Mapping[str, Callable[..., BooleanExpression]] = {
    "is-null": expressions.IsNull,
    "not-null": expressions.NotNull,
    "is-nan": expressions.IsNaN,
    "not-nan": expressions.NotNaN,
    "lt": expressions.LessThan,
    "lt-eq": expressions.LessThanOrEqual,
    "gt": expressions.GreaterThan,
    "gt-eq": expressions.GreaterThanOrEqual,
    "eq": expressions.EqualTo,
    "not-eq": expressions.NotEqualTo,
    "in": expressions.In,
    "not-in": expressions.NotIn,
    "starts-with": expressions.StartsWith,
    "not-starts-with": expressions.NotStartsWith,
}


class Unplannable(Exception):
    """PyIceberg has no such scan, or cannot plan it."""


def scan_of(metadata_location: str, scan: DrawnScan) -> DataScan:
    """Raises `Unplannable` for an increment, for a schema that is not the present one, and for conditions on the value
    of a transform."""
    table = StaticTable.from_metadata(metadata_location)
    if scan.incremental or scan.schema_id != table.metadata.current_schema_id:
        raise Unplannable
    snapshot = scan.request.get("snapshot-id")
    assert snapshot is None or isinstance(snapshot, int)
    return table.scan(
        row_filter=expression(scan.java["filter"]),
        case_sensitive=bool(scan.java["case-sensitive"]),
        snapshot_id=snapshot,
    )


def tasks_of(scan: DataScan) -> Sequence[FileScanTask]:
    """What PyIceberg plans. Raises `Unplannable` for equality deletes, and where PyIceberg fails."""
    try:
        return [*scan.plan_files()]
    except Exception as error:  # of any kind: literals and types that it does not have
        raise Unplannable(f"{type(error).__name__}: {error}") from error


def expression(drawn: JsonValue) -> BooleanExpression:
    """A filter of the older form. Raises `Unplannable` for a transform."""
    if isinstance(drawn, bool):
        return AlwaysTrue() if drawn else AlwaysFalse()
    assert isinstance(drawn, dict)
    kind, term = str(drawn["type"]), drawn.get("term")
    if kind == "not":
        return Not(expression(drawn["child"]))
    if kind in ("and", "or"):
        sides = expression(drawn["left"]), expression(drawn["right"])
        return And(*sides) if kind == "and" else Or(*sides)
    if not isinstance(term, str):
        raise Unplannable("a transform")
    operands = [drawn[name] for name in ("value", "values") if name in drawn]
    return PREDICATES[kind](term, *operands)
