"""The realms that a deployed function serves, and whom it lets in, as its environment names them."""

from collections.abc import Mapping

from arco_catalog.authentication.authorization import is_off
from arco_catalog.authentication.configured import configured
from arco_catalog.config.variables import AUTH, REALM, STORE
from arco_catalog.http.realms import RealmService
from arco_catalog.operations.catalogs import realm_exists
from arco_catalog.operations.realms import realms_beside
from arco_catalog.protocol.catalog import Catalog
from arco_catalog.state.runtime import SystemRuntime
from storage_backends.open import canonical_url


async def realms_from_env(environment: Mapping[str, str], catalog: Catalog, runtime: SystemRuntime) -> RealmService:
    """The realms over the stores that `catalog` has open. Raises `ValueError` for what variables say, `StoreError` if
    the store does not answer, and `RuntimeError` if one is missing: a function that was told to ask who somebody is
    must not serve everybody."""
    url = canonical_url(STORE.require(environment), environment)
    realms = realms_beside(catalog, url, REALM.read(environment))
    wanted = configured(environment, realms[0].name, runtime)
    if wanted is not None and wanted.open:
        raise ValueError(f"{AUTH.name}: a function lets in nobody unasked; unset, it serves whom its gateway lets in")
    for realm in realms:
        if not await realm_exists(realm):
            raise RuntimeError(
                f"there is no realm {realm.name!r} in {environment[STORE.name]} yet: `arco bootstrap` makes one"
            )
    return RealmService.of(realms, wanted, runtime.entropy, judged=not is_off(environment))
