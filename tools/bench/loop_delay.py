"""How late a server's event loop is, measured inside of it: `python -m tools.bench.loop_delay FILE serve ...` is
`arco serve ...` with a probe whose worst value stands in the file.

A delay counts as far as the process used CPU time meanwhile, so that other processes of the machine add nothing: a loop
that can't run because a thread of its own process has Python's lock is late by CPU time of that process.
"""

import asyncio
import mmap
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path

import uvloop

from arco_catalog.cli.program import main as arco

TICK_S = 0.002
_VALUE = struct.Struct("d")


class DelayFile:
    """The worst delay so far, in seconds, shared by the server and who watches it."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(bytes(_VALUE.size))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), _VALUE.size)

    @property
    def worst(self) -> float:
        """The greatest value that was recorded since the last reset."""
        return float(_VALUE.unpack(self._map[:])[0])

    def record(self, seconds: float) -> None:
        """Records a delay."""
        if seconds > self.worst:
            self._map[:] = _VALUE.pack(seconds)

    def reset(self) -> None:
        """Forgets what was recorded."""
        self._map[:] = _VALUE.pack(0.0)


def probed(make: Callable[[], asyncio.AbstractEventLoop], delays: DelayFile) -> Callable[[], asyncio.AbstractEventLoop]:
    """Event loops with a probe: a timer that records by how much it is late."""

    def make_probed() -> asyncio.AbstractEventLoop:
        loop = make()
        wall = cpu = 0.0

        def tick() -> None:
            nonlocal wall, cpu
            delays.record(min(time.perf_counter() - wall - TICK_S, time.process_time() - cpu))
            wall, cpu = time.perf_counter(), time.process_time()
            loop.call_later(TICK_S, tick)

        wall, cpu = time.perf_counter(), time.process_time()
        loop.call_later(TICK_S, tick)
        return loop

    return make_probed


if __name__ == "__main__":
    uvloop.new_event_loop = probed(uvloop.new_event_loop, DelayFile(Path(sys.argv[1])))  # type: ignore[assignment]
    sys.exit(arco(sys.argv[2:]))
