"""A runtime whose time moves only when a task sleeps, or a test sets it; one on a machine whose clock is wrong; and one
for tasks beside each other, whose sleeps are short."""

import asyncio

from arco_catalog.state.runtime import SystemRuntime, ulid_of
from arco_catalog.state.worker_threads import wait_for_threads


class FakeRuntime:
    """Deterministic ids, and a clock that starts in 2026 and is moved by hand or by sleeping."""

    def __init__(self) -> None:
        self.ms = 1_767_225_600_000
        self._ids = 0

    def now_ms(self) -> int:
        return self.ms

    def boot_ms(self) -> int:
        return self.ms

    def clocks(self) -> tuple[int, int]:
        return self.now_ms(), self.boot_ms()

    def ulid(self) -> str:
        self._ids += 1
        return ulid_of(self.ms, self._ids.to_bytes(10, "big"))

    def uuid(self) -> str:
        self._ids += 1
        return f"00000000-0000-4000-8000-{self._ids:012x}"

    def random(self) -> float:
        return 0.5

    async def sleep(self, seconds: float) -> None:
        """Moves the clock, but not while a thread works: a task that renews a lease would let days pass meanwhile."""
        await wait_for_threads()
        self.ms += round(seconds * 1000)
        await asyncio.sleep(0)


class WrongClock(FakeRuntime):
    """A machine whose clock is `ahead_ms` ahead of the `right` one; ids of its own."""

    def __init__(self, right: FakeRuntime, ahead_ms: int = 0) -> None:
        super().__init__()
        self.right = right
        self.ahead_ms = ahead_ms
        self._ids = abs(ahead_ms) << 20

    def now_ms(self) -> int:
        return self.right.ms + self.ahead_ms

    def boot_ms(self) -> int:
        return self.right.ms

    async def sleep(self, seconds: float) -> None:
        await self.right.sleep(seconds)


class ShortSleeps(FakeRuntime):
    """A runtime whose time is the system's plus what a test adds, and whose sleeps end after `LONGEST_S`. It is for
    tests with several tasks, whose sleeps must not move each other's time."""

    LONGEST_S = 0.02

    def __init__(self) -> None:
        super().__init__()
        self._system = SystemRuntime()
        self._began = self._system.boot_ms()

    def now_ms(self) -> int:
        return self.ms + self._system.boot_ms() - self._began

    def boot_ms(self) -> int:
        return self.now_ms()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(min(seconds, self.LONGEST_S))
