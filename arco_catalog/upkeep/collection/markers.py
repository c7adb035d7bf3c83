"""Deletes idempotency markers whose keys can't be used any more (docs/design/collection.md#rule-6)."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial

from arco_catalog.iceberg.errors import CommitStateUnknown
from arco_catalog.planning.collection import Kind, is_older
from arco_catalog.protocol.concurrency import batches
from arco_catalog.protocol.decisions import abort_if_undecided
from arco_catalog.protocol.evidence import fence_pointer, fence_registry
from arco_catalog.protocol.internal_commits import try_to_settle
from arco_catalog.state.access import KeyConflict
from arco_catalog.state.marker import COLLECTED, Slot, WriteSet
from arco_catalog.upkeep.collection.batch_runner import Batch, BatchRunner
from arco_catalog.upkeep.collection.entities import Entities
from arco_catalog.upkeep.collection.run import Run
from storage_backends import Listed

MAX_SLOTS = 10_000
MAX_FENCED = 500
"""Unfinished markers that are fenced together, so that each target is fenced once."""

Due = tuple[str, list[Listed]]
"""A marker that may be old enough: the prefix of its slots, and the slots that were listed."""


@dataclass(frozen=True, slots=True)
class Marker:
    """An idempotency marker: the prefix of the keys of slots, and the slots from 0 on. `listed` are the slots as a
    listing has them. `late` are the slots of a marker without slot 0, which were written after it was collected."""

    prefix: str
    slots: Sequence[Slot]
    listed: Sequence[Listed]
    late: Sequence[Slot] = ()

    def key(self, slot: int) -> str:
        """Returns the key of a slot of the marker in the store, whether or not there is such a slot."""
        return f"{self.prefix}{slot}.json"

    @property
    def last(self) -> Slot:
        """The slot with the highest number; of a marker without slot 0, the last one in `late`."""
        return [*self.late, *self.slots][-1]

    @property
    def since_ms(self) -> int:
        """The time at which the store wrote slot 0 of the marker, or, if slot 0 is missing, the youngest slot."""
        return self.slots[0].written_ms if self.slots else max(each.written_ms for each in self.late)

    @property
    def oldest_ms(self) -> int:
        """The time at which the store wrote the first of the marker's slots."""
        return self.since_ms if self.slots else min(each.written_ms for each in self.late)

    @property
    def is_finished(self) -> bool:
        """Whether slot 0 exists and the last slot is final: it has the answer to the request, or an object in place of
        it other than the mark of a collection."""
        return bool(self.slots) and self.last.final and not self.is_closed

    @property
    def is_closed(self) -> bool:
        """Whether a collection has closed the marker: the last slot has the mark of a collection in place of an
        answer."""
        return bool(self.slots) and self.last.answer == COLLECTED

    @property
    def keys_from_last(self) -> Sequence[str]:
        """The keys of all slots in the order of their deletion: the last slot first, slot 0 at the end. So a marker
        that is deleted in part still has slot 0."""
        names = (each.key.removeprefix(self.prefix).removesuffix(".json") for each in self.listed)
        numbers = {*range(len(self.slots)), *(int(name) for name in names if name.isdecimal())}
        return [self.key(slot) for slot in sorted(numbers, reverse=True)]


@dataclass(slots=True)
class _OldestSlot:
    """The time at which the oldest marker slot that is kept was written; None if no slot is kept so far."""

    ms: int | None = None

    def add(self, ms: int) -> None:
        """Notes the time of a slot that stays, if it is the oldest of them."""
        self.ms = ms if self.ms is None else min(self.ms, ms)


async def collect_markers(run: Run, entities: Entities, runner: BatchRunner) -> int | None:
    """Deletes idempotency markers with a slot 0 older than the retention of markers and a margin; a dry run only counts
    them. A marker without a final answer is closed and fenced first, and is kept while the last slot is younger than
    the margin. Returns the first time of a slot of the remaining markers, by the store; None if none remains."""
    oldest = _OldestSlot()
    async with aclosing(runner.run_batches(run, entities, _batches(run, oldest))) as done:
        async for batch, kept in done:
            for ms in kept if kept is not None else [_first_ms(listed) for _, listed in batch.items]:
                oldest.add(ms)
    return oldest.ms


async def _batches(run: Run, oldest: _OldestSlot) -> AsyncGenerator[Batch[Due, Sequence[int]], None]:
    """Yields batches of markers of which the oldest slot in the listing is older than the retention of markers and a
    margin; notes the oldest slot of the others in `oldest`."""
    limit_ms = run.retention.with_margin(run.retention.markers_ms)
    async with aclosing(run.pages(run.paths.markers)) as pages:
        async for page, now_ms in pages:
            due: list[Due] = []
            for prefix, listed in _by_marker(page).items():
                if is_older(_first_ms(listed), now_ms, limit_ms):
                    due.append((prefix, listed))
                else:
                    oldest.add(_first_ms(listed))
            for batch in batches(due, MAX_FENCED):
                yield Batch(partial(_collect, now_ms=now_ms), batch)


