"""The maintenance of one table, as a task: a procedure after the other, each decided on what the table is then.

A procedure is written down before it is called, with the figures and the reason, and what came of it afterwards. Who
takes the task over goes on behind what is known, and looks at the table anew for the procedure that was begun: what is
not due any more has been done (docs/design/pipeline.md#rule-12).
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from arco_catalog.iceberg.errors import NotFound
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.task import Status, Task
from arco_catalog.tasks.execution import Execution, Finished
from arco_catalog.upkeep.reconcile import reconcile_one
from reconciler.compact.values import long_of
from reconciler.maintain.budget import Budget
from reconciler.maintain.calls import Procedure
from reconciler.maintain.figures import Figures
from reconciler.maintain.looking import Named, decided
from reconciler.maintain.planning import HeldBack, Now, Step, in_parts
from reconciler.maintain.procedures import ProcedureFailed, Procedures
from reconciler.maintain.progress import CONFLICT, DONE, FAILED, HELD_BACK, PARTLY, Begun, Progress, Told
from reconciler.maintain.shortfall import Shortfall
from reconciler.maintain.tasks import table_of
from reconciler.maintain.telling import Rows

TRIES = 3
"""How often a procedure is called that gave way to writers."""
PAUSE_S = 2.0


class WorkObserver(Protocol):
    """Is told what is done to tables."""

    def begins(self, table: Named, step: Step) -> None:
        """A procedure is about to be called."""
        ...

    def ended(self, table: Named, told: Told) -> None:
        """What came of it."""
        ...

    def held_back(self, table: Named, held: HeldBack) -> None:
        """A procedure that a policy asks for is not called."""
        ...


@dataclass
class Maintain:
    """Does tasks that maintain a table. `orphans_removed` are the times of the last removals, by entity."""

    procedures: Procedures
    rows: Rows
    budget: Budget
    orphans_removed: Mapping[str, int]
    observer: WorkObserver

    def takes(self, task: Task) -> bool:
        return True

    async def execute(self, execution: Execution) -> Finished:
        table = table_of(execution.task.payload)
        if execution.task.status is not Status.RUNNING:
            await execution.start()
        work = _Work(self, execution, table, Progress.parse(execution.checkpoint))
        for procedure in Procedure:
            if not work.progress.has(procedure):
                await work.do(procedure)
        await self._tell(execution, table, work.progress)
        outcomes = [f"{told.procedure.value} {told.outcome}" for told in work.progress.told]
        return Finished(", ".join(outcomes) or "nothing was due any more", {"procedures": [*outcomes]})

    async def abandon(self, execution: Execution, reason: str) -> None:
        progress = Progress.parse(execution.checkpoint)
        if progress.begun is not None:
            progress = progress.ending(progress.begun.ended(FAILED, reason, {}, {}, execution.session().now_ms()))
        await self._tell(execution, table_of(execution.task.payload), progress)

    async def _tell(self, execution: Execution, table: Named, progress: Progress) -> None:
        rows = progress.rows(execution.task.id, table)
        if rows:
            execution.check()
            await asyncio.to_thread(self.rows.tell, execution.task.id, rows)


@dataclass
class _Work:
    """One lease of one task."""

    maintain: Maintain
    execution: Execution
    table: Named
    progress: Progress

    async def do(self, procedure: Procedure) -> None:
        """Calls a procedure, if it is due, and takes down what came of it."""
        begun = self.progress.begun if self.progress.begun and self.progress.begun.procedure is procedure else None
        if begun is None and self.maintain.budget.is_over():
            return
        figures, decision = await self._decided(procedure)
        if begun is not None and not isinstance(decision, Step):
            await self._end(begun, *_found_done(decision, figures), _summary(figures), {})
            return
        if isinstance(decision, HeldBack):
            self.maintain.observer.held_back(self.table, decision)
        if not isinstance(decision, Step):
            return
        if begun is None:
            begun = Begun.of(decision, _summary(figures), self._now_ms())
            self.progress = self.progress.beginning(begun)
            await self.execution.save(self.progress.to_json())
        self.maintain.observer.begins(self.table, decision)
        self.maintain.budget.spend(decision.bytes)
        if procedure is Procedure.REMOVE_ORPHAN_FILES and (owed := await self._owed()):
            await self._end(begun, HELD_BACK, owed, _summary(figures), {})
            return
        outcome, explanation, result = await self._called(decision, figures)
        after, _ = await self._decided(procedure)
        await self._end(begun, outcome, explanation, _summary(after), result)

    async def _owed(self) -> str | None:
        """Writes the receipts of the table's commits that are missing; why some still are. To Iceberg, a metadata file
        that left the log is an orphan, and it may be all that tells of a commit (docs/design/pipeline.md#rule-15)."""
        walked = await reconcile_one(self.execution.session(), self.table.entity)
        return (
            "receipts of its commits are missing, and could not be written"
            if walked.incomplete or walked.stopped
            else None
        )

    async def _called(self, step: Step, before: Figures | None) -> tuple[str, str | None, JsonObject]:
        """What came of the call, on a table of these figures: the outcome, its explanation, and what the procedure
        answered."""
        told: tuple[str, str | None, JsonObject] = (CONFLICT, None, {})
        result: JsonObject = {}
        some = False
        for tried in range(1, TRIES + 1):
            self.execution.check()
            try:
                call = step.call if tried == 1 else in_parts(step)
                answer = await self.maintain.procedures.call(call, self.table.parts)
            except ProcedureFailed as failed:
                if not failed.conflict:
                    return FAILED, str(failed), result
                told = PARTLY if some else CONFLICT, f"{tried} times a writer was first: {failed}", result
            else:
                result = _added(result, answer)
                after, _ = await self._decided(step.call.procedure)
                short = Shortfall.of(step, answer, before, after)
                if short is None:
                    return DONE, None, result
                some = some or short.missing < short.foreseen
                told = short.outcome(some=some), short.explanation(tried), result
                if not short.is_lost:
                    return told
            if tried < TRIES:
                await self.execution.runtime.sleep(PAUSE_S * tried)
                before, again = await self._decided(step.call.procedure)
                if not isinstance(again, Step):
                    return told
                step = again
        return told

    async def _decided(self, procedure: Procedure) -> tuple[Figures | None, Step | HeldBack | None]:
        session = self.execution.session()
        removed_ms = self.maintain.orphans_removed.get(self.table.entity)
        now = Now(session.now_ms(), removed_ms, self.maintain.budget.max_bytes)
        try:
            return await decided(session, self.table, procedure, now)
        except NotFound:
            return None, None

    async def _end(
        self, begun: Begun, outcome: str, explanation: str | None, after: JsonObject, result: JsonObject
    ) -> None:
        told = begun.ended(outcome, explanation, after, result, self._now_ms())
        self.progress = self.progress.ending(told)
        await self.execution.save(self.progress.to_json())
        self.maintain.observer.ended(self.table, told)

    def _now_ms(self) -> int:
        return self.execution.session().now_ms()


def _added(so_far: JsonObject, answer: JsonObject) -> JsonObject:
    """What calls have answered together: their counts, added up."""
    counts = {name: long_of(value) for name, value in answer.items()}
    return {
        **answer,
        **{name: count + (long_of(so_far.get(name)) or 0) for name, count in counts.items() if count is not None},
    }


def _found_done(decision: HeldBack | None, figures: Figures | None) -> tuple[str, str]:
    """What is said of a procedure that an earlier run had begun, and that is not due any more."""
    if isinstance(decision, HeldBack):
        return HELD_BACK, f"a run that ended early had begun it: {decision.reason}"
    if figures is None:
        return FAILED, "a run that ended early had begun it, and the table is not there any more"
    return DONE, "a run that ended early had begun it, and nothing is left to do"


def _summary(figures: Figures | None) -> JsonObject:
    return {} if figures is None else figures.summary()
