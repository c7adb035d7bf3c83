"""Adopts a catalog that was restored as a copy of another one: records in HEAD that the original no longer exists. From
then on purges and cleanups of the copy may delete files (docs/recovery.md#copies)."""

from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.internal_commits import HeadChange, change_head
from arco_catalog.state.registry import RegistryState


async def adopt(session: Session) -> str | None:
    """Records in one registry commit that the original of this copy no longer exists. Returns the original's place, or
    None without a write if the catalog is no copy, or was adopted before. Raises `StoreError`, and `CommitStateUnknown`
    after the deadline."""
    adopted: str | None = None

    async def change(head: RegistryState) -> HeadChange | None:
        nonlocal adopted
        restoration, copy_of = head.restoration, head.copy_of
        adopted = copy_of
        if restoration is None or copy_of is None:
            return None
        changed = head.with_restoration(restoration.adopted(session.request.principal or "", session.now_ms()))
        return HeadChange(changed, {"copy_of": copy_of, "source": session.request.source})

    await change_head(session, "adopt", change, when_late="look at the catalog, and adopt it again")
    return adopted
