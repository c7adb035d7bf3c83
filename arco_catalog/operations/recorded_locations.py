"""Changes and returns the locations that HEAD records for a catalog outside of realms: where tables are allowed besides
the catalog's folder (docs/locations.md#allowed-locations)."""

from collections.abc import Callable, Sequence

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.internal_commits import HeadChange, change_head
from arco_catalog.state.locations import Location
from arco_catalog.state.registry import RegistryState

CHANGE = "allowed-locations"
"""Kind of a registry commit that changes recorded locations alone."""


async def record_locations(session: Session) -> Sequence[str]:
    """Records the locations with which this process opened the catalog, beside earlier ones. Returns all that are
    recorded then. Raises the errors of `change_locations`."""
    return await change_locations(session, added=session.catalog.given_locations)


async def change_locations(
    session: Session, *, added: Sequence[str] = (), removed: Sequence[str] = ()
) -> Sequence[str]:
    """Adds and removes recorded locations, and returns all that are recorded then; makes no commit if nothing changes.
    For a catalog of a realm it returns an empty sequence, or raises `BadRequest` if a location is given. Raises
    `BadRequest` also for a malformed location, `StoreError`, and `CommitStateUnknown`."""
    if session.catalog.entry is not None:
        if added or removed:
            raise BadRequest(
                "The allowed locations of a catalog of a realm are recorded in the realm: use arco catalogs update"
            )
        return ()
    new, old = [Location.parse(each).uri for each in added], {Location.parse(each).normal for each in removed}

    def change(recorded: Sequence[str]) -> Sequence[str]:
        return [each for each in dict.fromkeys([*recorded, *new]) if Location.parse(each).normal not in old]

    return await _commit(session, change)


async def _commit(session: Session, change: Callable[[Sequence[str]], Sequence[str]]) -> Sequence[str]:
    """Commits the changed list of recorded locations, unless it is the same. Returns the list."""

    async def change_locations(head: RegistryState) -> HeadChange | None:
        locations = change(head.allowed_locations)
        if [*locations] == [*head.allowed_locations]:
            return None
        return HeadChange(head.with_allowed_locations(locations), {"allowed_locations": [*locations]})

    return (await change_head(session, CHANGE, change_locations)).allowed_locations
