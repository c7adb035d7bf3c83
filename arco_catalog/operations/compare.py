"""Compares two versions of a table or view by their metadata files (docs/receipts.md#comparison)."""

import re
from functools import partial

from arco_catalog.iceberg.comparison import compare_tables, compare_views
from arco_catalog.iceberg.errors import BadRequest, NotFound
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.iceberg.snapshots import ONE_MINUTE_MS
from arco_catalog.iceberg.table import current_snapshot_id
from arco_catalog.operations.receipt_cursor import read_receipt
from arco_catalog.operations.relation_history import MAX_LOOKUP_READS, RelationHistory, find_version, read_history
from arco_catalog.operations.version_entries import added_snapshot_ids, version_reference
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import gather
from arco_catalog.state import receipt
from arco_catalog.state.fields import integer
from arco_catalog.state.index import Namespace
from arco_catalog.state.pointer import MetadataFile
from arco_catalog.state.worker_threads import off_loop

_SNAPSHOT = re.compile(r"snapshot:([0-9]{1,19})")


async def compare_versions(
    session: Session, namespace: Namespace, name: str, kind: str, before: str, after: str | None
) -> JsonObject:
    """Compares two versions of a table or view, as `kind` selects: from `before` to `after`, by default the current
    one. A version is named by its number or id in the timeline, or as `snapshot:ID`, which is the version that added
    this snapshot. Raises the errors of `load_table` and `load_view`, `BadRequest` for a name of another form and for
    a snapshot of a view, and `NotFound` for a version that does not exist, or whose metadata file does not."""
    history = await read_history(session, namespace, name, kind)
    old_file, new_file = await gather(_find(history, before), _find(history, after))
    old, new = await gather(_read(history, old_file), _read(history, new_file))
    compare = compare_tables if kind == "table" else compare_views
    compared = await off_loop(len(history.state.metadata), partial(compare, old, new))
    return {
        "type": kind,
        "from": _describe(history, old_file, old),
        "to": _describe(history, new_file, new),
        **compared,
    }


def _describe(history: RelationHistory, file: MetadataFile, document: JsonObject) -> JsonObject:
    """Returns the JSON of one of the two versions of a comparison: the fields that name it, and the id of the
    current snapshot, null without one."""
    return {**version_reference(history.entity, file), "snapshot-id": current_snapshot_id(document)}


async def _read(history: RelationHistory, file: MetadataFile) -> JsonObject:
    """Returns the parsed metadata of a version: the current one as it was read with the history, any other from the
    file, which is then removed from the cache. Raises `NotFound` if that file was deleted."""
    files = history.session.files
    if file == history.current:
        return history.document
    try:
        body = await files.read_current(file.location)
    except NotFound as gone:
        raise NotFound(
            f"The metadata file of this version does not exist any more, so it can't be compared: {file.location}"
        ) from gone
    files.forget(file.location)
    return await files.parse(file.location, body, lambda document: document)


async def _find(history: RelationHistory, wanted: str | None) -> MetadataFile:
    """Returns the metadata file of the version that a text names, and of the current version for None. Raises as
    `compare_versions` does."""
    if wanted is None:
        return history.current
    found = _SNAPSHOT.fullmatch(wanted)
    if found is None:
        return (await find_version(history, wanted)).file
    if history.kind == "view":
        raise BadRequest("A view has no snapshots: give a version of it")
    return await _version_of_snapshot(history, int(found[1]))


async def _version_of_snapshot(history: RelationHistory, snapshot_id: int) -> MetadataFile:
    """Returns the version that added a snapshot, by the receipts of the first `MAX_LOOKUP_READS` versions that are not
    older than the snapshot, as far as the catalog lets an engine's clock be ahead. Raises `NotFound` if none of these
    receipts has it, or if the current metadata does not have the snapshot."""
    snapshot = history.snapshots.get(snapshot_id)
    if snapshot is None:
        raise NotFound(f"Snapshot does not exist in the current metadata: {snapshot_id}")
    since = integer(snapshot, "timestamp-ms") - ONE_MINUTE_MS
    later = [file for file in reversed(history.files) if file.ms >= since][:MAX_LOOKUP_READS]
    session, entity = history.session, history.entity
    receipts = await gather(*(read_receipt(session, entity, file, receipt.COMMITTED) for file in later))
    for file, found in zip(later, receipts, strict=True):
        if found is not None and snapshot_id in added_snapshot_ids(found):
            return file
    raise NotFound(f"The version that added snapshot {snapshot_id} was not found: give a version of the timeline")
