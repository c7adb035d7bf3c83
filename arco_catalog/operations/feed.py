"""Reads the event feed of a catalog by tokens (docs/design/events.md#reading)."""

import re
from collections.abc import Sequence
from functools import partial

from arco_catalog.iceberg.errors import BadRequest, InternalError, NotFound
from arco_catalog.state.access import State
from arco_catalog.state.feed import FeedRecord, FeedSegment
from arco_catalog.state.feed_cursors import read_shard
from arco_catalog.state.feed_floor import read_feed_floor
from arco_catalog.state.runtime import is_ulid
from arco_catalog.state.worker_threads import off_loop
from storage_backends.lazy_dataclass import dataclass

MAX_SEGMENTS = 64
"""The maximum number of segments that a page reads after the one of its token, unless the caller wants fewer."""
MAX_TO_END = 10_000
"""The maximum number of segments that are read to find the end of the feed."""
_TOKEN = re.compile("([0-9]{1,16})-([0-9]{1,16})-([0-9A-Z]{26})")


class NoSuchFeed(NotFound):
    """The catalog has no event feed: no sequencer has made a step in it."""


@dataclass(frozen=True, slots=True)
class FeedPage:
    """One page of the event feed: the records, the token after each of them, the one after the last, and whether the
    feed ended there when it was read. A page without records has the token from which it was read, which without one
    is that of the beginning."""

    records: Sequence[FeedRecord]
    tokens: Sequence[str]
    token: str
    is_end: bool


async def read_segment(state: State, first: int) -> FeedSegment | None:
    """Reads the segment of the event feed that begins with this number; None if it does not exist. Raises
    `InternalError` if it is corrupt, and `StoreError`."""
    key = state.paths.feed_segment(first)
    found = await state.read(key)
    if found is None:
        return None
    segment = await off_loop(len(found.body), partial(FeedSegment.parse, found.body, key))
    if segment.first != first:
        raise InternalError(f"The segment {key} of the event feed is corrupt: it begins with record {segment.first}")
    return segment


async def read_feed(state: State, token: str | None, limit: int, max_segments: int = MAX_SEGMENTS) -> FeedPage:
    """Returns at most `limit` records of the event feed: those after the one of the `token`, or without a token the
    oldest that are stored. Reads at most `max_segments` segments after the first one. Raises `BadRequest` for a token
    that is malformed, of a segment that is gone, or of another history of the catalog, `NoSuchFeed` if there is no
    feed, `InternalError`, and `StoreError`."""
    segment, number = await _start(state, token)
    records, tokens = list[FeedRecord](), list[str]()
    place = _token(segment, number)
    for _ in range(max_segments):
        taken = [record for record in segment.records if record.number > number][: limit - len(records)]
        if taken:
            records += taken
            tokens += [_token(segment, record.number) for record in taken]
            number, place = taken[-1].number, tokens[-1]
        if len(records) == limit:
            break
        following = await _following(state, segment)
        if following is None:
            return FeedPage(records, tokens, place, is_end=True)
        segment = following
    return FeedPage(records, tokens, place, is_end=False)


async def newest_token(state: State) -> str:
    """Returns the token of the last record of the event feed, from which a consumer gets only later ones. Reads the
    segments after the one up to which the first shard of cursors is, or else the first one, at most `MAX_TO_END`: with
    more, the token is of the last record in these. Raises as `read_feed` does."""
    known = (await read_shard(state, 0)).up_to
    segment = None if known is None else await read_segment(state, known.first)
    if segment is None:
        segment, _ = await _start(state, None)
    for _ in range(MAX_TO_END):
        following = await _following(state, segment)
        if following is None:
            break
        segment = following
    return _token(segment, segment.next - 1)


def number_of(token: str) -> int:
    """Returns the number of the record after which reading goes on by a token, which must be one that a page of the
    event feed has given. Reads nothing."""
    return int(token.partition("-")[0])


async def _start(state: State, token: str | None) -> tuple[FeedSegment, int]:
    """Returns the segment with the record of a token, and that record's number; without a token the first segment, and
    the number before it. Raises `BadRequest` for a token that is malformed or expired, and `NoSuchFeed` without a token
    if there is no segment."""
    if token is None:
        first = await read_feed_floor(state)
        segment = await read_segment(state, first)
        if segment is None:
            raise NoSuchFeed(
                "This catalog has no event feed yet: start one with `arco serve --events`, or with ARCO_EVENTS=true in "
                "the environment of its servers and functions; it begins a short time later"
            )
        return segment, first - 1
    match = _TOKEN.fullmatch(token)
    if match is None or not is_ulid(match[3]):
        raise BadRequest(f"invalid continuation token {token[:64]!r}: send one of this catalog's event feed, or none")
    number, first = int(match[1]), int(match[2])
    segment = await read_segment(state, first)
    if segment is None or segment.id != match[3] or not first - 1 <= number < segment.next:
        raise _expired(number)
    return segment, number


async def _following(state: State, segment: FeedSegment) -> FeedSegment | None:
    """Reads the segment after another one; None at the end of the feed. Raises `BadRequest` if that segment does not
    continue this one, as the catalog was restored."""
    following = await read_segment(state, segment.next)
    if following is not None and following.previous != segment.id:
        raise _expired(segment.next)
    return following


def _token(segment: FeedSegment, number: int) -> str:
    """Returns the token by which reading goes on after the record with this number of a segment; a number before the
    segment stands for its beginning."""
    return f"{max(number, segment.first - 1)}-{segment.first}-{segment.id}"


def _expired(number: int) -> BadRequest:
    """Returns the error for a token of a record that the feed does not have, or not any more, and for a feed that goes
    on in another history, because the catalog was restored."""
    return BadRequest(
        f"The event feed no longer has record {number} of the continuation token: it was deleted because of its age, "
        "or the catalog was restored to an earlier state. Read the catalog as a whole, then continue without a token"
    )
