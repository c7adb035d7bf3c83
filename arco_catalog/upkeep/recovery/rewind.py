"""Rewinds the state of a catalog to an instant, from the object versions that the bucket keeps.

The result is the state that processes would leave if all died at that instant, from which the protocols recover. No
version is deleted: the current objects become older versions, and objects that were created since are hidden. HEAD is
hidden first and restored last, so that no reader finds a mixture of two times. An interrupted run can be run again with
the same instant: its own writes are later.
"""

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass

from arco_catalog.iceberg.errors import BadRequest, CommitFailed
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import gather
from arco_catalog.upkeep.recovery.reading import AT_ONCE
from storage_backends import ANY, Matches, PreconditionFailed
from storage_backends.versions import KeptVersion, KeptVersions


@dataclass(frozen=True, slots=True)
class Change:
    """An object of a catalog's state that has changed since the instant of a rewind, or HEAD, changed or not: the
    present version, and the version at that instant; None if it did not exist then."""

    key: str
    now: KeptVersion
    then: KeptVersion | None


async def rewind(
    session: Session, versions: KeptVersions, at_ms: int, *, dry: bool, report: Callable[[str], None]
) -> JsonObject:
    """Rewinds every object of the catalog's state to the version that it had at the instant `at_ms`, in milliseconds
    since 1970; with `dry` only counts them. `report` is called with a line for each key that changes. Returns the
    counts of objects that were restored, and of newer ones that were hidden by a delete. Raises `BadRequest` if there
    was no HEAD at that time or the bucket keeps no versions, `CommitFailed` if another process changes an object, and
    `StoreError`."""
    paths = session.state.paths
    if not await versions.enabled():
        raise BadRequest(
            "The bucket keeps no versions of its objects, or does so no longer, so the state at that time is not "
            "known: restore a backup"
        )
    head = [each async for each in _changes(versions, paths.manifest, at_ms, all_of_them=True)]
    if not head or head[0].then is None:
        raise BadRequest(
            f"{paths.manifest} did not exist at that time, or the bucket has deleted that version: choose another time"
        )
    counts = {"restored": 0, "hidden": 0}
    if head[0].now.version != head[0].then.version:
        report(f"restore {paths.manifest}")
        counts["restored"] += 1
    if not dry and head[0].now.version is not None:
        await _hide(session, head[0])
    batch: list[Change] = []
    async for change in _changes(versions, f"{paths.state}/", at_ms):
        if change.key == paths.manifest:
            continue
        report(f"{'restore' if change.then is not None else 'hide'} {change.key}")
        counts["restored" if change.then is not None else "hidden"] += 1
        batch.append(change)
        if len(batch) == AT_ONCE and not dry:
            await _apply(session, versions, batch)
            batch = []
    if not dry:
        await _apply(session, versions, batch)
        await _put(session, versions, Change(paths.manifest, KeptVersion(paths.manifest, "", None, 0), head[0].then))
    return {"dry_run": dry, "at_ms": at_ms, **counts}


async def _changes(
    versions: KeptVersions, prefix: str, at_ms: int, *, all_of_them: bool = False
) -> AsyncGenerator[Change, None]:
    """Yields a change for each object under a prefix whose present version differs from that at the instant `at_ms`;
    with `all_of_them` for every object. An object that did not exist at that instant, or was hidden by a delete, has no
    version `then`."""
    now: KeptVersion | None = None
    then: KeptVersion | None = None

    def change() -> list[Change]:
        if now is None:
            return []
        was = then if then is not None and then.version is not None else None
        same = now.version == (None if was is None else was.version)
        return [] if same and not all_of_them else [Change(now.key, now, was)]

    async for each in versions.list(prefix):
        if now is None or each.key != now.key:
            for changed in change():
                yield changed
            now, then = each, None
        if then is None and each.written_ms <= at_ms:
            then = each
    for changed in change():
        yield changed


async def _apply(session: Session, versions: KeptVersions, changes: list[Change]) -> None:
    """Applies these changes concurrently: writes the earlier version of an object again, or hides an object that has
    none. Raises `CommitFailed` if another process changed one."""
    await gather(
        *(_hide(session, change) if change.then is None else _put(session, versions, change) for change in changes)
    )


async def _put(session: Session, versions: KeptVersions, change: Change) -> None:
    """Writes the version of an object that it had at the instant of the rewind again, over the present one, or as a new
    object if the present one is a delete. Raises `CommitFailed` if another process changed the object."""
    assert change.then is not None
    body = await versions.get(change.then)
    outcome = await session.state.swap(change.key, body, change.now.version)
    if isinstance(outcome, PreconditionFailed):
        now = await session.state.read(change.key)
        if now is None or now.body != body:  # else an earlier sending of this write applied, and the answer was lost
            raise _changed(change.key)


async def _hide(session: Session, change: Change) -> None:
    """Deletes an object that did not exist at the instant, or HEAD during the rewind; the bucket keeps its version.
    Raises `CommitFailed` if another process changes it, where the store has conditional deletes."""
    assert change.now.version is not None
    when = ANY if session.settings.lacks else Matches(change.now.version)
    if isinstance(await session.state.delete(change.key, when), PreconditionFailed):
        raise _changed(change.key)


def _changed(key: str) -> CommitFailed:
    """Returns the error for an object that another process changed during a rewind."""
    return CommitFailed(
        f"{key} was not rewound, since another process wrote or deleted it meanwhile, and others may be rewound "
        "already: stop all writers, and run the rewind once more to the same time"
    )
