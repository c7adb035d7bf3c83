"""Realms of a store, and the drop of one without catalogs.

HEAD stays, and records the drop: a realm without HEAD would read as one that was lost, or as none, in which everybody
may do everything (docs/design/access.md#rule-14)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from arco_catalog.iceberg.errors import CommitFailed, CommitStateUnknown
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.internal_commits import internal_commit
from arco_catalog.protocol.lookup import load
from arco_catalog.state.access import Caches, State
from arco_catalog.state.index import Index
from arco_catalog.state.needs import Needs, Scan
from arco_catalog.state.paths import REALM_FOLDER, Paths, realm_prefix
from arco_catalog.state.realm import REALM_STATE, CatalogEntry, catalogs, is_dropped, principal_roles, principals
from storage_backends import Applied, Cursor


@dataclass(frozen=True, slots=True)
class RealmSummary:
    """A realm by the prefix in the store, with the catalogs' names, and how many principals and roles it has."""

    prefix: str
    is_dropped: bool
    catalogs: Sequence[str]
    principals: int
    principal_roles: int


async def realms_in(session: Session) -> Sequence[RealmSummary]:
    """All realms of the session's store, found by one listing of it. Raises `StoreError`."""
    found: list[RealmSummary] = []
    after: Cursor | None = None
    while True:
        page = await session.state.store.list("", after)
        for each in page.entries:
            prefix = realm_prefix(each.key)
            if prefix is not None and "/" not in prefix:
                found.append(await summarize_realm(_registry(session, prefix), prefix))
        after = page.after
        if after is None:
            return sorted(found, key=lambda each: each.prefix)


def _registry(session: Session, prefix: str) -> State:
    """The records of a realm's registry in the same store."""
    state = session.state
    return State(state.store, Paths(prefix, REALM_FOLDER), Caches.of(1 << 20), session.runtime, session.settings.spill)


async def summarize_realm(state: State, prefix: str) -> RealmSummary:
    """What there is in the realm with this registry. Raises `StoreError`."""
    index = (await state.head()).index
    scans = [Scan(catalogs()), Scan(principals()), Scan(principal_roles())]
    await load(state, index, Needs(keys=[REALM_STATE], scans=scans))
    names = sorted(CatalogEntry(entry).name for _, entry in index.scan(catalogs()))
    counts = [sum(1 for _ in index.scan(scan.prefix)) for scan in scans[1:]]
    return RealmSummary(prefix, is_dropped(index), names, *counts)


async def drop_realm(session: Session) -> bool:
    """Drops the realm of the session's registry, with all principals, roles and grants, by one commit. Returns whether
    it was there to drop. Raises `CommitFailed` while it has catalogs, and `CommitStateUnknown` past the deadline."""
    state = session.state
    async with session.lock_registry():
        while True:
            head = await state.head()
            needs = Needs(keys=[REALM_STATE], scans=[Scan(catalogs())])
            await load(state, head.index, needs)
            if is_dropped(head.index):
                return False
            left = sorted(CatalogEntry(entry).name for _, entry in head.index.scan(catalogs()))
            if left:
                raise CommitFailed(f"The realm has catalogs, which are to be dropped first: {', '.join(left)}")
            author: JsonObject = {"source": session.request.source}
            dropped: JsonObject = {"state": "dropped", "at_ms": session.now_ms()}
            empty = replace(head, index=Index({}))
            prepared = await internal_commit(session, "drop-realm", author, empty, {REALM_STATE: dropped})
            if session.late():
                raise CommitStateUnknown("The request's deadline has passed: look at the realm, and drop it again")
            await prepared.put()
            if isinstance(await prepared.swap(), Applied):
                return True
            await state.pause()
