"""Makes the app that a deployed function serves, on AWS Lambda or Azure Functions."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from arco_catalog.authentication.authorization import is_off, load_policy
from arco_catalog.config.variables import (
    AUTH,
    BASE_PATH,
    CONSOLE,
    CONSOLE_CLIENTS,
    CONSOLE_ORIGINS,
    IDEMPOTENCY_DIALECT,
    IDEMPOTENCY_ENABLED,
    IDEMPOTENCY_LIFETIME,
    MAX_BODY,
    METRICS,
    NAMESPACE_SEPARATOR,
    REALM,
    REQUEST_MEMORY,
    SOURCE_PRINCIPALS,
)
from arco_catalog.http.app import App, create_app
from arco_catalog.http.middleware.realm_guard import RealmGuard
from arco_catalog.http.options import HttpOptions
from arco_catalog.http.requests import Handle
from arco_catalog.protocol.catalog import Catalog
from arco_catalog.state.key_settings import Dialect
from arco_catalog.state.runtime import SystemRuntime
from arco_catalog.telemetry.telemetry import Telemetry

if TYPE_CHECKING:  # importing it takes time, which a cold start without the console saves
    from arco_catalog.http.console.files import Console


def function_options(environment: Mapping[str, str]) -> HttpOptions:
    """Returns the options of the HTTP layer of a function, as the environment variables have them, without the
    limits of the host. Raises `ValueError` for an invalid variable."""
    return HttpOptions(
        base_path=BASE_PATH.read(environment).encode(),
        namespace_separator=NAMESPACE_SEPARATOR.read(environment),
        dialect=Dialect(IDEMPOTENCY_DIALECT.read(environment)),
        keys_enabled=IDEMPOTENCY_ENABLED.read(environment),
        key_lifetime_ms=IDEMPOTENCY_LIFETIME.read(environment),
        keep_reports=METRICS.read(environment) == "store",
        gzip=True,
        source_principals=SOURCE_PRINCIPALS.read(environment),
        max_body_bytes=MAX_BODY.read(environment),
        request_memory_bytes=REQUEST_MEMORY.read(environment),
    )


async def function_app(
    environment: Mapping[str, str],
    catalog: Catalog,
    options: HttpOptions,
    telemetry: Telemetry | None,
    runtime: SystemRuntime,
) -> App:
    """Returns the app of a function, with the stores that `catalog` has open.

    With `ARCO_AUTH` the app serves realms to authenticated callers, also while the store has none; `catalog` only if
    `ARCO_AUTHORIZATION=off` and the store has no realm. Without it, the app serves `catalog` to every caller that the
    gateway lets in, but refuses requests once it has found a realm in the store (`RealmGuard`); with
    `ARCO_AUTHORIZATION=off` it does not look for one. With `ARCO_CONSOLE` the app serves the console of its package.
    With `ARCO_OPA_URL` each request also needs the consent of Open Policy Agent. Raises `ValueError` for an invalid
    variable, `FileNotFoundError` for a package without the console, and `StoreError` if the store does not answer.
    """
    one = {catalog.settings.warehouse: catalog}
    policy, _ = load_policy(environment, runtime)
    console = _packaged_console(environment) if CONSOLE.read(environment) else None
    if AUTH.read(environment):
        # Imported here, because a cold start without realms has no use for it.
        from arco_catalog.http.function_realms import served_by_function

        served = await served_by_function(environment, catalog, runtime)
        warehouses = one if served.realms is None else {}
        return create_app(
            warehouses, options, telemetry, served.realms, served.authentication, console=console, policy=policy
        )
    if is_off(environment):
        return create_app(one, options, telemetry, console=console, policy=policy)

    def guard(inner: Handle) -> Handle:
        return RealmGuard(inner, catalog, REALM.read(environment)).handle

    return create_app(one, options, telemetry, guard=guard, console=console, policy=policy)


def _packaged_console(environment: Mapping[str, str]) -> "Console":
    """Returns the console in the package of a function, with the sign-in that the environment variables configure.
    Raises `FileNotFoundError` if the package was built without a console, and `ValueError` for an invalid variable."""
    # Imported here, because a cold start without the console has no use for it.
    from arco_catalog.http.console.files import BUILT, INDEX, read_console
    from arco_catalog.http.console.setup import load_sign_in

    if not (BUILT / INDEX).is_file():
        raise FileNotFoundError(f"{CONSOLE.name} is set, and this package has no console: build one with --console")
    clients, origins = CONSOLE_CLIENTS.read(environment), CONSOLE_ORIGINS.read(environment)
    return read_console(sign_in=load_sign_in(clients, origins, AUTH.read(environment), environment))
