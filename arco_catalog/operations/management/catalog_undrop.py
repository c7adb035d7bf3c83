"""Undoes the drop of a catalog: names it in the realm again, and opens it (docs/design/access.md#rule-13)."""

from arco_catalog.iceberg.errors import AlreadyExists, BadRequest, CommitFailed
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.operations.management.catalog_drops import (
    TOMBSTONES,
    PurgeCancellation,
    table_names,
    unfinished_purges,
)
from arco_catalog.operations.management.catalogs import (
    BASE_LOCATION,
    CheckLocations,
    admin_entries,
    locations_of,
    overlaps,
    shown_catalog,
    with_base,
)
from arco_catalog.operations.management.entities import EntityChange
from arco_catalog.planning.attempt import Attempt
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.catalog_state import CATALOG_STATE, CatalogState
from arco_catalog.state.fields import mapping
from arco_catalog.state.index import Edits, Index
from arco_catalog.state.needs import Needs, Scan, Steps
from arco_catalog.state.realm import CATALOG_ADMIN, CatalogEntry, catalog_key, catalogs, find_catalog
from arco_catalog.state.roles import RoleEntry, catalog_role_key
from arco_catalog.state.version_floors import first_version
from storage_backends.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class UndropResult:
    """The result of an undrop of a catalog: the catalog as answers show it, and the names of the tables whose purges
    were cancelled, by the drop or by the undrop."""

    catalog: JsonObject
    cancelled_purges: tuple[str, ...]


class NameCatalog(EntityChange):
    """The first commit of an undrop, in the realm's registry: gives a name to a dropped catalog that has none, or to a
    closed catalog that still has its name, because an undrop or a drop was interrupted. The catalog has the fresh id
    `entity`; the answer also has the id that this one replaces, or null."""

    kind = "undrop-catalog"
    status = 200

    def __init__(
        self,
        session: Session,
        entry: CatalogEntry,
        entity: str,
        closed: CatalogState,
        check: CheckLocations,
        *,
        disjoint: bool,
    ) -> None:
        super().__init__(session, {"name": entry.name, "catalog": entity})
        self.entry, self.entity, self.closed, self.disjoint, self.check = entry, entity, closed, disjoint, check

    def edits(self, index: Index, attempt: Attempt) -> Steps[tuple[Edits, JsonObject | None]]:
        """Plans the entry of the catalog under the name, with the fresh id and a higher version. The body has the
        catalog, and under `retired` the id that is replaced. Raises an error if the catalog is not dropped, or
        still has another name after an interrupted drop or undrop, or a location is not allowed or, with `disjoint`,
        overlaps another catalog's, and `AlreadyExists` if another catalog has the name."""
        entry = self.entry
        yield Needs(keys=[catalog_key(entry.name)], scans=[Scan(catalogs())])
        others = [CatalogEntry(stored) for _, stored in index.scan(catalogs())]
        same = next((each for each in others if each.root == entry.root), None)
        if same is not None and not self.closed.is_closed:
            raise BadRequest(
                f"There is no drop to undo: {entry.root} is the state of catalog {same.name}, which exists"
            )
        if same is not None and same.name != entry.name:
            raise BadRequest(
                f"The drop is not undone under the name {entry.name}: {entry.root} is the state of catalog "
                f"{same.name}, of which a drop or an undrop was interrupted or is under way: undrop it under that name"
            )
        if same is None and find_catalog(index, entry.name) is not None:
            raise AlreadyExists(f"Catalog already exists: {entry.name}. Choose another name")
        self.check(locations_of(entry.properties, entry.storage), entry.storage)
        for each in others:
            if each is not same and self.disjoint:
                _require_apart(entry, each)
        version = yield from first_version(index, catalog_key(entry.name), entry.version + 1)
        named = entry.updated(attempt.now_ms, entity=self.entity, version=version)
        retired = None if same is None else same.entity
        return {catalog_key(entry.name): named.json}, {"catalog": shown_catalog(named), "retired": retired}


def _require_apart(entry: CatalogEntry, other: CatalogEntry) -> None:
    """Raises `BadRequest` if a location of the catalog to undrop overlaps one of another catalog, such as one that took
    it since the drop."""
    for ours, theirs in overlaps(locations_of(entry.properties, entry.storage), other):
        raise BadRequest(
            f"{ours.uri}, a location of the dropped catalog, overlaps {theirs.uri}, a location of catalog "
            f"{other.name}. Drop that catalog, or take the location from it (arco catalogs update), or undrop with "
            "other locations (--default-base-location, --catalog-location)"
        )


class ReopenCatalog(PurgeCancellation):
    """The second commit of an undrop, in the catalog's registry: opens it again, for the id `entity`, or for none if it
    was never closed. `retired` is the id that `entity` replaces, None if there is no such id. Unfinished purges become
    plain drops: files at locations that were free may belong to another catalog by now. The principal role `admin` gets
    the role that manages the catalog, as in a new catalog."""

    kind = "reopen-catalog"
    status = 200

    def __init__(self, session: Session, entity: str | None, retired: str | None, admin: RoleEntry) -> None:
        super().__init__(session, {"catalog": entity})
        self.entity, self.retired, self.admin = entity, retired, admin

    def edits(self, index: Index, attempt: Attempt) -> Steps[tuple[Edits, JsonObject | None]]:
        """Plans the opening of the catalog's registry, and the assignment of the role that manages the catalog to
        `admin`. The body names the tables whose purges the drop or this undrop cancelled. Raises `CommitFailed` if
        another command has undone the drop meanwhile, or the catalog was dropped once more."""
        yield Needs(keys=[CATALOG_STATE, catalog_role_key(CATALOG_ADMIN)], scans=[TOMBSTONES])
        state = CatalogState.of(index)
        if self.entity in state.former:
            raise CommitFailed(
                "Another command undid the drop of this catalog meanwhile: `arco catalogs list` shows its name"
            )
        if state.is_closed and self.entity is not None and state.closed_by == self.entity:
            raise CommitFailed("This catalog was dropped again while its drop was being undone: undrop it again")
        unfinished = unfinished_purges(index)
        entries = {
            **(yield from admin_entries(index, attempt, self.admin)),
            CATALOG_STATE: state.reopened(self.retired),
        }
        cancelled: list[JsonValue] = [*dict.fromkeys((*state.cancelled, *map(str, table_names(unfinished))))]
        return entries, {"cancelled-purges": cancelled}


def entry_to_undrop(
    state: CatalogState,
    root: str,
    name: str,
    kind: str | None,
    properties: JsonObject,
    storage: JsonObject,
    at_ms: int,
) -> CatalogEntry:
    """Returns the entry that was recorded when the catalog was closed, with this name, and with these properties and
    this storage configuration in place of the recorded fields of the same names. `kind` replaces the recorded type only
    if it is given; `at_ms` is the time of creation for an entry without one. Raises `BadRequest` if no base location is
    known, or a location is invalid."""
    recorded = state.catalog or {}
    merged = {**mapping(recorded, "properties"), **properties}
    if BASE_LOCATION not in merged:
        raise BadRequest(f"Where the tables of the catalog in {root} lie is not recorded: give --default-base-location")
    entry = CatalogEntry(
        {
            "created_ms": at_ms,
            "version": 0,
            **recorded,
            "name": name,
            "type": kind or recorded.get("type") or "INTERNAL",
            "root": root,
            "properties": merged,
            "storage": with_base(merged, {**mapping(recorded, "storage"), **storage}),
        }
    )
    locations_of(entry.properties, entry.storage)
    return entry
