"""Finds the catalogs of a deployment: those of its realms, or the one catalog of a store without a realm; and the
other owners of state in its store."""

from collections.abc import Callable, Sequence
from enum import StrEnum

from arco_catalog.iceberg.errors import NotFound
from arco_catalog.operations.delegation_service_state import service_state
from arco_catalog.operations.realms import Realm, realms_beside
from arco_catalog.protocol.catalog import Catalog, Session
from arco_catalog.protocol.lookup import load
from arco_catalog.state.access import Caches, State
from arco_catalog.state.needs import Needs, Scan
from arco_catalog.state.paths import SERVICE, Paths
from arco_catalog.state.realm import REALM_STATE, CatalogEntry, catalogs, is_dropped
from storage_backends.lazy_dataclass import dataclass

CACHE_BYTES = 16 << 20


class Owner(StrEnum):
    """The kinds of owners that have state of their own in a store: a catalog, the registry of a realm, or a delegation
    service."""

    CATALOG = "catalog"
    REALM = "realm"
    SERVICE = "delegation-service"


@dataclass(frozen=True, slots=True)
class DeployedCatalog:
    """An owner of state in a deployment's store: a catalog with its name; or the registry of a realm, or the tasks of a
    delegation service, with the folder as the name. `open` opens it. `realm` is None for the service, and in a store
    without realms. The deployment owns the stores, and closes them."""

    name: str
    open: Callable[[], Catalog]
    """Raises `BadRequest` if the operator allows none of the catalog's locations any more."""
    realm: str | None = None
    owner: Owner = Owner.CATALOG


@dataclass(frozen=True, slots=True)
class Inventory:
    """The owners of state in a deployment's store: the `catalogs` of the chosen realms or the one of a store without a
    realm, the `registries` of the chosen realms, none for a store without a realm, and the delegation `service`,
    present even if the store has no state of one."""

    catalogs: Sequence[DeployedCatalog]
    registries: Sequence[DeployedCatalog]
    service: DeployedCatalog

    @classmethod
    def of_one(cls, catalog: Catalog) -> "Inventory":
        """Returns the inventory of a store without a realm: this one catalog, no registry of a realm, and the
        delegation service of the catalog's store."""
        return cls([DeployedCatalog(catalog.settings.warehouse, lambda: catalog)], [], _service(catalog))


def open_state(session: Session, root: str) -> State:
    """Returns access to the stored records of another catalog, which has this root, in the store of the session. It
    uses a new cache of `CACHE_BYTES`."""
    state = session.state
    return State(state.store, Paths(root), Caches.of(CACHE_BYTES), session.runtime, session.settings.spill)


async def realm_exists(realm: Realm) -> bool:
    """Whether the realm was ever bootstrapped; also true after it was dropped."""
    return (await realm.lookups().head()).version is not None


async def realm_was_dropped(realm: Realm) -> bool:
    """Whether the realm was dropped, and not bootstrapped again since."""
    state = realm.lookups()
    head = await state.head()
    await load(state, head.index, Needs(keys=[REALM_STATE]))
    return is_dropped(head.index)


async def deployed_catalogs(catalog: Catalog, url: str, realms: Sequence[str] = ()) -> Sequence[DeployedCatalog]:
    """Returns the catalogs of the named realms, or without names those of the realm at the root of the store at `url`,
    or `catalog` alone if there is no realm at the root. Raises the errors of `take_inventory`."""
    return (await take_inventory(catalog, url, realms)).catalogs


async def take_inventory(catalog: Catalog, url: str, realms: Sequence[str] = ()) -> Inventory:
    """Returns the owners of state in the named realms of the store at `url`, or without names in the realm at its root;
    if there is no realm at the root either, only the inventory of `catalog`. A dropped realm has no catalogs, but has
    the registry. The delegation service is always included. The stores that `catalog` has open serve all. Raises
    `NotFound` for the name of a realm that was never bootstrapped, `ValueError` for an invalid name, and
    `StoreError`."""
    catalogs: list[DeployedCatalog] = []
    registries: list[DeployedCatalog] = []
    for realm in realms_beside(catalog, url, realms):
        deployed = await catalogs_of_realm(realm)
        if deployed is None and realm.at_root:
            return Inventory.of_one(catalog)
        if deployed is None:
            raise NotFound(f"Realm {realm.name} does not exist in {url}: `arco bootstrap` makes one")
        catalogs += deployed
        registries.append(_registry(realm))
    return Inventory(catalogs, registries, _service(catalog))


async def catalogs_of_realm(realm: Realm) -> Sequence[DeployedCatalog] | None:
    """Returns the catalogs of a realm, none for one that was dropped, or None if it was never bootstrapped. Raises
    `StoreError`."""
    entries = await _entries(realm)
    return None if entries is None else [_deployed(realm, entry) for entry in entries]


def _deployed(realm: Realm, entry: CatalogEntry) -> DeployedCatalog:
    """Returns the owner of state for the entry of a realm's catalog; `open` opens the catalog later."""
    return DeployedCatalog(entry.name, lambda: realm.catalog(entry), realm.name)


def _service(catalog: Catalog) -> DeployedCatalog:
    """Returns the delegation service of the catalog's store as an owner of state, not yet opened."""
    return DeployedCatalog(SERVICE.state, lambda: service_state(catalog), owner=Owner.SERVICE)


def _registry(realm: Realm) -> DeployedCatalog:
    """Returns the registry of a realm as an owner of state, with the registry's folder as the name."""
    return DeployedCatalog(realm.registry.paths.state, lambda: realm.registry, realm.name, Owner.REALM)


async def _entries(realm: Realm) -> Sequence[CatalogEntry] | None:
    """Returns the entries of a realm's catalogs, empty for a dropped realm; None if the realm was never
    bootstrapped."""
    state = realm.lookups()
    head = await state.head()
    if head.version is None:
        return None
    await load(state, head.index, Needs(scans=[Scan(catalogs())]))
    return [CatalogEntry(entry) for _, entry in head.index.scan(catalogs())]
