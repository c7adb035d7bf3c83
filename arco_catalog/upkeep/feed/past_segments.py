"""Reads the segments of the event feed backwards, to find which records have entered: after a restore, or where a
history has a gap or is long (docs/design/events.md#rule-10)."""

from collections.abc import AsyncGenerator

from arco_catalog.operations.feed import read_segment
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.feed import FeedRecord

MAX_SEGMENTS = 500_000
"""The number of segments that are read backwards at most: more than a quarter of a year has."""


async def records_back(session: Session, tail: int) -> AsyncGenerator[FeedRecord, None]:
    """Yields the records of the event feed, the newest first: from the segment that begins with the number `tail` back
    to the oldest one that is stored, or through `MAX_SEGMENTS` of them. Raises `InternalError` for a corrupt segment,
    and `StoreError`, also past the session's deadline."""
    first: int | None = tail
    for _ in range(MAX_SEGMENTS):
        segment = None if first is None else await read_segment(session.state, first)
        if segment is None:
            return
        for record in reversed(segment.records):
            yield record
        first = segment.previous_first
        session.check_deadline()


class EnteredFiles:
    """The locations of the metadata files of an entity that have entered the event feed, by the segments that were
    read: from the one that begins with the number `tail` backwards. `by_commits` has those that entered as commits,
    `otherwise` those of other records. `is_over` is whether all segments were read."""

    def __init__(self, entity: str, tail: int) -> None:
        self._entity = entity
        self._next: int | None = tail
        self.by_commits: set[str] = set()
        self.otherwise: set[str] = set()
        self.is_over = False

    async def go(self, session: Session, segments: int) -> None:
        """Reads the given number of segments backwards, or up to the oldest one, and adds the entity's files in them.
        Sets `is_over` once it looks for another segment and there is none. Raises as `records_back` does."""
        for _ in range(segments):
            session.check_deadline()
            segment = None if self._next is None else await read_segment(session.state, self._next)
            if segment is None:
                self.is_over = True
                return
            for record in segment.records:
                if record.entity == self._entity and record.file is not None:
                    entered = self.by_commits if record.kind == "commit" else self.otherwise
                    entered.add(record.file.location)
            self._next = segment.previous_first
