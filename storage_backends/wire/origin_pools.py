"""Connections to a few servers that only URLs name: services that give credentials, policies."""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from urllib.parse import urlsplit

from storage_backends.base import StoreError
from storage_backends.wire.connections import exchange, open_pool
from storage_backends.wire.endpoint import parse_endpoint, target_of
from storage_backends.wire.http1 import Response
from storage_backends.wire.pool import Pool
from storage_backends.wire.settings import ConnectionSettings

MAX_ORIGINS = 16


class OriginPools:
    """Keeps pools of connections to at most `MAX_ORIGINS` servers, for one event loop at a time. `purpose` names the
    servers in errors about URLs. It follows no redirects, and uses no proxy."""

    def __init__(self, purpose: str, settings: ConnectionSettings) -> None:
        self._purpose = purpose
        self._settings = settings
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pools: OrderedDict[str, Pool] = OrderedDict()

    async def exchange(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> Response:
        """Sends one request to a URL, once, and returns the response, whatever its status. Raises `StoreUnavailable` if
        nothing was sent, `Ambiguous` without a complete response, and another `StoreError` for an invalid header, a URL
        that is not one of HTTP, or a CA bundle that can't be read."""
        try:
            parts = urlsplit(url)
        except ValueError as error:  # brackets that do not close
            raise StoreError(f"no {self._purpose} request can be sent: invalid URL {url!r}: {error}") from error
        pool = await self._pool(f"{parts.scheme}://{parts.netloc}")
        return await exchange(pool, method, target_of(parts), {"host": parts.netloc, **headers}, body)

    async def close(self) -> None:
        """Closes all connections of this event loop, and forgets those of another."""
        pools, self._pools = self._pools, OrderedDict()
        if self._loop is asyncio.get_running_loop():
            for pool in pools.values():
                await pool.close()

    async def _pool(self, origin: str) -> Pool:
        """Returns the pool of connections to an origin, which it makes if there is none, and closes the one that was
        unused longest if there are too many. On another event loop than before it first forgets all pools."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._pools = loop, OrderedDict()
        if origin not in self._pools:
            opened = await open_pool(parse_endpoint(origin, self._purpose), self._settings)
            self._pools.setdefault(origin, opened)  # another task may have been faster; this one has no connection yet
        self._pools.move_to_end(origin)
        pool = self._pools[origin]
        if len(self._pools) > MAX_ORIGINS:
            _, oldest = self._pools.popitem(last=False)
            await oldest.close()
        return pool
