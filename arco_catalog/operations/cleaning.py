"""Removing metadata files that left a table's log (`write.metadata.delete-after-commit.enabled`).

A file is removed only if this very table made it, as its log, its name and its folder show, if nobody else is known to
have files around it, and if the table, not a register, has the claim on it (docs/decisions/0022). It is best effort: it
comes after the commit, whatever it meets is counted and skipped, and what it leaves is an orphan.
"""

from collections.abc import Iterator, Sequence

from arco_catalog.iceberg import table
from arco_catalog.iceberg.errors import BadRequest, CatalogError
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import gather
from arco_catalog.protocol.lookup import look_up
from arco_catalog.protocol.mutation import Write
from arco_catalog.state.entries import held_by_another
from arco_catalog.state.locations import Location
from arco_catalog.state.metadata_claim import Claim, claim
from storage_backends import StoreError

AT_ONCE = 16


def cleaning(session: Session, entity: str, folder: str, gone: Sequence[str]) -> Sequence[Write]:
    """What removes those of the files that left an entity's log which may be removed; nothing where there are none."""
    files = list(own_files(folder, gone))
    if not files:
        return ()

    async def clean() -> None:
        await _clean(session, entity, files)

    return [Write(f"cleaning of {entity}", clean)]


def own_files(folder: str, gone: Sequence[str]) -> Iterator[Location]:
    """Those that are metadata files of ours by their names, directly in the table's folder of metadata. What can't be
    read as a location is none of ours: other catalogs log paths of many kinds."""
    try:
        home = Location.parse(folder)
    except BadRequest:
        return
    for text in gone:
        try:
            file = Location.parse(text)
        except BadRequest:
            continue
        ours = not file.reserved and bool(file.segments) and table.is_metadata_file_name(file.segments[-1])
        if ours and file.written_below(home) and len(file.segments) == len(home.segments) + 1:
            yield file


async def _clean(session: Session, entity: str, files: Sequence[Location]) -> None:
    state = session.state
    try:
        head = state.cached_head() or await state.head()
        free = await look_up(state, lambda: [file for file in files if not held_by_another(head.index, file, entity)])
    except (StoreError, CatalogError) as error:
        session.drop_write(f"the cleaning of {entity}", error)
        return
    for start in range(0, len(free), AT_ONCE):
        await gather(*(_remove(session, entity, file) for file in free[start : start + AT_ONCE]))


async def _remove(session: Session, entity: str, file: Location) -> None:
    try:
        existing = await claim(session.state, file, Claim.REMOVED, entity=entity, claim_id=session.runtime.ulid())
        if existing is Claim.REMOVED:
            await session.files.remove(file.uri)
    except (StoreError, CatalogError) as error:
        session.drop_write(f"the removal of {file.uri}", error)
