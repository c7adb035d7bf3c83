"""How often long work tells how far it has come."""

from collections.abc import Callable

REPORT_MS = 1000
"""At most once in so many."""


class Pace:
    """Says when it is time for another line; for the first so long after it was made."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._next_ms = now_ms() + REPORT_MS

    def is_due(self) -> bool:
        """Whether it is; whoever asks then tells one."""
        now_ms = self._now_ms()
        if now_ms < self._next_ms:
            return False
        self._next_ms = now_ms + REPORT_MS
        return True
