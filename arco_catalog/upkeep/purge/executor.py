"""The purge of one dropped table: from the lease of its task to the release of its locations
(docs/design/purge.md)."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from typing import Protocol

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.purge import (
    ClosedCatalog,
    Fenced,
    InTheWay,
    TooEarly,
    Undone,
    begin,
    give_up,
    purge_of,
    release,
    require_fence,
    require_open,
)
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.evidence import fence_pointer, mark_dropped
from arco_catalog.protocol.internal_commits import change_registry
from arco_catalog.protocol.lookup import carry_out
from arco_catalog.state.borrowed import borrowers_of
from arco_catalog.state.entries import PendingTransaction
from arco_catalog.state.index import Edits
from arco_catalog.state.locations import Location
from arco_catalog.state.needs import Steps
from arco_catalog.state.purge_progress import Phase, Progress
from arco_catalog.state.registry import RegistryState
from arco_catalog.state.restoration import describe_copy
from arco_catalog.state.task import Task
from arco_catalog.state.tombstone import DROPPED, Tombstone
from arco_catalog.tasks.execution import Execution, Finished, Guard, NotYet, TaskFailed
from arco_catalog.tasks.lease import LeaseLost
from arco_catalog.upkeep.purge.conflict import describe_overlap, describe_sharer
from arco_catalog.upkeep.purge.delegate import Delegate, wait_for_delegate
from arco_catalog.upkeep.purge.deletion import Deletion
from arco_catalog.upkeep.purge.leftovers import audit, empty, require_all_addressable
from arco_catalog.upkeep.purge.sharing import find_sharer
from arco_catalog.upkeep.purge.take_inventory import take_inventory

WAIT_MS = 60_000
"""When a purge is looked at again that a transaction or a walk is in the way of."""

COPY_WAIT_MS = 60 * 60_000
"""How long a purge in a copy waits before the next try."""


class AntiJoin(Protocol):
    """Knows what all others in the catalog lead to (docs/design/purge.md#rule-19)."""

    def deletion(self, execution: Execution, tombstone: Tombstone) -> AbstractAsyncContextManager[Deletion]:
        """A deletion of what the table leads to and nobody else does, by what is read now. Raises as
        `Executor.execute` does."""
        ...


class PurgeExecutor:
    """Purges tables by this process, or has them purged by `delegate` where that may be; or does it by an `anti_join`,
    which nobody can stand in the way of. What was begun by one, others leave alone."""

    def __init__(self, delegate: Delegate | None = None, anti_join: AntiJoin | None = None) -> None:
        self._delegate = delegate
        self._anti_join = anti_join

    def takes(self, task: Task) -> bool:
        """See `Executor.takes`. When all is deleted, anybody can do the rest."""
        progress = Progress.parse(task.checkpoint)
        return self._anti_join is not None or not progress.anti_join or progress.phase is Phase.DONE

    async def execute(self, execution: Execution) -> Finished:
        """See `Executor.execute`."""
        try:
            return await _Purge(execution, self._delegate, self._anti_join).run()
        except Undone as undone:
            return Finished(f"Nothing was deleted: {undone}", {})
        except TooEarly as early:
            raise NotYet(execution.taken_ms + WAIT_MS, str(early)) from early
        except Fenced as fenced:
            raise LeaseLost(str(fenced)) from fenced
        except ClosedCatalog as closed:
            raise TaskFailed(f"The purge ends: {closed}") from closed
        except InTheWay as met:
            raise TaskFailed(await describe_overlap(execution, met)) from met

    async def abandon(self, execution: Execution, reason: str) -> None:
        """Gives the tombstone back, unless deletes may have been made (docs/design/purge.md#rule-7)."""
        if Progress.parse(execution.checkpoint).deleting:
            return
        session = execution.session()
        tombstone = await _tombstone(session, execution.task.id)
        if tombstone is None:
            return
        try:
            await _change(
                session, "give-up-purge", tombstone, lambda head: give_up(head.index, tombstone, execution.number)
            )
        except Undone:
            return
        except Fenced as fenced:
            raise LeaseLost(str(fenced)) from fenced


class _Purge:
    """One lease's work."""

    def __init__(self, execution: Execution, delegate: Delegate | None, anti_join: AntiJoin | None) -> None:
        self._execution = execution
        self._delegate = delegate
        self._anti_join = anti_join
        self._task = execution.task.id

    async def run(self) -> Finished:
        execution = self._execution
        session = execution.session()
        head = await session.state.head()
        tombstone = await carry_out(session.state, head.index, purge_of(head.index, self._task))
        if tombstone is not None and head.copy_of is not None:
            raise NotYet(execution.taken_ms + COPY_WAIT_MS, describe_copy(head.copy_of))
        if tombstone is None:
            done = Progress.parse(execution.checkpoint)
            if done.phase is Phase.DONE:  # an earlier lease has released it, and died before it could say so
                require_all_addressable(done)
                return _finished(done, {})
            raise Undone("the drop was undone, or the table is purged already")
        if tombstone.state == DROPPED:
            await self._prepare(tombstone)
        await execution.start()
        if self._anti_join is not None:
            await self._claim()
        await self._begin(tombstone)
        execution.guard = self._guard(tombstone)
        progress, left = await self._look_after(tombstone, await self._delete(tombstone))
        execution.require_earlier_leases_over()
        execution.guard = None  # the release looks for itself, and what is released is not purging any more
        session = execution.session()
        await _change(
            session,
            "release-purged",
            tombstone,
            lambda head: release(head.index, tombstone, execution.number, session.now_ms()),
        )
        require_all_addressable(progress)
        return _finished(progress, left)

    async def _prepare(self, tombstone: Tombstone) -> None:
        """Makes sure that nothing moves the table any more, and that all that did is told
        (docs/design/purge.md#rule-3)."""
        execution = self._execution
        if tombstone.purge_after_ms > execution.taken_ms:
            raise NotYet(tombstone.purge_after_ms, "the time to undo the drop has not passed")
        session = execution.session()
        await mark_dropped(session, tombstone.entity, tombstone.operation)
        pointer = await session.state.pointer(tombstone.entity)
        if pointer is None:
            raise TaskFailed(f"the pointer of entity {tombstone.entity} is gone: its files can't be found")
        await take_inventory(execution, pointer, dry=False)

    async def _claim(self) -> None:
        """Makes it durable, before the beginning, that only the anti-join may go on with this purge. What another
        worker has done of the first phase is done again: it counted in manifests."""
        progress = Progress.parse(self._execution.checkpoint)
        if not progress.anti_join and progress.phase is not Phase.DONE:
            claimed = replace(progress, anti_join=True, done=0)
            await self._execution.save({**self._execution.checkpoint, **claimed.to_json()})

    async def _begin(self, tombstone: Tombstone) -> None:
        """The beginning, or the fence of a later lease (docs/design/purge.md#rule-2, docs/design/purge.md#rule-4)."""
        execution = self._execution

        def edit(head: RegistryState) -> Steps[Edits | None]:
            anti_join = self._anti_join is not None
            return begin(head.index, tombstone, execution.number, execution.taken_ms, anti_join=anti_join)

        try:
            await _change(execution.session(), "begin-purge", tombstone, edit)
        except PendingTransaction as met:
            raise NotYet(execution.taken_ms + WAIT_MS, f"transaction {met.transaction} is undecided") from met
        if self._anti_join is not None:
            await self._fence_borrowers(tombstone)

    async def _fence_borrowers(self, tombstone: Tombstone) -> None:
        """Moves the pointers of all tables that borrow from these locations, after the beginning and before they are
        read. A commit that read the registry before the beginning can't land any more, and later ones are refused
        (docs/design/purge.md#rule-19)."""
        session = self._execution.session()
        index = (await session.state.head()).index
        for normal in tombstone.locations:
            location = Location.of_normal(normal)
            for entity in await carry_out(session.state, index, borrowers_of(index, location, tombstone.entity)):
                if await session.state.pointer(entity) is not None:
                    await fence_pointer(self._execution.session(), entity)

    def _guard(self, tombstone: Tombstone) -> Guard:
        """Ends the work where the tombstone is not this lease's any more, asked with each renewal."""

        async def guard(session: Session) -> None:
            index = (await session.state.head()).index
            try:
                await carry_out(session.state, index, require_open(index))
                now = await carry_out(session.state, index, purge_of(index, self._task))
                require_fence(now, self._execution.number)
            except (Fenced, ClosedCatalog) as fenced:
                raise LeaseLost(str(fenced)) from fenced

        return guard

    async def _delete(self, tombstone: Tombstone) -> Progress:
        """Deletes what the table leads to. Returns how far that is: all of it."""
        execution = self._execution
        progress = Progress.parse(execution.checkpoint)
        if progress.phase is Phase.DONE:
            return progress
        asks = self._anti_join is None and not execution.session().settings.purge.trust_locations
        if asks and not progress.deleting:
            begun = tombstone.state == DROPPED  # by this lease
            beginning = execution.number if begun else tombstone.begun_version or execution.number
            sharer = await find_sharer(execution, tombstone.entity, tombstone.locations, beginning)
            if sharer is not None:
                raise TaskFailed(describe_sharer(execution, sharer))
        # That may have taken longer than the lease that there was before it.
        pointer = await execution.session().state.pointer(tombstone.entity)
        if pointer is None:
            raise TaskFailed(f"the pointer of entity {tombstone.entity} is gone: its files can't be found")
        if self._delegate is None:
            await wait_for_delegate(execution)
        else:
            await self._delegate.purge(execution, tombstone, pointer)
        inventory = await take_inventory(execution, pointer, dry=True)
        async with self._deletion(tombstone) as deletion:
            await deletion.run(inventory)
            return deletion.progress

    def _deletion(self, tombstone: Tombstone) -> AbstractAsyncContextManager[Deletion]:
        if self._anti_join is not None:
            return self._anti_join.deletion(self._execution, tombstone)
        progress = Progress.parse(self._execution.checkpoint)
        return nullcontext(Deletion(self._execution, tombstone.locations, progress))

    async def _look_after(self, tombstone: Tombstone, progress: Progress) -> tuple[Progress, JsonObject]:
        """What is left at the locations, after the one that was made for the table was emptied, if that is asked for.
        Raises `NotYet` while somebody may still hold credentials for that one: it is looked at again
        (docs/design/purge.md#rule-18)."""
        execution, made = self._execution, tombstone.made
        session = execution.session()
        settings = session.settings
        if made is not None and settings.purge.whole_location and not progress.shared:
            index = (await session.state.head()).index
            if not await carry_out(session.state, index, tombstone.is_shared(index)):
                progress = await empty(execution, made, progress)
        left = await audit(execution, tombstone.locations)
        if made is not None and execution.catalog.vends:
            until_ms = tombstone.dropped_ms + settings.purge.vended_ms + settings.request_ms
            if execution.taken_ms < until_ms:
                found = f"{left['left_behind']} files are left"
                raise NotYet(until_ms, f"{found}; they are counted again when nobody has credentials any more")
        return progress, left


def _finished(progress: Progress, left: JsonObject) -> Finished:
    told: JsonObject = {
        "files_deleted": progress.files,
        "bytes_deleted": progress.bytes,
        "outside": progress.outside,
        "gone": progress.gone,
        "gone_examples": [*progress.gone_examples],
    }
    summary = f"Purged {progress.files} files"
    if progress.unread:
        told["unread"] = {**progress.unread}
    if progress.anti_join:
        told |= {"kept": progress.kept, "kept_for": {**progress.kept_for}}
    if progress.kept:
        summary += f", and kept {progress.kept} that others lead to"
    return Finished(summary, {**told, **left})


async def _tombstone(session: Session, task: str) -> Tombstone | None:
    index = (await session.state.head()).index
    return await carry_out(session.state, index, purge_of(index, task))


async def _change(
    session: Session, kind: str, tombstone: Tombstone, edit: Callable[[RegistryState], Steps[Edits | None]]
) -> None:
    detail: JsonObject = {
        "namespace": [*tombstone.namespace],
        "name": tombstone.name,
        "entity": tombstone.entity,
        "task": tombstone.task,
    }
    await change_registry(session, kind, detail, edit)
