"""The rules of purges left out, one at a time: each must make a run fail."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace

import pytest

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations import drop, undrop
from arco_catalog.planning import borrowing, creation, overlap, purge, relation_change
from arco_catalog.planning.attempt import Attempt
from arco_catalog.planning.context import Context
from arco_catalog.planning.purge import PurgeRequest, request_purge
from arco_catalog.planning.upkeep_settings import PurgeSettings
from arco_catalog.protocol import relation_committer
from arco_catalog.protocol.catalog import Catalog, Session
from arco_catalog.state.avro import Fields, ReadRange
from arco_catalog.state.fields import mapping, text, texts
from arco_catalog.state.holds import location_holds
from arco_catalog.state.index import Edits, Index, tombstone_key
from arco_catalog.state.needs import Steps, immediately
from arco_catalog.state.paths import Paths
from arco_catalog.state.purge_progress import Phase
from arco_catalog.state.task_log import Hint, remove_hint
from arco_catalog.state.tombstone import PURGING, Tombstone
from arco_catalog.tasks.execution import Execution, Executor, NotYet, Sessions, TaskFailed, task_session
from arco_catalog.tasks.lease import Lease
from arco_catalog.tasks.worker import Worker
from arco_catalog.upkeep.purge import executor, other_table, reach, sharing
from arco_catalog.upkeep.purge.corruption import Corruption
from arco_catalog.upkeep.purge.deletion import Deletion
from arco_catalog.upkeep.purge.inventory import Inventory
from arco_catalog.upkeep.purge.reach import records_of
from arco_catalog.upkeep.purge.table_files import ReadPosition, files_of

Mutation = Callable[[pytest.MonkeyPatch], None]


def a_holder_whose_lease_never_ends(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Lease, "left_ms", lambda self: self.length_ms)


def a_lease_counted_by_a_clock_that_stands_still(patch: pytest.MonkeyPatch) -> None:
    """As that of a machine that sleeps: neither clock notices a minute or more."""
    true = Lease.left_ms

    def left_ms(self: Lease) -> int:
        left = true(self)
        return left if left > self.length_ms // 2 else self.length_ms // 2

    patch.setattr(Lease, "left_ms", left_ms)


def a_purge_of_whatever_was_dropped_under_the_name(patch: pytest.MonkeyPatch) -> None:
    """By the task's payload, whichever task the tombstone names, and whatever its time."""

    def begun(index: Index, planned: Tombstone, fence: int, store_ms: int) -> Steps[Edits | None]:
        return purge.begin(index, planned, fence, planned.purge_after_ms)

    async def prepare(self: executor._Purge, tombstone: Tombstone) -> None:
        return None

    run = executor._Purge.run

    async def by_payload(self: executor._Purge) -> object:
        execution = self._execution
        identity = mapping(mapping(execution.task.payload, "operation_parameters"), "table_identity")
        key = tombstone_key(
            texts(identity, "namespace_levels"), text(identity, "table_name"), text(identity, "table_entity_id")
        )
        index = (await execution.session().state.head()).index
        found = index.get(key)
        if found is not None and "task" in found:
            self._task = text(found, "task")
        return await run(self)

    patch.setattr(executor, "begin", begun)
    patch.setattr(executor._Purge, "_prepare", prepare)
    patch.setattr(executor._Purge, "run", by_payload)


