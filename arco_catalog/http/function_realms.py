"""The realm that a deployed function serves, and whom it lets in, as its environment names them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from arco_catalog.authentication.configured import configured
from arco_catalog.config.variables import AUTH, REALM, STORE
from arco_catalog.http.realms import RealmService
from arco_catalog.operations.realms import realm_beside
from arco_catalog.protocol.catalog import Catalog
from arco_catalog.state.runtime import SystemRuntime
from storage_backends.open import canonical_url

if TYPE_CHECKING:  # a function that makes no catalog does not pay for it
    from arco_catalog.vending.storage_policy import StoragePolicy


async def realms_from_env(environment: Mapping[str, str], catalog: Catalog, runtime: SystemRuntime) -> RealmService:
    """The realm over the stores that `catalog` has open. Raises `ValueError` for what variables say, `StoreError` if
    the store does not answer, and `RuntimeError` if there is no realm: a function that was told to ask who somebody is
    must not serve everybody."""
    url = canonical_url(STORE.require(environment), environment)

    def storage_policy() -> "StoragePolicy":
        from arco_catalog.vending.storage_policy import StoragePolicy

        return StoragePolicy.from_environment(environment)

    realm = realm_beside(catalog, url, environment.get(REALM.name) or None, storage_policy=storage_policy)
    wanted = configured(environment, realm.name, runtime)
    if wanted is not None and wanted.open:
        raise ValueError(f"{AUTH.name}: a function lets in nobody unasked; unset, it serves whom its gateway lets in")
    if (await realm.lookups().head()).version is None:
        raise RuntimeError(f"there is no realm in {environment[STORE.name]} yet: `arco bootstrap` makes one")
    return RealmService.of(realm, wanted, runtime.entropy)
