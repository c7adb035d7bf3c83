"""Generates TPC-H for the demo: eight Parquet files, and the same rows in memory, with which all results are compared.

PyArrow ships no types, so Arrow tables are `Any` to the type checker.
"""

import subprocess
import sys
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

TABLES = ("region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem")


def generate(folder: Path, scale: float) -> dict[str, pa.Table]:
    """Writes `<table>.parquet` for each of the eight tables into `folder`, and answers with their rows."""
    tool = Path(sys.executable).with_name("tpchgen-cli")
    subprocess.run([tool, "parquet", "-s", str(scale), "--output-dir", folder], check=True, capture_output=True)
    return {name: _plain(pq.read_table(folder / f"{name}.parquet")) for name in TABLES}


def _plain(table: pa.Table) -> pa.Table:
    """The same rows, with strings in the one layout that every Arrow function takes."""
    fields = [pa.field(f.name, pa.string() if pa.types.is_string_view(f.type) else f.type) for f in table.schema]
    return table.cast(pa.schema(fields))


def multiple_of(column: pa.ChunkedArray, divisor: int, remainder: int = 0) -> pa.ChunkedArray:
    """Which values leave `remainder` when divided: SQL's `column % divisor = remainder`."""
    whole = pc.multiply(pc.divide(column, divisor), divisor)
    return pc.equal(pc.subtract(column, whole), remainder)


def with_column(table: pa.Table, name: str, values: pa.ChunkedArray) -> pa.Table:
    """The same table with other values in one of its columns, of the same type."""
    field = table.schema.field(name)
    return table.set_column(table.schema.get_field_index(name), field, values.cast(field.type))
