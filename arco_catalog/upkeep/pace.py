"""Limits how often a long program reports."""

from collections.abc import Callable

REPORT_MS = 1000
"""The minimum time between two reports."""


class Pace:
    """Decides when the next report is due: `REPORT_MS` after its creation, and after each report."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._next_ms = now_ms() + REPORT_MS

    def is_due(self) -> bool:
        """Whether a report is due. If so, the caller reports, and the time starts anew."""
        now_ms = self._now_ms()
        if now_ms < self._next_ms:
            return False
        self._next_ms = now_ms + REPORT_MS
        return True
