"""The driver of `maintain`: looks at every table to which a policy applies, the worst first, and has each maintained
under the lease of its task (docs/design/pipeline.md#maintenance).

It may die anywhere and be run again, and twice at once.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Protocol

from arco_catalog.iceberg.errors import CatalogError
from arco_catalog.iceberg.json import JsonObject, MalformedJson
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.copies import require_original
from arco_catalog.state.task import ENDED, TABLE_MAINTENANCE, Task
from arco_catalog.state.task_log import StoredTask, all_hints, read_task
from arco_catalog.tasks.execution import TaskFailed
from arco_catalog.tasks.retry import TaskPolicies
from arco_catalog.tasks.worker import Worker
from arco_catalog.upkeep.purge.avro import Unreadable
from reconciler.maintain.budget import Budget
from reconciler.maintain.looking import Looked, Named, look, own_tables, policies_of
from reconciler.maintain.planning import HeldBack, Now, Step
from reconciler.maintain.policies import PolicyUnclear
from reconciler.maintain.procedures import Procedures
from reconciler.maintain.progress import Told
from reconciler.maintain.tasks import open_task, table_of
from reconciler.maintain.telling import Rows
from reconciler.maintain.work import Maintain, WorkObserver


class Observer(WorkObserver, Protocol):
    """Is told what a run finds and does."""

    def planned(self, looked: Looked) -> None:
        """A table to which policies apply, with what is due and what is held back."""
        ...

    def left(self, table: Named, reason: str) -> None:
        """A table for which something is due is left for another time."""
        ...


@dataclass
class MaintainStats:
    """What a run found and did."""

    tables: int = 0
    with_policies: int = 0
    due: int = 0
    held_back: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)
    left: int = 0
    unreadable: list[str] = field(default_factory=list)

    def to_json(self) -> JsonObject:
        """For the last line of a run."""
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
    """One run over one catalog."""

    session: Session
    rows: Rows
    budget: Budget
    observer: Observer
    stats: MaintainStats = field(default_factory=MaintainStats)

    async def plan(self) -> Sequence[Looked]:
        """What is due in each table to which policies apply, the worst first, within the budget. Writes nothing."""
        removed = await asyncio.to_thread(self.rows.orphans_removed)
        found: list[Looked] = []
        async with aclosing(own_tables(self.session)) as tables:
            async for table in tables:
                self.stats.tables += 1
                looked = await self._look(table, removed)
                if looked is not None:
                    found.append(looked)
        found.sort(key=lambda each: (-each.plan.fewer, each.table.parts))
        planned: list[Looked] = []
        left = self.budget.max_bytes
        for looked in found:
            within = looked.within(left)
            left = None if left is None else max(0, left - within.plan.bytes)
            planned.append(within)
            self.stats.due += bool(within.plan.steps)
            self.stats.held_back += len(within.plan.held_back)
            self.observer.planned(within)
        return planned

    async def run(self, procedures: Procedures, policies: TaskPolicies) -> None:
        """Goes on with what earlier runs left, then maintains what is due. Raises `StoreError`, and what the catalog
        raises when it is told; `CatalogIsCopy` on a copy of another catalog, whose files an expiry would delete."""
        await require_original(self.session)
        removed = await asyncio.to_thread(self.rows.orphans_removed)
        executor = Maintain(procedures, self.rows, self.budget, removed, _Counting(self.observer, self.stats))
        worker = Worker(self.session.catalog, {TABLE_MAINTENANCE: executor}, _never_submitted, policies)
        for table, stored in await self._left_behind():
            await self._work(worker, table, stored)
        for looked in await self.plan():
            if looked.plan.steps:
                await self._maintain(worker, looked.table)

    async def _look(self, table: Named, removed: Mapping[str, int]) -> Looked | None:
        """What is due; None for a table without policies, and for one that can't be read, which is told."""
        try:
            policies = await policies_of(self.session, table)
            if not policies:
                return None
            self.stats.with_policies += 1
            return await look(self.session, table, policies, Now(self.session.now_ms(), removed.get(table.entity)))
        except (CatalogError, MalformedJson, Unreadable, PolicyUnclear) as error:
            self.stats.unreadable.append(f"{table}: {error}")
            return None

    async def _maintain(self, worker: Worker, table: Named) -> None:
        if self.budget.is_over():
            return self._left(table, "the time of this run is over")
        last = await asyncio.to_thread(self.rows.last_task, table.entity)
        await self._work(worker, table, await open_task(self.session, table, last))

    async def _work(self, worker: Worker, table: Named, stored: StoredTask) -> None:
        if stored.is_held:
            return self._left(table, "another run is at it, or one that died a moment ago was")
        await worker.run_task(stored.task.id)
        now = await read_task(self.session.state, stored.task.id)
        if now is not None and now.task.status not in ENDED:
            self._left(table, now.task.summary or "another run was first")

    async def _left_behind(self) -> list[tuple[Named, StoredTask]]:
        """Tasks that earlier runs began, and did not end."""
        found: list[tuple[Named, StoredTask]] = []
        hints = [hint async for hint in all_hints(self.session.state)]
        for task in dict.fromkeys(hint.task for hint in hints):
            stored = await read_task(self.session.state, task)
            if stored is None or stored.task.kind != TABLE_MAINTENANCE or stored.task.status in ENDED:
                continue
            try:
                found.append((table_of(stored.task.payload), stored))
            except TaskFailed as failed:
                self.stats.unreadable.append(f"task {task}: {failed}")
        return found

    def _left(self, table: Named, reason: str) -> None:
        self.stats.left += 1
        self.observer.left(table, reason)


@dataclass(frozen=True, slots=True)
class _Counting:
    """Counts what is told on."""

    observer: WorkObserver
    stats: MaintainStats

    def begins(self, table: Named, step: Step) -> None:
        self.observer.begins(table, step)

    def ended(self, table: Named, told: Told) -> None:
        self.stats.outcomes[told.outcome] = self.stats.outcomes.get(told.outcome, 0) + 1
        self.observer.ended(table, told)

    def held_back(self, table: Named, held: HeldBack) -> None:
        self.observer.held_back(table, held)


async def _never_submitted(session: Session, task: str) -> Task | None:
    """Tasks of maintenance exist from their first version: no registry names them."""
    return None
