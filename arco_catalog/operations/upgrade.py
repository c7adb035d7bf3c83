"""Raises the version of a registry, from which on older programs refuse it (docs/deploying.md#upgrade-the-registry)."""

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.internal_commits import HeadChange, change_head
from arco_catalog.state.commit_record import NEWEST_VERSION
from arco_catalog.state.registry import RegistryState
from arco_catalog.state.writers import LastCommit
from storage_backends.lazy_dataclass import dataclass

QUIET_MS = 24 * 60 * 60 * 1000
"""How long no older program may have committed to a registry before its version is raised."""


@dataclass(frozen=True, slots=True)
class Upgrade:
    """The upgrade of one registry: its version `before`, and the commit of an older program that prevents the upgrade,
    None if nothing does."""

    before: int
    prevented_by: LastCommit | None = None

    @property
    def is_needed(self) -> bool:
        """Whether the registry had a lower version than `NEWEST_VERSION`."""
        return self.before < NEWEST_VERSION


async def upgrade(session: Session, *, force: bool = False) -> Upgrade:
    """Raises the registry to `NEWEST_VERSION` by one registry commit, unless it has that version, or an older program
    has committed within `QUIET_MS`; with `force` even then. Returns the version before, and the commit that prevented
    the upgrade, if one did. Raises `StoreError`, and `CommitStateUnknown`, also after the deadline."""
    found: Upgrade | None = None

    async def change(head: RegistryState) -> HeadChange | None:
        nonlocal found
        now = _upgrade_of(head, session.now_ms(), force=force)
        if found is None or now.is_needed:
            found = now  # the first also if its answer is lost
        if not now.is_needed or now.prevented_by is not None:
            return None
        detail: JsonObject = {
            "from_version": now.before,
            "to_version": NEWEST_VERSION,
            "source": session.request.source,
        }
        return HeadChange(head.with_format_version(NEWEST_VERSION), detail)

    await change_head(session, "upgrade", change, when_late="run `arco upgrade` again")
    assert found is not None
    return found


async def preview_upgrade(session: Session, *, force: bool = False) -> Upgrade:
    """Returns the upgrade that `upgrade` would make or refuse with the present HEAD, and writes nothing. Raises
    `StoreError`."""
    return _upgrade_of(await session.state.head(), session.now_ms(), force=force)


def _upgrade_of(head: RegistryState, now_ms: int, *, force: bool) -> Upgrade:
    """Returns the upgrade from a HEAD's format version, and the commit of an older program, within `QUIET_MS`, that
    prevents it; None with `force`, or if there is none."""
    older = None if force else head.writers.older_than(NEWEST_VERSION)
    is_prevented = head.format_version < NEWEST_VERSION and older is not None and older.at_ms > now_ms - QUIET_MS
    return Upgrade(head.format_version, older if is_prevented else None)
