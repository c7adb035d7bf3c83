"""What `arco serve` serves of the realms in its store, and whom it lets in."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Protocol

from arco_catalog.authentication.configured import INTERNAL, Configured, configured
from arco_catalog.authentication.secrets import Secrets
from arco_catalog.authentication.token_endpoint import TokenEndpoint
from arco_catalog.cli.bootstrap import DEFAULT_REALM
from arco_catalog.cli.errors import CliError
from arco_catalog.config.variables import AUTH, TOKEN_KEY_FILE
from arco_catalog.http.browsers import is_loopback
from arco_catalog.http.realms import RealmService
from arco_catalog.operations.open import location_of
from arco_catalog.operations.realms import Deployment, Realm
from arco_catalog.protocol.catalog import Catalog
from arco_catalog.state.memory import Hold
from arco_catalog.state.runtime import SystemRuntime
from storage_backends.open import canonical_url


class Asked(Protocol):
    """What the command line said of it."""

    @property
    def store(self) -> str: ...

    @property
    def host(self) -> str: ...

    @property
    def realm(self) -> str | None: ...

    @property
    def auth(self) -> Sequence[str]: ...

    @property
    def token_key_file(self) -> str | None: ...

    @property
    def environment(self) -> Mapping[str, str]: ...


@asynccontextmanager
async def served_realms(catalog: Catalog, asked: Asked, runtime: SystemRuntime) -> AsyncIterator[RealmService | None]:
    """The realm of a store, over the stores that `catalog` has open; None where there is none, and nobody asked for
    one. Raises `CliError`, and `ValueError` for what variables say."""
    name = asked.realm or DEFAULT_REALM
    realm = Realm(name, _deployment(catalog, asked), at_root=asked.realm is None)
    wanted = _wanted(asked, name, runtime)
    if (await realm.state_for(Hold()).head()).version is None:
        if (wanted is not None and not wanted.open) or asked.realm is not None:
            raise CliError(
                f"there is no realm in {asked.store} yet, so nobody could be let in: `arco bootstrap` makes one"
            )
        yield None
        return
    if wanted is None and asked.host != "localhost" and not is_loopback(asked.host):
        raise CliError(
            f"other machines can reach {asked.host}: say who is let in by --auth; --auth none lets in anybody"
        )
    secrets = Secrets(runtime.entropy)
    endpoint = None if wanted is None or wanted.tokens is None else TokenEndpoint(wanted.tokens, secrets)
    authentication = None if wanted is None or wanted.open else wanted.authentication
    try:
        yield RealmService({name: realm}, name, secrets, runtime.entropy, authentication, endpoint)
    finally:
        if wanted is not None:
            await wanted.close()


def _deployment(catalog: Catalog, asked: Asked) -> Deployment:
    base = location_of(canonical_url(asked.store, asked.environment))
    return Deployment(catalog.settings, catalog.store, base, catalog.mounts, catalog.runtime, catalog.background_tasks)


def _wanted(asked: Asked, realm: str, runtime: SystemRuntime) -> Configured | None:
    """Who is let in, by options and variables."""
    said = {AUTH.name: ",".join(asked.auth)}
    if asked.token_key_file is not None and INTERNAL in asked.auth:
        said[TOKEN_KEY_FILE.name] = asked.token_key_file
    return configured({**asked.environment, **said}, realm, runtime)
