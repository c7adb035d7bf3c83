"""Describes the catalog that a job works on by plain values, which the driver sends to executors: they open the catalog
themselves."""

import argparse
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from arco_catalog.config.parsing import parse_realm
from arco_catalog.config.variables import ALLOWED_LOCATIONS, MAX_METADATA, REALM, STORE, WAREHOUSE
from arco_catalog.iceberg.errors import BadRequest, NotFound
from arco_catalog.operations.catalogs import DeployedCatalog, deployed_catalogs, realm_exists
from arco_catalog.operations.environment import task_policies_from_env, unread_catalog_from_env
from arco_catalog.operations.open import build_with_recorded
from arco_catalog.operations.realms import realms_beside
from arco_catalog.protocol.access import ALLOW_ALL
from arco_catalog.protocol.catalog import Catalog, Session, Settings
from arco_catalog.protocol.operation_request import OperationRequest
from arco_catalog.state.memory import MAX_METADATA_BYTES
from arco_catalog.state.runtime import SystemRuntime
from storage_backends import ObjectStore
from storage_backends.open import StoreOpener, canonical_url, open_store

TIMEOUT_MS = 12 * 60 * 60 * 1000
"""How long a session of a job may take, in milliseconds: 12 hours, the default limit of EMR Serverless for a job."""


def open_by_environment(url: str) -> ObjectStore:
    """Opens a store by the environment variables of the calling process, which may be the driver or an executor. Raises
    `ValueError` for an invalid URL or variable."""
    return open_store(url, os.environ)


def own_environment() -> Mapping[str, str]:
    """Returns the environment variables of this process."""
    return os.environ


def environment_with(options: argparse.Namespace) -> Mapping[str, str]:
    """Returns the environment variables of this process. The options `--store`, `--realm`, `--warehouse` and
    `--allowed-location` that are given replace the variables with the same meaning."""
    given = {STORE.name: options.store, REALM.name: options.realm, WAREHOUSE.name: options.warehouse}
    given[ALLOWED_LOCATIONS.name] = ",".join(options.allowed_location) or None
    return {**own_environment(), **{name: value for name, value in given.items() if value is not None}}


async def check_settings(environment: Mapping[str, str]) -> None:
    """Raises `SystemExit` with one line if one of these variables or a URL in them is invalid, or the extra for a store
    is not installed. Sends nothing. A job calls this before Spark starts, since it would end with a traceback later."""
    try:
        task_policies_from_env(environment)
        for realm in REALM.read(environment):
            parse_realm(realm)
        catalog = unread_catalog_from_env(environment, SystemRuntime())
    except (ValueError, BadRequest) as error:
        raise SystemExit(f"reconciler: {error}") from error
    await catalog.close()


@dataclass(frozen=True, slots=True)
class CatalogConfig:
    """The settings with which driver and executors open a catalog: the URL of the store, the name of the catalog
    (`warehouse`), and the URLs of allowed prefixes outside of the store. `realm` is the folder of the catalog's realm,
    which is needed only if the store has more than one realm. `max_metadata_bytes` is the largest size of a metadata
    file that may be read.

    `opens` opens a store by the URL. It must survive pickling, as a function of a module does.
    """

    store: str
    warehouse: str
    allowed: tuple[str, ...] = ()
    opens: StoreOpener = open_by_environment
    realm: str | None = None
    max_metadata_bytes: int = MAX_METADATA_BYTES

    @classmethod
    def from_environment(
        cls, environment: Mapping[str, str], catalog: DeployedCatalog, opens: StoreOpener = open_by_environment
    ) -> "CatalogConfig":
        """Returns the settings of a catalog of the store that these environment variables name, with the realm of the
        catalog only if the variables name realms. Raises `KeyError` if they name no store, and `ValueError` for an
        invalid variable."""
        return cls(
            STORE.require(environment),
            catalog.name,
            tuple(ALLOWED_LOCATIONS.read(environment)),
            opens,
            catalog.realm if REALM.read(environment) else None,
            MAX_METADATA.read(environment),
        )

    @asynccontextmanager
    async def catalog(self) -> AsyncIterator[Catalog]:
        """Opens the catalog in this process, and closes it on exit. In a store with a realm it is the realm's catalog
        with the name `warehouse`. Raises `ValueError` or `BadRequest` for an invalid URL or prefix, `NotFound` if the
        realm does not exist or has no such catalog, `BadRequest` if none of that catalog's locations is allowed, and
        `StoreError`. In a store without a realm, it does not check that the catalog exists."""
        catalog, url = await self._build()
        try:
            for each in await deployed_catalogs(catalog, url, () if self.realm is None else (self.realm,)):
                if each.realm is None or each.name == self.warehouse:
                    yield each.open()
                    return
            raise NotFound(
                f"there is no catalog {self.warehouse!r} in the realm in {self.store}: check --warehouse and --realm"
            )
        finally:
            await catalog.close()

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Session]:
        """Opens the catalog in this process, and a session on it that may read and write everything for `TIMEOUT_MS`.
        Closes the catalog on exit. Raises the errors of `catalog`.

        A store that ignores preconditions will do: concurrent runs write the same bytes to a key.
        """
        async with self.catalog() as catalog:
            yield _session(catalog)

    @asynccontextmanager
    async def realm_session(self) -> AsyncIterator[Session | None]:
        """Opens a session on the registry of the catalog's realm, which may read and write everything for `TIMEOUT_MS`;
        None if the store has no such realm. Closes the store on exit. Raises `ValueError` or `BadRequest` for an
        invalid URL or prefix, and `StoreError`."""
        catalog, url = await self._build()
        try:
            [realm] = realms_beside(catalog, url, () if self.realm is None else (self.realm,))
            yield _session(realm.registry) if await realm_exists(realm) else None
        finally:
            await catalog.close()

    async def _build(self) -> tuple[Catalog, str]:
        """Builds the catalog that a store without a realm has, by which callers also find the store's realms. Returns
        the catalog and the canonical URL of the store. Raises `ValueError` or `BadRequest` for an invalid
        URL or prefix, and `StoreError`."""
        settings = Settings(self.warehouse, max_metadata_bytes=self.max_metadata_bytes)
        url, *allowed = (canonical_url(url, os.environ) for url in (self.store, *self.allowed))
        catalog = await build_with_recorded(settings, self.opens(url), url, allowed, SystemRuntime(), self.opens)
        return catalog, url


def _session(catalog: Catalog) -> Session:
    """Returns a session of the reconciler with a catalog, or with the registry of a realm, in which everything is
    allowed for `TIMEOUT_MS`."""
    deadline_ms = catalog.runtime.now_ms() + TIMEOUT_MS
    return catalog.session(
        OperationRequest("POST", "reconcile", "", None, "reconciler", {"kind": "Reconciler"}, deadline_ms), ALLOW_ALL
    )
