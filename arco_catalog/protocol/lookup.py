"""Lookups in the registry's index, whose older parts are segments: what a lookup turns out to need is read first.

Looking is a pure function of a HEAD. It raises `Unread` rather than take an entry that it can't see for one that is not
there; then the segments that it names are loaded concurrently, and it is done again from the start.
"""

from collections.abc import AsyncGenerator, Callable
from itertools import islice
from typing import TypeVar

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.protocol.concurrency import gather
from arco_catalog.state.access import State
from arco_catalog.state.index import Index
from arco_catalog.state.segments import KeyRange, Segment, Unread

T = TypeVar("T")

ROUNDS = 1_000
"""How often one lookup may ask for more. Each time it gets further, and no index has so many segments in its way."""
AHEAD = 8
"""Segments read beside each other where many are needed."""


async def look_up(state: State, look: Callable[[], T]) -> T:
    """What `look` returns, or raises, once all that it needs is loaded. Raises `SegmentGone`."""
    for _ in range(ROUNDS):
        try:
            return look()
        except Unread as lacking:
            missing = iter(sorted(lacking.segments))
            while batch := list(islice(missing, AHEAD)):
                await gather(*(state.fetch_segment(segment) for segment in batch))
    raise InternalError("a lookup in the registry's index made no progress")


async def entries_in(state: State, index: Index, prefix: str) -> AsyncGenerator[tuple[str, JsonObject], None]:
    """All entries whose keys start with `prefix`, in order, a few segments at a time: however many there are, what is
    held in memory is bounded. Raises `SegmentGone`."""
    key_ranges = index.key_ranges(prefix)

    async def read(key_range: KeyRange) -> Segment | None:
        return None if key_range.ref is None else await state.segment(key_range.ref.id)

    while batch := list(islice(key_ranges, AHEAD)):
        segments = await gather(*(read(key_range) for key_range in batch))
        for key_range, segment in zip(batch, segments, strict=True):
            for item in index.entries(key_range, segment):
                yield item
