"""What `arco serve` serves of the realms in its store, and whom it lets in."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Protocol

from arco_catalog.authentication.authorization import is_off
from arco_catalog.authentication.setup import INTERNAL, AuthenticationSetup, load_authentication
from arco_catalog.cli.errors import CliError
from arco_catalog.config.variables import AUTH, AUTHORIZATION, TOKEN_KEY_FILE, VENDING_KEYS_FILE, VENDING_LIFETIME
from arco_catalog.http.browsers import is_loopback
from arco_catalog.http.realms import RealmService, Served
from arco_catalog.operations.catalogs import realm_exists, realm_was_dropped
from arco_catalog.operations.lazy_vending import LazyVending
from arco_catalog.operations.realms import Realm, realms_beside
from arco_catalog.protocol.catalog import Catalog
from arco_catalog.state.runtime import SystemRuntime
from storage_backends.open import canonical_url


class Asked(Protocol):
    """What the command line said of it."""

    @property
    def store(self) -> str: ...

    @property
    def host(self) -> str: ...

    @property
    def realm(self) -> Sequence[str]: ...

    @property
    def auth(self) -> Sequence[str]: ...

    @property
    def token_key_file(self) -> str | None: ...

    @property
    def vending_lifetime(self) -> int: ...

    @property
    def vending_keys_file(self) -> str | None: ...

    @property
    def environment(self) -> Mapping[str, str]: ...


@asynccontextmanager
async def served(catalog: Catalog, asked: Asked, runtime: SystemRuntime) -> AsyncIterator[Served]:
    """What is served, over the stores that `catalog` has open. Raises `CliError`, and `ValueError` for what variables
    say."""
    vending = LazyVending(_vending_environment(asked), runtime)
    url = canonical_url(asked.store, asked.environment)
    realms = realms_beside(catalog, url, asked.realm, vending, vending.storage_policy)
    wanted = _wanted(asked, realms[0].name, runtime)
    judged = not is_off(asked.environment)
    try:
        missing = [realm for realm in realms if not await realm_exists(realm)]
        if missing:
            authentication = None if wanted is None or wanted.open else wanted.authentication
            if asked.realm or (authentication is not None and (judged or INTERNAL in asked.auth)):
                raise CliError(_without_realm(asked, missing))
            yield Served(authentication=authentication)
            return
        for realm in realms:
            if await realm_was_dropped(realm):
                raise CliError(
                    f"realm {realm.name} in {asked.store} was dropped: `arco bootstrap --reopen` makes it anew"
                )
        if wanted is None and asked.host != "localhost" and not is_loopback(asked.host):
            raise CliError(
                f"other machines can reach {asked.host}: say who is let in by --auth; --auth none lets in anybody"
            )
        vending.check()
        yield Served(RealmService.of(realms, wanted, runtime.entropy, judged=judged))
    finally:
        await vending.close()
        if wanted is not None:
            await wanted.close()


def _without_realm(asked: Asked, missing: Sequence[Realm]) -> str:
    """Why nothing is served where realms are missing."""
    if asked.realm:
        named = " and ".join(repr(realm.name) for realm in missing)
        return f"there is no realm {named} in {asked.store} yet: `arco bootstrap --realm` makes one"
    off = f", or {AUTHORIZATION.name}=off lets whoever is authenticated do everything"
    return (
        f"there is no realm in {asked.store} yet, so nobody could be let in: `arco bootstrap` makes one"
        f"{'' if INTERNAL in asked.auth else off}"
    )


def _vending_environment(asked: Asked) -> Mapping[str, str]:
    """How engines get access to files, by options and variables."""
    said = {VENDING_LIFETIME.name: str(asked.vending_lifetime), VENDING_KEYS_FILE.name: asked.vending_keys_file or ""}
    return {**asked.environment, **said}


def _wanted(asked: Asked, realm: str, runtime: SystemRuntime) -> AuthenticationSetup | None:
    """Who is let in, by options and variables."""
    said = {AUTH.name: ",".join(asked.auth)}
    if asked.token_key_file is not None and INTERNAL in asked.auth:
        said[TOKEN_KEY_FILE.name] = asked.token_key_file
    return load_authentication({**asked.environment, **said}, realm, runtime)
