"""Rows that are marked as current, until newer ones of their entities come.

They lie in files of their own. A batch rewrites those files that have rows of the entities that it brings newer ones
of: such rows lose the mark, and go to the files of history.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from pyiceberg.manifest import DataFile

from reconciler.compact.versions import milliseconds
from reconciler.system.conditions import among, both, equal
from reconciler.system.opened import OpenTable
from reconciler.system.writing import write_arrow

_CURRENT = equal("current", True)


@dataclass(frozen=True, slots=True)
class Demoted:
    """Files that a commit adds, and those that it removes for them."""

    added: Sequence[DataFile] = ()
    gone: Sequence[DataFile] = ()


def known_newest(opened: Sequence[OpenTable], entities: Collection[str]) -> dict[str, int]:
    """The times, in milliseconds, of the current rows of some entities."""
    newest: dict[str, int] = {}
    for table in opened if entities else ():
        rows = table.rows(both(_CURRENT, among("entity", entities)), "entity", "committed_at").to_pylist()
        for row in rows:
            newest[row["entity"]] = max(newest.get(row["entity"], 0), milliseconds(row["committed_at"]))
    return newest


def demote(table: OpenTable, entities: Collection[str], new_uuid: Callable[[], str]) -> Demoted:
    """Takes the mark from the rows of some entities: writes the files that have them anew."""
    if not entities:
        return Demoted()
    found = table.files(both(_CURRENT, among("entity", entities)))
    if not found:
        return Demoted()
    rows = table.read(found)
    touched = pc.is_in(rows["entity"], value_set=pa.array([*entities], rows.schema.field("entity").type))
    kept, old = rows.filter(pc.invert(touched)), rows.filter(touched)
    if not old.num_rows:
        return Demoted()
    place = old.schema.get_field_index("current")
    old = old.set_column(place, old.schema.field(place), pa.array([False] * old.num_rows, pa.bool_()))
    parts: dict[int | bool | None, pa.Table] = {
        value: part for value, part in ((True, kept), (False, old)) if part.num_rows
    }
    return Demoted(write_arrow(table.target(), parts, new_uuid()), [each.file for each in found])
