"""The reconciler: ensures that every commit has a receipt, unless it may have been collected, by a walk of every live
or dropped entity with a pointer that has moved since the last complete walk (docs/design/reconciliation.md#reconciler).

The walk (walk.py) has two drivers: asyncio here (`arco reconcile`, the scheduled function), and PySpark
(`reconciler/`).

Entities take turns. Each run begins after the last entity of the run before. One turn walks at most `TURN` files of an
entity; an entity with more files returns to the end of the queue. So every entity is walked however short the runs are,
and none delays the others by length or errors.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import aclosing
from dataclasses import dataclass, field

from arco_catalog.iceberg.errors import BadRequest, InternalError
from arco_catalog.operations.reconcile_stats import ReconcileStats
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import gather
from arco_catalog.protocol.decisions import transaction_committed
from arco_catalog.protocol.lapsed import settle_lapsed
from arco_catalog.protocol.lookup import entries_in
from arco_catalog.state.checkpoints import Checkpoints, shard_of
from arco_catalog.state.fields import optional_text, text
from arco_catalog.state.listing import list_pages
from arco_catalog.upkeep.walk import ShouldStop, WalkResult, never, walk

TURN = 200
"""Metadata files of an entity that one turn walks."""
WRITE_AFTER = 5_000
"""Walked entities and files after which the checkpoints are written, in whole shards."""
RESERVE_MS = 10_000
"""The part of a session's time that is left to write checkpoints: at most a quarter."""
MAX_UNANSWERED = 3
"""Consecutive batches in which the store answers no walk, after which the run ends."""


@dataclass(frozen=True, slots=True)
class ListedPointer:
    """An entity's pointer as it was listed. `named` is whether HEAD had the entity, live or dropped, before the
    listing, false also where the caller of `list_pointers` gave no entities; `written_ms` is the store's time of the
    pointer's last write."""

    entity: str
    version: str
    named: bool = True
    written_ms: int = 0


async def list_pointers(session: Session, entities: AbstractSet[str]) -> AsyncGenerator[Sequence[ListedPointer], None]:
    """Lists the pointers of all entities, and yields them in pages. `entities` are those that had names before the
    listing: the pointers of other entities are not `named`."""
    prefix = session.state.paths.pointers
    async with aclosing(list_pages(session.state, prefix)) as pages:
        async for page in pages:
            names = [entry.key.removeprefix(prefix).removesuffix(".json") for entry in page.entries]
            yield [
                ListedPointer(entity, entry.version, entity in entities, entry.written_ms)
                for entity, entry in zip(names, page.entries, strict=True)
            ]


async def named_entities(session: Session, unreadable: list[str]) -> AsyncGenerator[str, None]:
    """Yields the entities that are live or dropped in HEAD as it is now. An entity that a transaction creates counts
    once the transaction is committed. A decision that can't be read is added to `unreadable`, and its entities are left
    out."""
    index = (await session.state.head()).index
    decided: dict[str, bool] = {}
    for kind in ("relation\n", "tombstone\n"):
        async with aclosing(entries_in(session.state, index, kind)) as entries:
            async for _, entry in entries:
                transaction = optional_text(entry, "transaction")
                if transaction is not None and transaction not in decided:
                    try:
                        decided[transaction] = await transaction_committed(session.state, transaction)
                    except InternalError as error:
                        decided[transaction] = False
                        unreadable.append(f"{text(entry, 'entity')}: {error.message}")
                if transaction is None or decided[transaction]:
                    yield text(entry, "entity")


def due_for_walk(checkpoints: Checkpoints, page: Sequence[ListedPointer]) -> tuple[list[ListedPointer], ReconcileStats]:
    """Returns the pointers of a page that have moved since the last walk of the entity, or whose walk is incomplete,
    and the counts of the whole page. Pointers are compared by the version in the listing, without a GET. A pointer
    without a name belongs to a create that did not commit: it is not walked, since its file may never become current.
    """
    named = [pointer for pointer in page if pointer.named]
    moved = [
        pointer
        for pointer in named
        if (known := checkpoints.by_entity.get(pointer.entity)) is None or known.version != pointer.version
    ]
    return moved, ReconcileStats(len(page), orphaned=len(page) - len(named), unchanged=len(named) - len(moved))


def in_turn(checkpoints: Checkpoints, moved: Sequence[ListedPointer]) -> list[ListedPointer]:
    """Returns the pointers sorted by their entities, beginning after the entity whose turn was last in the run
    before."""
    after = checkpoints.after or ""
    return sorted(moved, key=lambda pointer: (pointer.entity <= after, pointer.entity))


async def find_due(session: Session, checkpoints: Checkpoints) -> tuple[list[ListedPointer], ReconcileStats]:
    """Lists all pointers. Returns the ones whose entities have a name and need a walk, in the order of their turns, and
    the counts of all. Damaged checkpoints and transaction decisions that can't be read count as failures."""
    total, due = ReconcileStats(), list[ListedPointer]()
    unreadable = [*checkpoints.damaged]
    async with aclosing(named_entities(session, unreadable)) as named:
        entities = {entity async for entity in named}
    for reason in unreadable:
        total.fails(reason)
    async with aclosing(list_pointers(session, entities)) as pages:
        async for page in pages:
            moved, counts = due_for_walk(checkpoints, page)
            total.add(counts)
            due += moved
    return in_turn(checkpoints, due), total


