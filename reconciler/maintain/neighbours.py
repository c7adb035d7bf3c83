"""Finds files of a table that lie outside of its locations. Snapshots are not expired while there are any
(docs/design/pipeline.md#rule-11)."""

from contextlib import aclosing
from functools import partial

from arco_catalog.iceberg.errors import NotFound
from arco_catalog.iceberg.parsing import parse_metadata
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.current_file import current_file
from arco_catalog.state.entries import RelationEntry
from arco_catalog.state.worker_threads import off_loop
from arco_catalog.tasks.execution import OneSession, TaskFailed
from arco_catalog.upkeep.purge.other_table import MAX_ROUNDS
from arco_catalog.upkeep.purge.reach import Reached, files_behind
from reconciler.maintain.files_elsewhere import is_inside


async def find_file_elsewhere(session: Session, entry: RelationEntry) -> str | None:
    """Returns one file (a manifest, data file or delete file) outside of the locations that the registry has for the
    table, to which a snapshot of the table refers; None if there is none, or the table has no pointer.

    All manifests of all snapshots are read, as an expiry reads them. If a manifest is missing and the table has a new
    metadata file by then, the table is read again, since a writer may have rewritten the manifests. Raises `TaskFailed`
    if a manifest or list cannot be read, or a file is missing though the table did not change, or manifests are missing
    in each of `MAX_ROUNDS` readings; `InternalError` or `Refusal` for unreadable metadata; and `StoreError`.
    """
    own, read, gone = frozenset(entry.locations), "", list[str]()
    for _ in range(MAX_ROUNDS):
        try:
            found = await current_file(session, entry.entity)
        except NotFound as missing:
            raise TaskFailed(
                f"the current metadata file of this table (entity id {entry.entity}) does not exist, so it is not "
                "known to which files it refers: expire_snapshots is held back, and other procedures are not, until "
                f"you restore that file ({missing.message})"
            ) from missing
        if found is None:
            return None
        file, body = found
        session.files.forget(file.location)
        if file.location == read:
            raise TaskFailed(
                f"the manifest or manifest list {gone[0]} does not exist, so it is not known whether the table refers "
                "to files outside of its locations: expire_snapshots is held back, and other procedures are not, until "
                "you restore that file"
            )
        read, gone = file.location, []
        reached = Reached()
        reached.add(await off_loop(len(body), partial(parse_metadata, body, file.location)))
        async with aclosing(files_behind(OneSession(session), reached, gone)) as files:
            async for each in files:
                if not is_inside(each, own):
                    return each
        if not gone:
            return None
    raise TaskFailed(
        f"the table with the entity id {entry.entity} changed between {MAX_ROUNDS} readings of the manifests, and in "
        f"each a manifest or manifest list did not exist, at last {gone[0]}, so it is not known whether the table "
        "refers to files outside of its locations: expire_snapshots is held back, and other procedures are not, until "
        "a run of maintain reads them all, as when fewer writers commit"
    )
