"""Realms as a process serves them: each a prefix of one store, with a registry of its own and any number of catalogs
(docs/design/access.md#realms)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from arco_catalog.config.parsing import parse_realm
from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.operations.management.catalogs import (
    CatalogRequest,
    begin_catalog,
    check_free,
    check_storage,
    create_catalog,
    locations_of,
    update_catalog,
)
from arco_catalog.operations.management.principal_roles import PRINCIPAL_ROLE
from arco_catalog.operations.open import location_of, mounts_of
from arco_catalog.protocol.access import ALREADY_AUTHORIZED
from arco_catalog.protocol.advisory_locks import AdvisoryLocks
from arco_catalog.protocol.background_tasks import BackgroundTasks
from arco_catalog.protocol.catalog import Catalog, NotifyWorkers, Session, Settings
from arco_catalog.protocol.group_commit import GroupCommitter
from arco_catalog.protocol.request_stats import current_stats
from arco_catalog.protocol.rights import Judged
from arco_catalog.state.access import Caches, State
from arco_catalog.state.cache import ByteCache
from arco_catalog.state.files import FileCache, Mount
from arco_catalog.state.key_settings import KeyPolicy
from arco_catalog.state.locations import AllowedLocations, Location
from arco_catalog.state.paths import DEFAULT_REALM, REALM_FOLDER, Paths
from arco_catalog.state.realm import EXTERNAL, SERVICE_ADMIN, CatalogEntry
from arco_catalog.state.runtime import Runtime
from storage_backends import ObjectStore
from storage_backends.open import StoreOpener
from storage_backends.wrappers.request import RequestStore

if TYPE_CHECKING:  # a server whose catalogs vend nothing does not pay for it
    from arco_catalog.vending.service import Vending
    from arco_catalog.vending.storage_policy import StoragePolicy

MAX_OPEN = 256
"""Catalogs of a realm that a process keeps open; another one more takes the place of the one opened first."""


@dataclass(frozen=True, slots=True)
class Deployment:
    """What all realms of a process share: the store, where else tables may be, and what an operator set. `vending` is
    what gives access to the files of tables, made when it is first needed; None: this process gives none.
    `storage_policy` is what storage configurations may have servers do; None: nothing that an operator has to allow."""

    settings: Settings
    store: ObjectStore
    base: Location
    mounts: Sequence[Mount]
    runtime: Runtime
    background_tasks: BackgroundTasks | None = None
    vending: "Callable[[], Vending] | None" = None
    storage_policy: "Callable[[], StoragePolicy] | None" = None
    notify_workers: NotifyWorkers | None = None

    @classmethod
    def of(
        cls,
        settings: Settings,
        store: ObjectStore,
        url: str,
        allowed: Sequence[str],
        runtime: Runtime,
        open_store: StoreOpener | None = None,
        vending: "Callable[[], Vending] | None" = None,
        storage_policy: "Callable[[], StoragePolicy] | None" = None,
    ) -> "Deployment":
        """Over an open store. Raises `ValueError` for a bad URL or prefix."""
        base, further = location_of(url), [*map(Location.parse, allowed)]
        mounts = mounts_of(base, store, further, open_store)
        return cls(settings, store, base, mounts, runtime, None, vending, storage_policy)

    async def close(self) -> None:
        """Closes the stores."""
        for mount in self.mounts:
            await mount.store.close()

    def reaches(self, location: Location) -> bool:
        """Whether tables may be there, as far as the operator is concerned."""
        return any(location.inside(mount.root) for mount in self.mounts)


@dataclass
class Realm:
    """One realm. Its prefix is its name, or the store's root where it is the only one, under the name `name`."""

    name: str
    deployment: Deployment
    at_root: bool = True
    open: dict[str, tuple[int, Catalog]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        settings = self.deployment.settings
        self.prefix = "" if self.at_root else self.name
        self.judged = Judged()
        self._caches = Caches.of(settings.cache_bytes * 52 // 100)
        self._files: FileCache = ByteCache(settings.cache_bytes * 48 // 100)
        paths = Paths(self.prefix, REALM_FOLDER)
        self.state = self.deployment.base.below(paths.state)
        self.registry = self._catalog(replace(settings, warehouse=self.name), paths, [self.state])

    def lookups(self) -> State:
        """The realm's records, as one request reads them."""
        settings, runtime, registry = self.deployment.settings, self.deployment.runtime, self.registry
        deadline_ms = runtime.now_ms() + settings.request_ms
        records = RequestStore(
            registry.store,
            deadline_ms,
            runtime.now_ms,
            observe_time=registry.clock.told,
            measurement=current_stats().store,
        )
        return State(records, registry.paths, registry.caches, runtime, settings.spill)

    def root_of(self, entity: str) -> str:
        """The folder for the state of a new catalog."""
        return f"{self.registry.paths.state}/catalogs/{entity}"

    def check_locations(self, properties: Mapping[str, JsonValue], storage: JsonObject) -> None:
        """Raises `BadRequest` for a catalog whose tables would lie where the operator does not allow any."""
        locations = locations_of(properties, storage)
        check_storage(locations, storage)
        for location in locations:
            if not self.deployment.reaches(location):
                raise BadRequest(
                    f"{location.uri} is outside the locations that this server may use: the operator allows others by "
                    "--allowed-location of arco serve, or ARCO_ALLOWED_LOCATIONS of a function"
                )
            if not self.may_use(location):
                folders = " or ".join(folder.uri for folder in self._folders())
                raise BadRequest(f"{location.uri} is not the realm's own: use {folders}, or a folder inside")

    def may_use(self, location: Location) -> bool:
        """Whether tables of this realm may be there: where there are several, each has a folder of its own in each
        place that the operator allowed. Of two such places, one in the other, only the inner one says whose folders
        these are: the outer one's realms may be named like folders on the way."""
        if self.at_root:
            return self.deployment.reaches(location)
        roots = [mount.root for mount in self.deployment.mounts]
        around = [root for root in roots if location.inside(root)]
        if not around or any(root.inside(location) for root in roots):
            return False
        return location.inside(max(around, key=lambda root: len(root.segments)).below(self.name))

    def _folders(self) -> Sequence[Location]:
        roots = [mount.root for mount in self.deployment.mounts]
        return roots if self.at_root else [root.below(self.name) for root in roots]

    def catalog(self, entry: CatalogEntry) -> Catalog:
        """The catalog of an entry, as it is to be served. Raises `BadRequest` if the operator no longer allows its
        locations."""
        known = self.open.get(entry.entity)
        if known is not None and known[0] == entry.version:
            return known[1]
        allowed = [each for each in locations_of(entry.properties, entry.storage) if self.may_use(each)]
        if not allowed:
            raise BadRequest(f"The locations of catalog {entry.name} are outside those that this server may use")
        external = entry.kind == EXTERNAL
        settings = replace(self.deployment.settings, warehouse=entry.name, has_grants=True, external=external)
        opened = self._catalog(settings, Paths(entry.root), allowed, (entry.entity, entry.version), entry.storage)
        if known is not None:  # what it remembers of HEAD stays true
            opened.caches.head = known[1].caches.head
        while len(self.open) >= MAX_OPEN:
            del self.open[next(iter(self.open))]
        self.open[entry.entity] = entry.version, opened
        return opened

    def unnamed(self, request: CatalogRequest, root: str) -> Catalog:
        """A catalog that is yet to get its name."""
        settings = replace(self.deployment.settings, warehouse=request.name, has_grants=True)
        return self._catalog(settings, Paths(root), locations_of({**request.properties}, request.storage))

    def _catalog(
        self,
        settings: Settings,
        paths: Paths,
        allowed: Sequence[Location],
        entry: tuple[str, int] | None = None,
        storage: JsonObject | None = None,
    ) -> Catalog:
        deployment, caches = self.deployment, self._caches
        return Catalog(
            settings=settings,
            store=deployment.store,
            paths=paths,
            mounts=deployment.mounts,
            locations=AllowedLocations(
                allowed, [self.state, deployment.base.below(paths.state)], "change allowedLocations of the catalog"
            ),
            warehouse=allowed[0],
            runtime=deployment.runtime,
            caches=Caches(caches.segments, caches.pointers, caches.values),
            files=self._files,
            group_committer=GroupCommitter(),
            background_tasks=deployment.background_tasks,
            table_locks=None if deployment.background_tasks is None else AdvisoryLocks(),
            notify_workers=deployment.notify_workers,
            realm=self.name,
            entry=entry,
            storage=storage or {},
        )


def realm_beside(
    catalog: Catalog,
    url: str,
    name: str | None,
    vending: "Callable[[], Vending] | None" = None,
    storage_policy: "Callable[[], StoragePolicy] | None" = None,
) -> Realm:
    """The realm over the stores that `catalog` has open, whether it exists or not: below the folder `name` of the store
    at `url`, or at its root. The rest is that of `Deployment`. Raises `ValueError` for a name that none can have."""
    deployment = Deployment(
        catalog.settings,
        catalog.store,
        location_of(url),
        catalog.mounts,
        catalog.runtime,
        catalog.background_tasks,
        vending,
        storage_policy,
        catalog.notify_workers,
    )
    return Realm(DEFAULT_REALM if name is None else parse_realm(name), deployment, at_root=name is None)


def realms_beside(
    catalog: Catalog,
    url: str,
    names: Sequence[str],
    vending: "Callable[[], Vending] | None" = None,
    storage_policy: "Callable[[], StoragePolicy] | None" = None,
) -> Sequence[Realm]:
    """The realms of these names, or without any the one at the store's root. They share the memory for caches."""
    settings = replace(catalog.settings, cache_bytes=catalog.settings.cache_bytes // max(1, len(names)))
    sharing = replace(catalog, settings=settings)
    return [realm_beside(sharing, url, name, vending, storage_policy) for name in names or (None,)]


async def make_catalog(
    realm: Realm,
    session: Session,
    request: CatalogRequest,
    root: str | None = None,
    *,
    owned: bool = False,
    key_policy: KeyPolicy | None = None,
) -> JsonObject:
    """Makes a catalog, and returns it as answers show it: first its registry, in a folder that no other catalog ever
    had, then its name. If the process dies in between, that folder has no name and nobody looks there. `root` is the
    folder of a catalog that exists already, which is taken into the realm; `owned`: its managers may also read and
    write all tables. `key_policy` is what its first commit records. `session` is one with the realm's registry. Raises
    `AlreadyExists`, and `BadRequest` for locations that it may not have."""
    await check_free(session, request.name)
    realm.check_locations({**request.properties}, request.storage)
    admin = await PRINCIPAL_ROLE.find(realm.registry.session(session.request, ALREADY_AUTHORIZED), SERVICE_ADMIN)
    entity = session.runtime.ulid()
    place = root or realm.root_of(entity)
    made = realm.unnamed(request, place).session(replace(session.request, key_policy=key_policy), ALREADY_AUTHORIZED)
    await begin_catalog(made, admin, owned=owned)
    overlap = session.settings.allow_catalog_overlap
    return await create_catalog(session, request, entity, place, overlap=overlap)


async def change_catalog(
    realm: Realm,
    session: Session,
    name: str,
    entity: str,
    expected: int | None,
    properties: Mapping[str, str] | None,
    storage: JsonObject | None,
    *,
    account_may_change: bool = False,
) -> JsonObject:
    """Changes properties and storage configuration of a catalog; what is None stays. `entity` is the id of the catalog
    on which rights were judged. Raises `CatalogChanged` if the name belongs to another by now, `CommitFailed` if it has
    changed, and `BadRequest` for locations that it may not have, and for another account of the cloud unless it
    `account_may_change`."""
    return await update_catalog(
        session,
        name,
        entity,
        expected,
        properties,
        storage,
        realm.check_locations,
        overlap=session.settings.allow_catalog_overlap,
        account_may_change=account_may_change,
    )
