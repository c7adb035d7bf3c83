"""Opens realms and their catalogs in a process. A realm is a prefix of a store, with a registry of its own and any
number of catalogs (docs/design/access.md#realms)."""

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING

from arco_catalog.config.parsing import parse_realm
from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.lazy_vending import LazyVending
from arco_catalog.operations.management.catalogs import (
    CatalogRequest,
    CatalogUpdate,
    begin_catalog,
    check_free,
    check_storage,
    create_catalog,
    locations_of,
    update_catalog,
)
from arco_catalog.operations.management.principal_roles import PRINCIPAL_ROLE
from arco_catalog.operations.open import location_of
from arco_catalog.protocol.access import ALREADY_AUTHORIZED
from arco_catalog.protocol.advisory_locks import AdvisoryLocks
from arco_catalog.protocol.background_tasks import BackgroundTasks
from arco_catalog.protocol.catalog import Catalog, NotifyWorkers, Session, Settings
from arco_catalog.protocol.group_commit import GroupCommitter
from arco_catalog.protocol.request_stats import current_stats
from arco_catalog.protocol.rights import JudgementCache
from arco_catalog.state.access import Caches, State
from arco_catalog.state.files import FileCache, Mount
from arco_catalog.state.key_settings import KeyPolicy
from arco_catalog.state.locations import AllowedLocations, Location
from arco_catalog.state.paths import DEFAULT_REALM, REALM_FOLDER, Paths
from arco_catalog.state.realm import EXTERNAL, SERVICE_ADMIN, CatalogEntry
from arco_catalog.state.registry import FIRST_VERSION
from arco_catalog.state.runtime import Deadline, Runtime
from storage_backends import ObjectStore
from storage_backends.lazy_dataclass import dataclass
from storage_backends.url import write_interval_ms
from storage_backends.wrappers.request import ObservedClock, RequestStore

if TYPE_CHECKING:  # a server whose catalogs vend nothing must not import it
    from arco_catalog.vending.service import Vending
    from arco_catalog.vending.storage_policy import StoragePolicy

MAX_OPEN = 256
"""Maximum number of open catalogs of a realm in a process; one more replaces the one that was opened first."""
_ALLOWING = "the operator allows others by --allowed-location of the server or command, or ARCO_ALLOWED_LOCATIONS"


@dataclass(frozen=True, slots=True)
class Deployment:
    """The store, settings and additional locations that the realms served by one process share.

    `vending` returns the service that vends credentials, made at its first use; None in a process that vends none.
    `storage_policy` returns what storage configurations of catalogs may make the server do; None allows nothing that
    needs an operator's permission.
    """

    settings: Settings
    store: ObjectStore
    base: Location
    mounts: Sequence[Mount]
    runtime: Runtime
    background_tasks: BackgroundTasks | None = None
    vending: "Callable[[], Vending] | None" = None
    storage_policy: "Callable[[], StoragePolicy] | None" = None
    notify_workers: NotifyWorkers | None = None

    def reaches(self, location: Location) -> bool:
        """Whether the operator allows tables at the location: it is in the store of the state, or in a further allowed
        location."""
        return any(location.inside(mount.root) for mount in self.mounts)


