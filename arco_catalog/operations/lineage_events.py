"""Reads the stored OpenLineage events of some days that may be about given datasets, and on request the latest others,
within limits (docs/design/lineage.md#graph)."""

from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import field
from datetime import date
from itertools import islice

from arco_catalog.iceberg.errors import BadRequest, InternalError
from arco_catalog.planning.lineage_edges import RunEvent
from arco_catalog.planning.lineage_names import EventTags, digest_in, reference_to, tags_in
from arco_catalog.planning.lineage_reasons import LeftOutEvent, NoEdge
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import batches, gather
from arco_catalog.state.lineage import decode_event, read_event
from arco_catalog.state.listing import list_pages
from arco_catalog.state.memory import PARSED_WEIGHT
from arco_catalog.state.worker_threads import off_loop
from storage_backends import Found, Listed
from storage_backends.lazy_dataclass import dataclass

LAST_DAYS = 7
"""How many days back from now events are read, besides the days of a table's latest commits."""
MAX_DAYS = 16
"""Maximum number of days of which events are read."""
MAX_PAGES = 48
"""Maximum number of pages of names, 1,000 by one call. All days have an equal part."""
MAX_EVENTS = 200
"""Maximum number of events that are read, one by one call."""
MAX_EVENT_BYTES = 512 << 10
"""The size of an event beyond which it is left out."""
MAX_BYTES = 8 << 20
"""Maximum size of all events that are read, together."""
MAX_DATASETS = 20_000
"""Maximum number of inputs and outputs of the events that are read, together."""
ENTRY_WEIGHT = 1_000
"""The memory that an entry takes, in bytes."""
AT_ONCE = 32


@dataclass(frozen=True, slots=True)
class EventEntry:
    """An event of a day that was not read, with the tags in its name."""

    stored: Listed
    name: str
    tags: EventTags
    day: date


@dataclass(slots=True)
class EventReader:
    """Reads events of some days, no event twice. `events` are those of runs that `read` has read; `left_out` are events
    that are of no run, unreadable or too large; `is_partial` is whether a limit kept any that may be about them
    from being listed or read."""

    days: Sequence[date]
    _session: Session
    _times: Mapping[date, Sequence[int]]
    events: list[RunEvent] = field(default_factory=list)
    left_out: list[LeftOutEvent] = field(default_factory=list)
    is_partial: bool = False
    _unread: list[EventEntry] = field(default_factory=list)
    """The events that were not chosen yet."""
    _events_left: int = 0
    _bytes_left: int = 0
    _datasets_left: int = 0

    async def read(self, tags: frozenset[str]) -> bool:
        """Reads the events that may name datasets with these tags, and the other events of their runs, and adds the
        ones of runs to `events`. Events that have such a tag come before events that may name any dataset. Of either,
        where there are too many, all senders have an equal part, and of a sender all days: of a day with times the
        events that arrived nearest to one of them, of any other day the latest. Returns whether it added an event.
        Raises `StoreError`, and `OutOfMemory`."""
        unread = self._unread
        weight = ENTRY_WEIGHT * len(unread)
        chosen, self._unread = await off_loop(weight, lambda: _choose(unread, tags, self._times))
        found = await self._read_all(chosen)
        self.events += found
        return bool(found)

    async def read_others(self, limit: int) -> list[RunEvent]:
        """Reads up to `limit` of the events that `read` left, within the limits of the reader: an equal part
        of each sender's, and of a sender's from each day, the latest of a day first. Returns the ones of runs, and adds
        the others to `left_out`; `events` and `is_partial` do not change. Raises `StoreError`, and `OutOfMemory`."""
        unread, was_partial = self._unread, self.is_partial
        ordered = await off_loop(ENTRY_WEIGHT * len(unread), lambda: _equally(unread, {}, {}))
        found = await self._read_all(ordered[:limit])
        self.is_partial = was_partial
        return found

    async def _read_all(self, chosen: Sequence[EventEntry]) -> list[RunEvent]:
        """Reads these events from the store, returns the ones of runs, and adds the others to `left_out`; events that
        were deleted meanwhile are in neither. Stops at the limits of events, bytes and datasets, and then sets
        `is_partial`."""
        found: list[RunEvent] = []
        for batch in batches(self._within_limits(chosen), AT_ONCE):
            for event in await gather(*(_read(self._session, entry) for entry in batch)):
                if isinstance(event, LeftOutEvent):
                    self.left_out.append(event)
                elif event is not None:
                    self._datasets_left -= len(event.inputs) + len(event.outputs)
                    if self._datasets_left < 0:
                        self.is_partial = True
                        return found
                    found.append(event)
        return found

    def _within_limits(self, chosen: Sequence[EventEntry]) -> list[EventEntry]:
        """Returns the events up to the first that exceeds the limits of number and bytes, which it lowers by these
        events. Adds any that is too large by itself to `left_out`, and sets `is_partial` if an event is missing."""
        taken: list[EventEntry] = []
        for event in chosen:
            if event.stored.size > MAX_EVENT_BYTES:
                self.is_partial = True
                self.left_out.append(_left_out(event, NoEdge.TOO_LARGE))
                continue
            if self._events_left == 0 or event.stored.size > self._bytes_left:
                self.is_partial = True
                break
            self._events_left -= 1
            self._bytes_left -= event.stored.size
            taken.append(event)
        return taken


