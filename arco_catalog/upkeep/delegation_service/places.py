"""Checks the locations of delegated tables: the operator must allow them, and no catalog of the deployment may have
them, except for a table that it hands over (docs/design/tasks.md#delegation)."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from arco_catalog.iceberg.errors import BadRequest, CatalogError, Forbidden, Unavailable
from arco_catalog.operations.catalogs import DeployedCatalog
from arco_catalog.planning.names import dotted
from arco_catalog.protocol.access import ALLOW_ALL
from arco_catalog.protocol.catalog import Catalog, Session
from arco_catalog.protocol.lookup import carry_out
from arco_catalog.protocol.operation_request import OperationRequest
from arco_catalog.state.entries import FormerHolder, Holder, PendingTransaction, dropped_at, overlapping
from arco_catalog.state.fields import mapping
from arco_catalog.state.index import Index, tombstone_key
from arco_catalog.state.locations import AllowedLocations, Location
from arco_catalog.state.needs import Needs, Steps
from arco_catalog.state.task_log import read_task
from arco_catalog.state.tombstone import PURGING, Tombstone
from arco_catalog.upkeep.delegation_service.payload import TableIdentity

_LOG = logging.getLogger(__name__)

Catalogs = Callable[[], Awaitable[Sequence[DeployedCatalog]]]
"""Lists the catalogs of the deployment as it is now."""


class LocationHeld(Exception):
    """A table in a catalog of the deployment has, or had, a location that overlaps one of the delegated table, or the
    store of these catalogs does."""


@dataclass(frozen=True, slots=True)
class Places:
    """Decides where delegated tables may be. `allowed` are the locations that the operator allows, by default none.
    `own` is the location of the deployment's catalogs: a table there is purged only if one of these catalogs hands the
    purge over."""

    allowed: Sequence[Location]
    own: Location
    catalogs: Catalogs

    def roots(self, locations: Sequence[str]) -> list[Location]:
        """Returns the operator's allowed locations in which these locations lie, without repetition; of nested ones,
        only the first by the operator's order. Raises `Forbidden` for a location outside all of them, for a whole
        bucket, and for one that would mean another location when it is decoded."""
        found = dict[Location, None]()
        for text in locations:
            location = self.check(text)
            found[next(each for each in self.allowed if location.written_below(each))] = None
        return [*found]

    def check(self, text: str) -> Location:
        """Returns the location of a table if the operator allows it. Raises `Forbidden` if it is not allowed, is
        malformed, or is a whole bucket."""
        try:
            location = AllowedLocations(self.allowed, ()).check(text)
        except BadRequest:
            raise Forbidden(
                "Not allowed by delegation.allowed-locations, malformed, too long, or in a folder of a catalog's own "
                f"state: the location {text[:200]!r} in the request or in the table's metadata file"
            ) from None
        if not location.segments:
            raise Forbidden(
                f"Not allowed: the location {location.uri} in the request or in the table's metadata file is a whole "
                "bucket. A table needs a folder in it"
            )
        return location

    async def refuse_held(self, locations: Sequence[Location], table: TableIdentity, request: OperationRequest) -> None:
        """Raises `LocationHeld`, and logs the holder, if a table of the deployment, live or dropped, has a location
        that overlaps one of these, or if one of these overlaps the location of the catalogs. Neither counts for the
        table itself if one of the catalogs hands its purge over. Only in that case does the error name the holder.
        Raises `Unavailable` if a catalog can't be opened by the service's configuration, and `StoreError`."""
        handed_over = False
        for each, catalog in await self._opened():
            session = catalog.session(request, ALLOW_ALL)
            tombstone = await _handed_over(session, locations, table)
            handed_over = handed_over or tombstone is not None
            index = (await session.state.head()).index
            for location in locations:
                holder = await carry_out(session.state, index, _holder(index, location, tombstone))
                if holder is not None:
                    _LOG.warning(
                        "the delegation service accepts no purge at %s, and goes on with none, since that overlaps a "
                        "location that %s of catalog %s holds or held",
                        location.uri,
                        holder,
                        each.name,
                    )
                    # If the catalog hands the table over, the caller is its own worker. Other callers learn no names.
                    named = "a catalog of this service" if tombstone is None else f"{holder} of its catalog"
                    raise LocationHeld(
                        f"the table's location {location.uri} overlaps a location that {named} holds or held, so "
                        "this service accepts no purge there, and goes on with none: only the catalog of that location "
                        "may delete files there"
                    )
        inside = [each for each in locations if each.inside(self.own) or self.own.inside(each)]
        if inside and not handed_over:
            raise LocationHeld(
                f"{inside[0].uri} is inside or around the store of this service, and no catalog there hands this table "
                "over, so this service accepts no purge of it, and goes on with none"
            )

    async def _opened(self) -> Sequence[tuple[DeployedCatalog, Catalog]]:
        """Opens all catalogs of the deployment. Raises `Unavailable` if one can't be opened. Only the log has the
        reason, since the caller of the service may not know its catalogs."""
        name = "its realms"
        opened: list[tuple[DeployedCatalog, Catalog]] = []
        try:
            for each in await self.catalogs():
                name = f"catalog {each.name}"
                opened.append((each, each.open()))
        except CatalogError as error:
            _LOG.error("the delegation service can't open %s: %s", name, error)
            raise Unavailable(
                "The delegation service can't open every catalog of its store, and its log has the reason: a task that "
                "it has accepted has another attempt without a request, if one is left; submit any other task again "
                "when its operator has removed that"
            ) from error
        return opened


async def _handed_over(session: Session, locations: Sequence[Location], table: TableIdentity) -> Tombstone | None:
    """Returns the tombstone of a table in one catalog if the purge is under way, was handed over to a delegation
    service, and has all of these locations; else None."""
    index = (await session.state.head()).index
    tombstone = await carry_out(session.state, index, _tombstone(index, table))
    if tombstone is None or tombstone.state != PURGING or tombstone.task is None:
        return None
    if not all(location.normal in tombstone.locations for location in locations):
        return None
    stored = await read_task(session.state, tombstone.task)
    return tombstone if stored is not None and mapping(stored.task.checkpoint, "delegated") else None


def _tombstone(index: Index, table: TableIdentity) -> Steps[Tombstone | None]:
    """Returns the tombstone of a table in one catalog, by namespace, name and entity; None if the catalog has none."""
    key = tombstone_key(table.namespace, table.name, table.entity)
    yield Needs(keys=[key])
    found = index.get(key)
    return None if found is None else Tombstone(found)


def _holder(index: Index, location: Location, but: Tombstone | None) -> Steps[str | None]:
    """Names the table that has or had a location overlapping this one, or the undecided transaction that may give it to
    a table; None if nothing does. The entity of the tombstone `but` does not count."""
    ignored = [] if but is None else [but.entity]
    try:
        holder = yield from overlapping(index, location, but=ignored)
    except PendingTransaction as met:
        return f"transaction {met.transaction}"
    if holder is not None:
        return _named(holder)
    former = yield from dropped_at(index, location)
    others = [each for each in former if each.entity not in ignored]
    return f"{_named(others[0])}, which was dropped," if others else None


def _named(holder: Holder | FormerHolder) -> str:
    """Returns the name and entity id of the table that holds or held a location, for a message; without the name where
    an earlier version of the catalog did not record it."""
    named = dotted(holder.name[:-1], holder.name[-1]) if holder.name else "a table"
    return f"{named} (entity {holder.entity})"
