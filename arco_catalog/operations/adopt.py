"""Adopts a copy: records that the original no longer exists, so that jobs may delete files
(docs/recovery.md#copies)."""

from arco_catalog.iceberg.errors import CommitStateUnknown
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.internal_commits import internal_commit
from storage_backends import Applied


async def adopt(session: Session) -> str | None:
    """Makes a copy a catalog of its own by one registry commit. Returns the place of the original; None, without a
    write, if the catalog is no copy. Raises `StoreError`, and `CommitStateUnknown` past the deadline."""
    state, adopted = session.state, None
    async with session.lock_registry():
        while True:
            head = await state.head()
            restoration, copy_of = head.restoration, head.copy_of
            if restoration is None or copy_of is None:
                return adopted
            now_ms = session.now_ms()
            by = session.request.principal or ""
            detail: JsonObject = {"copy_of": copy_of, "source": session.request.source}
            changed = head.with_restoration(restoration.adopted(by, now_ms))
            prepared = await internal_commit(session, "adopt", detail, changed, {})
            if session.late():
                raise CommitStateUnknown("The request's deadline has passed: look at the catalog, and adopt it again")
            await prepared.put()
            adopted = copy_of
            if isinstance(await prepared.swap(), Applied):
                return copy_of
            await state.pause()
