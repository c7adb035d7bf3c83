"""The driver of `maintain`: finishes the tasks that former runs left, plans the maintenance of every table that has
policies, and executes it under the lease of the table's task, beginning with the table that gains most
(docs/design/pipeline.md#maintenance).

It may be killed at any point and started again, and two drivers may run at once.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Protocol

from arco_catalog.iceberg.errors import CatalogError, InternalError
from arco_catalog.iceberg.json import JsonObject, MalformedJson
from arco_catalog.planning.upkeep_policy import InvalidPolicy
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.copies import require_original
from arco_catalog.state.avro import Unreadable
from arco_catalog.state.task import ENDED, TABLE_MAINTENANCE, Task
from arco_catalog.state.task_log import StoredTask, all_hints, read_task
from arco_catalog.tasks.execution import TaskFailed
from arco_catalog.tasks.retry import TaskPolicies
from arco_catalog.tasks.worker import Worker
from reconciler.maintain.budget import Budget
from reconciler.maintain.outcome_rows import OutcomeRows
from reconciler.maintain.planning import HeldBack, Now, Step
from reconciler.maintain.procedures import Procedures
from reconciler.maintain.progress import ProcedureOutcome
from reconciler.maintain.table_plans import TablePlan, TableRef, own_tables, plan_table, policies_of
from reconciler.maintain.tasks import open_task, table_of
from reconciler.maintain.work import MaintenanceExecutor, WorkObserver


class Observer(WorkObserver, Protocol):
    """The interface of what receives the events of a run of `maintain`, besides those of the work on tables."""

    def on_plan(self, table_plan: TablePlan) -> None:
        """Receives the plan of a table that has policies: the steps that are due (there may be none), and the
        procedures that are held back."""
        ...

    def on_skip(self, table: TableRef, reason: str) -> None:
        """Receives a table for which a step is due, or of which an unfinished task was found, and the reason why it is
        left to a later run."""
        ...


@dataclass
class MaintenanceStats:
    """The counts of a maintenance run: all `tables`, tables `with_policies`, and by the plans tables for which a step
    is `due` and procedures that are `held_back`. `outcomes` counts procedures by outcome, `left` how often a table is
    left to a later run; `unreadable` has a line for each table or task that could not be read or created."""

    tables: int = 0
    with_policies: int = 0
    due: int = 0
    held_back: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)
    left: int = 0
    unreadable: list[str] = field(default_factory=list)

    def to_json(self) -> JsonObject:
        """Returns the counts as JSON, for the last line of a run."""
        return {
            "tables": self.tables,
            "with_policies": self.with_policies,
            "due": self.due,
            "held_back": self.held_back,
            "outcomes": {**self.outcomes},
            "left": self.left,
            "unreadable": [*self.unreadable],
        }


@dataclass
class Maintenance:
    """One run of the job `maintain`, which plans and executes the maintenance of all tables of a catalog that have
    policies."""

    session: Session
    rows: OutcomeRows
    budget: Budget
    observer: Observer
    stats: MaintenanceStats = field(default_factory=MaintenanceStats)

    async def plan(self) -> Sequence[TablePlan]:
        """Plans every table that has policies; the table that loses most files, manifests and snapshots comes first,
        and the bytes of the budget limit rewrites of data files in that order. Writes nothing, and spends nothing of
        the budget. Returns the plans in that order, also the ones without a step that is due; tables that cannot be
        read are in the stats."""
        removed = await asyncio.to_thread(self.rows.last_orphan_removals)
        found: list[TablePlan] = []
        async with aclosing(own_tables(self.session)) as tables:
            async for table in tables:
                self.stats.tables += 1
                table_plan = await self._plan_table(table, removed)
                if table_plan is not None:
                    found.append(table_plan)
        found.sort(key=lambda each: (-each.plan.fewer, each.table.parts))
        within_budget: list[TablePlan] = []
        bytes_left = self.budget.max_bytes
        for each in found:
            table_plan = each.limited_to(bytes_left)
            bytes_left = None if bytes_left is None else max(0, bytes_left - table_plan.plan.bytes)
            within_budget.append(table_plan)
            self.stats.due += bool(table_plan.plan.steps)
            self.stats.held_back += len(table_plan.plan.held_back)
            self.observer.on_plan(table_plan)
        return within_budget

    async def run(self, procedures: Procedures, policies: TaskPolicies) -> None:
        """Finishes the maintenance tasks that previous runs left unfinished, then plans all tables and maintains those
        for which a step is due, until the budget's time is over. Tables that are leased by another run or whose turn
        comes too late are left to a later run, and counted. `policies` bounds the attempts of tasks. Raises
        `CatalogIsCopy` on a copy of another catalog, since an expiry would delete files of both; `StoreError`; and the
        errors of PyIceberg when rows of `system.maintenance` cannot be read, or the rows of a failed task cannot be
        written; if the rows of another task cannot, only this attempt fails."""
        await require_original(self.session)
        executor = MaintenanceExecutor(procedures, self.rows, self.budget, _OutcomeCounter(self.observer, self.stats))
        worker = Worker(self.session.catalog, {TABLE_MAINTENANCE: executor}, _never_submitted, policies)
        for stored in await self._unfinished_tasks():
            try:
                await self._finish_task(worker, stored)
            except InternalError as error:
                self.stats.unreadable.append(f"task {stored.task.id}: {error.message}")
        for table_plan in await self.plan():
            if table_plan.plan.steps:
                await self._maintain(worker, table_plan.table)

    async def _plan_table(self, table: TableRef, removed: Mapping[str, int]) -> TablePlan | None:
        """Returns the plan of a table's maintenance, and counts the table if it has policies. Returns None for a table
        without policies, a dropped one, one with a name that a transaction is changing, and one that cannot be read,
        which is added to the stats. `removed` has the times of the last removals of orphan files by entity."""
        try:
            policies = await policies_of(self.session, table)
            if not policies:
                return None
            self.stats.with_policies += 1
            now = Now(self.session.now_ms(), removed.get(table.entity))
            return await plan_table(self.session, table, policies, now)
        except (CatalogError, MalformedJson, Unreadable, InvalidPolicy) as error:
            self.stats.unreadable.append(f"{table}: {error}")
            return None

    async def _maintain(self, worker: Worker, table: TableRef) -> None:
        """Executes the maintenance task of a table, unless the run's time is over. A table whose task cannot be read or
        made is added to the stats."""
        if self.budget.is_over():
            return self._skip(table, "the time of this run is over")
        last = await asyncio.to_thread(self.rows.last_task, table.entity)
        try:
            task = await open_task(self.session, table, last)
            await self._run_task(worker, table, task)
        except InternalError as error:
            self.stats.unreadable.append(f"{table}: {error.message}")

    async def _run_task(self, worker: Worker, table: TableRef, stored: StoredTask) -> None:
        """Executes the maintenance task of a table. Counts the table as left to a later run if another run holds the
        task's lease, or if the task is not done afterwards."""
        if stored.is_held:
            return self._skip(table, "its task is leased by another run, or by one that ended a moment ago")
        await worker.run_task(stored.task.id)
        now = await read_task(self.session.state, stored.task.id)
        if now is not None and now.task.status not in ENDED:
            self._skip(table, now.task.summary or "another run took its task first")

    async def _finish_task(self, worker: Worker, stored: StoredTask) -> None:
        """Executes an unfinished maintenance task, as `_run_task` does. A task without a table in the payload is added
        to the stats, and ends as failed, so that later runs don't find it. Raises `InternalError` for one that can't be
        read."""
        try:
            table = table_of(stored.task.payload)
        except TaskFailed as failed:
            self.stats.unreadable.append(f"task {stored.task.id}: {failed}")
            await worker.run_task(stored.task.id)
            return
        await self._run_task(worker, table, stored)

    async def _unfinished_tasks(self) -> list[StoredTask]:
        """Returns the maintenance tasks that are not done, of previous runs and concurrent ones. A task with a hint, of
        any type, that can't be read is added to the stats."""
        found: list[StoredTask] = []
        hints = [hint async for hint in all_hints(self.session.state)]
        for task in dict.fromkeys(hint.task for hint in hints):
            try:
                stored = await read_task(self.session.state, task)
                if stored is not None and stored.task.kind == TABLE_MAINTENANCE and stored.task.status not in ENDED:
                    found.append(stored)
            except InternalError as error:
                self.stats.unreadable.append(f"task {task}: {error.message}")
        return found

    def _skip(self, table: TableRef, reason: str) -> None:
        """Counts and reports a table that is left to a later run."""
        self.stats.left += 1
        self.observer.on_skip(table, reason)


@dataclass(frozen=True, slots=True)
class _OutcomeCounter:
    """Counts the outcomes of procedures in the stats of the run, and passes all events on to another observer."""

    observer: WorkObserver
    stats: MaintenanceStats

    def on_start(self, table: TableRef, step: Step) -> None:
        """Passes the start of a procedure on to the other observer."""
        self.observer.on_start(table, step)

    def on_end(self, table: TableRef, outcome: ProcedureOutcome) -> None:
        """Counts the outcome of a procedure in the stats, and passes it on to the other observer."""
        self.stats.outcomes[outcome.outcome] = self.stats.outcomes.get(outcome.outcome, 0) + 1
        self.observer.on_end(table, outcome)

    def on_held_back(self, table: TableRef, held: HeldBack) -> None:
        """Passes a procedure that is held back on to the other observer, and does not count it."""
        self.observer.on_held_back(table, held)


async def _never_submitted(session: Session, task: str) -> Task | None:
    """Returns None, for a task that has a hint and no version: a maintenance task always has a version, since
    `open_task` writes the first one itself."""
    return None
