"""A way to a server that takes longer: `python -m tools.bench.peers.relay MILLISECONDS HOST PORT`.

What a client sends reaches the server so much later, and in order; answers come back at once. A request on an open
connection takes just so much longer, whatever it speaks.
"""

import asyncio
import sys
from typing import cast

import uvloop


class Far(asyncio.Protocol):
    """The connection to the server."""

    def __init__(self, client: asyncio.Transport) -> None:
        self._client = client
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's are none by name

    def data_received(self, data: bytes) -> None:
        self._client.write(data)

    def connection_lost(self, error: Exception | None) -> None:
        self._client.close()


class Near(asyncio.Protocol):
    """A client's connection. What comes waits its time, and for the connection to the server."""

    def __init__(self, seconds: float, host: str, port: int) -> None:
        self._seconds = seconds
        self._address = (host, port)
        self._far: asyncio.Task[Far] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        client = cast(asyncio.Transport, transport)
        self._far = asyncio.get_running_loop().create_task(self._connect(client))

    async def _connect(self, client: asyncio.Transport) -> Far:
        try:
            _, far = await asyncio.get_running_loop().create_connection(lambda: Far(client), *self._address)
        except OSError:
            client.abort()
            raise
        return far

    def data_received(self, data: bytes) -> None:
        asyncio.get_running_loop().call_later(self._seconds, self._forward, data)

    def _forward(self, data: bytes) -> None:
        far = self._far
        if far is None:
            return
        if not far.done():
            far.add_done_callback(lambda _: self._forward(data))
        elif far.exception() is None and (transport := far.result().transport) is not None:
            transport.write(data)

    def connection_lost(self, error: Exception | None) -> None:
        if self._far is not None and self._far.done() and self._far.exception() is None:
            transport = self._far.result().transport
            if transport is not None:
                transport.close()
        elif self._far is not None:
            self._far.cancel()


async def serve(seconds: float, host: str, port: int) -> None:
    """Serves until it is ended."""
    server = await asyncio.get_running_loop().create_server(lambda: Near(seconds, host, port), "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(float(sys.argv[1]) / 1000, sys.argv[2], int(sys.argv[3])))
