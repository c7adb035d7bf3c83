"""A webhook on loopback that fails now and then: it answers 500, drops requests before or after it has taken the
event, or delays answers."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

from arco_catalog.iceberg.json import JsonObject, loads
from arco_catalog.state.fields import integer, text

FAILING_S, INTERVAL_S = 0.6, 12.0
"""For how long it fails, and the time from one such beginning to the next. A failure delays the next attempt by five
seconds."""
LONG_S = 2.0


@dataclass
class EventReceiver:
    """What a webhook got: the ids and numbers of the events that it took, in their order, also those whose answer was
    lost, and how often it failed in each way."""

    rng: random.Random
    taken: list[tuple[str, int]] = field(default_factory=list)
    failures: Counter[str] = field(default_factory=Counter)
    url: str = ""
    is_reliable: bool = False
    """Whether it fails no more."""

    async def take(self, request: web.Request) -> web.StreamResponse:
        """One request."""
        body = await request.read()
        failure = self._failure()
        if failure is not None:
            self.failures[failure] += 1
        if failure == "500":
            return web.Response(status=500)
        if failure != "dropped before":
            event = loads(body)
            assert isinstance(event, dict)
            self.taken.append((text(event, "id"), _number(event)))
        if failure in ("dropped before", "dropped after"):
            assert request.transport is not None
            request.transport.abort()
        if failure == "late":
            await asyncio.sleep(LONG_S)
        return web.Response(status=204)

    def _failure(self) -> str | None:
        now = asyncio.get_running_loop().time()
        if self.is_reliable or now % INTERVAL_S >= FAILING_S:
            return None
        return self.rng.choice(["500", "dropped before", "dropped after", "late"])


def _number(event: JsonObject) -> int:
    """The number of an event in the feed."""
    found = event.get("sequence")
    return int(found) if isinstance(found, str) else integer(event, "sequence")


@asynccontextmanager
async def receiving(rng: random.Random) -> AsyncIterator[EventReceiver]:
    """A webhook that listens as long as the context lasts."""
    receiver = EventReceiver(rng)
    app = web.Application()
    app.router.add_post("/events", receiver.take)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    receiver.url = f"http://{host}:{port}/events"
    try:
        yield receiver
    finally:
        await runner.cleanup()
