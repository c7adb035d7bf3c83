"""Finds new objects in folders of days: those of open and marked days for which a system table has no rows
(docs/design/pipeline.md#rule-1)."""

from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from arco_catalog.planning.lineage_names import digest_in
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.listing import list_objects
from arco_catalog.state.paths import Paths
from arco_catalog.state.receipt import COMMITTED
from arco_catalog.state.watermarks import CLOSED_BEFORE
from reconciler.compact.days import closed_after, days_to_list
from reconciler.system.conditions import between
from reconciler.system.opened import OpenTable

EVENT_BYTES = 32 << 20
"""How many bytes the events of one batch have together at most: the join holds their rows in memory, and a row takes
thirty bytes of an event or more."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch of the job `compact`: the keys of the new objects of one commit, and the watermark that it sets, the
    first day that is not closed."""

    keys: Sequence[str]
    closed_before: date


@dataclass(frozen=True, slots=True)
class Source:
    """A kind of immutable objects in directories of days, such as receipts, and the columns of their table: the column
    `name` has the object's name, the column `at` a time of the object's day. `repeat_days` is for how many days after
    that an object of the same name may come again; `max_bytes` bounds the bytes of a batch, for objects of which each
    may be many rows."""

    name: str
    at: str
    root: Callable[[Paths], str]
    """The folder that has the folders of days, and may have other objects."""
    folder: Callable[[Paths, date], str]
    """The folder of a day."""
    day: Callable[[Paths, str], date | None]
    """The day of an object by the key; None for an object of another source."""
    repeat_days: int = 0
    max_bytes: int | None = None


def _day_of_committed(paths: Paths, key: str) -> date | None:
    """Returns the day of a committed receipt by the key; None for any other key."""
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
    repeat_days=1,
    max_bytes=EVENT_BYTES,
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
    """Iterates over batches of objects of a source that the table has no rows of, the oldest day first, with `size`
    objects each, or fewer by `Source.max_bytes` and at the end; nothing if there are none. `late` are closed days that
    are marked as having new objects, `own` the names of objects to leave out. Memory holds the keys of one day and of
    one batch."""
    closed_before = watermark(table)
    found = await _days(session, source) if closed_before is None else ()
    skip, day_before = frozenset(own), frozenset[str]()
    pending: list[tuple[str, int]] = []
    days = days_to_list(closed_before, found, set(late), now_ms)
    reached = closed_before or min(days, default=date.min)
    for day in days:
        keys = await _list(session, source.folder(session.state.paths, day))
        known = _known(source, table, day) | skip | day_before if keys else frozenset()
        pending += [found for name, found in keys.items() if name not in known]
        day_before = frozenset(keys) if source.repeat_days else day_before
        done = day if closed_before is None or day >= closed_before else closed_before - timedelta(days=1)
        while count := full_batch([length for _, length in pending], size, source.max_bytes):
            yield Batch([key for key, _ in pending[:count]], reached)
            pending = pending[count:]
        reached = closed_after(done, closed_before, now_ms)
    if pending:
        yield Batch([key for key, _ in pending], reached)


def full_batch(lengths: Sequence[int], size: int, max_bytes: int | None) -> int:
    """Returns how many of the first objects, given by their lengths in bytes, make a full batch of at most `size`
    objects and `max_bytes`; 0 if all objects fit into one and more may follow. One object is a batch of any length."""
    whole = 0
    for place, length in enumerate(lengths):
        whole += length
        if place and (place >= size or (max_bytes is not None and whole > max_bytes)):
            return place
    return 0


def watermark(table: OpenTable) -> date | None:
    """Returns a table's watermark, the first day that is not closed for it; None if no batch was committed to it."""
    day = table.watermark(CLOSED_BEFORE)
    return None if day is None else date.fromisoformat(day)


async def _list(session: Session, prefix: str) -> dict[str, tuple[str, int]]:
    """Returns the key and length of each object under a prefix, by the name of the object: the last level of its key,
    without `.json`, and for an OpenLineage event without its tags."""
    return {_name(each.key): (each.key, each.size) async for each in list_objects(session.state, prefix)}


async def _days(session: Session, source: Source) -> set[date]:
    """Returns the days that have objects of a source. All objects under the root are listed."""
    paths = session.state.paths
    days = {source.day(paths, each.key) async for each in list_objects(session.state, source.root(paths))}
    return {day for day in days if day is not None}


def _known(source: Source, table: OpenTable, day: date) -> frozenset[str]:
    """Returns the names of objects that the table has rows of, for a day and the `repeat_days` before it."""
    end = datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1)
    where = between(source.at, (end - timedelta(days=1 + source.repeat_days)).isoformat(), end.isoformat())
    return frozenset(name for batch in table.batches(where, source.name) for name in batch.column(0).to_pylist())


def _name(key: str) -> str:
    """Returns the name of an object by the key; of an OpenLineage event the digest alone, without the tags."""
    return digest_in(key.rpartition("/")[2].removesuffix(".json"))
