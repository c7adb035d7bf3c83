"""The definition of a system table as plain values, from which Iceberg's schema, partition spec and sort order are
made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from arco_catalog.state import watermarks

Row = Mapping[str, object]
"""A row to write, by column names. A column that is absent is null; a time is in milliseconds since 1970."""

DAY_MS = 24 * 60 * 60 * 1000


class Type(Enum):
    """The type of a column of a system table. The values are the names of Iceberg's types, without the ids in `list`
    and `map`."""

    STRING = "string"
    LONG = "long"
    INT = "int"
    BOOLEAN = "boolean"
    TIME = "timestamptz"
    STRINGS = "list<string>"
    LONGS = "list<long>"
    PROPERTIES = "map<string,string>"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a system table, with a comment, `doc`. A `required` column is never null."""

    name: str
    type: Type
    doc: str
    required: bool = False


@dataclass(frozen=True, slots=True)
class SystemTable:
    """The definition of a table of `system`. `day` is the column of times by the days of which it is partitioned, or
    None. With `has_current`, it is partitioned by the column `current`, which is true in the rows about the newest
    version of an entity. Files are sorted by the columns `order`. `watermark` is the table property by which a job
    knows up to where the source was read, such as the number of the last batch, or None."""

    name: str
    doc: str
    columns: Sequence[Column]
    order: Sequence[str]
    day: str | None = None
    has_current: bool = False
    watermark: str | None = watermarks.BATCH

    def partition_of(self, row: Row) -> int | bool | None:
        """Returns the partition value of a row: the number of days since 1970, whether the row is current, or None for
        a table without partitions. Raises `TypeError` if the value of the column `day` is not an integer."""
        if self.has_current:
            return row["current"] is True
        if self.day is None:
            return None
        at_ms = row[self.day]
        if not isinstance(at_ms, int):
            raise TypeError(
                f"a row for system.{self.name} has {at_ms!r} in the column {self.day}, by which it is partitioned: "
                "expected milliseconds since 1970 as an integer"
            )
        return at_ms // DAY_MS
