"""Decides which days of receipts a batch lists. A day is open until two days after the end, by the store's clock
(docs/design/pipeline.md#rule-1)."""

from collections.abc import Iterable, Sequence
from datetime import date, timedelta

from arco_catalog.state.paths import day_of

OPEN_DAYS = 2
"""For how many whole days after the end a day stays open."""


def first_open(now_ms: int) -> date:
    """Returns the oldest open day, from which on every batch lists all days. Days before it are closed: they are listed
    only if they are not before the watermark, or are marked as late."""
    return day_of(now_ms) - timedelta(days=OPEN_DAYS)


def days_to_list(
    closed_before: date | None, found: Iterable[date], late: Iterable[date], now_ms: int
) -> Sequence[date]:
    """Returns the days to list, the oldest first: those from `closed_before` to today, and `late` days, into which a
    receipt was written after they were closed. Without a watermark (None), they are the ones in `found`,
    which have objects, and the `late` ones. Days after today are left out."""
    today = day_of(now_ms)
    if closed_before is None:
        days = {day for day in found if day <= today}
    else:
        days = {closed_before + timedelta(days=ahead) for ahead in range((today - closed_before).days + 1)}
    return sorted(days | {day for day in late if day <= today})


def closed_after(done: date, closed_before: date | None, now_ms: int) -> date:
    """Returns the watermark, the first day that is not closed, after `done` and all days before it have been read. It
    is no later than the first open day, and no less than the watermark before, `closed_before`."""
    reached = min(done + timedelta(days=1), first_open(now_ms))
    return reached if closed_before is None else max(reached, closed_before)
