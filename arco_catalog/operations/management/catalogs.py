"""Creates, shows, lists and changes the catalogs of a realm. Each has a registry of its own, in a folder that belonged
to no other catalog before."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence

from arco_catalog.iceberg.errors import AlreadyExists, BadRequest, CatalogChanged, NotFound
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.iceberg.properties import PLANNING_MODES, SCAN_PLANNING_MODE
from arco_catalog.operations.management.entities import (
    EntityChange,
    body_of,
    check_entity_name,
    check_entity_properties,
    check_version,
    described,
    entries,
    listing,
    load_keys,
    require_realm,
)
from arco_catalog.planning.attempt import Attempt
from arco_catalog.planning.privileges import Privilege
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.driver import run
from arco_catalog.state.fields import texts
from arco_catalog.state.index import Edits, Index
from arco_catalog.state.locations import Location
from arco_catalog.state.needs import Needs, Scan, Steps
from arco_catalog.state.realm import CATALOG_ADMIN, REALM_STATE, CatalogEntry, catalog_key, catalogs, find_catalog
from arco_catalog.state.roles import (
    CATALOG,
    FIRST_VERSION,
    GrantEntry,
    RoleEntry,
    catalog_role_key,
    grant_edits,
    usage_edits,
)
from arco_catalog.state.version_floors import first_version
from storage_backends.lazy_dataclass import dataclass

_LOG = logging.getLogger(__name__)

MAX_NAMED = 20
"""Maximum number of tables that a warning names."""
BASE_LOCATION = "default-base-location"
STORAGE_SCHEMES: Mapping[str, tuple[str, ...]] = {
    "S3": ("s3",),
    "GCS": ("gs",),
    "AZURE": ("abfss", "wasbs", "wasb", "az"),
    "FILE": ("file", "memory"),
}
"""The schemes of locations, by type of storage."""

CheckLocations = Callable[[Sequence[Location], JsonObject], None]
"""Raises `BadRequest` for a location of a catalog with a storage configuration that the operator does not allow."""


@dataclass(frozen=True, slots=True)
class CatalogRequest:
    """A request to create a catalog: `kind` is INTERNAL or EXTERNAL, `storage` its storage configuration."""

    name: str
    kind: str
    properties: Mapping[str, str]
    storage: JsonObject


@dataclass(frozen=True, slots=True)
class CatalogUpdate:
    """A request to replace the properties and the storage configuration of a catalog. With None, properties or storage
    configuration stay as they are. The cloud account can't change unless `account_may_change`. `entity` is the id of
    the catalog on which rights were checked, `expected` the version that the catalog must have, or None for any."""

    name: str
    entity: str
    expected: int | None
    properties: Mapping[str, str] | None
    storage: JsonObject | None
    account_may_change: bool = False


def shown_catalog(catalog: CatalogEntry) -> JsonObject:
    """Returns a catalog as answers of the management API show it."""
    return {"type": catalog.kind, **described(catalog), "storageConfigInfo": catalog.storage}


async def list_catalogs(session: Session) -> Sequence[CatalogEntry]:
    """Returns the entries of all catalogs that have a name in the realm of the session."""
    return [CatalogEntry(entry) for entry in await entries(session, catalogs())]


def shown_catalogs(found: Sequence[CatalogEntry]) -> JsonObject:
    """Returns these catalogs as the answer that lists them."""
    return listing("catalogs", [shown_catalog(entry) for entry in found])


async def get_catalog(session: Session, name: str) -> JsonObject:
    """Returns one catalog as answers show it. Raises `NotFound`."""
    return shown_catalog(await find_entry(session, name))


async def find_entry(session: Session, name: str, entity: str | None = None) -> CatalogEntry:
    """Returns the entry of the catalog with a name. If `entity` is given, it must be the catalog's id. Raises
    `NotFound` without `entity`, and `CatalogChanged` if the name does not belong to the catalog with that id."""
    index = await load_keys(session, [catalog_key(name)])
    return existing_catalog(index, name) if entity is None else _same_catalog(index, name, entity)


def _same_catalog(index: Index, name: str, entity: str) -> CatalogEntry:
    """Returns the entry of the catalog with this name and the id `entity`; the key of the name must be loaded. Raises
    `CatalogChanged` if no catalog or another one has the name now."""
    found = find_catalog(index, name)
    if found is None or found.entity != entity:
        raise CatalogChanged(f"Catalog {name} was removed or replaced just now: try again")
    return found


def existing_catalog(index: Index, name: str) -> CatalogEntry:
    """Returns the entry of the catalog with a name; its key must be loaded. Raises `NotFound`."""
    catalog = find_catalog(index, name)
    if catalog is None:
        raise NotFound(f"Catalog does not exist: {name}")
    return catalog


def locations_of(properties: Mapping[str, JsonValue], storage: JsonObject) -> list[Location]:
    """Returns the locations where a catalog's tables are allowed, its base location first. Raises `BadRequest` without
    a base location, and for a location that is invalid or below a folder with a name in `RESERVED_FOLDERS`."""
    base = properties.get(BASE_LOCATION)
    if not isinstance(base, str) or not base:
        raise BadRequest(f"A catalog needs the property {BASE_LOCATION}")
    locations = [Location.parse(text) for text in (base, *texts(storage, "allowedLocations"))]
    for location in locations:
        if location.reserved:
            raise BadRequest(
                f"{location.uri}, a base location or allowed location, lies in a catalog's own state: tables are not "
                "allowed in folders with the names _catalog, _realm, _probe and .arco-store"
            )
    return locations


def with_base(properties: Mapping[str, JsonValue], storage: JsonObject) -> JsonObject:
    """Returns the storage configuration with the base location as one of its allowed locations, and without the fields
    that are null. Given the catalog's former storage configuration with another base location, the former one stays
    allowed, because it may have tables."""
    base = properties.get(BASE_LOCATION)
    allowed = texts(storage, "allowedLocations")
    listed: list[JsonValue] = [base, *allowed] if base not in allowed else [*allowed]
    given = {name: value for name, value in storage.items() if value is not None}
    return {**given, "allowedLocations": listed}


def check_storage_change(before: JsonObject, after: JsonObject, *, account_may_change: bool = False) -> None:
    """Raises `BadRequest` for a change to another storage type, or to another account of a cloud (AWS account, external
    id or tenant), because access to the files was set up for the first account. A part that is set for the first
    time, or removed, counts as changed. With `account_may_change`, as for an operator with access to the store, only
    the storage type is fixed."""
    for what, part in _FIXED_STORAGE.items():
        if part(before) != part(after) and not (account_may_change and what != STORAGE_TYPE):
            operator = "" if what == STORAGE_TYPE else "; an operator can: `arco catalogs update --storage-config`"
            raise BadRequest(
                f"Cannot modify {what} in storageConfigInfo from {part(before)!r} to {part(after)!r}{operator}"
            )


def _aws_account(storage: JsonObject) -> str | None:
    """Returns the id of the AWS account in the ARN of a storage configuration's role; None without a role, or with an
    ARN of another form."""
    arn = str(storage.get("roleArn") or "").split(":")
    return arn[4] if len(arn) > 5 else None


STORAGE_TYPE = "storage type"
_FIXED_STORAGE: Mapping[str, Callable[[JsonObject], JsonValue]] = {
    STORAGE_TYPE: lambda storage: storage.get("storageType"),
    "AWS account ID": _aws_account,
    "ExternalId": lambda storage: storage.get("externalId"),
    "TenantId": lambda storage: storage.get("tenantId"),
}


def storage_type_of(location: Location) -> str:
    """Returns the type of storage of a location, by its scheme. Raises `BadRequest` for any other scheme than those of
    `STORAGE_SCHEMES`."""
    for kind, schemes in STORAGE_SCHEMES.items():
        if location.scheme in schemes:
            return kind
    raise BadRequest(f"Storage type of {location.uri} is not supported: use {', '.join(STORAGE_SCHEMES)}")


def check_storage(locations: Sequence[Location], storage: JsonObject) -> None:
    """Raises `BadRequest` for a storage configuration of an unknown type, or of another type than a location has."""
    kind = storage.get("storageType")
    schemes = STORAGE_SCHEMES.get(kind) if isinstance(kind, str) else None
    if schemes is None:
        raise BadRequest(f"storageConfigInfo.storageType must be one of {', '.join(STORAGE_SCHEMES)}, not {kind!r}")
    for location in locations:
        if location.scheme not in schemes:
            raise BadRequest(
                f"{location.uri} is not a location of storage type {kind}, which the catalog's storageConfigInfo has"
            )


async def check_free(session: Session, name: str) -> None:
    """Raises `AlreadyExists` if a catalog has the name, `BadRequest` for an invalid name, and `Forbidden` if the realm
    was dropped. It is called before a new catalog's registry is made."""
    check_entity_name(name, "catalog")
    index = await load_keys(session, [catalog_key(name), REALM_STATE])
    require_realm(index)
    if find_catalog(index, name) is not None:
        raise AlreadyExists(f"Catalog already exists: {name}")


