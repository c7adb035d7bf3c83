"""The rules of the anti-join left out, one at a time: each must make a test fail."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from arco_catalog.planning import purge
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.index import Index
from arco_catalog.state.needs import Steps
from arco_catalog.state.purge_progress import Phase, Progress
from arco_catalog.state.task import Task
from arco_catalog.state.tombstone import Tombstone
from arco_catalog.tasks.followed_lease import FollowedLease
from arco_catalog.upkeep.purge import executor, sharing
from arco_catalog.upkeep.purge.executor import PurgeExecutor
from arco_catalog.upkeep.purge.reach import ReachedFile
from reconciler import purge_parts
from tests.reconciler import test_purge_parts as executors
from tests.upkeep.purge import test_anti_join as driver
from tests.upkeep.purge.conftest import Purges
from tests.upkeep.purge.test_anti_join import PLACE, overlapping_tables

Mutation = Callable[[pytest.MonkeyPatch], None]
Test = Callable[[Path], Awaitable[None]]


def a_manifest_that_names_nothing(patch: pytest.MonkeyPatch) -> None:
    nothing: Sequence[tuple[str, ReachedFile]] = ()

    async def none(*_: object) -> AsyncGenerator[tuple[str, ReachedFile], None]:
        for each in nothing:
            yield each

    patch.setattr(purge_parts, "_files_in", none)


def a_place_compared_as_it_is_spelled(patch: pytest.MonkeyPatch) -> None:
    def keys(job: purge_parts.PurgeJob, reading: purge_parts.Reading) -> Callable[[str], str]:
        return lambda file: file if any(file.startswith(place) for place in job.locations) else ""

    patch.setattr(purge_parts, "_keys", keys)


def tables_of_other_formats_that_are_not_read(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sharing, "has_pointer", lambda entry: True)


def a_place_emptied_though_others_lead_there(patch: pytest.MonkeyPatch) -> None:
    audit = executor._Purge._audit

    async def unasked(self: executor._Purge, tombstone: Tombstone, progress: Progress) -> object:
        return await audit(self, tombstone, replace(progress, shared=False))

    patch.setattr(executor._Purge, "_audit", unasked)


def a_worker_that_goes_on_with_anything(patch: pytest.MonkeyPatch) -> None:
    def takes(self: PurgeExecutor, task: Task) -> bool:
        return True

    patch.setattr(PurgeExecutor, "takes", takes)


def a_beginning_that_is_not_in_the_checkpoint(patch: pytest.MonkeyPatch) -> None:
    async def claim(self: executor._Purge) -> None:
        return None

    patch.setattr(executor._Purge, "_claim", claim)


def a_rest_that_only_spark_may_do(patch: pytest.MonkeyPatch) -> None:
    def takes(self: PurgeExecutor, task: Task) -> bool:
        progress = Progress.parse(task.checkpoint)
        return self._anti_join is not None or not (progress.anti_join or progress.phase is Phase.DONE)

    patch.setattr(PurgeExecutor, "takes", takes)


def a_lease_believed_unseen(patch: pytest.MonkeyPatch) -> None:
    async def keep_up(self: FollowedLease) -> None:
        return None

    def session(self: FollowedLease) -> Session:
        return purge_parts.Reading(self._catalog, self._task).session()

    patch.setattr(FollowedLease, "keep_up", keep_up)
    patch.setattr(FollowedLease, "session", session)


def two_purges_at_once(patch: pytest.MonkeyPatch) -> None:
    def none(index: Index, tombstone: Tombstone) -> Steps[None]:
        yield from ()

    patch.setattr(purge, "_wait_for_purges", none)


async def on_overlapping(test: Callable[[Purges], Awaitable[None]], folder: Path) -> None:
    await test(await overlapping_tables())


async def by_executors(test: Callable[[executors.DroppedTable], None], folder: Path) -> None:
    await asyncio.to_thread(test, await executors.made(folder))


async def beside_another_format(folder: Path) -> None:
    await driver.test_a_table_of_another_format_there_ends_the_purge(PLACE, dropped=False)


async def of_a_shared_place(folder: Path) -> None:
    await driver.test_a_whole_location_is_emptied_only_if_others_lead_to_nothing_there(shared=True)


LEFT_OUT: Sequence[tuple[Mutation, Test]] = [
    (
        a_manifest_that_names_nothing,
        partial(by_executors, executors.test_what_a_neighbour_leads_to_is_told_by_its_place_in_the_table),
    ),
    (
        a_place_compared_as_it_is_spelled,
        partial(by_executors, executors.test_another_spelling_of_a_place_is_the_same_file),
    ),
    (tables_of_other_formats_that_are_not_read, beside_another_format),
    (a_place_emptied_though_others_lead_there, of_a_shared_place),
    (a_worker_that_goes_on_with_anything, partial(on_overlapping, driver.test_what_it_has_begun_workers_leave_alone)),
    (
        a_beginning_that_is_not_in_the_checkpoint,
        partial(on_overlapping, driver.test_what_it_was_the_first_to_take_workers_leave_alone),
    ),
    (a_rest_that_only_spark_may_do, partial(on_overlapping, driver.test_when_all_is_deleted_anybody_does_the_rest)),
    (a_lease_believed_unseen, partial(by_executors, executors.test_nothing_is_deleted_without_the_lease)),
    (two_purges_at_once, partial(on_overlapping, driver.test_a_purge_of_a_place_that_is_being_purged_waits)),
]


@pytest.mark.parametrize(("left_out", "test"), LEFT_OUT, ids=[left_out.__name__ for left_out, _ in LEFT_OUT])
async def test_a_rule_that_is_left_out_is_found(
    left_out: Mutation, test: Test, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    left_out(monkeypatch)
    with pytest.raises((AssertionError, pytest.fail.Exception, ValueError)):
        await test(tmp_path)
