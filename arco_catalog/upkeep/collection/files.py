"""Removes metadata files and manifest lists that nothing needs any more. They are outside the catalog's state, and
another table may have registered a metadata file."""

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.planning.collection import Kind
from arco_catalog.protocol.cleaning import claim_for_removal
from arco_catalog.state.locations import Location
from arco_catalog.upkeep.collection.run import Run

MAX_COUNTED_BYTES = 256 << 10
"""Bytes of a file that are read and counted."""


async def remove_metadata_file(run: Run, entity: str, location: str, known_ms: int) -> bool:
    """Deletes a metadata file that an entity made and no longer refers to, unless another table may have registered it.
    `known_ms` is when the object that names the file was written: an object from a backup may name a file that became
    current after the backup, and such a file stays (docs/design/collection.md#rule-15). Returns true if the file was
    deleted or did not exist; false if it stays or is in no store of this catalog. A dry run only counts the file, and
    returns the same, but does not look for such a registration."""
    restoration = (await run.session.state.head()).restoration
    if restoration is not None and restoration.is_of_the_backup(known_ms):
        return False
    try:
        file = Location.parse(location)
        found = await run.session.files.begin_of(location, MAX_COUNTED_BYTES)
    except BadRequest:
        return False  # the file is in no store of this catalog, so its state is unknown
    if found is None:
        return True
    if run.delete:
        run.check_deadline()
        if not await claim_for_removal(run.session, entity, file):
            return False
        await run.session.files.remove(location)
    run.stats.collects(Kind.METADATA_FILE, size=len(found.body), written_ms=found.written_ms)
    return True


async def remove_manifest_list(run: Run, entity: str, metadata_location: str, location: str) -> None:
    """Deletes the manifest list of a rebased append that never applied, after its metadata file, the only file that
    names it. Keeps the list if another entity may have the metadata file (`claim_for_removal`). Does nothing if the
    list does not exist or is in no store of this catalog. A dry run only counts the list, without that check."""
    try:
        found = await run.session.files.begin_of(location, MAX_COUNTED_BYTES)
    except BadRequest:
        return
    if found is None:
        return
    if run.delete:
        run.check_deadline()
        if not await claim_for_removal(run.session, entity, Location.parse(metadata_location)):
            return  # another table or view has registered the file, and it was deleted since
        await run.session.files.remove(location)
    run.stats.collects(Kind.MANIFEST_LIST, size=len(found.body), written_ms=found.written_ms)
