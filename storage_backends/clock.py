"""The system clock. It is the time of local stores and of stores in memory, unless a test gives them another clock;
clients of clouds sign requests by it, and use it where a response has no date."""

import time


def system_now_ms() -> int:
    """Returns the time of the system clock in milliseconds since 1970, UTC."""
    return time.time_ns() // 1_000_000