async def list_events(session: Session, days: Mapping[date, Sequence[int]]) -> EventReader:
    """Lists the names of the events of at most `MAX_DAYS` of these days, in at most `MAX_PAGES` pages, of which all
    days have an equal part, and returns a reader of them, which is partial if there are more. `days` has for a day the
    times in milliseconds since 1970 near to which events matter, none if the latest do. Raises
    `StoreError`, and `OutOfMemory`."""
    chosen = list(islice(days, MAX_DAYS))
    pages = MAX_PAGES // max(len(chosen), 1)
    of_days = await gather(*(_list_day(session, day, pages) for day in chosen))
    return EventReader(
        chosen,
        session,
        days,
        is_partial=len(days) > MAX_DAYS or not all(whole for _, whole in of_days),
        _unread=[event for found, _ in of_days for event in found],
        _events_left=MAX_EVENTS,
        _bytes_left=MAX_BYTES,
        _datasets_left=MAX_DATASETS,
    )


async def count_named(session: Session, days: Sequence[date], tags: frozenset[str]) -> Mapping[date, int]:
    """Returns how many events of each day have one of these tags in their names, of the first 1,000 names of the day;
    days without any are left out. Reads no event. Raises `StoreError`, and `OutOfMemory`."""
    found = await gather(*(_list_day(session, day, 1) for day in days))
    counts = {
        day: sum(event.tags.datasets is not None and event.tags.may_name(tags) for event in events)
        for day, (events, _) in zip(days, found, strict=True)
    }
    return {day: count for day, count in counts.items() if count}


async def _list_day(session: Session, day: date, pages: int) -> tuple[list[EventEntry], bool]:
    """Lists at most `pages` pages of the names of a day's events, takes memory for them, and returns the events,
    unread, and whether these are all of the day."""
    found: list[EventEntry] = []
    async with aclosing(list_pages(session.state, session.state.paths.lineage_events_of_day(day))) as listing:
        async for page in listing:
            await session.hold.take(ENTRY_WEIGHT * len(page.entries))
            found += (_entry(stored, day) for stored in page.entries)
            pages -= 1
            if pages == 0:
                return found, page.after is None
    return found, True


def _entry(stored: Listed, day: date) -> EventEntry:
    """Returns the entry of a stored event, with the tags in its name."""
    name = stored.key.rpartition("/")[2].removesuffix(".json")
    return EventEntry(stored, name, tags_in(name), day)


