"""Marks on days into which receipts are written later, by whoever restores what a dead writer owed.

The pipeline lists a day's receipts until two days past its end. Whoever writes one into another day than today's marks
that day first. A mark is removed after a batch that listed its day, if it is an hour old then: by that time the write
that it announced has ended (docs/design/pipeline.md#rule-2).
"""

from contextlib import aclosing
from dataclasses import dataclass
from datetime import date

from arco_catalog.iceberg.json import dumps
from arco_catalog.state.access import State
from arco_catalog.state.listing import list_pages
from storage_backends import ANY, Applied, Matches, StoreUnavailable, Version

HOUR_MS = 60 * 60 * 1000
"""More than any write takes, and than the clocks of one store's servers differ."""
TRIES = 10


@dataclass(frozen=True, slots=True)
class LateMark:
    """A mark as it was listed; `old` says that the writes which it announced have ended."""

    day: date
    key: str
    version: Version
    old: bool


async def mark_late(state: State, day: date, mark: str) -> None:
    """Marks a day for certain, anew if it is marked. `mark` is a fresh id: were two marks equal, so could be their
    versions. Raises `StoreError`."""
    body = dumps({"version": 1, "id": mark})
    for _ in range(TRIES):
        if isinstance(await state.store.put(state.paths.late_mark(day), body, ANY), Applied):
            return
        await state.pause()
    raise StoreUnavailable(f"the mark on {day} could not be written in {TRIES} attempts")


async def late_marks(state: State) -> tuple[list[LateMark], int]:
    """All marks, and the store's time before which they were listed. Raises `StoreError`."""
    found: list[LateMark] = []
    now_ms = 0
    async with aclosing(list_pages(state, state.paths.late_marks)) as pages:
        async for page in pages:
            now_ms = page.now_ms
            for each in page.entries:
                day = state.paths.read_late_mark(each.key)
                if day is not None:
                    found.append(LateMark(day, each.key, each.version, now_ms - each.written_ms >= HOUR_MS))
    return found, now_ms


async def unmark(state: State, mark: LateMark) -> None:
    """Removes a mark, unless it was written anew since it was listed. If that fails the next batch removes it."""
    await state.store.delete(mark.key, Matches(mark.version))
