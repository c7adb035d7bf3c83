"""Marks on days to which receipts are added after their end. A receipt is in the day of its metadata file, so a walk
that writes the missing receipt of a crashed writer often writes into a past day.

The pipeline lists a day's receipts until two days after its end. A walk that writes a missing receipt into another day
than today marks that day first; a commit marks none. A batch of the pipeline lists marked days, too, and removes a mark
that is an hour old: by then the write that the mark announced is over (docs/design/pipeline.md#rule-2)."""

from contextlib import aclosing
from datetime import date

from arco_catalog.iceberg.json import dumps
from arco_catalog.state.access import State
from arco_catalog.state.listing import list_pages
from storage_backends import ANY, Applied, Matches, StoreUnavailable, Version
from storage_backends.lazy_dataclass import dataclass

HOUR_MS = 60 * 60 * 1000
"""Longer than any write takes, and than the clocks of one store's servers differ."""
TRIES = 10


@dataclass(frozen=True, slots=True)
class LateMark:
    """The mark of a day to which receipts are added after its end, as it was listed. `old`: it was written so long ago
    that the writes which it announced are over."""

    day: date
    key: str
    version: Version
    old: bool


async def mark_late(state: State, day: date, mark: str) -> None:
    """Marks a day, in the store, as one to which receipts are added after its end; replaces the mark that it has, and
    returns when the new one is saved. `mark` must be a fresh id, so that no two marks of a day have one version. Raises
    `StoreError`, also if none of `TRIES` tries was confirmed."""
    body = dumps({"version": 1, "id": mark})
    for _ in range(TRIES):
        if isinstance(await state.store.put(state.paths.late_mark(day), body, ANY), Applied):
            return
        await state.pause()
    raise StoreUnavailable(
        f"The store did not confirm in {TRIES} attempts the mark that announces a late receipt of the day {day}: the "
        "receipt was not written, and the next run of the reconciler, repair by `arco fsck` or attempt of the purge "
        "writes it"
    )


async def late_marks(state: State) -> tuple[list[LateMark], int]:
    """Lists the marks of all days to which receipts are added after their end, and returns them, in no order, with the
    store's time of the last answer, in milliseconds since 1970. Objects with other names are left out. Raises
    `StoreError`."""
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
    """Removes the mark of a day to which receipts were added after its end, unless it was replaced since it was listed.
    Raises `StoreError` if that fails. If it fails or its outcome is unknown, the next batch of the pipeline removes the
    mark."""
    await state.store.delete(mark.key, Matches(mark.version))
