"""Time, randomness and identifiers of one simulated process: the `Runtime` that a real one takes from its machine."""

import asyncio
import random
import uuid

from arco_catalog.state.runtime import ulid_of
from tests.simulation.loop import SimulatedLoop

EPOCH_MS = 1_767_225_600_000
"""When every run begins: 2026-01-01T00:00:00Z."""

_ENTROPY_BITS = 80


def wall_ms(loop: SimulatedLoop) -> int:
    """The true time of the simulated world, milliseconds since 1970."""
    return EPOCH_MS + int(loop.time() * 1000)


class SimRuntime:
    """A process's own view: its wall clock is `skew_ms` ahead of the true time, its ids come from `seed`.

    `process` names it to the loop: once it is dead, it sleeps no more.
    """

    def __init__(self, seed: int | str, loop: SimulatedLoop, *, process: str = "", skew_ms: int = 0) -> None:
        self._loop = loop
        self._process = process
        self._skew_ms = skew_ms
        self._random = random.Random(f"{seed}/runtime")
        self._last_ulid = 0

    def now_ms(self) -> int:
        """See `Runtime.now_ms`."""
        return wall_ms(self._loop) + self._skew_ms

    def boot_ms(self) -> int:
        """See `Runtime.boot_ms`."""
        return int(self._loop.time() * 1000)

    def clocks(self) -> tuple[int, int]:
        """See `Runtime.clocks`."""
        return self.now_ms(), self.boot_ms()

    def jump(self, ms: int) -> None:
        """Sets the wall clock, forwards or back."""
        self._skew_ms += ms

    def ulid(self) -> str:
        """A ULID greater than all before it, also within a millisecond."""
        fresh = self.now_ms() << _ENTROPY_BITS | self._random.getrandbits(_ENTROPY_BITS)
        self._last_ulid = max(fresh, self._last_ulid + 1)
        ms, entropy = divmod(self._last_ulid, 1 << _ENTROPY_BITS)
        return ulid_of(ms, entropy.to_bytes(_ENTROPY_BITS // 8, "big"))

    def uuid(self) -> str:
        """See `Runtime.uuid`."""
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def random(self) -> float:
        """See `Runtime.random`."""
        return self._random.random()

    async def sleep(self, seconds: float) -> None:
        """Waits virtual seconds. Raises `Crashed` in a dead process, so that no retry loop outlives it."""
        self._loop.check_alive(self._process)
        await asyncio.sleep(seconds)
