"""Each catalog of a deployment: those of its realms, or the one of a store that has no realm; and what else has state
there."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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

CACHE_BYTES = 16 << 20


class Owner(StrEnum):
    """Whose state it is."""

    CATALOG = "catalog"
    REALM = "realm"
    SERVICE = "delegation-service"


@dataclass(frozen=True, slots=True)
class DeployedCatalog:
    """A catalog by its name, or what else is kept like one, by its folder; `realm` is None where the store has none.
    Its stores belong to the deployment, which closes them."""

    name: str
    open: Callable[[], Catalog]
    """Raises `BadRequest` if the operator no longer allows the catalog's locations."""
    realm: str | None = None
    owner: Owner = Owner.CATALOG


@dataclass(frozen=True, slots=True)
class Inventory:
    """What has state in a deployment's store: `catalogs`, and the registries of their realms; and the delegation
    service, if one was ever run over this store."""

    catalogs: Sequence[DeployedCatalog]
    registries: Sequence[DeployedCatalog]
    service: DeployedCatalog

    @classmethod
    def of_one(cls, catalog: Catalog) -> "Inventory":
        """That of a store without a realm, whose one catalog this is."""
        return cls([DeployedCatalog(catalog.settings.warehouse, lambda: catalog)], [], _service(catalog))


def open_state(session: Session, root: str) -> State:
    """The stored records of another catalog, in the store of the session."""
    state = session.state
    return State(state.store, Paths(root), Caches.of(CACHE_BYTES), session.runtime, session.settings.spill)


async def realm_exists(realm: Realm) -> bool:
    """Whether it was bootstrapped."""
    return (await realm.lookups().head()).version is not None


async def realm_was_dropped(realm: Realm) -> bool:
    """Whether it was dropped, and not made anew since."""
    state = realm.lookups()
    head = await state.head()
    await load(state, head.index, Needs(keys=[REALM_STATE]))
    return is_dropped(head.index)


async def deployed_catalogs(catalog: Catalog, url: str, realms: Sequence[str] = ()) -> Sequence[DeployedCatalog]:
    """The catalogs of the inventory, which see."""
    return (await take_inventory(catalog, url, realms)).catalogs


async def take_inventory(catalog: Catalog, url: str, realms: Sequence[str] = ()) -> Inventory:
    """What has state in the realms with these names in the store at `url`, or in the one at its root; where it has
    none, `catalog` itself is the one catalog, whose stores are used throughout. Raises `NotFound` for a name without a
    realm, `StoreError`."""
    catalogs: list[DeployedCatalog] = []
    registries: list[DeployedCatalog] = []
    for realm in realms_beside(catalog, url, realms):
        deployed = await catalogs_of_realm(realm)
        if deployed is None and realm.at_root:
            return Inventory.of_one(catalog)
        if deployed is None:
            raise NotFound(f"there is no realm {realm.name} in {url}: `arco bootstrap` makes one")
        catalogs += deployed
        registries.append(_registry(realm))
    return Inventory(catalogs, registries, _service(catalog))


async def catalogs_of_realm(realm: Realm) -> Sequence[DeployedCatalog] | None:
    """The catalogs of a realm; None if it was never bootstrapped. Raises `StoreError`."""
    entries = await _entries(realm)
    return None if entries is None else [_deployed(realm, entry) for entry in entries]


def _deployed(realm: Realm, entry: CatalogEntry) -> DeployedCatalog:
    return DeployedCatalog(entry.name, lambda: realm.catalog(entry), realm.name)


def _service(catalog: Catalog) -> DeployedCatalog:
    return DeployedCatalog(SERVICE.state, lambda: service_state(catalog), owner=Owner.SERVICE)


def _registry(realm: Realm) -> DeployedCatalog:
    return DeployedCatalog(realm.registry.paths.state, lambda: realm.registry, realm.name, Owner.REALM)


async def _entries(realm: Realm) -> Sequence[CatalogEntry] | None:
    state = realm.lookups()
    head = await state.head()
    if head.version is None:
        return None
    await load(state, head.index, Needs(scans=[Scan(catalogs())]))
    return [CatalogEntry(entry) for _, entry in head.index.scan(catalogs())]