def _first_ms(listed: Sequence[Listed]) -> int:
    """Returns the time in milliseconds since 1970 of the oldest of these slots."""
    return min(each.written_ms for each in listed)


def _by_marker(page: Sequence[Listed]) -> dict[str, list[Listed]]:
    """Returns the slots in a page by the prefix of their marker."""
    markers: dict[str, list[Listed]] = {}
    for each in page:
        markers.setdefault(f"{each.key.rpartition('/')[0]}/", []).append(each)
    return markers


async def _collect(run: Run, entities: Entities, due: Sequence[Due], *, now_ms: int) -> Sequence[int]:
    """Deletes the markers of one batch that are old enough when they are read; unfinished ones are closed and fenced
    first, and are kept if the last slot is younger than the margin, or a fence may be missing. A dry run only counts
    them. Returns a time for each marker that is kept: that of slot 0, or of another slot if slot 0 is missing or can't
    be read. A marker that another run has deleted is in neither."""
    limit_ms = run.retention.with_margin(run.retention.markers_ms)
    read = await run.each(due, lambda each: run.unless_unreadable(each[0], _read(run, *each)))
    gone: list[Marker] = []
    unfinished: list[Marker] = []
    kept: list[int] = []
    for (_, listed), marker in zip(due, read, strict=True):
        if marker is None:
            kept.append(_first_ms(listed))
        elif not marker.slots and not marker.late:
            continue  # another run has collected it
        elif not is_older(marker.since_ms, now_ms, limit_ms):
            kept.append(marker.oldest_ms)
        elif marker.is_finished:
            gone.append(marker)
        elif marker.is_closed or is_older(marker.last.written_ms, now_ms, run.retention.margin_ms):
            unfinished.append(marker)
        else:
            kept.append(marker.oldest_ms)
    if run.delete:
        closed = [marker for marker in await run.each(unfinished, lambda each: _close(run, each)) if marker is not None]
        fenced = closed if await _fence(run, closed) else []
        kept += [marker.oldest_ms for marker in unfinished if all(marker.prefix != f.prefix for f in fenced)]
        gone += fenced
    else:
        gone += unfinished
    for marker in gone:
        run.stats.collects(Kind.MARKER, size=sum(each.size for each in marker.listed), written_ms=marker.since_ms)
    await run.each(gone, lambda marker: run.remove_in_order(marker.keys_from_last))
    return kept


async def _read(run: Run, prefix: str, listed: Sequence[Listed]) -> Marker:
    """Reads a marker: its slots from the first on, up to a gap or `MAX_SLOTS`; or if the first is missing the ones that
    were listed and still exist. Raises `InternalError` for a slot that can't be read."""
    slots: list[Slot] = []
    while len(slots) < MAX_SLOTS:
        key = f"{prefix}{len(slots)}.json"
        found = await run.read(key)
        if found is None:
            break
        slots.append(Slot.parse(found, key))
    late: list[Slot] = []
    for each in () if slots else listed:
        found = await run.read(each.key)
        if found is not None:
            late.append(Slot.parse(found, each.key))
    return Marker(prefix, slots, listed, late)


async def _close(run: Run, marker: Marker) -> Marker | None:
    """Closes an unfinished marker by claiming the next slot, so that no attempt in it can continue. Returns the marker
    with that slot; None if another writer has claimed the slot. A marker that another run closed is returned as it is.
    """
    if marker.is_closed:
        return marker
    slot = Slot(run.session.runtime.ulid(), WriteSet(), {}, COLLECTED, marker.since_ms)
    try:
        await run.session.state.create(marker.key(len(marker.slots)), slot.body)
    except KeyConflict:
        return None
    return replace(marker, slots=[*marker.slots, slot])


async def _fence(run: Run, closed: Sequence[Marker]) -> bool:
    """Prevents all commits of attempts in these markers: aborts their undecided transactions, settles the decided ones,
    and fences every pointer and registry that they may move (docs/design/commit.md#rule-2). Returns whether all fences
    are in place; if not, counts a failure in the run."""
    write_sets = [slot.write_set for marker in closed for slot in (*marker.slots, *marker.late)]
    session = run.session
    transactions = sorted({each.transaction for each in write_sets if each.transaction is not None})
    try:
        outcomes = await run.each(transactions, lambda each: abort_if_undecided(session.state, session.runtime, each))
        decided = dict(zip(transactions, outcomes, strict=True))
        if decided:
            await try_to_settle(session, decided)
        for entity in sorted({entity for each in write_sets for entity in each.pointers}):
            run.check_may_continue()
            if await run.exists(run.paths.pointer(entity)):  # a pointer that does not exist needs no fence
                await fence_pointer(session, entity)
        if any(each.registry is not None for each in write_sets):
            await fence_registry(session)
    except CommitStateUnknown as error:
        run.stats.fails(
            f"{len(closed)} unfinished markers are not deleted, since a fence may be missing: {error.message}"
        )
        return False
    return True
