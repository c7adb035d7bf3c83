"""Expiries, by simulation: every crash point, lost answers, two workers, wrong clocks, and bugs that must be found."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from arco_catalog.iceberg.commit import Commit
from arco_catalog.operations.commit import CommitRelation
from arco_catalog.planning.kinds import TABLES
from arco_catalog.planning.relation_change import RelationCommit
from arco_catalog.protocol.planned_commit import PointerCommit
from arco_catalog.protocol.relation_committer import RelationCommitter
from arco_catalog.upkeep.expiry import commit, deletion, executor
from tests.simulation.expiring import (
    SCENARIOS,
    a_branch_while_the_worker_commits,
    one_worker,
    workers_beside_appends,
)
from tests.simulation.explore import Scenario, explore, name_of, trace
from tests.simulation.faults import CRASHES, FAULTS, NO_FAULTS, FaultPlan, Kind, every_single_fault
from tests.simulation.thoroughness import TIMES, count, sample

SPARED = ("setup", "last")
SECONDS = 300.0 * TIMES


@pytest.fixture(autouse=True)
def quiet() -> None:
    logging.getLogger("arco_catalog").setLevel(logging.CRITICAL)


@cache
def calls_of(scenario: Scenario) -> dict[str, list[Kind]]:
    """The calls of the processes that things may happen to."""
    return {process: kinds for process, kinds in trace(scenario).calls.items() if process not in SPARED}


def plans(scenario: Scenario, *, crashes: bool) -> Sequence[FaultPlan]:
    wanted = [fault for fault in FAULTS if (fault in CRASHES) is crashes]
    return [*every_single_fault(calls_of(scenario), wanted)]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=name_of)
def test_workers_beside_writers_delete_nothing_that_is_needed(scenario: Scenario) -> None:
    assert explore(scenario, range(count(40)), seconds=SECONDS).runs > 0


@pytest.mark.parametrize("scenario", SCENARIOS, ids=name_of)
def test_a_crash_at_any_call_is_made_up_for(scenario: Scenario) -> None:
    assert explore(
        scenario, range(TIMES), sample(scenario, plans(scenario, crashes=True), 120), seconds=SECONDS
    ).complete


@pytest.mark.parametrize("scenario", SCENARIOS, ids=name_of)
def test_any_other_fault_at_any_call_is_made_up_for(scenario: Scenario) -> None:
    wanted = plans(scenario, crashes=False)
    assert explore(scenario, range(TIMES), sample(scenario, wanted, 64), seconds=SECONDS).complete


def commits_without_a_record(patch: pytest.MonkeyPatch) -> None:
    plan = commit.ExpireSnapshots.plan

    async def changed(self: Any, *arguments: Any) -> Any:
        change = await plan(self, *arguments)
        return replace(change, first=change.first[:-1]) if isinstance(change, PointerCommit) else change

    patch.setattr(commit.ExpireSnapshots, "plan", changed)


def updates_that_are_computed_once(patch: pytest.MonkeyPatch) -> None:
    """As a client's are: the next base has a branch on a snapshot that they remove."""
    plan = commit.ExpireSnapshots.plan

    async def changed(self: Any, read_set: Any, attempt: Any) -> Any:
        first = vars(self).get("first_updates")
        if first is None:
            change = await plan(self, read_set, attempt)
            if isinstance(change, PointerCommit):
                self.first_updates = self.found.expiry.updates
            return change
        namespace, name = self._named
        wanted = RelationCommit(TABLES, namespace, name, Commit((), first, (), ("remove-snapshots",)))
        self.committer = RelationCommitter(self.session, wanted)
        return await CommitRelation.plan(self, read_set, attempt)

    patch.setattr(commit.ExpireSnapshots, "plan", changed)


def files_that_are_deleted_after_a_day(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(executor, "FILES_AGE_MS", executor.FILES_AGE_MS // 2)


def records_of_other_tasks_that_are_not_read(patch: pytest.MonkeyPatch) -> None:
    read = deletion.FileDeletion._records

    async def changed(self: Any) -> Any:
        return (await read(self))[0], []

    patch.setattr(deletion.FileDeletion, "_records", changed)


def what_the_table_names_read_never(patch: pytest.MonkeyPatch) -> None:
    async def changed(self: Any, look: Any, found: Any) -> None:
        return None

    patch.setattr(deletion.FileDeletion, "_keep_live", changed)


def lists_that_go_before_what_they_name(patch: pytest.MonkeyPatch) -> None:
    first, second, third = deletion.LISTS, deletion.MANIFESTS, deletion.STATISTICS
    patch.setattr(deletion, "_NEXT", {deletion.DATA: first, first: second, second: third, third: deletion.DONE})


PLANTED: Sequence[tuple[Callable[[pytest.MonkeyPatch], None], Scenario, bool]] = (
    (commits_without_a_record, one_worker, False),
    (files_that_are_deleted_after_a_day, one_worker, False),
    (records_of_other_tasks_that_are_not_read, workers_beside_appends, False),
    (updates_that_are_computed_once, a_branch_while_the_worker_commits, False),
    (what_the_table_names_read_never, one_worker, False),
    (lists_that_go_before_what_they_name, one_worker, True),
)
"""Each bug, a scenario that finds it, and whether only a crash does."""


@pytest.mark.parametrize(("plant", "scenario", "crashes"), PLANTED, ids=lambda each: getattr(each, "__name__", ""))
def test_a_bug_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], scenario: Scenario, crashes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = plans(scenario, crashes=True) if crashes else [NO_FAULTS]
    plant(monkeypatch)
    with pytest.raises(AssertionError, match="fails:"):
        explore(scenario, range(1 if crashes else 60), wanted, seconds=SECONDS)
