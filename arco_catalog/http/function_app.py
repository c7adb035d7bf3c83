"""Makes the app that a deployed function serves, on AWS Lambda or Azure Functions."""

from collections.abc import Mapping

from arco_catalog.authentication.authorization import is_off
from arco_catalog.config.variables import AUTH, REALM
from arco_catalog.http.app import App, create_app
from arco_catalog.http.middleware.realm_guard import RealmGuard
from arco_catalog.http.options import HttpOptions
from arco_catalog.http.requests import Handle
from arco_catalog.protocol.catalog import Catalog
from arco_catalog.state.runtime import SystemRuntime
from arco_catalog.telemetry.telemetry import Telemetry


async def function_app(
    environment: Mapping[str, str],
    catalog: Catalog,
    options: HttpOptions,
    telemetry: Telemetry | None,
    runtime: SystemRuntime,
) -> App:
    """Returns the app of a function, with the stores that `catalog` has open.

    With `ARCO_AUTH` the app serves authenticated callers: the realms of the store, or `catalog` if `served_by_function`
    returns no realms. Without it, the app serves `catalog` to every caller that the gateway lets in, but refuses
    requests once it has found a realm in the store (`RealmGuard`); with `ARCO_AUTHORIZATION=off` it does not look for
    one. Raises `ValueError` for an invalid variable, and `StoreError` if the store does not answer.
    """
    one = {catalog.settings.warehouse: catalog}
    if AUTH.read(environment):
        # Imported here, because a cold start without realms has no use for it.
        from arco_catalog.http.function_realms import served_by_function

        served = await served_by_function(environment, catalog, runtime)
        warehouses = one if served.realms is None else {}
        return create_app(warehouses, options, telemetry, served.realms, served.authentication)
    if is_off(environment):
        return create_app(one, options, telemetry)

    def guard(inner: Handle) -> Handle:
        return RealmGuard(inner, catalog, REALM.read(environment)).handle

    return create_app(one, options, telemetry, guard=guard)