async def create_catalog(
    session: Session, request: CatalogRequest, entity: str, root: str, *, overlap: bool
) -> JsonObject:
    """Gives a name in the realm to a catalog whose registry exists under `root`, with the id `entity`. Returns the
    catalog as that commit made it, for answers. Raises `AlreadyExists`, and `BadRequest` for properties that are
    reserved or too large, for an unknown planning mode, without a base location, for a location that is invalid, and
    for one that overlaps one of another catalog, unless `overlap` allows that."""
    _check_properties(request.properties)
    return body_of(await run(session, _Create(session, request, entity, root, overlap)))


def _check_properties(properties: Mapping[str, str]) -> None:
    """Raises `BadRequest` for properties of a catalog that are reserved or too large, and for an unknown planning
    mode."""
    check_entity_properties(properties, "catalog")
    mode = properties.get(SCAN_PLANNING_MODE, "client")
    if mode.lower() not in PLANNING_MODES:
        raise BadRequest(f"Invalid property {SCAN_PLANNING_MODE}: {mode[:100]} (expected client or server)")


async def update_catalog(
    session: Session, update: CatalogUpdate, check: CheckLocations, *, overlap: bool
) -> JsonObject:
    """Replaces the properties and the storage configuration of a catalog, each if the update has it, and returns the
    catalog as answers show it; the base location stays if the new properties name none, and a former one is still
    allowed if the storage configuration is not replaced. `check` raises for a new location that is not allowed. Raises
    `CatalogChanged` if the name belongs to no catalog or another one by now, `CommitFailed` if the catalog's version is
    not the expected one, and `BadRequest` for properties that are reserved or too large, for an unknown planning mode,
    for a change of the storage type, or of the cloud account unless the update allows that, and for a new location that
    overlaps one of another catalog, unless `overlap` allows that."""
    if update.properties is not None:
        _check_properties(update.properties)
    return body_of(await run(session, _Update(session, update, check, overlap)))


