"""Rules of expiries left out: the simulation must find each (docs/design/expiry.md)."""

from dataclasses import replace
from typing import Any

import pytest

from arco_catalog.iceberg.commit import Commit
from arco_catalog.operations.commit import CommitRelation
from arco_catalog.planning.kinds import TABLES
from arco_catalog.planning.relation_change import RelationCommit
from arco_catalog.protocol.planned_commit import PointerCommit
from arco_catalog.protocol.relation_committer import RelationCommitter
from arco_catalog.upkeep.expiry import commit, deletion, executor


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


def other_tables_that_no_expiry_looks_at(patch: pytest.MonkeyPatch) -> None:
    async def none(*_: object) -> None:
        return None

    patch.setattr(executor, "_sharer", none)
    patch.setattr(executor, "obstacle", none)
