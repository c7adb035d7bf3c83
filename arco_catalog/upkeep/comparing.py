"""Compares tables of another catalog with tables of the same names here, by their metadata files: before a move is
ended, and to find who has committed since an import."""

from dataclasses import dataclass
from enum import StrEnum

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.lookup import relation_entry
from arco_catalog.upkeep.source_tables import SourceTable, file_of, files_of


class Standing(StrEnum):
    """How a table at the source and the one of its name here compare."""

    EQUAL = "equal"
    AHEAD_HERE = "committed here"
    MOVED = "moved at the source"
    DIVERGED = "diverged"
    MISSING = "missing"
    OTHER = "another table"
    UNREADABLE = "not compared"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison of one table, with the metadata file that is current here, None without one, and the reason."""

    table: SourceTable
    standing: Standing
    here: str | None = None
    reason: str | None = None


async def compare(session: Session, table: SourceTable) -> Comparison:
    """Compares a table or view of the source with the one of its name here: it is equal if both have the same current
    metadata file. It reads no metadata. Raises `StoreError`, and the errors of `files_of`."""
    try:
        location = file_of(table)
    except BadRequest as error:
        return Comparison(table, Standing.UNREADABLE, None, error.message)
    head = await session.state.head()
    entry = await relation_entry(session.state, head.index, table.namespace, table.name)
    if entry is None:
        return Comparison(table, Standing.MISSING)
    if entry.kind != table.kind:
        return Comparison(table, Standing.OTHER, None, f"here a {entry.kind} has the name")
    current, registered = await files_of(session, entry)
    if location == current:
        return Comparison(table, Standing.EQUAL, current)
    if location == registered:
        return Comparison(table, Standing.AHEAD_HERE, current, "this catalog has committed to it since the import")
    if registered is None or (table.uuid is not None and entry.uuid is not None and table.uuid != entry.uuid):
        return Comparison(table, Standing.OTHER, current, "the one here was not imported from the source")
    if current == registered:
        return Comparison(table, Standing.MOVED, current, "the source has committed to it since the import")
    return Comparison(table, Standing.DIVERGED, current, "both catalogs have committed to it since the import")
