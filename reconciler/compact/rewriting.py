"""Rewrites files of a system table without some of their rows."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from pyiceberg.expressions import BooleanExpression
from pyiceberg.manifest import DataFile

from reconciler.compact.versions import milliseconds
from reconciler.system.definition import DAY_MS
from reconciler.system.opened import OpenTable
from reconciler.system.writing import write_arrow


@dataclass(frozen=True, slots=True)
class FileReplacement:
    """The data files that one commit adds to a system table, and the files that they replace."""

    added: Sequence[DataFile] = ()
    removed: Sequence[DataFile] = ()


NOTHING = FileReplacement()


def without(
    table: OpenTable, where: BooleanExpression, column: str, values: Collection[str], new_uuid: Callable[[], str]
) -> FileReplacement:
    """Rewrites files of a table that is partitioned by days, without the rows that have one of these values in a
    column. Returns the new files and the files that they replace, for the caller to commit; a file that loses no row is
    in neither, and one that loses all rows has no new file. Only files with rows that may meet the condition `where`
    are read, one after the other."""
    removed: list[DataFile] = []
    added: list[DataFile] = []
    for file in table.files(where) if values else ():
        rows = table.read([file])
        kept = rows.filter(
            pc.invert(pc.is_in(rows[column], value_set=pa.array([*values], rows.schema.field(column).type)))
        )
        if kept.num_rows == rows.num_rows:
            continue
        removed.append(file.file)
        if kept.num_rows:
            day = milliseconds(kept[table.definition.day][0].as_py()) // DAY_MS
            added += write_arrow(table.target(), {day: kept}, new_uuid())
    return FileReplacement(added, removed)
