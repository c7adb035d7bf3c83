"""Reads the segments of the event feed backwards, after a restore (docs/design/events.md#rule-10)."""

from collections.abc import AsyncGenerator

from arco_catalog.operations.feed import read_segment
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.feed import FeedRecord

MAX_SEGMENTS = 500_000
"""The number of segments that are read backwards at most: more than a quarter of a year has."""


async def records_back(session: Session, tail: int) -> AsyncGenerator[FeedRecord, None]:
    """Yields the records of the segments up to the one that begins with the number `tail`, the last first.
    Raises `InternalError` for a corrupt segment, and `StoreError`, also past the session's deadline."""
    first: int | None = tail
    for _ in range(MAX_SEGMENTS):
        segment = None if first is None else await read_segment(session.state, first)
        if segment is None:
            return
        for record in reversed(segment.records):
            yield record
        first = segment.previous_first
        session.check_deadline()
