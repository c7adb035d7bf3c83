"""Lookups in the registry's index, whose older parts are segments: what a lookup turns out to need is read first.

Looking is a pure function of a HEAD. It raises `Unread` rather than take an entry that it can't see for one that is not
there; then the segments that it names are brought to hand, beside each other, and it is done again from the start.
"""

from collections.abc import AsyncGenerator, Callable
from itertools import islice
from typing import TypeVar

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.concurrency import gather
from arco_catalog.state.access import State
from arco_catalog.state.index import Index
from arco_catalog.state.segments import Segment, Stretch, Unread

T = TypeVar("T")

ROUNDS = 1_000
"""How often one lookup may ask for more. Each time it gets further, and no index has so many segments in its way."""
AHEAD = 8
"""Segments read beside each other where many are needed."""


async def look_up(state: State, look: Callable[[], T]) -> T:
    """What `look` returns, or raises, once all that it needs is at hand. Raises `SegmentGone`."""
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
    stretches = index.stretches(prefix)

    async def read(stretch: Stretch) -> Segment | None:
        return None if stretch.ref is None else await state.segment(stretch.ref.id)

    while batch := list(islice(stretches, AHEAD)):
        segments = await gather(*(read(stretch) for stretch in batch))
        for stretch, segment in zip(batch, segments, strict=True):
            for item in index.entries(stretch, segment):
                yield item