async def begin_catalog(session: Session, admin: RoleEntry, *, owned: bool = False) -> None:
    """Makes the registry of a new catalog, with the role that manages it, and gives that role to the principal role
    `admin`. With `owned` the role may also read and write the catalog's tables. If the catalog has the role already,
    the commit has only an entry for the history."""
    await run(session, _Begin(session, admin, owned))


class _Create(EntityChange):
    kind = "create-catalog"
    status = 201

    def __init__(self, session: Session, request: CatalogRequest, entity: str, root: str, overlap: bool) -> None:
        super().__init__(session, {"name": request.name, "catalog": entity})
        self.request, self.entity, self.root, self.overlap = request, entity, root, overlap
        self.locations = locations_of(request.properties, request.storage)

    def edits(self, index: Index, attempt: Attempt) -> Steps[tuple[Edits, JsonObject | None]]:
        """Plans the entry of the new catalog under the name, with a higher version than a dropped catalog of the
        name had. The body has the catalog. Raises `AlreadyExists`, and an error if a location overlaps one of
        another catalog, unless that is allowed."""
        yield Needs(keys=[catalog_key(self.request.name)], scans=[Scan(catalogs())])
        if find_catalog(index, self.request.name) is not None:
            raise AlreadyExists(f"Catalog already exists: {self.request.name}")
        if not self.overlap:
            _require_apart(index, self.request.name, self.locations)
        entry = CatalogEntry.new(
            entity=self.entity,
            name=self.request.name,
            properties=self.request.properties,
            at_ms=attempt.now_ms,
            version=(yield from first_version(index, catalog_key(self.request.name), FIRST_VERSION)),
            type=self.request.kind,
            root=self.root,
            storage=with_base(self.request.properties, self.request.storage),
        )
        return {catalog_key(self.request.name): entry.json}, shown_catalog(entry)


