"""Sums up what a table holds, and compares the sums of an engine with the generated data of the demo."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyspark.sql import SparkSession


class Mismatch(Exception):
    """An engine and the generated files do not agree; the message names the table or query."""


@dataclass(frozen=True)
class Totals:
    """The sums of a table's rows: their number, and for each column an exact sum of numbers, of the lengths of strings,
    or of days."""

    rows: int
    sums: Mapping[str, Decimal]


def of_arrow(table: pa.Table) -> Totals:
    """The totals of rows in memory."""
    return Totals(table.num_rows, {name: _sum(table.column(name)) for name in table.column_names})


def _sum(column: pa.ChunkedArray) -> Decimal:
    if pa.types.is_date(column.type):
        column = column.cast(pa.int32())
    elif not _is_number(column.type):
        column = pc.utf8_length(column)
    return Decimal(pc.sum(column).as_py() or 0)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_decimal(kind))


def of_spark(spark: "SparkSession", relation: str) -> Totals:
    """The totals that Spark finds in `relation`, a table with or without a version."""
    frame = spark.sql(f"SELECT * FROM {relation}")
    measures = [_measure(name, kind) for name, kind in frame.dtypes]
    row = frame.selectExpr("count(*)", *(f"sum({measure})" for measure in measures)).collect()[0]
    return Totals(row[0], dict(zip(frame.columns, (Decimal(value or 0) for value in row[1:]), strict=True)))


def _measure(name: str, kind: str) -> str:
    match kind:
        case "string":
            return f"length({name})"
        case "date":
            return f"unix_date({name})"
        case _:
            return name


def of_pyiceberg(table: "Table", snapshot_id: int | None = None) -> Totals:
    """The totals that PyIceberg finds."""
    return of_arrow(table.scan(snapshot_id=snapshot_id).to_arrow())


def compare(what: str, found: Totals, expected: Totals) -> None:
    """Raises `Mismatch`, naming every difference."""
    differences = []
    if found.rows != expected.rows:
        differences.append(f"{found.rows} rows, not {expected.rows}")
    if list(found.sums) != list(expected.sums):
        differences.append(f"columns {', '.join(found.sums)}, not {', '.join(expected.sums)}")
    for name in found.sums.keys() & expected.sums.keys():
        if found.sums[name] != expected.sums[name]:
            differences.append(f"the sum over {name} is {found.sums[name]}, not {expected.sums[name]}")
    if differences:
        raise Mismatch(f"{what}: {'; '.join(differences)}")


def same(what: str, found: object, expected: object) -> None:
    """Raises `Mismatch` unless the two are equal."""
    if found != expected:
        raise Mismatch(f"{what}: found {found!r}, expected {expected!r}")
