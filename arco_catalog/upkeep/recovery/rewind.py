"""Brings a catalog's state back to what it was at an instant, out of the versions that the bucket keeps.

What is left is what processes that all died at that instant would have left, which the protocols make up for. No
version is deleted: what was current until now stays among the versions, as does what was made since and is hidden.

HEAD goes first and comes back last, so that nobody reads what is half of one time and half of another. A run that was
stopped is made again: what it wrote is later than the instant.
"""

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass

from arco_catalog.iceberg.errors import BadRequest, CommitFailed
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import gather
from arco_catalog.upkeep.recovery.reading import AT_ONCE
from storage_backends import ANY, Applied, Matches, PreconditionFailed, Unknown
from storage_backends.versions import KeptVersion, KeptVersions


@dataclass(frozen=True, slots=True)
class Change:
    """An object that is not what it was: its newest version, and the one that was current, None for none."""

    key: str
    now: KeptVersion
    then: KeptVersion | None


async def rewind(
    session: Session, versions: KeptVersions, at_ms: int, *, dry: bool, tell: Callable[[str], None]
) -> JsonObject:
    """Makes every object of the state what it was; with `dry` counts what would be changed. `tell` gets each key.
    Raises `BadRequest` if there was no HEAD then or the bucket keeps no versions, `CommitFailed` if somebody writes at
    the same time, and `StoreError`."""
    paths = session.state.paths
    if not await versions.enabled():
        raise BadRequest("The bucket keeps no versions, so nothing tells what objects were")
    head = [each async for each in _changes(versions, paths.manifest, at_ms, all_of_them=True)]
    if not head or head[0].then is None:
        raise BadRequest(f"{paths.manifest} did not exist then, or its version of that time is gone")
    counts = {"restored": 0, "hidden": 0}
    if head[0].now.version != head[0].then.version:
        tell(f"restore {paths.manifest}")
        counts["restored"] += 1
    if not dry and head[0].now.version is not None:
        await _hide(session, head[0])
    batch: list[Change] = []
    async for change in _changes(versions, f"{paths.state}/", at_ms):
        if change.key == paths.manifest:
            continue
        tell(f"{'restore' if change.then is not None else 'hide'} {change.key}")
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
    """The objects that are not what they were, or all of them."""
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
    await gather(
        *(_hide(session, change) if change.then is None else _put(session, versions, change) for change in changes)
    )


async def _put(session: Session, versions: KeptVersions, change: Change) -> None:
    assert change.then is not None
    body = await versions.get(change.then)
    outcome = await session.state.swap(change.key, body, change.now.version)
    if isinstance(outcome, PreconditionFailed):
        raise _written(change.key)


async def _hide(session: Session, change: Change) -> None:
    """Deletes an object, of which the bucket keeps the version."""
    assert change.now.version is not None
    when = ANY if session.settings.lacks else Matches(change.now.version)
    outcome = await session.state.store.delete(change.key, when)
    while isinstance(outcome, Unknown):
        await session.state.pause()
        outcome = await session.state.store.delete(change.key, ANY)
    if not isinstance(outcome, Applied):
        raise _written(change.key)


def _written(key: str) -> CommitFailed:
    return CommitFailed(f"{key} was written meanwhile: stop all writers, and run this again")
