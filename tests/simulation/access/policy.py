"""A policy outside of the catalog, in simulation: its answers take time, get lost, and change between any two calls."""

import asyncio
from collections.abc import Callable

from arco_catalog.authentication.opa import PolicyAgent
from storage_backends import StoreUnavailable
from storage_backends.wire.http1 import Response
from tests.simulation.world import World
from tests.support.policy_stub import BATCH_URL, URL, PolicyStub

CACHED_S = 5.0
"""How long a process may remember what the policy allowed."""


class ChangingPolicy:
    """A policy that denies everything to some principals, by their ids, and nothing to others. `denials` are the denied
    ids, by the time. It answers some questions about `worker` not at all, and none while it is `down`."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._chance = world.loop.stream("policy")
        self.denials: list[tuple[float, frozenset[str]]] = [(0.0, frozenset())]
        self.down = False

    def agent(self, now_ms: Callable[[], int]) -> PolicyAgent:
        """What a process queries by."""
        return PolicyAgent(URL, BATCH_URL, self.send, now_ms, int(CACHED_S * 1_000))

    async def deny(self, *principals: str) -> None:
        """From now on it denies everything to these principals, by their ids, and nothing to others."""
        self.denials.append((self._world.loop.time(), frozenset(principals)))

    async def fail(self, seconds: float) -> None:
        """Does not answer for a while."""
        self.down = True
        await self._world.runtime.sleep(seconds)
        self.down = False

    async def send(self, url: str, body: bytes) -> Response:
        """Answers by what it denies at one instant of the call."""
        await asyncio.sleep(self._chance.choice((0.0, 0.01, 0.2)) * self._chance.random())
        about_worker = b'"principal":"worker"' in body  # others change the realm, and are not sent again
        if about_worker and (self.down or self._chance.random() < 0.02):
            raise StoreUnavailable("the policy did not answer")
        denied = self.denials[-1][1]
        stub = PolicyStub(allows_id=lambda identity: identity not in denied)
        answer = await stub.send(url, body)
        await asyncio.sleep(self._chance.choice((0.0, 0.01, 0.2)) * self._chance.random())
        return answer
