"""Reads from environment variables which realms a deployed function serves, and how their callers are authenticated."""

from collections.abc import Mapping

from arco_catalog.authentication.authorization import is_off
from arco_catalog.authentication.setup import load_authentication
from arco_catalog.config.variables import AUTH, AUTHORIZATION, REALM, STORE
from arco_catalog.http.realms import RealmService, ServedRealms
from arco_catalog.operations.catalogs import realm_exists
from arco_catalog.operations.lazy_vending import LazyVending
from arco_catalog.operations.realms import realms_beside
from arco_catalog.protocol.catalog import Catalog
from arco_catalog.state.runtime import SystemRuntime
from storage_backends.open import canonical_url


async def served_by_function(environment: Mapping[str, str], catalog: Catalog, runtime: SystemRuntime) -> ServedRealms:
    """Returns the realms that a function with `ARCO_AUTH` serves, with the stores that `catalog` has open, and the
    authentication of their callers.

    Only with `ARCO_AUTHORIZATION=off` does it read the store: if that has no realm, the function serves `catalog` to
    authenticated callers. Otherwise each request reads the realm, and is refused if there is none. Raises `ValueError`
    for an invalid variable, if a realm that `ARCO_REALM` names was found to be missing, and if the store was found to
    have no realm, but `ARCO_AUTH` contains `internal`; raises `StoreError` if the store does not answer.
    """
    url = canonical_url(STORE.require(environment), environment)
    vending = LazyVending(environment, runtime)
    realms = realms_beside(catalog, url, REALM.read(environment), vending)
    setup = load_authentication(environment, realms[0].name, runtime)
    if setup is None or setup.open:
        raise ValueError(
            f"{AUTH.name}: a function does not support 'none' or an empty list: unset the variable to serve, "
            "while the store has no realm, every caller that the gateway lets in"
        )
    vending.check()
    if not is_off(environment):
        return ServedRealms(RealmService.of(realms, setup, runtime.entropy))
    missing = [realm.name for realm in realms if not await realm_exists(realm)]
    if not missing:
        return ServedRealms(RealmService.of(realms, setup, runtime.entropy, judged=False))
    if REALM.read(environment):
        raise ValueError(
            f"{REALM.name}: there is no realm {' and '.join(map(repr, missing))} in the store yet: make it with "
            "`arco bootstrap --realm NAME`"
        )
    if setup.tokens is not None:
        raise ValueError(
            f"{AUTHORIZATION.name} is off and the store has no realm, so {AUTH.name} can't be 'internal', because only "
            "principals of a realm have a client id and a secret: make a realm with `arco bootstrap`"
        )
    return ServedRealms(authentication=setup.authentication)
