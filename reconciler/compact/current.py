"""Rows that are marked as current, until newer ones of their entities come.

They lie in files of their own. A batch rewrites those files that have rows of the entities that it brings newer ones
of: such rows lose the mark, and go to the files of history.
"""

from collections.abc import Callable, Collection, Sequence

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from reconciler.compact.rewriting import NOTHING, Rewritten
from reconciler.compact.versions import milliseconds
from reconciler.system.conditions import among, both, equal
from reconciler.system.opened import OpenTable
from reconciler.system.writing import write_arrow

_CURRENT = equal("current", True)


def known_newest(opened: Sequence[OpenTable], entities: Collection[str]) -> dict[str, int]:
    """The times, in milliseconds, of the current rows of some entities."""
    newest: dict[str, int] = {}
    for table in opened if entities else ():
        rows = table.rows(both(_CURRENT, among("entity", entities)), "entity", "committed_at").to_pylist()
        for row in rows:
            newest[row["entity"]] = max(newest.get(row["entity"], 0), milliseconds(row["committed_at"]))
    return newest


def demote(table: OpenTable, entities: Collection[str], new_uuid: Callable[[], str]) -> Rewritten:
    """Takes the mark from the rows of some entities: writes the files that have them anew."""
    if not entities:
        return NOTHING
    found = table.files(both(_CURRENT, among("entity", entities)))
    if not found:
        return NOTHING
    rows = table.read(found)
    touched = pc.is_in(rows["entity"], value_set=pa.array([*entities], rows.schema.field("entity").type))
    kept, old = rows.filter(pc.invert(touched)), rows.filter(touched)
    if not old.num_rows:
        return NOTHING
    place = old.schema.get_field_index("current")
    old = old.set_column(place, old.schema.field(place), pa.array([False] * old.num_rows, pa.bool_()))
    parts: dict[int | bool | None, pa.Table] = {
        value: part for value, part in ((True, kept), (False, old)) if part.num_rows
    }
    return Rewritten(write_arrow(table.target(), parts, new_uuid()), [each.file for each in found])
