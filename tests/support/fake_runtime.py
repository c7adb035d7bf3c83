"""A runtime whose time moves only when a task sleeps, or a test sets it."""

import asyncio

from arco_catalog.state.runtime import ulid_of


class FakeRuntime:
    """Deterministic ids, and a clock that starts in 2026 and is moved by hand or by sleeping."""

    def __init__(self) -> None:
        self.ms = 1_767_225_600_000
        self._ids = 0

    def now_ms(self) -> int:
        return self.ms

    def ulid(self) -> str:
        self._ids += 1
        return ulid_of(self.ms, self._ids.to_bytes(10, "big"))

    def uuid(self) -> str:
        self._ids += 1
        return f"00000000-0000-4000-8000-{self._ids:012x}"

    def random(self) -> float:
        return 0.5

    async def sleep(self, seconds: float) -> None:
        self.ms += round(seconds * 1000)
        await asyncio.sleep(0)
