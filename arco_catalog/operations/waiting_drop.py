"""Waits after a drop for its purge, with `purge.mode=sync` (docs/design/purge.md#rule-1)."""

import logging
from collections.abc import Collection

from arco_catalog.iceberg.errors import CatalogError, PurgeFailed
from arco_catalog.planning.names import dotted
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.lookup import load
from arco_catalog.state.index import Namespace, tombstones_of
from arco_catalog.state.needs import Needs, Scan
from arco_catalog.state.task import ENDED, Status
from arco_catalog.state.task_log import read_task
from arco_catalog.state.tombstone import PURGED, Tombstone
from storage_backends import StoreError

_LOG = logging.getLogger(__name__)

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 2.0
MARGIN_S = 1.0
"""Time before the request's deadline at which waiting ends, so that the answer is in time."""


async def wait_for_purge(session: Session, namespace: Namespace, name: str, attempts: Collection[str]) -> None:
    """Waits until the purge of a dropped table has ended, or the request's time is over; returns at once if there is no
    purge, or the drop was undone. One of these `attempts` made the drop; later drops may have left tombstones under the
    same name. Raises `PurgeFailed` if the purge has failed. Other errors are only logged, because the drop has
    committed."""
    full_name = dotted(namespace, name)
    try:
        tombstone = await _dropped_by(session, namespace, name, attempts)
        if tombstone is None or tombstone.task is None or tombstone.state == PURGED:
            return
        ended = await _end_of(session, tombstone.task)
    except (StoreError, CatalogError) as error:
        _LOG.warning("%s was dropped, and whether its purge has ended can't be read: %s", full_name, error)
        return
    if ended is None:
        _LOG.warning("%s was dropped, and its purge goes on as %s", full_name, _in_log(tombstone))
    elif ended is Status.FAILURE:
        _LOG.error("%s was dropped, and its purge has failed: see %s", full_name, _in_log(tombstone))
        # The task's reason may name tables that the caller must not know of.
        raise PurgeFailed(
            f"The table {full_name} was dropped, but its purge has failed, so that files of it may remain. "
            f"`arco tasks show {tombstone.task}` gives the reason; when that is mended, `arco tasks retry "
            f"{tombstone.task}` deletes the rest. Do not drop the table again: the name is free"
        )


async def _dropped_by(session: Session, namespace: Namespace, name: str, attempts: Collection[str]) -> Tombstone | None:
    """Returns the tombstone that one of these attempts left, or None if it was undone or collected since."""
    index = (await session.state.head()).index
    under = tombstones_of(namespace, name)
    await load(session.state, index, Needs(scans=[Scan(under)]))
    tombstones = (Tombstone(tombstone) for _, tombstone in index.scan(under))
    return next((tombstone for tombstone in tombstones if tombstone.operation in attempts), None)


async def _end_of(session: Session, task: str) -> Status | None:
    """Waits until a task has ended and returns its status, or None shortly before the request's deadline."""
    pause_s = FIRST_PAUSE_S
    while True:
        stored = await read_task(session.state, task)
        if stored is not None and stored.task.status in ENDED:
            return stored.task.status
        if session.seconds_left() < pause_s + MARGIN_S:
            return None
        await session.runtime.sleep(pause_s)
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


def _in_log(tombstone: Tombstone) -> str:
    """Returns the ids by which the log lines of a purge are found: those of the task and of the drop."""
    return f"task {tombstone.task} (correlation id {tombstone.operation})"
