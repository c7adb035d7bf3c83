"""The realms that a deployed function serves, and whom it lets in, as its environment names them."""

from collections.abc import Mapping

from arco_catalog.authentication.authorization import is_off
from arco_catalog.authentication.setup import load_authentication
from arco_catalog.config.variables import AUTH, AUTHORIZATION, REALM, STORE
from arco_catalog.http.realms import RealmService, Served
from arco_catalog.operations.catalogs import realm_exists
from arco_catalog.operations.lazy_vending import LazyVending
from arco_catalog.operations.realms import realms_beside
from arco_catalog.protocol.catalog import Catalog
from arco_catalog.state.runtime import SystemRuntime
from storage_backends.open import canonical_url


async def served_by_function(environment: Mapping[str, str], catalog: Catalog, runtime: SystemRuntime) -> Served:
    """What a function with `ARCO_AUTH` serves over the stores that `catalog` has open, to those whom its authenticators
    know. Whether there is a realm is asked only where `ARCO_AUTHORIZATION=off`: else each request finds out, and is
    refused without one. Raises `ValueError` for what variables say, and `StoreError` if the store does not answer."""
    url = canonical_url(STORE.require(environment), environment)
    vending = LazyVending(environment, runtime)
    realms = realms_beside(catalog, url, REALM.read(environment), vending, vending.storage_policy)
    wanted = load_authentication(environment, realms[0].name, runtime)
    if wanted is None or wanted.open:
        raise ValueError(f"{AUTH.name}: a function lets in nobody unasked; unset, it serves whom its gateway lets in")
    vending.check()
    if not is_off(environment):
        return Served(RealmService.of(realms, wanted, runtime.entropy))
    missing = [realm.name for realm in realms if not await realm_exists(realm)]
    if not missing:
        return Served(RealmService.of(realms, wanted, runtime.entropy, judged=False))
    if REALM.read(environment):
        raise ValueError(f"{REALM.name}: there is no realm {' and '.join(map(repr, missing))} in the store yet")
    if wanted.tokens is not None:
        raise ValueError(
            f"{AUTHORIZATION.name}: without a realm nobody has an id and a secret, so {AUTH.name} can't be 'internal'"
        )
    return Served(authentication=wanted.authentication)