def an_undrop_of_what_is_being_purged(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(undrop, "purge_began", lambda tombstone: False)
    patch.setattr(undrop, "refuse_overlap", lambda context, index, locations: immediately(None))


def places_that_nobody_holds_while_they_are_purged(patch: pytest.MonkeyPatch) -> None:
    begun = Tombstone.begun

    def without_holds(self: Tombstone, index: Index, fence: int) -> Steps[Edits]:
        holds = location_holds(self.entity, self.locations)
        edits = yield from begun(self, index, fence)
        return {key: edit for key, edit in edits.items() if key not in holds}

    patch.setattr(Tombstone, "begun", without_holds)


def overlap_allowed_with_what_is_being_purged(patch: pytest.MonkeyPatch) -> None:
    refuse = overlap.refuse_overlap

    def lifted(context: Context, index: Index, locations: object, **more: object) -> Steps[None]:
        if context.allow_location_overlap:
            return immediately(None)
        return refuse(context, index, locations, **more)  # type: ignore[arg-type]

    patch.setattr(overlap, "refuse_overlap", lifted)


def manifests_deleted_with_their_data(patch: pytest.MonkeyPatch) -> None:
    """A phase for each manifest, instead of one for all."""
    run = Deletion.run

    async def lists_first(self: Deletion, inventory: Inventory) -> None:
        if self.progress.phase is Phase.DATA:
            await self._save(replace(self.progress, deleting=True))
            async with aclosing(inventory.chunks()) as chunks:
                manifests = [each async for chunk in chunks for each in chunk.manifests]
            await self._all(manifests[:1])
        await run(self, inventory)

    patch.setattr(Deletion, "run", lists_first)


def deletes_before_the_checkpoint_says_so(patch: pytest.MonkeyPatch) -> None:
    async def saved(self: Execution, checkpoint: JsonObject) -> None:
        self._checkpoint = {}

    patch.setattr(Execution, "save", saved)


def a_hint_put_behind_the_drop(patch: pytest.MonkeyPatch) -> None:
    def behind(paths: Paths, settings: PurgeSettings, tombstone: JsonObject, attempt: Attempt) -> PurgeRequest:
        asked = request_purge(paths, settings, tombstone, attempt)
        return replace(asked, first=(), after=[*asked.first, *asked.after])

    patch.setattr(drop, "request_purge", behind)


def a_hint_removed_because_no_tombstone_names_its_task_yet(patch: pytest.MonkeyPatch) -> None:
    meet = Worker.meet

    async def at_once(self: Worker, hint: Hint) -> bool:
        session = self._session(hint.task)
        if await self._submitted(session, hint.task) is None:
            await remove_hint(session.state, hint.key)
            return False
        return await meet(self, hint)

    patch.setattr(Worker, "meet", at_once)


def a_hint_removed_when_the_task_is_taken(patch: pytest.MonkeyPatch) -> None:
    meet = Worker.meet

    async def removed(self: Worker, hint: Hint) -> bool:
        await remove_hint(self._session(hint.task).state, hint.key)
        return await meet(self, hint)

    patch.setattr(Worker, "meet", removed)


def a_purge_that_begins_without_the_mark_and_the_walk(patch: pytest.MonkeyPatch) -> None:
    async def prepare(self: executor._Purge, tombstone: Tombstone) -> None:
        return None

    patch.setattr(executor._Purge, "_prepare", prepare)


def a_later_lease_that_writes_no_fence(patch: pytest.MonkeyPatch) -> None:
    def begin(index: Index, planned: Tombstone, fence: int, store_ms: int, *, anti_join: bool) -> Steps[Edits | None]:
        return immediately(None) if planned.state == PURGING else purge.begin(index, planned, fence, store_ms)

    patch.setattr(executor, "begin", begin)
    patch.setattr(executor, "require_fence", lambda tombstone, fence: None)
    patch.setattr(purge, "require_fence", lambda tombstone, fence: None)


def a_release_while_an_earlier_lease_lasts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Execution, "require_earlier_leases_over", lambda self: None)


def a_wait_for_earlier_leases_that_begins_anew(patch: pytest.MonkeyPatch) -> None:
    """Whoever comes next waits for the lease that has waited."""
    require = Execution.require_earlier_leases_over

    def at_once(self: Execution) -> None:
        try:
            require(self)
        except NotYet as early:
            raise NotYet(self.session().now_ms(), str(early)) from early

    patch.setattr(Execution, "require_earlier_leases_over", at_once)


def a_failed_attempt_that_nobody_makes_again(patch: pytest.MonkeyPatch) -> None:
    async def failed(self: Worker, execution: Execution, executor: Executor, error: Exception) -> None:
        await self._fail(execution, executor, str(error), None)

    patch.setattr(Worker, "_retry", failed)


def deletes_that_outlive_their_lease(patch: pytest.MonkeyPatch) -> None:
    def session(self: Execution) -> Session:
        return task_session(self.catalog, self.task.id, self.runtime.now_ms() + 600_000)

    patch.setattr(Execution, "session", session)


def manifests_counted_before_their_files_are_deleted(patch: pytest.MonkeyPatch) -> None:
    data = Deletion._data

    async def counted(self: Deletion, inventory: Inventory) -> None:
        async with aclosing(inventory.chunks()) as chunks:
            async for chunk in chunks:
                await self._execution.save(self.progress.at(chunk.id, len(chunk.manifests)).to_json())
        await data(self, inventory)

    patch.setattr(Deletion, "_data", counted)


