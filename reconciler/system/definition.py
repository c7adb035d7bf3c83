"""How a system table is described: plain values, from which Iceberg's schema, partitioning and sort order are made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from arco_catalog.state import watermarks

Row = Mapping[str, object]
"""A row to be written, by the names of columns. A column that is left out is null; a time is in milliseconds."""

DAY_MS = 24 * 60 * 60 * 1000


class Type(Enum):
    """What a column holds. The values are Iceberg's names; those of `list` and `map` are shortened."""

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
    """A column, and what engines show as its comment. One that is `required` is never null."""

    name: str
    type: Type
    doc: str
    required: bool = False


@dataclass(frozen=True, slots=True)
class SystemTable:
    """A table of `system`. `day` is the column by whose days it is partitioned, None for a table that does not grow by
    days; `has_current` says that it is partitioned by its column `current`, which marks the newest row of an entity.
    Files are sorted by `order`. `watermark` is the property that says up to where its source was read."""

    name: str
    doc: str
    columns: Sequence[Column]
    order: Sequence[str]
    day: str | None = None
    has_current: bool = False
    watermark: str | None = watermarks.BATCH

    def partition_of(self, row: Row) -> int | bool | None:
        """The value by which the row's file is partitioned: a day since 1970, or whether it is current."""
        if self.has_current:
            return row["current"] is True
        if self.day is None:
            return None
        at_ms = row[self.day]
        if not isinstance(at_ms, int):
            raise TypeError(f"{self.name}.{self.day} of a row is {at_ms!r}, not milliseconds")
        return at_ms // DAY_MS
