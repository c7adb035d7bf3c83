"""Reads a bounded sample of the stored OpenLineage events of some days (docs/design/lineage.md#graph)."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import date

from arco_catalog.iceberg.errors import BadRequest, InternalError
from arco_catalog.planning.lineage_datasets import DatasetRef
from arco_catalog.planning.lineage_edges import RunEvent
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import batches, gather
from arco_catalog.state.lineage import Dataset, decode_event, read_event
from arco_catalog.state.memory import PARSED_WEIGHT
from arco_catalog.state.worker_threads import off_loop
from storage_backends import Found, Listed
from storage_backends.lazy_dataclass import dataclass

MAX_DAYS = 10
"""Maximum number of days of which events are listed, one call each."""
MAX_EVENTS = 200
"""Maximum number of events that are read, each by one call."""
MAX_EVENT_BYTES = 512 << 10
"""The size of an event beyond which it is left out."""
MAX_BYTES = 8 << 20
"""Maximum size of all events that are read, together."""
MAX_DATASETS = 20_000
"""Maximum number of datasets in the events that are read, together."""
AT_ONCE = 32


@dataclass(slots=True)
class EventSample:
    """The events of runs that were read, of which days. `is_partial` is whether any were left out."""

    days: Sequence[date]
    events: list[RunEvent] = field(default_factory=list)
    is_partial: bool = False


async def read_events(session: Session, days: Mapping[date, Sequence[int]]) -> EventSample:
    """Reads the events of these days. Where there are too many, all days have an equal part: of a day with times, in
    milliseconds since 1970, the events that arrived nearest to one of them, of any other day the latest. Raises
    `StoreError`, and `OutOfMemory`."""
    chosen = list(days)[:MAX_DAYS]
    sample = EventSample(chosen, is_partial=len(days) > MAX_DAYS)
    prefixes = [session.state.paths.lineage_events_of_day(day) for day in chosen]
    pages = await gather(*(session.state.store.list(prefix) for prefix in prefixes))
    sample.is_partial |= any(page.after is not None for page in pages)
    ordered = [_ordered(page.entries, days[day]) for day, page in zip(chosen, pages, strict=True)]
    listed = _within_limits(_in_turn(ordered), sample)
    datasets = 0
    for batch in batches(listed, AT_ONCE):
        for event in await gather(*(_read(session, entry) for entry in batch)):
            if event is None:
                continue
            datasets += len(event.inputs) + len(event.outputs)
            if datasets > MAX_DATASETS:
                sample.is_partial = True
                return sample
            sample.events.append(event)
    return sample


def _ordered(entries: Sequence[Listed], times: Sequence[int]) -> list[Listed]:
    if not times:
        return sorted(entries, key=lambda entry: -entry.written_ms)
    return sorted(entries, key=lambda entry: min(abs(entry.written_ms - ms) for ms in times))


def _in_turn(days: Sequence[Sequence[Listed]]) -> list[Listed]:
    """Returns the first event of all days, then the second of all, and so on."""
    longest = max(map(len, days), default=0)
    return [day[place] for place in range(longest) for day in days if place < len(day)]


def _within_limits(listed: Sequence[Listed], sample: EventSample) -> list[Listed]:
    taken: list[Listed] = []
    total = 0
    for entry in listed:
        total += entry.size
        if len(taken) == MAX_EVENTS or total > MAX_BYTES:
            sample.is_partial = True
            break
        if entry.size <= MAX_EVENT_BYTES:
            taken.append(entry)
        else:
            sample.is_partial = True
            total -= entry.size
    return taken


async def _read(session: Session, entry: Listed) -> RunEvent | None:
    """Reads one event; None if it was deleted meanwhile, is corrupt, or belongs to no run."""
    await session.hold.take(PARSED_WEIGHT * entry.size)
    found = await session.state.store.get(entry.key)
    if not isinstance(found, Found):
        return None
    body, name = found.body, entry.key.rpartition("/")[2].removesuffix(".json")
    return await off_loop(len(body), lambda: _run_event(body, name, entry))


def _run_event(body: bytes, name: str, entry: Listed) -> RunEvent | None:
    try:
        stored = decode_event(body, entry.key)
        event = read_event(stored.event)
    except (InternalError, BadRequest):
        return None
    if event.run is None:
        return None
    return RunEvent(
        name,
        entry.written_ms,
        event.time_ms,
        event.state,
        event.run,
        event.parent,
        None if event.job is None else event.job.namespace,
        None if event.job is None else event.job.name,
        stored.principal,
        [_reference(dataset) for dataset in event.inputs],
        [_reference(dataset) for dataset in event.outputs],
        event.root,
    )


def _reference(dataset: Dataset) -> DatasetRef:
    further = tuple((name.namespace, name.name) for name in dataset.also)
    return DatasetRef(dataset.name.namespace, dataset.name.name, further, dataset.snapshot_id)
