"""What lies in folders of days, and is new: the objects of open and marked days of which a system table does not tell
(docs/design/pipeline.md#rule-1)."""

from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from arco_catalog.protocol.catalog import Session
from arco_catalog.state.listing import list_objects
from arco_catalog.state.paths import Paths
from arco_catalog.state.receipt import COMMITTED
from arco_catalog.state.watermarks import CLOSED_BEFORE
from reconciler.compact.days import closed_after, days_to_list
from reconciler.system.conditions import between
from reconciler.system.opened import OpenTable

EVENT_BYTES = 32 << 20
"""Of the events of one batch, whose rows the join holds in memory: a dataset takes thirty bytes at least."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Objects to be read, by their keys, and the watermark once they are in the table."""

    keys: Sequence[str]
    closed_before: date


@dataclass(frozen=True, slots=True)
class Source:
    """Immutable objects in folders of days, and a table that tells of them: its column `name` says how they are called,
    its column `at` on which day they came. `again` is for how many days after that the same may come once more;
    `most_bytes` bounds a batch of objects of which each may be many rows."""

    name: str
    at: str
    root: Callable[[Paths], str]
    """The folder of the days, which may hold other things, too."""
    folder: Callable[[Paths, date], str]
    """That of a day."""
    day: Callable[[Paths, str], date | None]
    """The day of an object; None for what belongs to another source."""
    again: int = 0
    most_bytes: int | None = None


def _day_of_committed(paths: Paths, key: str) -> date | None:
    return paths.read_receipt_day(key) if f"/{COMMITTED}/" in key else None


RECEIPTS = Source(
    "commit_key",
    "committed_at",
    root=lambda paths: paths.events,
    folder=lambda paths, day: paths.receipts_of_day(COMMITTED, day),
    day=_day_of_committed,
)
LINEAGE_EVENTS = Source(
    "event",
    "received_on",
    root=lambda paths: paths.events,
    folder=Paths.lineage_events_of_day,
    day=Paths.read_lineage_day,
    again=1,
    most_bytes=EVENT_BYTES,
)
REPORTS = Source(
    "report_id",
    "received_at",
    root=lambda paths: paths.reports,
    folder=Paths.reports_of_day,
    day=Paths.read_report_day,
)


async def find_new(
    session: Session,
    source: Source,
    table: OpenTable,
    now_ms: int,
    size: int,
    *,
    late: Iterable[date] = (),
    own: Iterable[str] = (),
) -> AsyncGenerator[Batch, None]:
    """New objects, the oldest day first, so many at a time; nothing where there are none. `late` are the days that are
    marked, `own` names that are to be left out. One day's keys are held in memory at once."""
    closed_before = watermark(table)
    found = await _days(session, source) if closed_before is None else ()
    skip, before = frozenset(own), frozenset[str]()
    held: list[tuple[str, int]] = []
    days = days_to_list(closed_before, found, set(late), now_ms)
    reached = closed_before or min(days, default=date.min)
    for day in days:
        keys = await _list(session, source.folder(session.state.paths, day))
        known = _known(source, table, day) | skip | before if keys else frozenset()
        held += [found for name, found in keys.items() if name not in known]
        before = frozenset(keys) if source.again else before
        done = day if closed_before is None or day >= closed_before else closed_before - timedelta(days=1)
        while count := full_batch([length for _, length in held], size, source.most_bytes):
            yield Batch([key for key, _ in held[:count]], reached)
            held = held[count:]
        reached = closed_after(done, closed_before, now_ms)
    if held:
        yield Batch([key for key, _ in held], reached)


def full_batch(lengths: Sequence[int], size: int, most_bytes: int | None) -> int:
    """How many of the first objects, of these lengths, are a batch of their own; 0 if there is room in it for all of
    them. One object is a batch however long it is."""
    whole = 0
    for place, length in enumerate(lengths):
        whole += length
        if place and (place >= size or (most_bytes is not None and whole > most_bytes)):
            return place
    return 0


def watermark(table: OpenTable) -> date | None:
    """The first day that is not closed; None in the beginning."""
    said = table.watermark(CLOSED_BEFORE)
    return None if said is None else date.fromisoformat(said)


async def _list(session: Session, prefix: str) -> dict[str, tuple[str, int]]:
    """The keys of a day's objects with their lengths, by their names."""
    return {_name(each.key): (each.key, each.size) async for each in list_objects(session.state, prefix)}


async def _days(session: Session, source: Source) -> set[date]:
    """The days that have any. Everything there is is listed for that, once."""
    paths = session.state.paths
    days = {source.day(paths, each.key) async for each in list_objects(session.state, source.root(paths))}
    return {day for day in days if day is not None}


def _known(source: Source, table: OpenTable, day: date) -> frozenset[str]:
    """The names of what came on a day, or may come once more on it, that the table has."""
    end = datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1)
    wanted = between(source.at, (end - timedelta(days=1 + source.again)).isoformat(), end.isoformat())
    return frozenset(name for batch in table.batches(wanted, source.name) for name in batch.column(0).to_pylist())


def _name(key: str) -> str:
    return key.rpartition("/")[2].removesuffix(".json")