def _choose(
    unread: Sequence[EventEntry], tags: frozenset[str], times: Mapping[date, Sequence[int]]
) -> tuple[list[EventEntry], list[EventEntry]]:
    """Returns the events that may name datasets with these tags, and after one the others of its run, in the order in
    which they are read; and all other events."""
    named = [event for event in unread if event.tags.may_name(tags)]
    runs = {event.tags.run for event in named}
    of_runs: dict[str, list[EventEntry]] = defaultdict(list)
    others: list[EventEntry] = []
    for event in unread:
        if not event.tags.may_name(tags):
            (of_runs[event.tags.run] if event.tags.run in runs else others).append(event)
    exact = [event for event in named if event.tags.datasets is not None]
    wide = [event for event in named if event.tags.datasets is None]
    return [event for part in (exact, wide) for event in _equally(part, of_runs, times)], others


def _equally(
    named: Sequence[EventEntry], of_runs: dict[str, list[EventEntry]], times: Mapping[date, Sequence[int]]
) -> list[EventEntry]:
    """Returns these events, and after one the others of its run, so that all senders have equal parts of the first
    ones, and of a sender all days. Removes the runs of these events from `of_runs`."""
    senders = _grouped(named, lambda event: event.tags.sender)
    turns = [_in_turn([_ordered(day, times) for day in _grouped(sent, lambda event: event.day)]) for sent in senders]
    return _in_turn(
        [[event for first in turn for event in (first, *of_runs.pop(first.tags.run, ()))] for turn in turns]
    )


def _grouped(events: Sequence[EventEntry], key: Callable[[EventEntry], object]) -> list[list[EventEntry]]:
    """Returns the events in groups of equal keys, in the order in which the keys and events first occur."""
    found: dict[object, list[EventEntry]] = defaultdict(list)
    for event in events:
        found[key(event)].append(event)
    return [*found.values()]


def _ordered(of_day: list[EventEntry], times: Mapping[date, Sequence[int]]) -> list[EventEntry]:
    """Returns the events of a day in order: the nearest to a time of that day first; without times the newest."""
    near = times.get(of_day[0].day, ())

    def distance(event: EventEntry) -> int:
        written_ms = event.stored.written_ms
        return min((abs(written_ms - ms) for ms in near), default=-written_ms)

    return sorted(of_day, key=distance)


def _in_turn(groups: Sequence[Sequence[EventEntry]]) -> list[EventEntry]:
    """Returns the first events of all groups, then the second ones, and so on."""
    found: list[EventEntry] = []
    waiting = deque(map(iter, groups))
    while waiting:
        group = waiting.popleft()
        for event in islice(group, 1):
            found.append(event)
            waiting.append(group)
    return found


async def _read(session: Session, entry: EventEntry) -> RunEvent | LeftOutEvent | None:
    """Takes memory for one event, reads it from the store, and returns it, or why it is left out if it can't be parsed
    or is of no run; None if it was deleted meanwhile."""
    await session.hold.take(PARSED_WEIGHT * entry.stored.size)
    found = await session.state.store.get(entry.stored.key)
    if not isinstance(found, Found):
        return None
    body = found.body
    return await off_loop(len(body), lambda: _run_event(body, entry))


def _left_out(entry: EventEntry, reason: NoEdge) -> LeftOutEvent:
    """Returns the record of an event of a day that is left out of the graph, with the reason."""
    return LeftOutEvent(digest_in(entry.name), entry.stored.written_ms, reason)


def _run_event(body: bytes, entry: EventEntry) -> RunEvent | LeftOutEvent:
    """Returns the event of a run in the body of an object, or that it is left out because it can't be read or is of no
    run."""
    try:
        stored = decode_event(body, entry.stored.key)
        event = read_event(stored.event)
    except (InternalError, BadRequest):
        return _left_out(entry, NoEdge.UNREADABLE)
    if event.run is None:
        return _left_out(entry, NoEdge.NO_RUN)
    return RunEvent(
        entry.name,
        entry.stored.written_ms,
        event.time_ms,
        event.state,
        event.run,
        event.parent,
        None if event.job is None else event.job.namespace,
        None if event.job is None else event.job.name,
        stored.principal,
        [reference_to(dataset) for dataset in event.inputs],
        [reference_to(dataset) for dataset in event.outputs],
        event.root,
    )
