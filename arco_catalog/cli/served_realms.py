"""Opens the realms that `arco serve` serves, and sets up the authentication of their clients."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from arco_catalog.authentication.authorization import is_off, load_policy
from arco_catalog.authentication.setup import INTERNAL, AuthenticationSetup, load_authentication
from arco_catalog.cli.errors import CliError
from arco_catalog.cli.serve_options import ServeOptions
from arco_catalog.cli.server_options import ServerOptions
from arco_catalog.config.variables import AUTH, AUTHORIZATION, TOKEN_KEY_FILE, VENDING_KEYS_FILE, VENDING_LIFETIME
from arco_catalog.http.browsers import is_loopback
from arco_catalog.http.realms import RealmService, ServedRealms
from arco_catalog.operations.catalogs import realm_exists, realm_was_dropped
from arco_catalog.operations.lazy_vending import LazyVending
from arco_catalog.operations.realms import Realm, realms_beside
from arco_catalog.protocol.catalog import Catalog
from arco_catalog.state.runtime import SystemRuntime
from storage_backends.open import canonical_url


@asynccontextmanager
async def served(catalog: Catalog, options: ServeOptions, runtime: SystemRuntime) -> AsyncIterator[ServedRealms]:
    """Yields what the server serves, over the stores that `catalog` has open: the realms with their authentication. If
    the store has no realm, yields no realms, and the authentication of clients, None if they need none. Raises
    `CliError` if a realm that the options need is missing, if one was dropped, whether they need it or not, or if other
    machines can reach a server of realms and --auth is not given; `ValueError` for an invalid variable; and the errors
    of reading a realm."""
    vending = LazyVending(_vending_environment(options), runtime)
    url = canonical_url(options.store, options.environment)
    realms = realms_beside(catalog, url, options.realm, vending)
    setup = authentication_setup(options, realms[0].name, runtime)
    policy, sending = load_policy(options.environment, runtime)
    authorizes = not is_off(options.environment)
    try:
        missing = [realm for realm in realms if not await realm_exists(realm)]
        if missing:
            authentication = None if setup is None or setup.open else setup.authentication
            if options.realm or (authentication is not None and (authorizes or INTERNAL in options.auth)):
                raise CliError(_without_realm(options, missing))
            yield ServedRealms(authentication=authentication, policy=policy)
            return
        for realm in realms:
            if await realm_was_dropped(realm):
                raise CliError(
                    f"the server does not start: the realm {realm.name} in {options.store} was dropped; `arco "
                    "bootstrap --reopen`, with --realm NAME if the server has --realm, makes it anew"
                )
        if setup is None and options.host != "localhost" and not is_loopback(options.host):
            raise CliError(
                f"the server does not start: the store has a realm, and other machines can reach {options.host}; "
                "choose by --auth how clients authenticate (--auth none: not at all)"
            )
        vending.check()
        yield ServedRealms(RealmService.of(realms, setup, runtime.entropy, judged=authorizes), policy=policy)
    finally:
        await vending.close()
        if sending is not None:
            await sending.close()
        if setup is not None:
            await setup.close()


def _without_realm(options: ServeOptions, missing: Sequence[Realm]) -> str:
    """Returns the error for missing realms, with the way to make them."""
    if options.realm:
        named = " and ".join(repr(realm.name) for realm in missing)
        return f"there is no realm {named} in {options.store} yet: `arco bootstrap --realm` makes one"
    off = f", or {AUTHORIZATION.name}=off allows every authenticated client everything"
    return (
        f"there is no realm in {options.store} yet, so no client could be authorized: `arco bootstrap` makes one"
        f"{'' if INTERNAL in options.auth else off}"
    )


def _vending_environment(options: ServeOptions) -> Mapping[str, str]:
    """Returns the environment for the vending of credentials, in which the options always replace the variables of the
    lifetime and the file of S3 keys; without a file in the options that variable is empty."""
    variables = {
        VENDING_LIFETIME.name: str(options.vending_lifetime),
        VENDING_KEYS_FILE.name: options.vending_keys_file or "",
    }
    return {**options.environment, **variables}


def authentication_setup(options: ServerOptions, realm: str, runtime: SystemRuntime) -> AuthenticationSetup | None:
    """Returns the authentication of a server as the options --auth and --token-key-file and the environment set it; the
    options override their variables, the file of keys only if --auth names `internal`. Issuers and APIs without a realm
    of their own are for `realm`. Returns None if --auth is not given. Raises `ValueError` for an invalid variable."""
    variables = {AUTH.name: ",".join(options.auth)}
    if options.token_key_file is not None and INTERNAL in options.auth:
        variables[TOKEN_KEY_FILE.name] = options.token_key_file
    return load_authentication({**options.environment, **variables}, realm, runtime)
