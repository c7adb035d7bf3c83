"""A server that does nothing: `python -m tools.bench.peers.nothing BYTES` answers every request with that many bytes.

What the clients get from it is the most that they could measure of any server.
"""

import asyncio
import sys
from typing import cast

import httptools
import uvloop


class Nothing(asyncio.Protocol):
    """Answers whatever is asked."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are none by name

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        assert self._transport is not None
        self._transport.write(self._answer)


async def serve(size: int) -> None:
    """Serves until it is ended."""
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + b"x" * size
    server = await asyncio.get_running_loop().create_server(lambda: Nothing(answer), "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(int(sys.argv[1])))
