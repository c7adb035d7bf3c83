"""Handles rows of system tables that are marked as current until newer rows of their entities are written.

Current rows have a partition of their own. A batch with newer rows of an entity rewrites the files with the entity's
current rows: these lose the mark, and move to the partition of the other rows.
"""

from collections.abc import Callable, Collection, Sequence

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from reconciler.compact.rewriting import NOTHING, FileReplacement
from reconciler.compact.versions import milliseconds
from reconciler.system.conditions import both, equal, one_of
from reconciler.system.opened import OpenTable
from reconciler.system.writing import write_arrow

_CURRENT = equal("current", True)


def known_newest(opened: Sequence[OpenTable], entities: Collection[str]) -> dict[str, int]:
    """Returns the time of the newest row marked as current of each of these entities, in some tables, in milliseconds
    since 1970. Entities without such a row are absent."""
    newest: dict[str, int] = {}
    for table in opened if entities else ():
        rows = table.rows(both(_CURRENT, one_of("entity", entities)), "entity", "committed_at").to_pylist()
        for row in rows:
            newest[row["entity"]] = max(newest.get(row["entity"], 0), milliseconds(row["committed_at"]))
    return newest


def demote(table: OpenTable, entities: Collection[str], new_uuid: Callable[[], str]) -> FileReplacement:
    """Rewrites the files that, by their bounds, may have rows marked as current of these entities, into two files at
    most: the rows of these entities lose the mark, and the other rows do not change. Returns the files to add and to
    remove, which the caller commits; `NOTHING` if there are no such rows."""
    if not entities:
        return NOTHING
    found = table.files(both(_CURRENT, one_of("entity", entities)))
    if not found:
        return NOTHING
    rows = table.read(found)
    matches = pc.is_in(rows["entity"], value_set=pa.array([*entities], rows.schema.field("entity").type))
    kept, old = rows.filter(pc.invert(matches)), rows.filter(matches)
    if not old.num_rows:
        return NOTHING
    place = old.schema.get_field_index("current")
    old = old.set_column(place, old.schema.field(place), pa.array([False] * old.num_rows, pa.bool_()))
    parts: dict[int | bool | None, pa.Table] = {
        value: part for value, part in ((True, kept), (False, old)) if part.num_rows
    }
    return FileReplacement(write_arrow(table.target(), parts, new_uuid()), [each.file for each in found])
