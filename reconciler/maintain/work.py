"""The maintenance of one table as a task: it calls one procedure after the other, and decides about each on the table
as it is by then.

The checkpoint has a procedure with the reason and the table's counts before the procedure is called, and the outcome
afterwards. A worker that takes the task over skips procedures that have an outcome, and decides anew about the one that
was started: if it is not due any more, the former worker has done it (docs/design/pipeline.md#rule-12)."""

import asyncio
from dataclasses import dataclass
from typing import Protocol

from arco_catalog.iceberg.errors import NotFound
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.task import Status, Task
from arco_catalog.tasks.execution import Execution, TaskFailed, TaskResult
from arco_catalog.upkeep.reconcile import reconcile_one
from reconciler.compact.values import long_of
from reconciler.maintain.budget import Budget
from reconciler.maintain.calls import Procedure
from reconciler.maintain.figures import Figures
from reconciler.maintain.outcome_rows import OutcomeRows
from reconciler.maintain.planning import HeldBack, Now, Step, split_rewrite
from reconciler.maintain.procedures import ProcedureFailed, Procedures
from reconciler.maintain.progress import (
    CONFLICT,
    DONE,
    FAILED,
    HELD_BACK,
    PARTLY,
    ProcedureOutcome,
    Progress,
    StartedProcedure,
)
from reconciler.maintain.shortfall import Shortfall
from reconciler.maintain.table_plans import TableRef, decide_now
from reconciler.maintain.tasks import table_of

MAX_CALLS = 3
"""How often a procedure is called at most when concurrent writers make it fail."""
PAUSE_S = 2.0


class WorkObserver(Protocol):
    """The interface of what receives the events of the maintenance of a table: procedures that begin, end, or are held
    back."""

    def on_start(self, table: TableRef, step: Step) -> None:
        """Receives a table and the step of a procedure that is about to be called for it, once however often that is
        called; `remove_orphan_files` may still be held back then."""
        ...

    def on_end(self, table: TableRef, outcome: ProcedureOutcome) -> None:
        """Receives a table and the outcome of a procedure for it."""
        ...

    def on_held_back(self, table: TableRef, held: HeldBack) -> None:
        """Receives a table and a procedure that a policy requires and that is not called, with the reason."""
        ...


@dataclass
class MaintenanceExecutor:
    """Executes background tasks that maintain tables: calls the procedures that are due for the table by `procedures`,
    and writes a row for each outcome to `rows`, which also has the time of the last removal of orphan files."""

    procedures: Procedures
    rows: OutcomeRows
    budget: Budget
    observer: WorkObserver

    def takes(self, task: Task) -> bool:
        """Returns true: this executor takes any task."""
        return True

    async def execute(self, execution: Execution) -> TaskResult:
        """Calls the procedures without a result in the checkpoint that are due now, one after the other until the time
        of the budget is over, saves every result there, and adds the rows of all results to `rows`. Returns how each
        ended. Raises `TaskFailed` for a payload without a table, `LeaseLost`, and the errors of `rows` and of
        `decide_now`, but not `NotFound`: no procedure is due without a metadata file."""
        table = table_of(execution.task.payload)
        if execution.task.status is not Status.RUNNING:
            await execution.start()
        work = _TableWork(self, execution, table, Progress.parse(execution.checkpoint))
        for procedure in Procedure:
            if not work.progress.has(procedure):
                await work.do(procedure)
        await self._write_rows(execution, table, work.progress)
        outcomes = [f"{each.procedure.value} {each.outcome}" for each in work.progress.outcomes]
        return TaskResult(", ".join(outcomes) or "nothing was due any more", {"procedures": [*outcomes]})

    async def abandon(self, execution: Execution, reason: str) -> None:
        """Adds the rows of the results so far when a task has failed; a procedure that was started and has no result
        counts as failed. Writes none for a payload without a table."""
        try:
            table = table_of(execution.task.payload)
        except TaskFailed:
            return
        progress = Progress.parse(execution.checkpoint)
        if progress.started is not None:
            now_ms = execution.session().now_ms()
            progress = progress.with_outcome(progress.started.ended(FAILED, reason, {}, {}, now_ms))
        await self._write_rows(execution, table, progress)

    async def _write_rows(self, execution: Execution, table: TableRef, progress: Progress) -> None:
        """Writes the rows about the results of a task, if it has any."""
        rows = progress.rows(execution.task.id, table)
        if rows:
            execution.check()
            await asyncio.to_thread(self.rows.write, execution.task.id, rows)


