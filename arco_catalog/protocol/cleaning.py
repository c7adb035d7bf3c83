"""Removes metadata files that left a table's log (`write.metadata.delete-after-commit.enabled`).

A file is removed only if this very table made it, as its log, its name and its folder show, if no other entity is
known to have files around it, and if the removal is the first to claim it: a request that registers the file as another
table or view claims it too, and then it stays (docs/decisions/0022). This is best effort, after the commit: a failure
is counted, and the file stays as an orphan.
"""

from collections.abc import Sequence

from arco_catalog.iceberg.errors import CatalogError
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import batches, gather
from arco_catalog.protocol.lookup import carry_out
from arco_catalog.state.entries import held_by_another
from arco_catalog.state.locations import Location
from arco_catalog.state.metadata_claim import Claim, claim
from storage_backends import StoreError

AT_ONCE = 16


async def remove_old_files(session: Session, entity: str, files: Sequence[Location]) -> None:
    """Removes these metadata files, which left the entity's metadata log, except each that is at a location of another
    entity, also of a dropped one, by the cached HEAD, or, if none is cached, by HEAD as it is read now, or that a
    registration has claimed. Removes none in a copy of another catalog (docs/recovery.md#copies). A `StoreError` or
    `CatalogError` is only counted and logged, and the file stays; one before the first removal keeps all files."""
    state = session.state
    try:
        head = state.cached_head() or await state.head()
        if head.copy_of is not None:
            return  # the original's log may name them
        index = head.index
        free = [file for file in files if not await carry_out(state, index, held_by_another(index, file, entity))]
    except (StoreError, CatalogError) as error:
        session.note_failed_write(f"the removal of old metadata files of entity {entity}", error)
        return
    for batch in batches(free, AT_ONCE):
        await gather(*(_remove(session, entity, file) for file in batch))


async def claim_for_removal(session: Session, entity: str, file: Location) -> bool:
    """Whether a metadata file that an entity made may be removed: no other entity holds a folder around it, or held one
    when it was dropped, and no registration has claimed it. If it may be removed, it is claimed for that, and no
    registration can claim it any more; the file itself is not removed here. Raises `StoreError`, and `CatalogError`."""
    state = session.state
    index = (await state.head()).index
    if await carry_out(state, index, held_by_another(index, file, entity)):
        return False
    claimed = await claim(state, file, Claim.REMOVED, entity=entity, claim_id=session.runtime.ulid())
    return claimed is Claim.REMOVED


async def _remove(session: Session, entity: str, file: Location) -> None:
    """Claims an entity's old metadata file for removal, and removes it from the store if the claim is granted: nothing
    if a registration has claimed it. A failure is only logged and counted."""
    try:
        existing = await claim(session.state, file, Claim.REMOVED, entity=entity, claim_id=session.runtime.ulid())
        if existing is Claim.REMOVED:
            await session.files.remove(file.uri)
    except (StoreError, CatalogError) as error:
        session.note_failed_write(f"the removal of the old metadata file {file.uri}", error)
