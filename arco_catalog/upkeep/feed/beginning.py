"""Begins the event feed with the tables and views that exist (docs/design/events.md#rule-9)."""

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace

from arco_catalog.planning.feed import entity_record, gap_record, registry_record
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import batches, gather
from arco_catalog.protocol.decisions import resolve_for_read
from arco_catalog.protocol.lookup import entries_in
from arco_catalog.state.entries import has_pointer
from arco_catalog.state.feed import FeedRecord
from arco_catalog.state.feed_cursors import FeedCursors
from arco_catalog.state.fields import optional_text, text
from arco_catalog.state.pointer import MetadataFile
from arco_catalog.state.registry import RegistryState
from arco_catalog.state.transaction import committed
from arco_catalog.tasks.feed_stats import FeedStats
from arco_catalog.upkeep.feed.append import append
from arco_catalog.upkeep.feed.commit_chain import decision_after_lease
from arco_catalog.upkeep.feed.feed_end import FeedEnd
from arco_catalog.upkeep.feed.registry_chain import position_of
from storage_backends.lazy_dataclass import dataclass

AT_ONCE = 16
"""Pointers that are read concurrently."""
MAX_RECORDS = 5_000
"""The number of tables and views whose present files are kept before they are appended."""


@dataclass(frozen=True, slots=True)
class PresentFile:
    """The current metadata file of an entity, and the version of its pointer, empty if it has an intent."""

    file: MetadataFile
    version: str


async def begin(session: Session, feed: FeedEnd, head: RegistryState, stats: FeedStats) -> bool:
    """Enters the present file of each table and view of HEAD that has no cursor, with which the feed has begun; each
    after a gap if cursors were lost with segments that are deleted. Returns whether the next step can't enter more,
    because a transaction is undecided: then the feed has not begun yet. Raises `StoreError`, `InternalError`,
    `LostSegment`, and `FeedSetBack`."""
    position = position_of(head) if feed.last is None else feed.last.registry
    is_lost = feed.last is not None and not feed.is_complete
    unknown, is_decided = await existing_entities(session, head, feed.cursors)
    if not (is_decided or unknown or feed.last is None):
        return True
    records = [registry_record("begin", position, head.at_ms)]
    present: dict[str, PresentFile] = {}
    for batch in batches(unknown, AT_ONCE):
        files = await gather(*(present_file(session, entity) for entity in batch))
        present |= {entity: file for entity, file in zip(batch, files, strict=True) if file is not None}
        if len(present) >= MAX_RECORDS:
            await _append(session, feed, records, present, stats, is_lost=is_lost)
            records, present = [registry_record("begin", position, head.at_ms)], {}
    await _append(session, feed, records, present, stats, is_lost=is_lost, begins=is_decided)
    feed.is_complete |= is_decided
    return not is_decided


async def _append(
    session: Session,
    feed: FeedEnd,
    first: Sequence[FeedRecord],
    present: Mapping[str, PresentFile],
    stats: FeedStats,
    *,
    is_lost: bool,
    begins: bool = False,
) -> None:
    """Appends the records of `first` and the present files of entities to the feed, each after a gap if `is_lost`; then
    notes the versions of their pointers in the cursors. The feed has begun with the last record if `begins`."""
    records = [*first]
    for entity, found in present.items():
        if is_lost:
            records.append(gap_record(entity, found.file.ms))
        records.append(entity_record("begin", entity, found.file))
    await append(session, feed, records, stats, begins=begins)
    for entity, found in present.items():
        cursor = feed.cursors.get(entity)
        if cursor is not None and cursor.file == found.file:
            feed.cursors.set(entity, replace(cursor, version=found.version))


async def existing_entities(session: Session, head: RegistryState, cursors: FeedCursors) -> tuple[Sequence[str], bool]:
    """Returns the tables and views, live, dropped or purged, that HEAD has and of which the feed has no cursor, without
    tables that never have a pointer (the pointer of a purged one is gone); and whether these are all: no transaction
    that creates some is undecided. Leaves out those of transactions that did not commit, and first aborts pending ones
    without a valid lease."""
    found: list[str] = []
    outcomes: dict[str, bool | None] = {}
    for kind in ("relation\n", "tombstone\n"):
        async with aclosing(entries_in(session.state, head.index, kind)) as entries:
            async for _, entry in entries:
                transaction, entity = optional_text(entry, "transaction"), text(entry, "entity")
                if not has_pointer(entry) or cursors.get(entity) is not None:
                    continue
                if transaction is not None and transaction not in outcomes:
                    outcomes[transaction] = committed(await decision_after_lease(session, transaction))
                if transaction is None or outcomes[transaction]:
                    found.append(entity)
    return found, None not in outcomes.values()


async def present_file(session: Session, entity: str) -> PresentFile | None:
    """Returns the current metadata file of a table or view, where the intent of a committed transaction counts; None
    for an entity without a pointer. The pointer's version is left empty if it has an intent. Nothing is written."""
    pointer = await session.state.pointer(entity)
    if pointer is None:
        return None
    version = (pointer.version or "") if pointer.intent is None else ""
    return PresentFile((await resolve_for_read(session.state, pointer)).metadata, version)
