"""Refuses requests to a function without authentication once it has found a realm in the store, which it looks for
every five minutes: without callers it cannot check the realm's grants (docs/design/access.md#without-a-realm)."""

import asyncio
import logging
from collections.abc import Sequence

from arco_catalog.config.variables import AUTH, AUTHORIZATION
from arco_catalog.http.requests import Handle, Request
from arco_catalog.http.responses import Response
from arco_catalog.iceberg.errors import Forbidden, Unavailable
from arco_catalog.protocol.catalog import Catalog
from arco_catalog.protocol.request_stats import current_stats
from arco_catalog.state.first_page import first_entries
from arco_catalog.state.paths import REALM_FOLDER, Paths
from arco_catalog.state.runtime import Deadline
from storage_backends import ObjectStore, StoreDenied, StoreError
from storage_backends.base import Found
from storage_backends.wrappers.request import RequestStore

CHECK_INTERVAL_MS = 5 * 60_000
"""The time for which a check counts that found no realm in the store."""
_READS = frozenset({"GET", "HEAD"})
_LOG = logging.getLogger(__name__)


class RealmGuard:
    """The layer that refuses requests while the store of `catalog` has a realm, at its root or under one of the names
    in `realms`. The first request checks the store, and after `CHECK_INTERVAL_MS` the next one does so: a GET or HEAD
    runs concurrently with the check, any other request waits for it. So a realm that is made in between is noticed only
    after that time; after a check that failed or found a realm, every request makes another."""

    def __init__(self, inner: Handle, catalog: Catalog, realms: Sequence[str] = ()) -> None:
        self._inner = inner
        self._catalog = catalog
        self._realms = [Paths(name, REALM_FOLDER) for name in ("", *realms)]
        self._checked_ms: int | None = None

    async def handle(self, request: Request) -> Response:
        """Passes the request on, and returns its response. Unless a check in the last `CHECK_INTERVAL_MS` found no
        realm, it makes another: a GET or HEAD runs concurrently, any other request waits for that. Raises `Forbidden`
        if the store has a realm, and `Unavailable` if the store fails."""
        if self._is_known():
            return await self._inner(request)
        if request.method not in _READS:
            await self._check()
            return await self._inner(request)
        checking = asyncio.create_task(self._check())
        try:
            return await self._inner(request)
        finally:
            await checking  # if it raises, its error replaces the response or error of the request

    def _is_known(self) -> bool:
        """Whether a check found no realm less than `CHECK_INTERVAL_MS` ago; False if the clock was set back since."""
        age_ms = None if self._checked_ms is None else self._catalog.runtime.now_ms() - self._checked_ms
        return age_ms is not None and 0 <= age_ms < CHECK_INTERVAL_MS

    async def _check(self) -> None:
        """Checks that the store has no realm, since this server can't check grants, and then remembers the time. Logs
        an error and raises `Forbidden` if the store has a realm; raises `Unavailable` if the check fails."""
        catalog = self._catalog
        deadline = Deadline.after(catalog.runtime, catalog.settings.request_ms)
        store = RequestStore(catalog.store, deadline.left_ms, measurement=current_stats().store)
        try:
            found = [await _is_there(store, realm) for realm in self._realms]
        except StoreError as error:
            raise Unavailable(
                f"Refused before any change, as all requests are while the check for a realm in the store fails: "
                f"{error}"
            ) from error
        if any(found):
            _LOG.error(
                "requests are refused, because the store has a realm, and this server has no authentication to check "
                "the realm's grants: set %s, or %s=off to ignore the grants",
                AUTH.name,
                AUTHORIZATION.name,
            )
            raise Forbidden(
                "The store has a realm, but this server has no authentication to check its grants, so it refuses every "
                f"request: the operator has to set {AUTH.name}, or {AUTHORIZATION.name}=off to ignore the grants"
            )
        self._checked_ms = catalog.runtime.now_ms()


async def _is_there(store: ObjectStore, realm: Paths) -> bool:
    """Whether the store has this realm. A realm whose HEAD is lost counts, because the grants still exist: its commits
    reveal it, if this server may list them, and otherwise it is not found."""
    if isinstance(await store.get(realm.manifest), Found):
        return True
    try:
        return bool(await first_entries(store, realm.registry_commits))
    except StoreDenied:
        return False
