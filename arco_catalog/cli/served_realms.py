"""What `arco serve` serves of the realms in its store, and whom it lets in."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Protocol

from arco_catalog.authentication.configured import INTERNAL, Configured, configured
from arco_catalog.cli.errors import CliError
from arco_catalog.config.variables import AUTH, TOKEN_KEY_FILE, VENDING, VENDING_KEYS_FILE, VENDING_LIFETIME
from arco_catalog.http.browsers import is_loopback
from arco_catalog.http.realms import RealmService
from arco_catalog.operations.realms import realm_beside
from arco_catalog.protocol.catalog import Catalog
from arco_catalog.protocol.request_stats import note_vended
from arco_catalog.state.runtime import SystemRuntime
from storage_backends.open import canonical_url

if TYPE_CHECKING:  # a server whose catalogs vend nothing does not pay for it
    from arco_catalog.vending.service import Vending
    from arco_catalog.vending.storage_policy import StoragePolicy


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
    def vending_lifetime(self) -> int: ...

    @property
    def vending_keys_file(self) -> str | None: ...

    @property
    def environment(self) -> Mapping[str, str]: ...


@asynccontextmanager
async def served_realms(catalog: Catalog, asked: Asked, runtime: SystemRuntime) -> AsyncIterator[RealmService | None]:
    """The realm of a store, over the stores that `catalog` has open; None where there is none, and nobody asked for
    one. Raises `CliError`, and `ValueError` for what variables say."""
    vending = LazyVending(_vending_environment(asked), runtime)
    url = canonical_url(asked.store, asked.environment)
    realm = realm_beside(catalog, url, asked.realm, vending, vending.storage_policy)
    wanted = _wanted(asked, realm.name, runtime)
    if (await realm.lookups().head()).version is None:
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
    vending.check()
    try:
        yield RealmService.of(realm, wanted, runtime.entropy)
    finally:
        await vending.close()
        if wanted is not None:
            await wanted.close()


class LazyVending:
    """Access to the files of tables, made of the variables of the stores for the first client that wants it."""

    def __init__(self, environment: Mapping[str, str], runtime: SystemRuntime) -> None:
        self._environment = environment
        self._runtime = runtime
        self._made: Vending | None = None

    def __call__(self) -> "Vending":
        """Raises `ValueError` for variables that can't be read."""
        if self._made is None:
            from arco_catalog.vending.configured import configured_vending

            self._made = configured_vending(self._environment, self._runtime, note_vended)
        return self._made

    def storage_policy(self) -> "StoragePolicy":
        """What storage configurations may have this server do. Raises `ValueError` like the others."""
        from arco_catalog.vending.storage_policy import StoragePolicy

        return StoragePolicy.from_environment(self._environment)

    def check(self) -> None:
        """Raises `ValueError` at start for what an operator set for it."""
        if any(self._environment.get(variable.name) for variable in (*VENDING, VENDING_KEYS_FILE)):
            self()

    async def close(self) -> None:
        """Closes connections."""
        if self._made is not None:
            await self._made.close()


def _vending_environment(asked: Asked) -> Mapping[str, str]:
    """How engines get access to files, by options and variables."""
    said = {VENDING_LIFETIME.name: str(asked.vending_lifetime), VENDING_KEYS_FILE.name: asked.vending_keys_file or ""}
    return {**asked.environment, **said}


def _wanted(asked: Asked, realm: str, runtime: SystemRuntime) -> Configured | None:
    """Who is let in, by options and variables."""
    said = {AUTH.name: ",".join(asked.auth)}
    if asked.token_key_file is not None and INTERNAL in asked.auth:
        said[TOKEN_KEY_FILE.name] = asked.token_key_file
    return configured({**asked.environment, **said}, realm, runtime)
