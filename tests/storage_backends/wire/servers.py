"""Servers on loopback that treat each connection as a test defines."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

Handle = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serve(handle: Handle, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Runs one on a free port of 127.0.0.1, and waits for its handlers in the end."""
    handlers: set[asyncio.Task[None] | None] = set()

    async def on_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handlers.add(asyncio.current_task())
        with suppress(asyncio.IncompleteReadError, ConnectionError):  # the client went
            await handle(reader, writer)
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()

    server = await asyncio.start_server(on_connection, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        async with asyncio.timeout(5):
            await asyncio.gather(*(task for task in handlers if task is not None))
