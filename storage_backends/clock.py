"""The system clock, for stores that get no time from a server. Tests give a store another one."""

import time


def system_now_ms() -> int:
    """Returns the time of the system clock in milliseconds since 1970, UTC."""
    return time.time_ns() // 1_000_000
