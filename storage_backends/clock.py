"""The system clock, for stores that are their own clock. Tests hand a store another one."""

import time


def system_now_ms() -> int:
    """Returns the milliseconds since 1970, UTC."""
    return time.time_ns() // 1_000_000
