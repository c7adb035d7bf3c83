"""The catalog to work on, as plain values that the driver sends to executors; each opens the catalog itself."""

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from arco_catalog.iceberg.errors import NotFound
from arco_catalog.operations.catalogs import deployed_catalogs, realm_exists
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
"""How long one session may take: as long as EMR Serverless lets a job run unless told otherwise."""


def open_by_environment(url: str) -> ObjectStore:
    """Opens a store as the process that it is opened in was configured, driver or executor. Raises `ValueError`."""
    return open_store(url, os.environ)


def own_environment() -> Mapping[str, str]:
    """That of this process."""
    return os.environ


@dataclass(frozen=True, slots=True)
class CatalogConfig:
    """How to open a catalog: the URL of its store, its warehouse, and allowed prefixes outside of it; `realm` is the
    folder of its realm, where the store has several.

    `opens` opens the store; it must survive pickling, as functions of a module do.
    """

    store: str
    warehouse: str
    allowed: tuple[str, ...] = ()
    opens: StoreOpener = open_by_environment
    realm: str | None = None
    max_metadata_bytes: int = MAX_METADATA_BYTES

    @asynccontextmanager
    async def catalog(self) -> AsyncIterator[Catalog]:
        """The catalog, opened here: that of the realm where the store has one. Raises as `session` does, `NotFound`,
        and `StoreError`."""
        catalog, url = await self._build()
        try:
            for each in await deployed_catalogs(catalog, url, () if self.realm is None else (self.realm,)):
                if each.realm is None or each.name == self.warehouse:
                    yield each.open()
                    return
            raise NotFound(f"there is no catalog {self.warehouse!r} in the realm in {self.store}")
        finally:
            await catalog.close()

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Session]:
        """A session with the catalog, opened here. Raises `ValueError` for a bad URL or prefix, `NotFound`, and
        `StoreError`.

        Whether the store keeps conditions is not asked: a walk only ever writes the bytes that belong where it writes.
        """
        async with self.catalog() as catalog:
            yield _session(catalog)

    @asynccontextmanager
    async def realm_session(self) -> AsyncIterator[Session | None]:
        """A session with the registry of the catalog's realm, opened here; None where the store has no realm. Raises
        as `session` does."""
        catalog, url = await self._build()
        try:
            [realm] = realms_beside(catalog, url, () if self.realm is None else (self.realm,))
            yield _session(realm.registry) if await realm_exists(realm) else None
        finally:
            await catalog.close()

    async def _build(self) -> tuple[Catalog, str]:
        """The one catalog of the store, and the store's URL. Raises `ValueError`, and `StoreError`."""
        settings = Settings(self.warehouse, max_metadata_bytes=self.max_metadata_bytes)
        url, *allowed = (canonical_url(url, os.environ) for url in (self.store, *self.allowed))
        catalog = await build_with_recorded(settings, self.opens(url), url, allowed, SystemRuntime(), self.opens)
        return catalog, url


def _session(catalog: Catalog) -> Session:
    deadline_ms = catalog.runtime.now_ms() + TIMEOUT_MS
    return catalog.session(
        OperationRequest("POST", "reconcile", "", None, "reconciler", {"kind": "Reconciler"}, deadline_ms), ALLOW_ALL
    )
