"""Looks once a day for the tables of a catalog whose snapshots expire by a policy (docs/design/expiry.md#rule-2)."""

from contextlib import aclosing

from arco_catalog.iceberg.errors import CatalogError
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.upkeep_policy import DAY_MS, SNAPSHOT_EXPIRY, InvalidPolicy, SnapshotExpiry
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.lookup import entries_in
from arco_catalog.state.fields import optional_text, text
from arco_catalog.state.index import Index
from arco_catalog.state.purge_progress import count_in
from arco_catalog.state.runtime import Runtime
from arco_catalog.state.task import EXPIRY_SWEEP, Task
from arco_catalog.tasks.execution import Execution, TaskFailed, TaskResult
from arco_catalog.upkeep.expiry.commit import plan_now
from arco_catalog.upkeep.expiry.executor import retention_by
from arco_catalog.upkeep.expiry.policies import PolicyReader
from arco_catalog.upkeep.expiry.tables import LiveTable, own_tables, submit, submit_table, task_id

LOOK_AGAIN_MS = 10 * 60_000
"""How often a worker looks for a policy, and for the sweep of a new day."""
AFTER, TABLES, DUE, UNREADABLE = "after", "tables", "due", "unreadable"
MAX_UNREADABLE = 100


class SweepExecutor:
    """Makes a task for each table to which an enabled policy of snapshot expiry applies, and of which something has
    expired by it."""

    def takes(self, task: Task) -> bool:
        """Returns True: it executes every task of this type."""
        return True

    async def execute(self, execution: Execution) -> TaskResult:
        """Makes tasks for the tables of which something has expired, in the order of their names, from the checkpoint
        on, and returns the counts. Up to `MAX_UNREADABLE` tables that can't be read, or with such a policy, are
        named in the result. Raises `TaskFailed`, `LeaseLost`, and `StoreError`."""
        await execution.start()
        session = execution.session()
        index = (await session.state.head()).index
        period, policies = _period(execution.task), PolicyReader(execution, index)
        async with aclosing(own_tables(session, index, optional_text(execution.checkpoint, AFTER) or "")) as tables:
            async for key, table in tables:
                await _look(execution, table, policies, period)
                await execution.progress({**execution.checkpoint, AFTER: key}, 1)
        checkpoint = execution.checkpoint
        counts: JsonObject = {name: count_in(checkpoint, name) for name in (TABLES, DUE)}
        summary = f"Snapshots of {counts[DUE]} of {counts[TABLES]} tables with a policy expire"
        return TaskResult(summary, {**counts, UNREADABLE: checkpoint.get(UNREADABLE, {})})

    async def abandon(self, execution: Execution, reason: str) -> None:
        """Counts the failure. The next day has another task."""
        execution.stats().expiries.failed += 1


def _period(task: Task) -> str:
    """Returns the period in the payload of a sweep's task, which is a day. Raises `TaskFailed` without one."""
    period = optional_text(task.payload, "period")
    if period is None:
        raise TaskFailed(
            "the payload of this day's task that makes tasks of expiry has no period, so it makes none: the next day "
            "has another such task"
        )
    return period


async def _look(execution: Execution, table: LiveTable, policies: PolicyReader, period: str) -> None:
    """Makes the task of a table if something of it has expired by the policy, and counts the table in the checkpoint;
    one without a policy is not counted. A table or policy that can't be read counts as a failure instead, and the
    checkpoint names the table, unless it has `MAX_UNREADABLE` already."""
    session, checkpoint = execution.session(), execution.checkpoint
    try:
        policy = await policies.of(table.namespace, table.name)
        if policy is None:
            return
        counted = {**checkpoint, TABLES: count_in(checkpoint, TABLES) + 1}
        plan = await plan_now(session, table.entry.entity, retention_by(SnapshotExpiry.of(policy)))
        if plan is not None and plan.expiry.updates:
            await submit_table(session, table, period, {})
            counted[DUE] = count_in(checkpoint, DUE) + 1
    except (InvalidPolicy, CatalogError) as error:
        execution.stats().expiries.failed += 1
        unreadable = checkpoint.get(UNREADABLE)
        named = unreadable if isinstance(unreadable, dict) else {}
        counted = {
            **checkpoint,
            UNREADABLE: {**named, str(table): str(error)} if len(named) < MAX_UNREADABLE else named,
        }
    await execution.progress(counted, 0)


class Sweeps:
    """Makes the task of each day's sweep, if a policy of snapshot expiry is attached to anything in the catalog, and
    the catalog is not a copy."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._look_ms: int | None = None
        """When to look again, by the machine's clock since boot; None for at once."""
        self._made = ""
        """The period whose task this process has made, or has seen."""

    async def submit_due(self, session: Session) -> None:
        """Makes the task of today's sweep, unless it exists, this process searched less than `LOOK_AGAIN_MS` ago, the
        catalog is a copy, or no policy of snapshot expiry, enabled or not, is attached to anything. Raises
        `StoreError`, and `CatalogError`."""
        now_ms = self._runtime.boot_ms()
        if self._look_ms is not None and now_ms < self._look_ms:
            return
        self._look_ms = now_ms + LOOK_AGAIN_MS
        period = str(session.now_ms() // DAY_MS)
        if period == self._made:
            return
        head = session.state.cached_head(LOOK_AGAIN_MS) or await session.state.head()
        if head.copy_of is None and await has_policy(session, head.index):
            await submit(
                session, task_id(EXPIRY_SWEEP, session.state.paths.root, period), EXPIRY_SWEEP, {"period": period}
            )
            self._made = period


async def has_policy(session: Session, index: Index) -> bool:
    """Whether a policy of snapshot expiry is attached to anything in the catalog. Raises `StoreError`."""
    async with aclosing(entries_in(session.state, index, "policy-attached\n")) as entries:
        async for _, attached in entries:
            if text(attached, "type") == SNAPSHOT_EXPIRY:
                return True
    return False