class _Update(EntityChange):
    kind = "update-catalog"
    status = 200

    def __init__(self, session: Session, update: CatalogUpdate, check: CheckLocations, overlap: bool) -> None:
        super().__init__(session, {"name": update.name})
        self.update, self.check, self.overlap = update, check, overlap

    def edits(self, index: Index, attempt: Attempt) -> Steps[tuple[Edits, JsonObject | None]]:
        """Plans the entry with the properties and the storage configuration that the update has; the base location
        stays if the new properties have none. The body has the catalog. Raises `CatalogChanged` if the name belongs to
        no catalog or another one, `CommitFailed` for another version than the expected one, and an error for a fixed
        part of the storage and a new location that is not allowed or overlaps."""
        update = self.update
        yield Needs(keys=[catalog_key(update.name)], scans=[Scan(catalogs())])
        before = _same_catalog(index, update.name, update.entity)
        check_version(before, update.expected, "Catalog")
        properties: JsonObject = before.properties if update.properties is None else {**update.properties}
        if not properties.get(BASE_LOCATION):
            properties = {**properties, BASE_LOCATION: before.properties.get(BASE_LOCATION)}
        storage = with_base(properties, before.storage if update.storage is None else update.storage)
        check_storage_change(before.storage, storage, account_may_change=update.account_may_change)
        added = _added_locations(before, properties, storage)
        self.check(added, storage)
        if not self.overlap:
            _require_apart(index, update.name, added)
        after = before.updated(attempt.now_ms, properties=properties, storage=storage)
        return {catalog_key(update.name): after.json}, shown_catalog(after)


def _added_locations(before: CatalogEntry, properties: JsonObject, storage: JsonObject) -> list[Location]:
    """Returns the locations that a catalog gets by a change. The others are not checked again: what the operator allows
    may differ by now, and no other property of the catalog could be changed then."""
    known = {before.properties.get(BASE_LOCATION), *texts(before.storage, "allowedLocations")}
    named = properties.get(BASE_LOCATION), *texts(storage, "allowedLocations")
    locations = zip(named, locations_of(properties, storage), strict=True)
    return [location for text, location in locations if text not in known]


def _require_apart(index: Index, name: str, locations: Sequence[Location]) -> None:
    """Raises `BadRequest` if one of the locations overlaps a location of another catalog of the realm than `name`. All
    catalogs of the realm must be loaded."""
    for _, stored in index.scan(catalogs()):
        other = CatalogEntry(stored)
        if other.name == name:
            continue
        for ours, theirs in overlaps(locations, other):
            raise BadRequest(
                f"Location {ours.uri} of the catalog overlaps {theirs.uri}, a location of another catalog of this "
                "realm: choose another"
            )


def overlaps(locations: Sequence[Location], other: CatalogEntry) -> Iterator[tuple[Location, Location]]:
    """Yields the pairs of one of these locations and a location of the other catalog of which one contains the other.
    Raises `BadRequest` for an invalid location of the other catalog."""
    for theirs in locations_of(other.properties, other.storage):
        for ours in locations:
            if ours.inside(theirs) or theirs.inside(ours):
                yield ours, theirs


ADMIN_PRIVILEGES = (Privilege.CATALOG_MANAGE_ACCESS.value, Privilege.CATALOG_MANAGE_METADATA.value)
"""The privileges on the catalog of the role that a new catalog has."""


class _Begin(EntityChange):
    kind = "init"

    def __init__(self, session: Session, admin: RoleEntry, owned: bool) -> None:
        super().__init__(session, {})
        self.admin, self.owned = admin, owned

    def edits(self, index: Index, attempt: Attempt) -> Steps[tuple[Edits, JsonObject | None]]:
        """Plans the entries of the role that manages the catalog, and of the assignment to the principal role
        `admin`; none if the catalog has that role, whichever principal role may use it. The body is None."""
        yield Needs(keys=[catalog_role_key(CATALOG_ADMIN)])
        if index.get(catalog_role_key(CATALOG_ADMIN)) is not None:
            return {}, None
        return (yield from admin_entries(index, attempt, self.admin, owned=self.owned)), None


def admin_entries(index: Index, attempt: Attempt, admin: RoleEntry, *, owned: bool = False) -> Steps[Edits]:
    """Computes the index changes by which a principal role has the role that manages the catalog. They create that role
    if it does not exist; with `owned` a created one may also read and write the catalog's tables."""
    yield Needs(keys=[catalog_role_key(CATALOG_ADMIN)])
    stored = index.get(catalog_role_key(CATALOG_ADMIN))
    if stored is not None:
        return usage_edits(admin, RoleEntry(stored))
    role = RoleEntry.new(entity=attempt.entity, name=CATALOG_ADMIN, properties={}, at_ms=attempt.now_ms)
    privileges = [*ADMIN_PRIVILEGES]
    if owned:
        privileges.append(Privilege.CATALOG_MANAGE_CONTENT.value)
    grant = GrantEntry.new(securable=CATALOG, kind="catalog", namespace=(), name=None, privileges=privileges)
    return {
        catalog_role_key(CATALOG_ADMIN): role.json,
        **grant_edits(role.entity, grant),
        **usage_edits(admin, role),
    }
