"""The purge of one dropped table: from the lease of its task to the release of its locations
(docs/design/purge.md)."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from typing import Protocol

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.tasks import tombstone_of
from arco_catalog.planning.purge import (
    ClosedCatalog,
    InTheWay,
    LeaseFenced,
    NothingToPurge,
    TooEarly,
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
from arco_catalog.tasks.execution import Execution, Guard, NotYet, TaskFailed, TaskResult
from arco_catalog.tasks.lease import LeaseLost
from arco_catalog.upkeep.purge.conflict import describe_overlap, describe_sharer
from arco_catalog.upkeep.purge.delegate import Delegate, wait_for_delegate
from arco_catalog.upkeep.purge.deletion import Deletion
from arco_catalog.upkeep.purge.leftovers import audit, empty, require_all_addressable
from arco_catalog.upkeep.purge.sharing import find_sharer
from arco_catalog.upkeep.purge.take_inventory import take_inventory

WAIT_MS = 60_000
"""How long a purge waits before the next try, after an undecided transaction or an early attempt."""

COPY_WAIT_MS = 60 * 60_000
"""How long a purge in a copy waits before the next try."""


class AntiJoin(Protocol):
    """The interface of what opens a deletion that compares the purged table's files with the files of all other tables,
    and deletes no file of another table (docs/design/purge.md#rule-19)."""

    def deletion(self, execution: Execution, tombstone: Tombstone) -> AbstractAsyncContextManager[Deletion]:
        """Reads which files all other tables refer to, and opens a deletion of the files to which this table alone
        refers. Raises `TaskFailed`, `NotYet`, `LeaseLost`, and `StoreError`."""
        ...


class PurgeExecutor:
    """Purges dropped tables in this process, or by `delegate` if the purge may be handed over, or by an `anti_join`,
    which keeps the files of other tables where a purge without it would fail because of them. Until all files are
    deleted, only an anti-join continues a purge that one began."""

    def __init__(self, delegate: Delegate | None = None, anti_join: AntiJoin | None = None) -> None:
        self._delegate = delegate
        self._anti_join = anti_join

    def takes(self, task: Task) -> bool:
        """Whether this executor may work on a purge. A purge that the anti-join began needs an anti-join; but once its
        files are all deleted, any executor may release its locations."""
        progress = Progress.parse(task.checkpoint)
        return self._anti_join is not None or not progress.anti_join or progress.phase is Phase.DONE

    async def execute(self, execution: Execution) -> TaskResult:
        """Executes one attempt of a purge, and returns the result. If the drop was undone, or the purge is over, the
        result is that nothing was deleted; but if a previous lease released the locations and did not store the end of
        the task, it has the counts in the checkpoint. Raises `NotYet` if the purge must wait, `TaskFailed` if a retry
        can't help, `LeaseLost`, and for a failed attempt that is retried other errors, such as `StoreError`."""
        try:
            return await _Purge(execution, self._delegate, self._anti_join).run()
        except NothingToPurge as undone:
            return TaskResult(f"Nothing was deleted: {undone}", {})
        except TooEarly as early:
            raise NotYet(execution.taken_ms + WAIT_MS, str(early)) from early
        except LeaseFenced as fenced:
            raise LeaseLost(str(fenced)) from fenced
        except ClosedCatalog as closed:
            raise TaskFailed(f"The purge ends: {closed}") from closed
        except InTheWay as met:
            raise TaskFailed(await describe_overlap(execution, met)) from met

    async def abandon(self, execution: Execution, reason: str) -> None:
        """Lets the drop be undone again when the purge has failed for good: changes the tombstone in the registry. Does
        nothing if deletes may have been sent (docs/design/purge.md#rule-7), or if the drop was undone or the purge is
        over. Raises `LeaseLost`, and `StoreError`."""
        if Progress.parse(execution.checkpoint).deleting:
            return
        session = execution.session()
        tombstone = await tombstone_of(session, execution.task.id)
        if tombstone is None:
            return
        try:
            await _change(
                session,
                "give-up-purge",
                tombstone,
                lambda head: give_up(
                    head.index, tombstone, execution.number, must_fence=head.allows_cancellations
                ),  # the beginning may have been proposed
            )
        except NothingToPurge:
            return
        except LeaseFenced as fenced:
            raise LeaseLost(str(fenced)) from fenced


class _Purge:
    """The purge of one table under one lease."""

    def __init__(self, execution: Execution, delegate: Delegate | None, anti_join: AntiJoin | None) -> None:
        self._execution = execution
        self._delegate = delegate
        self._anti_join = anti_join
        self._task = execution.task.id

    async def run(self) -> TaskResult:
        """Executes the purge of the table in this lease: prepares it, marks it as begun in the registry, deletes the
        files, counts the remaining ones, and releases the locations. Returns the result; if a previous lease has
        released them, the one in the checkpoint. Raises `NothingToPurge` if the drop was undone or nothing is left to
        purge, `LeaseFenced` or `LeaseLost` if another worker continues, `TooEarly` or `NotYet` if the purge must wait,
        as in a copy of a catalog, and `InTheWay`, `ClosedCatalog` or `TaskFailed` if a retry can't help."""
        execution = self._execution
        session = execution.session()
        head = await session.state.head()
        tombstone = await carry_out(session.state, head.index, purge_of(head.index, self._task))
        if tombstone is not None and head.copy_of is not None:
            raise NotYet(execution.taken_ms + COPY_WAIT_MS, describe_copy(head.copy_of))
        if tombstone is None:
            done = Progress.parse(execution.checkpoint)
            if done.phase is Phase.DONE:  # another lease released it, and died before it recorded the end
                require_all_addressable(done)
                return _finished(done, {})
            raise NothingToPurge(
                "the drop was undone, a restore of the catalog took the purge back, or the table is purged already"
            )
        if tombstone.state == DROPPED:
            await self._prepare(tombstone)
        await execution.start()
        if self._anti_join is not None:
            await self._claim()
        await self._begin(tombstone)
        execution.guard = self._guard(tombstone)
        progress, left = await self._audit(tombstone, await self._delete(tombstone))
        execution.require_earlier_leases_over()
        execution.guard = None  # the release checks the tombstone itself, and the guard would refuse a released one
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
        """Marks the table's pointer as dropped, so that no commit can move it, and writes the missing receipts of its
        commits while it takes the inventory (docs/design/purge.md#rule-3). Raises `NotYet` while the drop can be
        undone, and `TaskFailed` if the pointer is gone, and as `take_inventory`."""
        execution = self._execution
        if tombstone.purge_after_ms > execution.taken_ms:
            raise NotYet(
                tombstone.purge_after_ms,
                "the time to undo the drop has not passed: the purge goes on by itself after that",
            )
        session = execution.session()
        await mark_dropped(session, tombstone.entity, tombstone.operation)
        pointer = await session.state.pointer(tombstone.entity)
        if pointer is None:
            raise TaskFailed(
                f"the pointer of entity {tombstone.entity} is gone, and the table's files can't be found without it: "
                f"run `arco restore`, then `arco tasks retry {self._task}`"
            )
        await take_inventory(execution, pointer, dry=False)

    async def _claim(self) -> None:
        """Records in the checkpoint, before files are deleted, that only the anti-join may continue this purge; does
        nothing if that is noted, or if all files are deleted. The phase of data files starts over, since the anti-join
        counts parts where another worker counts manifests; a later phase goes on at the position in the checkpoint."""
        progress = Progress.parse(self._execution.checkpoint)
        if not progress.anti_join and progress.phase is not Phase.DONE:
            claimed = replace(progress, anti_join=True, done=0)
            await self._execution.save({**self._execution.checkpoint, **claimed.to_json()})

    async def _begin(self, tombstone: Tombstone) -> None:
        """Marks the tombstone as purging; if a previous lease has done so, fences it for this lease
        (docs/design/purge.md#rule-2, docs/design/purge.md#rule-4). With an anti-join, also fences the pointers of
        tables that borrow files from the table's locations. Raises `NotYet` while an undecided transaction would give
        another table an overlapping location or files from there, and the other errors of `begin`."""
        execution = self._execution

        def edit(head: RegistryState) -> Steps[Edits | None]:
            anti_join = self._anti_join is not None
            return begin(head.index, tombstone, execution.number, execution.taken_ms, anti_join=anti_join)

        try:
            await _change(execution.session(), "begin-purge", tombstone, edit)
        except PendingTransaction as met:
            raise NotYet(
                execution.taken_ms + WAIT_MS,
                f"the purge waits for transaction {met.transaction}, which is not decided, and may give a location "
                "that overlaps this table's, or files there, to another table: it goes on by itself after that",
            ) from met
        if self._anti_join is not None:
            await self._fence_borrowers(tombstone)

    async def _fence_borrowers(self, tombstone: Tombstone) -> None:
        """Fences the pointers of all tables that borrow files from the locations of the tombstone. A commit that read
        the registry before the purge began can then no longer apply, and later commits are refused. So no table gets
        such a file after it was read (docs/design/purge.md#rule-19)."""
        session = self._execution.session()
        index = (await session.state.head()).index
        for normal in tombstone.locations:
            location = Location.of_normal(normal)
            for entity in await carry_out(session.state, index, borrowers_of(index, location, tombstone.entity)):
                if await session.state.pointer(entity) is not None:
                    await fence_pointer(self._execution.session(), entity)

    def _guard(self, tombstone: Tombstone) -> Guard:
        """Returns the check that runs with each renewal of the lease: it raises `LeaseLost` if a later lease has fenced
        the tombstone, the purge no longer runs, or the catalog was dropped."""

        async def guard(session: Session) -> None:
            index = (await session.state.head()).index
            try:
                await carry_out(session.state, index, require_open(index))
                now = await carry_out(session.state, index, purge_of(index, self._task))
                require_fence(now, self._execution.number)
            except (LeaseFenced, ClosedCatalog) as fenced:
                raise LeaseLost(str(fenced)) from fenced

        return guard

    async def _delete(self, tombstone: Tombstone) -> Progress:
        """Deletes the files in the table's locations to which the table refers, in phases, after a search for other
        tables that use them; the anti-join, `trust_locations`, and a purge that may have deleted files need none.
        Returns the progress at the end; deletes nothing if the one in the checkpoint is complete. Raises `TaskFailed`
        if another table uses one of the files, or the table's pointer is gone, `LeaseLost`, and the errors of
        `find_sharer`, of `take_inventory`, and of `Delegate.purge` or `wait_for_delegate`."""
        execution = self._execution
        progress = Progress.parse(execution.checkpoint)
        if progress.phase is Phase.DONE:
            return progress
        must_check = self._anti_join is None and not execution.session().settings.purge.trust_locations
        if must_check and not progress.deleting:
            began_here = tombstone.state == DROPPED  # by this lease
            beginning = execution.number if began_here else tombstone.begun_version or execution.number
            sharer = await find_sharer(execution, tombstone.entity, tombstone.locations, beginning)
            if sharer is not None:
                raise TaskFailed(describe_sharer(execution, sharer))
        # The search for other tables may outlast a lease, so the pointer is read after it.
        pointer = await execution.session().state.pointer(tombstone.entity)
        if pointer is None:
            raise TaskFailed(
                f"the pointer of entity {tombstone.entity} is gone, and the table's files can't be found without it: "
                f"run `arco restore`, then `arco tasks retry {self._task}`"
            )
        if self._delegate is None:
            await wait_for_delegate(execution)
        else:
            await self._delegate.purge(execution, tombstone, pointer)
        inventory = await take_inventory(execution, pointer, dry=True)
        async with self._deletion(tombstone) as deletion:
            await deletion.run(inventory)
            return deletion.progress

    def _deletion(self, tombstone: Tombstone) -> AbstractAsyncContextManager[Deletion]:
        """Returns the deletion of the table's files: by the anti-join on Spark, or else by this process in batches."""
        if self._anti_join is not None:
            return self._anti_join.deletion(self._execution, tombstone)
        progress = Progress.parse(self._execution.checkpoint)
        return nullcontext(Deletion(self._execution, tombstone.locations, progress))

    async def _audit(self, tombstone: Tombstone, progress: Progress) -> tuple[Progress, JsonObject]:
        """Deletes everything at the location that was made for the table, if the settings allow it and no other table
        shares it, and counts the files that are left at the table's locations. Returns the new state of the purge, and
        the fields of the result with these counts. Raises `LeaseLost`, and `NotYet` while clients may hold credentials
        for that location: a later attempt counts the files that they write (docs/design/purge.md#rule-18)."""
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
                files_left = f"{left['left_behind']} files are left at the locations of the purged table"
                raise NotYet(
                    until_ms,
                    f"all is deleted, and {files_left}; this task counts them again by itself when all credentials of "
                    "clients have expired",
                )
        return progress, left


def _finished(progress: Progress, left: JsonObject) -> TaskResult:
    """Returns the result of a purge that is done: its counts, and the fields `left` about the files that are left at
    the table's locations."""
    result: JsonObject = {
        "files_deleted": progress.files,
        "bytes_deleted": progress.bytes,
        "outside": progress.outside,
        "gone": progress.gone,
        "gone_examples": [*progress.gone_examples],
    }
    summary = f"Purged {progress.files} files"
    if progress.unread:
        result["unread"] = {**progress.unread}
    if progress.anti_join:
        result |= {"kept": progress.kept, "kept_for": {**progress.kept_for}}
    if progress.kept:
        summary += f", and kept {progress.kept} that other tables refer to"
    if isinstance(left_behind := left.get("left_behind"), int) and left_behind > progress.kept:
        summary += f"; {left_behind - progress.kept} other objects are left at the locations"
    return TaskResult(summary, {**result, **left})


async def _change(
    session: Session, kind: str, tombstone: Tombstone, edit: Callable[[RegistryState], Steps[Edits | None]]
) -> None:
    """Changes a tombstone in the registry by one commit. `kind` is the kind of operation that the commit records, and
    `edit` returns the changes of the index."""
    detail: JsonObject = {
        "namespace": [*tombstone.namespace],
        "name": tombstone.name,
        "entity": tombstone.entity,
        "task": tombstone.task,
    }
    await change_registry(session, kind, detail, edit)
