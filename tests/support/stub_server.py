"""An HTTP server on the loopback interface, in the event loop of the test, whose responses a function makes."""

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web

Handle = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class StubServer:
    """A server that listens at `uri`."""

    uri: str
    _site: web.TCPSite

    async def stop_listening(self) -> None:
        """Accept no new connections."""
        await self._site.stop()


@asynccontextmanager
async def stub_server(handle: Handle, tls: ssl.SSLContext | None = None) -> AsyncIterator[StubServer]:
    """Run a server on a free port."""
    runner = web.ServerRunner(web.Server(handle, access_log=None), shutdown_timeout=0.01)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
        await site.start()
        host, port = runner.addresses[0]
        yield StubServer(f"{'https' if tls else 'http'}://{host}:{port}", site)
    finally:
        await runner.cleanup()
