"""Time, randomness and identifiers for the code of the catalog, which takes them from here alone, so that a test can
replay any run bit for bit."""

import asyncio
import os
import random
import re
import time
import uuid
from typing import Protocol, Self

from storage_backends.lazy_dataclass import dataclass

_ENTROPY = random.SystemRandom()  # the usual generator has a state, which processes restored from one snapshot share
_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # only Linux has one that counts sleep
_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_ULID = re.compile(f"[0-7][{_CROCKFORD}]{{25}}")


def ulid_of(ms: int, entropy: bytes) -> str:
    """Returns the ULID of a time and ten bytes (ULID specification). Raises `ValueError` for another number of bytes,
    `OverflowError` for a time that no ULID holds."""
    if len(entropy) != 10:
        raise ValueError(f"a ULID needs ten bytes of entropy, got {len(entropy)}")
    number = int.from_bytes(ms.to_bytes(6, "big") + entropy, "big")
    text = ""
    for shift in range(125, -1, -5):
        text += _CROCKFORD[number >> shift & 31]
    return text


def is_ulid(text: str) -> bool:
    """Whether a text has the form of a ULID in upper case, which ids of entities, attempts and transactions have."""
    return _ULID.fullmatch(text) is not None


class Runtime(Protocol):
    """The interface of the clocks, the randomness and the ids of a process. Tests replace it."""

    def now_ms(self) -> int:
        """Returns the wall clock in milliseconds since 1970."""
        ...

    def boot_ms(self) -> int:
        """Returns milliseconds of a clock that is never set and, where the system has one, runs while the machine
        sleeps. Only differences have a meaning."""
        ...

    def clocks(self) -> tuple[int, int]:
        """Returns the wall clock and the clock since boot, read one after the other, in milliseconds."""
        ...

    def ulid(self) -> str:
        """Returns a fresh ULID with the present time."""
        ...

    def uuid(self) -> str:
        """Returns a fresh random (version 4) UUID."""
        ...

    def random(self) -> float:
        """Returns a random number in [0, 1), for jitter only."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Waits for this number of seconds, and returns."""
        ...


@dataclass(frozen=True, slots=True)
class ClockReading:
    """Both clocks of the machine at one moment, in milliseconds."""

    wall_ms: int
    boot_ms: int

    @classmethod
    def take(cls, runtime: Runtime) -> Self:
        """Reads the wall clock and the clock since boot."""
        return cls(*runtime.clocks())

    def is_younger(self, limit_ms: int, runtime: Runtime) -> bool:
        """Whether less than `limit_ms` milliseconds have passed since the clocks were read, by both clocks: the clock
        since boot may stop while a function is frozen. False if the wall clock is behind the reading: it was set back,
        by how much is unknown."""
        wall_ms, boot_ms = runtime.clocks()
        return 0 <= wall_ms - self.wall_ms < limit_ms and boot_ms - self.boot_ms < limit_ms


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment by both clocks of the machine, which has come once one of them shows it (docs/design/commit.md#rule-5):
    the clock since boot may stop while the machine sleeps, and the wall clock may be set back."""

    runtime: Runtime
    wall_ms: int
    boot_ms: int

    @classmethod
    def at(cls, runtime: Runtime, wall_ms: int) -> Self:
        """Returns the deadline at a time of the wall clock, and at the time of the clock since boot that is as many
        milliseconds ahead."""
        now_ms, boot_ms = runtime.clocks()
        return cls(runtime, wall_ms, boot_ms + wall_ms - now_ms)

    @classmethod
    def after(cls, runtime: Runtime, ms: int) -> Self:
        """Returns the deadline in `ms` milliseconds."""
        now_ms, boot_ms = runtime.clocks()
        return cls(runtime, now_ms + ms, boot_ms + ms)

    def left_ms(self) -> int:
        """Returns the milliseconds until the deadline, by the clock that shows fewer; 0 or negative once it has
        come."""
        now_ms, boot_ms = self.runtime.clocks()
        return min(self.wall_ms - now_ms, self.boot_ms - boot_ms)


class SystemRuntime:
    """The machine's own clock and entropy, read at the moment of use: a process restored from a memory snapshot
    (Lambda SnapStart) must not repeat ids."""

    def now_ms(self) -> int:
        """Returns the wall clock in milliseconds since 1970, as the machine has it: it may be set back."""
        return time.time_ns() // 1_000_000

    def boot_ms(self) -> int:
        """Returns the milliseconds of the clock since boot, which is never set, and on Linux counts the time that the
        machine sleeps. Only differences have a meaning."""
        return time.clock_gettime_ns(_BOOT_CLOCK) // 1_000_000

    def clocks(self) -> tuple[int, int]:
        """Returns the milliseconds since 1970 by the wall clock, and those since the machine was booted."""
        return time.time_ns() // 1_000_000, time.clock_gettime_ns(_BOOT_CLOCK) // 1_000_000

    def ulid(self) -> str:
        """Returns a fresh ULID of the present wall clock and ten random bytes."""
        return ulid_of(self.now_ms(), os.urandom(10))

    def uuid(self) -> str:
        """Returns a fresh random UUID (version 4), in lower case with hyphens."""
        return str(uuid.UUID(bytes=os.urandom(16), version=4))

    def entropy(self, size: int) -> bytes:
        """Returns `size` unpredictable bytes, for secrets."""
        return os.urandom(size)

    def random(self) -> float:
        """Returns a random number in [0, 1), from the system's entropy."""
        return _ENTROPY.random()

    async def sleep(self, seconds: float) -> None:
        """Waits for this number of seconds, while other tasks of the event loop run."""
        await asyncio.sleep(seconds)
