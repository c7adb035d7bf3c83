"""The reconciler: walks every entity whose pointer has moved since its last complete walk (design.md 6.8).

One implementation of the walk (walk.py), two drivers: asyncio here (`arco reconcile`, the scheduled function), and
PySpark (`reconciler/`).
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from arco_catalog.operations.beside import beside
from arco_catalog.operations.catalog import Session
from arco_catalog.operations.decisions import committed
from arco_catalog.operations.lapsed import settle_lapsed
from arco_catalog.operations.lookup import entries_in
from arco_catalog.operations.walk import Tally, Walk, walk
from arco_catalog.state.fields import optional_text, text
from arco_catalog.state.walk_log import WalkLog
from storage_backends import Cursor, StoreError, StoreUnavailable

WRITE_AFTER = 5_000
"""Complete walks after which the log is written: all of a changed shard is."""


@dataclass(frozen=True, slots=True)
class ListedPointer:
    """A pointer as the LIST shows it, and whether a name leads to its entity, or did."""

    entity: str
    version: str
    named: bool = True


async def list_pointers(session: Session) -> AsyncGenerator[Sequence[ListedPointer], None]:
    """All pointers, a LIST call at a time, with what the registry said of them before the first."""
    entities = await named_entities(session)
    prefix = session.state.paths.pointers
    after: Cursor | None = None
    while True:
        page = await session.state.store.list(prefix, after)
        names = [entry.key.removeprefix(prefix).removesuffix(".json") for entry in page.entries]
        yield [
            ListedPointer(entity, entry.version, named=entity in entities)
            for entity, entry in zip(names, page.entries, strict=True)
        ]
        after = page.after
        if after is None:
            return


async def named_entities(session: Session) -> set[str]:
    """Everything live or dropped, as of now; what a transaction creates, once that committed."""
    index = (await session.state.head()).index
    entities: set[str] = set()
    for kind in ("relation\n", "tombstone\n"):
        async with aclosing(entries_in(session.state, index, kind)) as entries:
            async for _, entry in entries:
                transaction = optional_text(entry, "transaction")
                if transaction is None or await committed(session.state, transaction):
                    entities.add(text(entry, "entity"))
    return entities


def to_walk(log: WalkLog, page: Sequence[ListedPointer]) -> tuple[list[ListedPointer], Tally]:
    """Those whose pointer has moved since their last complete walk, and the counts of all: the others cost no GET. A
    pointer to which no name leads is an unfinished create's, and not walked: what it names has not become current, and
    may never."""
    named = [pointer for pointer in page if pointer.named]
    moved = [
        pointer
        for pointer in named
        if (walked := log.walked.get(pointer.entity)) is None or walked.version != pointer.version
    ]
    return moved, Tally(len(page), nameless=len(page) - len(named), unchanged=len(named) - len(moved))


async def reconcile(
    session: Session,
    *,
    dry: bool = False,
    concurrency: int = 16,
    progress: Callable[[Tally], None] = lambda tally: None,
    enough: Callable[[], bool] = lambda: False,
) -> Tally:
    """Walks every pointer that moved since its last complete walk. What was walked is remembered a page at a time, and
    when `enough`, asked before each batch, says stop: the next run goes on from there. Raises `StoreUnavailable` when
    the session's deadline passes."""
    if not dry:
        await settle_lapsed(session, enough=enough)
    log = await WalkLog.read(session.state)
    total = Tally()
    async with aclosing(list_pointers(session)) as pages:
        async for page in pages:
            moved, counts = to_walk(log, page)
            total.add(counts)
            for start in range(0, len(moved), concurrency):
                if enough():
                    total.stopped = True
                    break
                batch = moved[start : start + concurrency]
                for pointer, done in zip(batch, await walk_batch(session, log, batch, dry=dry), strict=True):
                    total.add(done.tally)
                    if done.walked is not None:
                        log.note(pointer.entity, done.walked)
                progress(total)
            if not dry and log.unwritten >= WRITE_AFTER:
                await log.write(session.state)
            if total.stopped:
                break
    if not dry:
        await log.write(session.state)
    return total


async def walk_batch(session: Session, log: WalkLog, batch: Sequence[ListedPointer], *, dry: bool) -> list[Walk]:
    """Walks some entities beside each other. One whose record the store refuses is counted and reported; one that it
    does not answer for ends the run."""

    async def one(pointer: ListedPointer) -> Walk:
        try:
            return await walk(session, pointer.entity, log.walked.get(pointer.entity), dry=dry)
        except StoreUnavailable:
            raise
        except StoreError as error:
            return Walk(Tally(walked=1, incomplete=1, unreadable=[f"{pointer.entity}: {error}"]), None)

    return await beside(*(one(pointer) for pointer in batch))
