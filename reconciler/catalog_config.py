"""The catalog to walk, as plain values that the driver sends to executors; each opens the catalog itself."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from arco_catalog.operations.open import build_catalog
from arco_catalog.protocol.catalog import Session, Settings
from arco_catalog.protocol.operation_request import OperationRequest
from arco_catalog.state.runtime import SystemRuntime
from storage_backends import ObjectStore
from storage_backends.open import StoreOpener, canonical_url, open_store

TIMEOUT_MS = 12 * 60 * 60 * 1000
"""How long one session may take: as long as EMR Serverless lets a job run unless told otherwise."""


def open_by_environment(url: str) -> ObjectStore:
    """Opens a store as the process that it is opened in was configured, driver or executor. Raises `ValueError`."""
    return open_store(url, os.environ)


@dataclass(frozen=True, slots=True)
class CatalogConfig:
    """How to open a catalog: the URL of its store, its warehouse, and allowed prefixes outside of it.

    `opens` opens the store; it must survive pickling, as functions of a module do.
    """

    store: str
    warehouse: str
    allowed: tuple[str, ...] = ()
    opens: StoreOpener = open_by_environment

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Session]:
        """A session with the catalog, opened here. Raises `ValueError` for a bad URL or prefix.

        Whether the store keeps conditions is not asked: a walk only ever writes the bytes that belong where it writes.
        """
        runtime = SystemRuntime()
        settings = Settings(self.warehouse)
        url, *allowed = (canonical_url(url, os.environ) for url in (self.store, *self.allowed))
        catalog = build_catalog(settings, self.opens(url), url, allowed, runtime, self.opens)
        deadline_ms = runtime.now_ms() + TIMEOUT_MS
        try:
            yield catalog.session(
                OperationRequest("POST", "reconcile", "", None, "reconciler", {"kind": "Reconciler"}, deadline_ms)
            )
        finally:
            await catalog.close()
