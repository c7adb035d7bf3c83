"""Each catalog of a deployment: those of its realms, or the one of a store that has no realm."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from arco_catalog.iceberg.errors import NotFound
from arco_catalog.operations.realms import Realm, realms_beside
from arco_catalog.protocol.catalog import Catalog
from arco_catalog.protocol.lookup import load
from arco_catalog.state.needs import Needs, Scan
from arco_catalog.state.realm import CatalogEntry, catalogs


@dataclass(frozen=True, slots=True)
class DeployedCatalog:
    """A catalog by its name; `realm` is None where the store has none. Its stores belong to the deployment, which
    closes them."""

    name: str
    open: Callable[[], Catalog]
    """Raises `BadRequest` if the operator no longer allows the catalog's locations."""
    realm: str | None = None


async def realm_exists(realm: Realm) -> bool:
    """Whether it was bootstrapped."""
    return (await realm.lookups().head()).version is not None


async def deployed_catalogs(catalog: Catalog, url: str, realms: Sequence[str] = ()) -> Sequence[DeployedCatalog]:
    """Every catalog of the realms with these names in the store at `url`, or of the one at its root; where it has none,
    `catalog` itself, whose stores are used throughout. Raises `NotFound` for a name without a realm, `StoreError`."""
    found: list[DeployedCatalog] = []
    for realm in realms_beside(catalog, url, realms):
        entries = await _entries(realm)
        if entries is None and realm.at_root:
            return [DeployedCatalog(catalog.settings.warehouse, lambda: catalog)]
        if entries is None:
            raise NotFound(f"there is no realm {realm.name} in {url}: `arco bootstrap` makes one")
        found += [_deployed(realm, entry) for entry in entries]
    return found


def _deployed(realm: Realm, entry: CatalogEntry) -> DeployedCatalog:
    return DeployedCatalog(entry.name, lambda: realm.catalog(entry), realm.name)


async def _entries(realm: Realm) -> Sequence[CatalogEntry] | None:
    """The catalogs of a realm; None if it was never bootstrapped."""
    state = realm.lookups()
    head = await state.head()
    if head.version is None:
        return None
    await load(state, head.index, Needs(scans=[Scan(catalogs())]))
    return [CatalogEntry(entry) for _, entry in head.index.scan(catalogs())]