def what_is_damaged_taken_for_gone(patch: pytest.MonkeyPatch) -> None:
    async def records(
        read_range: ReadRange, location: str, fields: Fields, gone: list[str] | None = None
    ) -> AsyncGenerator[Sequence[JsonObject], None]:
        with suppress(TaskFailed):
            async with aclosing(records_of(read_range, location, fields, gone)) as blocks:
                async for block in blocks:
                    yield block

    patch.setattr(reach, "records_of", records)


def what_is_gone_of_a_neighbour_taken_for_nothing(patch: pytest.MonkeyPatch) -> None:
    """Whatever it leads to by then."""

    def without(
        execution: Sessions,
        metadata: Sequence[str],
        gone: list[str],
        corrupt: list[Corruption],
        position: ReadPosition,
    ) -> AsyncGenerator[str, None]:
        return files_of(execution, metadata, [], corrupt, position)

    patch.setattr(other_table, "files_of", without)


def a_missing_file_that_is_remembered_for_good(patch: pytest.MonkeyPatch) -> None:
    """A restored file moves no pointer."""

    async def are_unchanged(*_: object) -> bool:
        return True

    patch.setattr(other_table, "are_unchanged", are_unchanged)


def a_file_that_a_neighbour_misses_passed_over_at_once(patch: pytest.MonkeyPatch) -> None:
    async def no_wait(*_: object) -> None:
        return None

    patch.setattr(sharing, "wait_for_missing", no_wait)


def a_staged_create_that_leaves_no_mark(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(creation.Creator, "shared_marks", lambda self, index, locations, entity: immediately({}))


def any_first_location_taken_for_one_that_was_made(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Tombstone, "made", property(lambda self: self.locations[0]))


def a_release_while_clients_have_credentials(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Catalog, "vends", False)


def loans_that_no_purge_looks_at(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(purge, "borrower_of", lambda index, location, entity: immediately(None))


def loans_from_what_is_being_purged(patch: pytest.MonkeyPatch) -> None:
    for module in (relation_committer, borrowing):
        patch.setattr(module, "refuse_purged", lambda index, folders, entity: immediately(None))


def loans_that_are_told_behind_the_commit(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(relation_change, "outside", lambda folders, locations: [])


def a_purge_that_asks_nobody(patch: pytest.MonkeyPatch) -> None:
    """Neither who holds the place, nor who has its files: drawn programs find it, as their clients register files."""

    async def nobody(*_: object) -> None:
        return None

    patch.setattr(purge, "_refuse_overlap", lambda index, tombstone: immediately(None))
    patch.setattr(executor, "find_sharer", nobody)


BUGS: list[Mutation] = [
    a_holder_whose_lease_never_ends,
    a_lease_counted_by_a_clock_that_stands_still,
    a_purge_of_whatever_was_dropped_under_the_name,
    an_undrop_of_what_is_being_purged,
    places_that_nobody_holds_while_they_are_purged,
    overlap_allowed_with_what_is_being_purged,
    manifests_deleted_with_their_data,
    deletes_before_the_checkpoint_says_so,
    a_hint_put_behind_the_drop,
    a_hint_removed_because_no_tombstone_names_its_task_yet,
    a_hint_removed_when_the_task_is_taken,
    a_purge_that_begins_without_the_mark_and_the_walk,
    a_later_lease_that_writes_no_fence,
    a_release_while_an_earlier_lease_lasts,
    a_wait_for_earlier_leases_that_begins_anew,
    a_failed_attempt_that_nobody_makes_again,
    deletes_that_outlive_their_lease,
    manifests_counted_before_their_files_are_deleted,
    what_is_damaged_taken_for_gone,
    what_is_gone_of_a_neighbour_taken_for_nothing,
    a_missing_file_that_is_remembered_for_good,
    a_file_that_a_neighbour_misses_passed_over_at_once,
    a_staged_create_that_leaves_no_mark,
    any_first_location_taken_for_one_that_was_made,
    a_release_while_clients_have_credentials,
    loans_that_no_purge_looks_at,
    loans_from_what_is_being_purged,
    loans_that_are_told_behind_the_commit,
]
