"""Metadata files, which lie outside of the catalog's state, and where others may have registered them."""

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.planning.collection import Kind
from arco_catalog.protocol.cleaning import claim_for_removal
from arco_catalog.state.locations import Location
from arco_catalog.upkeep.collection.run import Run

MOST_COUNTED = 256 << 10
"""Bytes of one metadata file that are counted, at most: no more of it is read."""


async def remove_metadata_file(run: Run, entity: str, location: str, known_ms: int) -> bool:
    """Deletes a metadata file that an entity made and that nothing of its own leads to, unless somebody else may
    need it. `known_ms` is when the object was written that names the file: what came with a backup may name a file that
    became current after the backup, and such a file is kept (docs/design/collection.md#rule-15). Returns whether the
    file is gone."""
    restoration = (await run.session.state.head()).restoration
    if restoration is not None and restoration.is_of_the_backup(known_ms):
        return False
    try:
        file = Location.parse(location)
        found = await run.session.files.begin_of(location, MOST_COUNTED)
    except BadRequest:
        return False  # in no store of this catalog: nothing is known of it
    if found is None:
        return True
    if run.delete:
        run.session.check_deadline()
        if not await claim_for_removal(run.session, entity, file):
            return False
        await run.session.files.remove(location)
    run.stats.collects(Kind.METADATA_FILE, size=len(found.body), written_ms=found.written_ms)
    return True
