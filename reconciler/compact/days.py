"""Which days of receipts are to be listed. A day is open until two days past its end, by the store's clock
(docs/design/pipeline.md#rule-1)."""

from collections.abc import Iterable, Sequence
from datetime import date, timedelta

from arco_catalog.state.paths import day_of

OPEN_DAYS = 2
"""Whole days after a day for which it stays open."""


def first_open(now_ms: int) -> date:
    """The oldest day that is open: those before it are closed."""
    return day_of(now_ms) - timedelta(days=OPEN_DAYS)


def days_to_list(
    closed_before: date | None, found: Iterable[date], late: Iterable[date], now_ms: int
) -> Sequence[date]:
    """The days to list, the oldest first: those that the last batch left open, and those that somebody has marked. In
    the beginning, without a watermark, `found` are the days that there are."""
    today = day_of(now_ms)
    if closed_before is None:
        wanted = {day for day in found if day <= today}
    else:
        wanted = {closed_before + timedelta(days=ahead) for ahead in range((today - closed_before).days + 1)}
    return sorted(wanted | {day for day in late if day <= today})


def closed_after(done: date, closed_before: date | None, now_ms: int) -> date:
    """The watermark of a batch after which `done` and all days before it have been read: open days stay open, and what
    was closed stays closed."""
    reached = min(done + timedelta(days=1), first_open(now_ms))
    return reached if closed_before is None else max(reached, closed_before)