@dataclass
class _TableWork:
    """The maintenance of one table under one lease of the task."""

    executor: MaintenanceExecutor
    execution: Execution
    table: TableRef
    progress: Progress

    async def do(self, procedure: Procedure) -> None:
        """Calls a procedure if it is due, saves the outcome in the checkpoint, reports start and end to the observer,
        and spends the budget; reports one that is held back. One that is held back, is not due, or has no time left in
        the budget gets no outcome, unless a worker under a former lease started it: that one is called or ended at any
        time. Orphan files are not removed if receipts are still missing: the step ends as `held-back` then."""
        begun = self.progress.started
        started = begun if begun and begun.procedure is procedure else None
        if started is None and self.executor.budget.is_over():
            return
        figures, decision = await self._decide(procedure)
        if started is not None and not isinstance(decision, Step):
            await self._end(started, *_outcome_of_started(decision, figures), _summary(figures), {})
            return
        if isinstance(decision, HeldBack):
            self.executor.observer.on_held_back(self.table, decision)
        if not isinstance(decision, Step):
            return
        if started is None:
            started = StartedProcedure.of(decision, _summary(figures), self._now_ms())
            self.progress = self.progress.with_started(started)
            await self.execution.save(self.progress.to_json())
        self.executor.observer.on_start(self.table, decision)
        self.executor.budget.spend(decision.bytes)
        if procedure is Procedure.REMOVE_ORPHAN_FILES and (reason := await self._write_missing_receipts()):
            await self._end(started, HELD_BACK, reason, _summary(figures), {})
            return
        outcome, explanation, result = await self._call(decision, figures)
        after, _ = await self._decide(procedure)
        await self._end(started, outcome, explanation, _summary(after), result)

    async def _write_missing_receipts(self) -> str | None:
        """Writes the missing receipts of the table's commits. If some are still missing, returns the reason why no
        orphan files are removed, otherwise None. Iceberg regards a metadata file that left the metadata log as an
        orphan, and it may be the only evidence of a commit (docs/design/pipeline.md#rule-15)."""
        walk = await reconcile_one(self.execution.session(), self.table.entity)
        return (
            "receipts of the table's commits could not be written, so orphan files, which may be the only evidence of "
            "these commits, are not removed: see `arco fsck`"
            if walk.incomplete or walk.stopped
            else None
        )

    async def _call(self, step: Step, before: Figures | None) -> tuple[str, str | None, JsonObject]:
        """Calls the procedure of a step on a table with the counts `before`, up to `MAX_CALLS` times after a pause
        while a concurrent writer or failed files are the cause and it is still due, from the second call on in smaller
        groups. Returns the outcome, an explanation (None if all is done) and the results of the calls added up."""
        ending: tuple[str, str | None, JsonObject] = (CONFLICT, None, {})
        result: JsonObject = {}
        rewrote_some = False
        for attempt in range(1, MAX_CALLS + 1):
            self.execution.check()
            try:
                call = step.call if attempt == 1 else split_rewrite(step)
                answer = await self.executor.procedures.call(call, self.table.parts)
            except ProcedureFailed as failed:
                if not failed.conflict:
                    return FAILED, str(failed), result
                outcome = PARTLY if rewrote_some else CONFLICT
                ending = outcome, f"a concurrent writer committed first in attempt {attempt}: {failed}", result
            else:
                result = _added(result, answer)
                after, _ = await self._decide(step.call.procedure)
                short = Shortfall.of(step, answer, before, after)
                if short is None:
                    return DONE, None, result
                rewrote_some = rewrote_some or short.missing < short.expected
                ending = short.outcome(rewrote_some=rewrote_some), short.explanation(attempt), result
                if not short.is_retryable:
                    return ending
            if attempt < MAX_CALLS:
                await self.execution.runtime.sleep(PAUSE_S * attempt)
                before, again = await self._decide(step.call.procedure)
                if not isinstance(again, Step):
                    return ending
                step = again
        return ending

    async def _decide(self, procedure: Procedure) -> tuple[Figures | None, Step | HeldBack | None]:
        """Reads the table anew. Returns the figures, and the step or why it is held back; None as the latter if the
        procedure is not due, and None for both if the table or the metadata file no longer exists, or a transaction is
        changing the name."""
        session = self.execution.session()
        removed_ms = None
        if procedure is Procedure.REMOVE_ORPHAN_FILES:  # read now: another task may have removed them since the plan
            removals = await asyncio.to_thread(self.executor.rows.last_orphan_removals)
            removed_ms = removals.get(self.table.entity)
        now = Now(session.now_ms(), removed_ms, self.executor.budget.max_bytes)
        try:
            return await decide_now(session, self.table, procedure, now)
        except NotFound:
            return None, None

    async def _end(
        self, started: StartedProcedure, outcome: str, explanation: str | None, after: JsonObject, result: JsonObject
    ) -> None:
        """Saves the outcome of a procedure in the checkpoint, and reports it to the observer."""
        ended = started.ended(outcome, explanation, after, result, self._now_ms())
        self.progress = self.progress.with_outcome(ended)
        await self.execution.save(self.progress.to_json())
        self.executor.observer.on_end(self.table, ended)

    def _now_ms(self) -> int:
        """Returns the machine's time, corrected by the clock of the store, in milliseconds since 1970. Raises
        `LeaseLost` if the lease of the task is over."""
        return self.execution.session().now_ms()


def _added(so_far: JsonObject, answer: JsonObject) -> JsonObject:
    """Returns the sum of the results of several calls of a procedure: numbers are added up, other fields are those of
    the last call."""
    counts = {name: long_of(value) for name, value in answer.items()}
    return {
        **answer,
        **{name: count + (long_of(so_far.get(name)) or 0) for name, count in counts.items() if count is not None},
    }


def _outcome_of_started(decision: HeldBack | None, figures: Figures | None) -> tuple[str, str]:
    """Returns the outcome and explanation of a procedure that a worker under an earlier lease started and did not
    finish, and that is not due any more. `decision` is why it is held back, if so; `figures` is None if the table or
    the metadata file does not exist, or a transaction is changing the name."""
    if isinstance(decision, HeldBack):
        return HELD_BACK, f"a run that ended early had started it: {decision.reason}"
    if figures is None:
        return FAILED, (
            "a run that ended early had started it, and the table or the metadata file does not exist any more, or a "
            "transaction is changing the table's name"
        )
    return DONE, "a run that ended early had started it, and nothing is left to do"


def _summary(figures: Figures | None) -> JsonObject:
    """Returns the summary of figures; empty without any."""
    return {} if figures is None else figures.summary()