@dataclass
class Realm:
    """One realm, with the catalogs of it that this process has `open`, at most `MAX_OPEN`, by entity with their
    versions. Its state is under its name, or `at_root` of the store if that has one realm."""

    name: str
    deployment: Deployment
    at_root: bool = True
    open: dict[str, tuple[int, Catalog]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        settings = self.deployment.settings
        self.prefix = "" if self.at_root else self.name
        self.judgements = JudgementCache()
        self._caches = Caches.of(settings.cache_bytes * 68 // 100)
        self._files = FileCache(settings.cache_bytes * 32 // 100)
        paths = Paths(self.prefix, REALM_FOLDER)
        self.state = self.deployment.base.below(paths.state)
        self.registry = self._catalog(replace(settings, warehouse=self.name), paths, [self.state])

    def lookups(self) -> State:
        """Returns access to the stored records of the realm's registry, for the reads of one request, which fail after
        the time that a request may take."""
        settings, runtime, registry = self.deployment.settings, self.deployment.runtime, self.registry
        records = RequestStore(
            registry.store,
            Deadline.after(runtime, settings.request_ms).left_ms,
            clock=ObservedClock(runtime.now_ms, registry.clock.update),
            measurement=current_stats().store,
            timer=registry.call_timer,
        )
        return State(records, registry.paths, registry.caches, runtime, settings.spill)

    def root_of(self, entity: str) -> str:
        """Returns the folder in which the state of a new catalog with this entity id is put. A catalog of a bootstrap,
        or one that was added with a folder, has another one: `CatalogEntry.root`."""
        return f"{self.registry.paths.state}/catalogs/{entity}"

    def first_root(self, name: str) -> str:
        """Returns the folder for the state of the catalog of this name that a bootstrap makes."""
        return f"{self.prefix}/{name}".strip("/")

    def check_locations(self, locations: Sequence[Location], storage: JsonObject) -> None:
        """Raises `BadRequest` unless the operator allows tables of this realm in all of these locations, and all have
        the type of storage that the catalog's storage configuration names."""
        check_storage(locations, storage)
        for location in locations:
            if not self.deployment.reaches(location):
                raise BadRequest(
                    f"Location {location.uri} of a catalog is outside the locations that this server may use: "
                    f"{_ALLOWING}"
                )
            if not self.may_use(location):
                folders = " or ".join(folder.uri for folder in self._folders())
                raise BadRequest(
                    f"Location {location.uri} of a catalog does not belong to the realm: use {folders}, or a folder "
                    "inside, that contains no other allowed location"
                )

    def may_use(self, location: Location) -> bool:
        """Whether tables of this realm may be at the location, by what the operator allows and by the realm's folders.
        A realm at the root of the store may use every location that the operator allows. Realms that share a store have
        each a folder with their name in every allowed location. Of nested allowed locations only the innermost is
        considered, because a folder between the outer and the inner one may have the name of a realm by chance; so no
        such realm may use a location that is or contains an allowed one."""
        if self.at_root:
            return self.deployment.reaches(location)
        roots = [mount.root for mount in self.deployment.mounts]
        around = [root for root in roots if location.inside(root)]
        if not around or any(root.inside(location) for root in roots):
            return False
        return location.inside(max(around, key=lambda root: len(root.segments)).below(self.name))

    def _folders(self) -> Sequence[Location]:
        """Returns the folders of the realm in all mounted stores and locations: for a realm at the root of the store
        these places themselves, for any other the folders with the realm's name in them."""
        roots = [mount.root for mount in self.deployment.mounts]
        return roots if self.at_root else [root.below(self.name) for root in roots]

    def catalog(self, entry: CatalogEntry) -> Catalog:
        """Opens the catalog of an entry, or returns it if it is open at the entry's version; one that is open at
        another version is opened once more, with the cached HEAD. At most `MAX_OPEN` catalogs are open. The catalog is
        opened with the ones of the entry's locations that the operator still allows. Raises `BadRequest` if there are
        none."""
        known = self.open.get(entry.entity)
        if known is not None and known[0] == entry.version:
            return known[1]
        allowed = [each for each in locations_of(entry.properties, entry.storage) if self.may_use(each)]
        if not allowed:
            raise BadRequest(
                f"The locations of catalog {entry.name} are outside those that this server may use: {_ALLOWING}; where "
                "realms share a store, the operator may allow none inside a catalog's locations"
            )
        external = entry.kind == EXTERNAL
        settings = replace(
            self.deployment.settings,
            warehouse=entry.name,
            has_grants=True,
            external=external,
            scan_planning=entry.scan_planning or self.deployment.settings.scan_planning,
        )
        opened = self._catalog(settings, Paths(entry.root), allowed, (entry.entity, entry.version), entry.storage)
        if known is not None:  # the same registry: its cached HEAD is still valid
            opened.caches.head = known[1].caches.head
        while len(self.open) >= MAX_OPEN:
            del self.open[next(iter(self.open))]
        self.open[entry.entity] = entry.version, opened
        return opened

    def unnamed(self, request: CatalogRequest, root: str) -> Catalog:
        """Builds a catalog that has no name in the realm's registry yet, with its state under `root`, and with the
        request's locations. It is not added to the open catalogs. Raises `BadRequest` for an invalid location."""
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
        """Builds a catalog of this realm, which has tables by default in the first of the `allowed` locations. `entry`
        is its id and version in the realm, None for the realm's registry and a catalog without a name. It shares the
        realm's memory for cached objects, and has a separate HEAD and group committer."""
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
            caches=Caches(
                caches.segments,
                caches.pointers,
                caches.values,
                caches.heads_of,
                caches.manifests,
                caches.file_blocks,
                write_interval_ms=write_interval_ms(deployment.base.scheme),
            ),
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
    vending: LazyVending | None = None,
) -> Realm:
    """Returns a realm over the stores that `catalog` has open: in the folder `name` of the store at `url`, or with no
    name at its root. It vends credentials by `vending`, or none if that is None. The realm need not exist. Raises
    `ValueError` for an invalid name."""
    deployment = Deployment(
        catalog.settings,
        catalog.store,
        location_of(url),
        catalog.mounts,
        catalog.runtime,
        catalog.background_tasks,
        vending,
        None if vending is None else vending.storage_policy,
        catalog.notify_workers,
    )
    return Realm(DEFAULT_REALM if name is None else parse_realm(name), deployment, at_root=name is None)


def realms_beside(
    catalog: Catalog,
    url: str,
    names: Sequence[str],
    vending: LazyVending | None = None,
) -> Sequence[Realm]:
    """Returns the realms with these names, or without names the realm at the store's root, each as `realm_beside` makes
    it, but with an equal part of the memory for caches. Raises `ValueError` for an invalid name."""
    settings = replace(catalog.settings, cache_bytes=catalog.settings.cache_bytes // max(1, len(names)))
    sharing = replace(catalog, settings=settings)
    return [realm_beside(sharing, url, name, vending) for name in names or (None,)]


async def make_catalog(
    realm: Realm,
    session: Session,
    request: CatalogRequest,
    root: str | None = None,
    *,
    owned: bool = False,
    key_policy: KeyPolicy | None = None,
) -> JsonObject:
    """Makes a catalog, and returns its JSON for answers. Two commits: its registry, in a folder that no other catalog
    ever had, then its name in the realm. If the process dies in between, no name leads to the folder, and it is not
    used. With `root`, the folder of an existing catalog, that one is added to the realm: the first commit is then in
    the registry there.

    `session` is a session of the realm's registry; a new registry begins with the format version of that one. With
    `owned` the catalog's managers may read and write all tables. `key_policy` is recorded in its first commit. Raises
    the errors of `check_free` and `create_catalog`, and `BadRequest` for locations that are not allowed.
    """
    await check_free(session, request.name)
    realm.check_locations(locations_of(request.properties, request.storage), request.storage)
    admin = await PRINCIPAL_ROLE.find(realm.registry.session(session.request, ALREADY_AUTHORIZED), SERVICE_ADMIN)
    entity = session.runtime.ulid()
    place = root or realm.root_of(entity)
    head = session.state.cached_head()
    assert head is not None
    # Programs that can't read the version of the realm's registry can't find the catalog either.
    first_version = FIRST_VERSION if root is not None else head.format_version
    made = replace(realm.unnamed(request, place), first_version=first_version)
    first = made.session(replace(session.request, key_policy=key_policy), ALREADY_AUTHORIZED)
    await begin_catalog(first, admin, owned=owned)
    overlap = session.settings.allow_catalog_overlap
    return await create_catalog(session, request, entity, place, overlap=overlap)


async def change_catalog(realm: Realm, session: Session, update: CatalogUpdate) -> JsonObject:
    """Replaces the properties or the storage configuration of a catalog, or both if the update has both, as
    `update_catalog` does, for this realm: new locations must be ones that the realm may use. Returns the catalog's
    JSON. Raises the errors of `update_catalog`."""
    overlap = session.settings.allow_catalog_overlap
    return await update_catalog(session, update, realm.check_locations, overlap=overlap)
