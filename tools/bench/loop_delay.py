"""How late a server's event loop is, measured inside of it: `python -m tools.bench.loop_delay FILE serve ...` is
`arco serve ...` with a probe whose worst values stand in the file.

Two values are free of what other processes of the machine do. A *step* is the CPU time of the loop's own thread between
two ticks of a timer. The *delay* is by how much a tick was late, without the time that the thread waited for a core,
and no more than the CPU time of the process: a loop that can't run because another thread has Python's lock is late by
that thread's CPU time.
"""

import asyncio
import ctypes
import mmap
import os
import struct
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import uvloop

from arco_catalog.cli.program import main as arco

TICK_S = 0.002
_VALUES = struct.Struct("dd")
_SCHEDULING = Path("/proc/thread-self/schedstat")
"""Nanoseconds that a thread ran, and that it waited for a core (Linux)."""


@dataclass(frozen=True, slots=True)
class Lateness:
    """The worst values of an event loop in seconds: the longest step, and the longest delay."""

    step: float = 0.0
    delay: float = 0.0

    def at_least(self, other: "Lateness") -> "Lateness":
        """The greater values of both."""
        return Lateness(max(self.step, other.step), max(self.delay, other.delay))


class DelayFile:
    """A file with the worst values of an event loop so far, which the server writes and the benchmark reads."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(bytes(_VALUES.size))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), _VALUES.size)

    @property
    def worst(self) -> Lateness:
        """The greatest values that were recorded since the last reset."""
        return Lateness(*_VALUES.unpack(self._map[:]))

    def record(self, found: Lateness) -> None:
        """Records what was found between two ticks."""
        worst = self.worst.at_least(found)
        self._map[:] = _VALUES.pack(worst.step, worst.delay)

    def reset(self) -> None:
        """Forgets what was recorded."""
        self._map[:] = bytes(_VALUES.size)


@dataclass(frozen=True, slots=True)
class Reading:
    """The clocks of a thread at a tick of the event loop, in seconds. `waited` is how long the thread has waited for a
    core, 0 where that is unknown."""

    wall: float
    process: float
    thread: float
    waited: float

    def until(self, now: "Reading") -> Lateness:
        """Returns how late the loop was between this reading and a later one."""
        late = now.wall - self.wall - TICK_S - (now.waited - self.waited)
        return Lateness(now.thread - self.thread, min(late, now.process - self.process))


class Clocks:
    """Reads the clocks of the thread that makes this object. A reading keeps Python's lock: a call that releases the
    lock, as each of a Python file does, gets it back only after a piece of another thread's work, and the loop would be
    late by its own probe."""

    def __init__(self) -> None:
        self._file = os.open(_SCHEDULING, os.O_RDONLY) if _SCHEDULING.exists() else None
        self._buffer = ctypes.create_string_buffer(128)
        self._pread = ctypes.PyDLL(None).pread
        self._pread.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_long)

    def read(self) -> Reading:
        """Reads the clocks."""
        return Reading(time.perf_counter(), time.process_time(), time.thread_time(), self._waited())

    def _waited(self) -> float:
        if self._file is None:
            return 0.0
        count = self._pread(self._file, self._buffer, len(self._buffer), 0)
        return int(self._buffer.raw[:count].split()[1]) / 1e9


def probed(make: Callable[[], asyncio.AbstractEventLoop], delays: DelayFile) -> Callable[[], asyncio.AbstractEventLoop]:
    """Event loops with a probe: a timer that records by how much it is late."""

    def make_probed() -> asyncio.AbstractEventLoop:
        loop, clocks = make(), Clocks()
        before = clocks.read()

        def tick() -> None:
            nonlocal before
            delays.record(before.until(clocks.read()))
            before = clocks.read()
            loop.call_later(TICK_S, tick)

        loop.call_later(TICK_S, tick)
        return loop

    return make_probed


if __name__ == "__main__":
    uvloop.new_event_loop = probed(uvloop.new_event_loop, DelayFile(Path(sys.argv[1])))  # type: ignore[assignment]
    sys.exit(arco(sys.argv[2:]))
