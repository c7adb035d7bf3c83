"""Lists the realms of a store, and drops a realm that has no catalogs.

HEAD stays, and records the drop: a realm without HEAD would look lost, or like a store without a realm, where every
client may do everything (docs/design/access.md#rule-14).
"""

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace

from arco_catalog.iceberg.errors import CommitFailed, InternalError
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.internal_commits import HeadChange, change_head
from arco_catalog.protocol.lookup import load
from arco_catalog.state.access import Caches, State
from arco_catalog.state.index import Index
from arco_catalog.state.listing import list_objects
from arco_catalog.state.needs import Needs, Scan
from arco_catalog.state.paths import REALM_FOLDER, Paths
from arco_catalog.state.realm import REALM_STATE, CatalogEntry, catalogs, is_dropped, principal_roles, principals
from arco_catalog.state.registry import RegistryState
from storage_backends.lazy_dataclass import dataclass

_CORE = f"{REALM_FOLDER}/core/"
"""The folder of the objects of a realm's registry, without the realm's prefix."""


@dataclass(frozen=True, slots=True)
class RealmSummary:
    """The summary of a realm, by its prefix in the store: whether it is dropped, its catalogs' names, and how many
    principals and principal roles it has. If its registry can't be read, only the `error`."""

    prefix: str
    is_dropped: bool = False
    catalogs: Sequence[str] = ()
    principals: int = 0
    principal_roles: int = 0
    error: str | None = None


async def realms_in(session: Session) -> Sequence[RealmSummary]:
    """Returns summaries of all realms of the session's store, also of dropped ones and of those that can't be read, in
    order of their prefixes, found by one listing of the whole store. Raises `StoreError`."""
    prefixes: set[str] = set()
    async with aclosing(list_objects(session.state, "")) as objects:
        async for each in objects:
            root, registry, _ = each.key.partition(_CORE)
            if registry and "/" not in (prefix := root.strip("/")):
                prefixes.add(prefix)
    found = [await _summary_or_error(session, prefix) for prefix in sorted(prefixes)]
    return [each for each in found if each is not None]


async def _summary_or_error(session: Session, prefix: str) -> RealmSummary | None:
    """Returns the summary of a realm, which has only the error if the registry can't be read; None if no realm has the
    prefix."""
    state = _registry(session, prefix)
    try:
        return None if (await state.head()).version is None else await summarize_realm(state, prefix)
    except InternalError as error:
        return RealmSummary(prefix, error=error.message)


def _registry(session: Session, prefix: str) -> State:
    """Returns access to the records of the registry of the realm with this prefix, in the store of the session, with
    nothing cached yet."""
    state = session.state
    return State(state.store, Paths(prefix, REALM_FOLDER), Caches.of(1 << 20), session.runtime, session.settings.spill)


async def summarize_realm(state: State, prefix: str) -> RealmSummary:
    """Returns the summary of the realm with this registry and prefix. Raises `InternalError` if the registry can't be
    read, and `StoreError`."""
    index = (await state.head()).index
    scans = [Scan(catalogs()), Scan(principals()), Scan(principal_roles())]
    await load(state, index, Needs(keys=[REALM_STATE], scans=scans))
    names = sorted(CatalogEntry(entry).name for _, entry in index.scan(catalogs()))
    count, roles = [sum(1 for _ in index.scan(scan.prefix)) for scan in scans[1:]]
    return RealmSummary(prefix, is_dropped(index), names, count, roles)


async def drop_realm(session: Session) -> bool:
    """Drops the realm of the session's registry, with all principals, roles and grants, by one commit. Returns false,
    without a commit, if it is dropped already. Raises `CommitFailed` if it has catalogs, and `CommitStateUnknown` past
    the deadline."""
    existed = False

    async def change(head: RegistryState) -> HeadChange | None:
        nonlocal existed
        await load(session.state, head.index, Needs(keys=[REALM_STATE], scans=[Scan(catalogs())]))
        existed = not is_dropped(head.index)
        if not existed:
            return None
        left = sorted(CatalogEntry(entry).name for _, entry in head.index.scan(catalogs()))
        if left:
            raise CommitFailed(
                f"The realm was not dropped, because it has catalogs. Drop these first: {', '.join(left)}"
            )
        dropped: JsonObject = {"state": "dropped", "at_ms": session.now_ms()}
        empty = replace(head, index=Index({}))
        return HeadChange(empty, {"source": session.request.source}, {REALM_STATE: dropped})

    await change_head(session, "drop-realm", change, when_late="look at the realm, and drop it again")
    return existed
