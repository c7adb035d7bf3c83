"""Files of a system table that are written anew, without some of their rows."""

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
class Rewritten:
    """Files that a commit adds, and those that it removes for them."""

    added: Sequence[DataFile] = ()
    gone: Sequence[DataFile] = ()


NOTHING = Rewritten()


def without(
    table: OpenTable, where: BooleanExpression, column: str, values: Collection[str], new_uuid: Callable[[], str]
) -> Rewritten:
    """Takes out the rows that have one of some values in a column. They are looked for in files in which rows may match
    `where`, one file after the other, of a table that is partitioned by days."""
    gone: list[DataFile] = []
    added: list[DataFile] = []
    for file in table.files(where) if values else ():
        rows = table.read([file])
        kept = rows.filter(
            pc.invert(pc.is_in(rows[column], value_set=pa.array([*values], rows.schema.field(column).type)))
        )
        if kept.num_rows == rows.num_rows:
            continue
        gone.append(file.file)
        if kept.num_rows:
            day = milliseconds(kept[table.definition.day][0].as_py()) // DAY_MS
            added += write_arrow(table.target(), {day: kept}, new_uuid())
    return Rewritten(added, gone)
