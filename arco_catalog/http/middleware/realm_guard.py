"""Refuses everybody where the store has a realm, but nobody was told to ask who makes a request: whoever answers then
ignores the realm's grants (docs/design/access.md#without-a-realm)."""

import asyncio
import logging
from collections.abc import Sequence

from arco_catalog.config.variables import AUTH, AUTHORIZATION
from arco_catalog.http.requests import Handle, Request
from arco_catalog.http.responses import Response
from arco_catalog.iceberg.errors import Forbidden, Unavailable
from arco_catalog.protocol.catalog import Catalog
from arco_catalog.protocol.request_stats import current_stats
from arco_catalog.state.paths import REALM_FOLDER, Paths
from arco_catalog.state.runtime import Deadline
from storage_backends import ObjectStore, StoreDenied, StoreError
from storage_backends.base import Found
from storage_backends.wrappers.request import RequestStore

BELIEVED_MS = 5 * 60_000
"""How long a store is believed to have no realm, as it had none."""
_READS = frozenset({"GET", "HEAD"})
_LOG = logging.getLogger(__name__)


class RealmGuard:
    """Lets requests pass while the store of `catalog` has no realm: at its root, or under these names. It is looked up
    with the first request, and now and then: beside what reads, and before anything is changed."""

    def __init__(self, inner: Handle, catalog: Catalog, realms: Sequence[str] = ()) -> None:
        self._inner = inner
        self._catalog = catalog
        self._realms = [Paths(name, REALM_FOLDER) for name in ("", *realms)]
        self._looked_ms: int | None = None

    async def handle(self, request: Request) -> Response:
        """Passes the request on. Raises `Forbidden` if there is a realm, `Unavailable` if the store does not say."""
        if self._is_known():
            return await self._inner(request)
        if request.method not in _READS:
            await self._check()
            return await self._inner(request)
        checking = asyncio.create_task(self._check())
        try:
            return await self._inner(request)
        finally:
            await checking  # its refusal comes before whatever the request would be answered with

    def _is_known(self) -> bool:
        age_ms = None if self._looked_ms is None else self._catalog.runtime.now_ms() - self._looked_ms
        return age_ms is not None and 0 <= age_ms < BELIEVED_MS

    async def _check(self) -> None:
        catalog = self._catalog
        deadline = Deadline.after(catalog.runtime, catalog.settings.request_ms)
        store = RequestStore(catalog.store, deadline.left_ms, measurement=current_stats().store)
        try:
            found = [await _is_there(store, realm) for realm in self._realms]
        except StoreError as error:
            raise Unavailable(f"Whether the store has a realm cannot be said now: {error}") from error
        if any(found):
            _LOG.error(
                "the store has a realm, whose grants nobody would ask for: set %s to say who makes requests, or %s=off",
                AUTH.name,
                AUTHORIZATION.name,
            )
            raise Forbidden(
                "The store has a realm, and this server was not told to ask who makes a request: it serves nobody"
            )
        self._looked_ms = catalog.runtime.now_ms()


async def _is_there(store: ObjectStore, realm: Paths) -> bool:
    """Whether there is a realm. One whose HEAD is lost has its grants still: its commits tell of it to whoever may list
    them."""
    if isinstance(await store.get(realm.manifest), Found):
        return True
    try:
        return bool((await store.list(realm.registry_commits)).entries)
    except StoreDenied:
        return False
