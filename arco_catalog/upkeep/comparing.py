"""Compares tables of another catalog with tables of the same names here, by their metadata files: before a move is
ended, and to find who has committed since an import."""

from dataclasses import dataclass
from enum import StrEnum

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.lookup import relation_entry
from arco_catalog.upkeep.source_tables import SourceTable, file_of, files_of


class Standing(StrEnum):
    """How a table or view of another catalog (the source) compares with the one of the same name in this catalog since
    the import: equal, with commits by this catalog, by the source or by both, made anew at the source, missing here,
    another table here, or not compared because it can't be imported."""

    EQUAL = "equal"
    AHEAD_HERE = "committed here"
    MOVED = "moved at the source"
    MADE_ANEW = "made anew at the source"
    DIVERGED = "diverged"
    MISSING = "missing"
    OTHER = "another table"
    UNREADABLE = "not compared"


@dataclass(frozen=True, slots=True)
class Comparison:
    """How one table of another catalog compares with the one of the same name here, and the reason if they differ, None
    for one that is missing here. `here` is the current metadata file of the one here, and `uuid_here` the uuid; None if
    there is none of the same kind, or if the table at the source can't be imported."""

    standing: Standing
    here: str | None = None
    reason: str | None = None
    uuid_here: str | None = None


async def compare(session: Session, table: SourceTable) -> Comparison:
    """Compares a table or view of the source with the one of the same name here: it is equal if both have the same
    current metadata file. Else the file at the import and the uuids decide who has committed since. It reads no
    metadata. One that can't be imported is returned as `UNREADABLE`, one with no namesake here as `MISSING`, and as
    `OTHER` if the one here is of the other kind or was not imported. Raises `StoreError`, and the errors of
    `files_of`."""
    try:
        location = file_of(table)
    except BadRequest as error:
        return Comparison(Standing.UNREADABLE, None, error.message)
    head = await session.state.head()
    entry = await relation_entry(session.state, head.index, table.namespace, table.name)
    if entry is None:
        return Comparison(Standing.MISSING)
    if entry.kind != table.kind:
        return Comparison(Standing.OTHER, None, f"here a {entry.kind} has the name")
    current, registered = await files_of(session, entry)

    def found(standing: Standing, reason: str | None = None) -> Comparison:
        return Comparison(standing, current, reason, entry.uuid)

    if location == current:
        return found(Standing.EQUAL)
    if location == registered:
        return found(Standing.AHEAD_HERE, "this catalog has committed to it since the import")
    if registered is None:
        return found(Standing.OTHER, "the one here was not imported from the source")
    if table.uuid is not None and entry.uuid is not None and table.uuid != entry.uuid:
        anew = f"at the source another {table.kind} has the name now, as after a drop and a create"
        if current == registered:
            return found(Standing.MADE_ANEW, anew)
        return found(Standing.DIVERGED, f"{anew}, and this catalog has committed to the one here")
    if current == registered:
        return found(Standing.MOVED, "the source has committed to it since the import")
    return found(Standing.DIVERGED, "both catalogs have committed to it since the import")
