"""Reads the metadata file that an entity has now. Tables may have old files removed: a file is believed to be gone only
if the pointer, read again after it was missed, still leads to it."""

from arco_catalog.iceberg.errors import NotFound
from arco_catalog.planning.answers import Reference, TableState
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.decisions import resolve_for_read
from arco_catalog.state.pointer import MetadataFile


async def current_file(session: Session, entity: str) -> tuple[MetadataFile, bytes] | None:
    """Reads the metadata file that an entity has now, and returns it with its bytes; None if the entity has no pointer.
    An intent counts if its transaction committed. Raises `NotFound` if the file is gone although the pointer, read once
    more, still leads to it."""
    missed: dict[str, NotFound] = {}
    while (pointer := await session.state.pointer(entity)) is not None:
        file = (await resolve_for_read(session.state, pointer)).metadata
        if file.location in missed:
            raise missed[file.location]
        try:
            return file, await session.files.read_current(file.location)
        except NotFound as gone:
            missed = {file.location: gone}
    return None


async def rebuilt(session: Session, kept: Reference) -> TableState:
    """Returns a stored answer with its metadata file. If that file was removed since, the entity's present file is
    used, as for an answer on evidence: the result is equivalent, not identical. Raises `NotFound` if that is gone, too,
    or the entity has no pointer any more."""
    try:
        location, body = kept.metadata_location, await session.files.read_current(kept.metadata_location)
    except NotFound:
        now = await current_file(session, kept.entity)
        if now is None:
            raise
        location, body = now[0].location, now[1]
    return TableState(kept.entity, location, body, kept.created)
