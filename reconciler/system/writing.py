"""Writes rows of system tables to data files, most often on executors, which return to the driver what a commit needs
of each file.

A writer holds a bounded number of rows in memory, and writes a file when it has that many.
"""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa  # type: ignore[import-untyped]
from pyiceberg.io import FileIO, load_file_io
from pyiceberg.io.pyarrow import write_file
from pyiceberg.manifest import DataFile
from pyiceberg.partitioning import PartitionFieldValue, PartitionKey
from pyiceberg.table import WriteTask
from pyiceberg.table.metadata import TableMetadata

from reconciler.compact.values import time_of
from reconciler.system.definition import Row, SystemTable, Type
from reconciler.system.iceberg import arrow_schema

MAX_ROWS = 50_000
"""How many rows of one table a writer holds at most: some tens of megabytes."""


@dataclass(frozen=True, slots=True)
class Target:
    """A system table to write files of, as plain values that the driver sends to executors."""

    table: SystemTable
    metadata: TableMetadata
    properties: Mapping[str, str] = field(repr=False)

    def file_io(self) -> FileIO:
        """Returns a PyIceberg `FileIO` for the table's files, with the credentials that the catalog has vended."""
        return load_file_io({**self.properties}, self.metadata.location)


class Writer:
    """Holds rows of system tables in memory, at most `MAX_ROWS` of a table, and writes them to data files, which are in
    `files` by table. Nothing is committed."""

    def __init__(self, targets: Sequence[Target], new_uuid: Callable[[], str]) -> None:
        self._new_uuid = new_uuid
        self._targets = {target.table.name: target for target in targets}
        self._rows: dict[str, list[Row]] = {name: [] for name in self._targets}
        self.files: dict[str, list[DataFile]] = {name: [] for name in self._targets}

    def add(self, table: str, row: Row) -> None:
        """Adds a row of the table with this name; ignores it if that table is not a target. When there are `MAX_ROWS`
        rows of the table, writes them to data files."""
        rows = self._rows.get(table)
        if rows is None:
            return
        rows.append(row)
        if len(rows) >= MAX_ROWS:
            self._flush(table)

    def finish(self) -> Mapping[str, Sequence[DataFile]]:
        """Writes the rows that are not written yet, and returns all data files by table, without the tables that have
        none."""
        for name in self._targets:
            self._flush(name)
        return {name: files for name, files in self.files.items() if files}

    def _flush(self, table: str) -> None:
        """Writes the collected rows of a table to data files, one for every partition, and forgets them; does nothing
        without rows."""
        rows, self._rows[table] = self._rows[table], []
        if rows:
            self.files[table] += write_rows(self._targets[table], rows, self._new_uuid())


def write_rows(target: Target, rows: Sequence[Row], write: str) -> list[DataFile]:
    """Writes rows to data files, one for each of their partitions, and returns the files, for the caller to commit.
    `write` is a new UUID for the files' names."""
    parts: dict[int | bool | None, list[Row]] = {}
    for row in rows:
        parts.setdefault(target.table.partition_of(row), []).append(row)
    return write_arrow(target, {value: to_arrow(target.table, part) for value, part in parts.items()}, write)


def write_arrow(target: Target, parts: Mapping[int | bool | None, pa.Table], write: str) -> list[DataFile]:
    """Writes the rows of each partition value to one data file, and returns the files, for the caller to commit.
    `write` is a new UUID for the files' names."""
    metadata = target.metadata
    tasks = (
        WriteTask(
            write_uuid=uuid.UUID(write),
            task_id=place,
            schema=metadata.schema(),
            record_batches=part.to_batches(),
            partition_key=_partition_key(target, value),
        )
        for place, (value, part) in enumerate(parts.items())
    )
    return list(write_file(io=target.file_io(), table_metadata=metadata, tasks=tasks))


def to_arrow(table: SystemTable, rows: Sequence[Row]) -> pa.Table:
    """Returns the rows as an Arrow table, sorted by the columns in the table's `order`. A time outside of the years 1
    to 9999 becomes null."""
    schema = arrow_schema(table)
    arrays = []
    for column in table.columns:
        values = [row.get(column.name) for row in rows]
        if column.type is Type.TIME:
            values = [None if (ms := time_of(value)) is None else ms * 1000 for value in values]
        elif column.type is Type.PROPERTIES:
            values = [sorted(value.items()) if isinstance(value, Mapping) else None for value in values]
        arrays.append(pa.array(values, schema.field(column.name).type))
    return pa.Table.from_arrays(arrays, schema=schema).sort_by([(name, "ascending") for name in table.order])


def _partition_key(target: Target, value: int | bool | None) -> PartitionKey | None:
    """Returns the partition of rows with this value; None in a table without partitions."""
    if value is None:
        return None
    spec, schema = target.metadata.spec(), target.metadata.schema()
    return PartitionKey([PartitionFieldValue(spec.fields[0], value)], spec, schema)
