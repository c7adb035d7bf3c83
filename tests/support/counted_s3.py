"""An S3 in memory, in a thread of the test, that answers each request after a delay and counts the requests."""

import asyncio
import socket
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import uvloop

from tools.bench.peers.objects import Answer, Objects
from tools.bench.peers.slow_s3 import Connection
from tools.support.s3_servers import S3Server

BUCKET = "counted"


class CountedObjects(Objects):
    """Objects of S3 in memory. `calls` counts the requests by method and key, and `swaps` the PUTs of a HEAD, and those
    that were refused."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.swaps: Counter[str] = Counter()

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> Answer:
        self.calls += 1
        answer = super().answer(method, path, query, headers, body)
        if method == "PUT" and path.endswith("/manifest.json"):
            self.swaps["applied" if answer[0] == 200 else "refused"] += 1
        return answer


@contextmanager
def counted_s3(delay_ms: float) -> Iterator[tuple[S3Server, CountedObjects]]:
    """Serves an empty bucket `BUCKET`, and yields the server and its objects."""
    objects, loop = CountedObjects(), uvloop.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def listen(listener: socket.socket) -> asyncio.AbstractServer:
        return await loop.create_server(lambda: Connection(objects, delay_ms / 1000), sock=listener)

    try:
        listener = socket.create_server(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        server = asyncio.run_coroutine_threadsafe(listen(listener), loop).result(30)
        s3 = S3Server(f"http://127.0.0.1:{port}")
        s3.make_bucket(BUCKET)
        try:
            yield s3, objects
        finally:
            loop.call_soon_threadsafe(server.close)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()