@dataclass
class Progress:
    """The state of a run of the reconciler: checkpoints, counts, and for each entity that had a turn whether the walk
    is incomplete."""

    checkpoints: Checkpoints
    total: ReconcileStats
    incomplete: dict[str, bool] = field(default_factory=dict)

    def add(self, pointer: ListedPointer, done: WalkResult) -> None:
        """Adds the counts of one turn of an entity, records its checkpoint unless that is unknown, and notes that it
        had the last turn. An entity counts as walked, and as incomplete, at most once however many turns it has; a
        later turn that completes the walk takes it from the incomplete ones."""
        counts, first = done.stats, pointer.entity not in self.incomplete
        counts.walked = int(first)
        counts.incomplete -= int(not first and self.incomplete[pointer.entity])
        self.incomplete[pointer.entity] = done.checkpoint is None or not done.checkpoint.complete
        self.total.add(counts)
        if done.checkpoint is not None:
            self.checkpoints.record(pointer.entity, done.checkpoint, counts.files)
        self.checkpoints.pass_turn(pointer.entity)


async def reconcile(
    session: Session,
    *,
    dry: bool = False,
    concurrency: int = 16,
    progress: Callable[[ReconcileStats], None] = lambda stats: None,
    should_stop: ShouldStop = never,
) -> ReconcileStats:
    """Writes the missing receipts of every entity whose pointer has moved since the last complete walk, and saves
    checkpoints of the walks; before that, settles intents on names that transactions left. Ends when all are done, when
    `should_stop` returns true, when the session's deadline is near, or after `MAX_UNANSWERED` batches in a row without
    an answer of the store: the next run continues. With `dry` it writes nothing. Returns the counts, with `stopped` if
    entities are left. Raises `StoreError` if the store fails for names, listings or checkpoints, and `InternalError`
    for a corrupt HEAD."""
    limit = TimeLimit(session, should_stop)
    if not dry:
        await settle_lapsed(session, should_stop=limit)
    checkpoints = await Checkpoints.read(session.state)
    due, total = await find_due(session, checkpoints)
    run, queue = Progress(checkpoints, total), deque(due)
    unanswered = 0
    while queue and unanswered < MAX_UNANSWERED and not limit():
        batch = [queue.popleft() for _ in range(min(concurrency, len(queue)))]
        walks = await walk_batch(session, checkpoints, batch, limit, dry=dry, max_files=TURN)
        for pointer, done in zip(batch, walks, strict=True):
            run.add(pointer, done)
            if done.more:
                queue.append(pointer)
        progress(total)
        unanswered = 0 if any(done.answered for done in walks) else unanswered + 1
        if not dry and checkpoints.unwritten >= WRITE_AFTER:
            await checkpoints.write(session.state)
    total.stopped = bool(queue)
    if not dry:
        await checkpoints.write(session.state)
    return total


class TimeLimit:
    """Decides when a run of the reconciler ends: when `should_stop` returns true, or so long before the session's
    deadline that checkpoints can still be written."""

    def __init__(self, session: Session, should_stop: ShouldStop = never) -> None:
        self._deadline = session.deadline
        self._should_stop = should_stop
        self._reserve_ms = min(RESERVE_MS, max(0, self._deadline.left_ms()) // 4)

    def __call__(self) -> bool:
        """Whether the run must end now."""
        return self._deadline.left_ms() <= self._reserve_ms or self._should_stop()

    def seconds_left(self) -> float:
        """Returns how many seconds one turn may take: until the middle of the time that is reserved for writing
        checkpoints."""
        return max(0, self._deadline.left_ms() - self._reserve_ms // 2) / 1000


async def reconcile_one(session: Session, entity: str, *, should_stop: ShouldStop = never) -> ReconcileStats:
    """Writes the missing receipts of one entity in one turn, saves the checkpoint unless the walk failed as a whole or
    the pointer is gone, and returns the counts, with `stopped` if another turn is needed. Raises `BadRequest` for an
    entity that HEAD does not have, live or dropped. That is most often one of a create that did not commit: the file in
    the pointer has not become current, and gets no receipt (docs/design/reconciliation.md#reconciler)."""
    if not await is_named(session, entity):
        raise BadRequest(
            f"no table or view has the entity id {entity}, live or dropped, so no receipts are written: check the id. "
            "The create of this entity may not have committed, the decision of the transaction that creates it may be "
            "unreadable, or the tombstone was collected"
        )
    checkpoints = await Checkpoints.read(session.state, [shard_of(entity)])
    done = await walk(session, entity, checkpoints.by_entity.get(entity), should_stop=TimeLimit(session, should_stop))
    done.stats.stopped = done.more
    if done.checkpoint is not None:
        checkpoints.record(entity, done.checkpoint)
        await checkpoints.write(session.state)
    return done.stats


async def is_named(session: Session, entity: str) -> bool:
    """Whether HEAD has a table or view of this entity, live or dropped. False if the decision of the transaction that
    creates it can't be read."""
    async with aclosing(named_entities(session, [])) as entities:
        async for each in entities:
            if each == entity:
                return True
    return False


async def walk_batch(
    session: Session,
    checkpoints: Checkpoints,
    batch: Sequence[ListedPointer],
    limit: TimeLimit,
    *,
    dry: bool,
    max_files: int,
) -> Sequence[WalkResult]:
    """Walks one turn of each of these entities, all concurrently, and returns the results in the same order. A turn
    that does not end within the limit is cancelled and counts as incomplete and as a failure, without a checkpoint, so
    that the checkpoints of the others can be written. With `dry` nothing is written."""

    async def turn(entity: str) -> WalkResult:
        try:
            async with asyncio.timeout(limit.seconds_left()):
                return await walk(
                    session,
                    entity,
                    checkpoints.by_entity.get(entity),
                    dry=dry,
                    max_files=max_files,
                    should_stop=limit,
                )
        except TimeoutError:
            stats = ReconcileStats(walked=1, incomplete=1)
            stats.fails(f"{entity}: the walk did not end within the time of this run, and the next run continues it")
            return WalkResult(stats, None)

    return await gather(*(turn(pointer.entity) for pointer in batch))
