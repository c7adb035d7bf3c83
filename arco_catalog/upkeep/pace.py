"""Limits how often a long program makes a report."""

from collections.abc import Callable

REPORT_MS = 1000
"""The minimum time between two reports."""


class Pace:
    """Decides when a long program makes the next report: `REPORT_MS` after the start, and after each report."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._next_ms = now_ms() + REPORT_MS

    def is_due(self) -> bool:
        """Whether a report is due. If it is, the caller reports now, and the next report is due `REPORT_MS` later."""
        now_ms = self._now_ms()
        if now_ms < self._next_ms:
            return False
        self._next_ms = now_ms + REPORT_MS
        return True
