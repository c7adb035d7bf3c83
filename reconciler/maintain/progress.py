"""The state of the maintenance of one table: the checkpoint of the task, and the rows of `system.maintenance`."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from arco_catalog.iceberg.json import JsonObject, dumps
from reconciler.compact.values import long_of, object_of, objects_of, text_of
from reconciler.maintain.calls import Procedure
from reconciler.maintain.planning import Step
from reconciler.maintain.table_plans import TableRef
from reconciler.system.definition import Row

DONE, PARTLY, CONFLICT, FAILED, HELD_BACK = "done", "partly", "conflict", "failed", "held-back"
"""The outcomes of a procedure: it did all that was due; a part, since a concurrent writer committed first; nothing, for
the same reason; it failed otherwise; it was not called."""
_STARTED, _DETAILS = "begun", "told"
"""Stored names in a checkpoint: the started procedure; and outcomes, as well as the details of a procedure."""
FIGURES = ("snapshot_id", "data_files", "delete_files", "bytes", "manifests", "snapshots")


@dataclass(frozen=True, slots=True)
class StartedProcedure:
    """The record of a procedure that is about to be called for a table, or was called. It is saved in the checkpoint
    before the call. `details` has the fields of the row that are known by then."""

    procedure: Procedure
    details: JsonObject

    @classmethod
    def of(cls, step: Step, before: JsonObject, at_ms: int) -> "StartedProcedure":
        """Returns the record of a procedure that starts at `at_ms`, by the step that is due, on a table with the
        figures `before`."""
        return cls(
            step.call.procedure,
            {
                "policy": step.policy.name,
                "policy_version": step.policy.version,
                "reason": step.reason,
                "expected": step.gain,
                "arguments": step.call.to_json(),
                "before": before,
                "began_ms": at_ms,
            },
        )

    def ended(
        self, outcome: str, explanation: str | None, after: JsonObject, result: JsonObject, at_ms: int
    ) -> "ProcedureOutcome":
        """Returns the outcome of the procedure, which ended at `at_ms` and left a table with the figures `after`; the
        explanation is None if all was done."""
        ending = {"outcome": outcome, "explanation": explanation, "after": after, "result": result, "ended_ms": at_ms}
        return ProcedureOutcome(self.procedure, {**self.details, **ending})


@dataclass(frozen=True, slots=True)
class ProcedureOutcome:
    """The outcome of a procedure for a table. `details` has the fields of the row of `system.maintenance`, without the
    task, the step, the table and the procedure."""

    procedure: Procedure
    details: JsonObject

    @property
    def outcome(self) -> str:
        """The outcome's name: `done`, `partly`, `conflict`, `failed` or `held-back`."""
        return str(self.details.get("outcome"))

    def row(self, task: str, step: int, table: TableRef) -> Row:
        """Returns the row of `system.maintenance` for this outcome, the one with number `step` in the task."""
        details, result = self.details, object_of(self.details.get("result"))
        began_ms, ended_ms = long_of(details.get("began_ms")), long_of(details.get("ended_ms"))
        figures = {
            f"{name}_{when}": long_of(object_of(details.get(when)).get(name))
            for when in ("before", "after")
            for name in FIGURES
        }
        return {
            "task_id": task,
            "step": step,
            "entity": table.entity,
            "namespace": ".".join(table.namespace),
            "name": table.name,
            "procedure": self.procedure.value,
            "policy": text_of(details.get("policy")),
            "policy_version": long_of(details.get("policy_version")),
            "reason": text_of(details.get("reason")),
            "expected": text_of(details.get("expected")),
            "arguments": dumps(object_of(details.get("arguments"))).decode(),
            "began_at": began_ms,
            "ended_at": ended_ms,
            "outcome": self.outcome,
            "explanation": text_of(details.get("explanation")),
            "result": dumps(result).decode(),
            "rewritten_bytes": long_of(result.get("rewritten_bytes_count")),
            "took_ms": None if began_ms is None or ended_ms is None else ended_ms - began_ms,
            **figures,
        }


@dataclass(frozen=True, slots=True)
class Progress:
    """The state of a maintenance task: the outcomes of procedures so far, and the procedure that was started and has no
    outcome yet."""

    outcomes: Sequence[ProcedureOutcome] = ()
    started: StartedProcedure | None = None

    @classmethod
    def parse(cls, checkpoint: JsonObject) -> "Progress":
        """Reads the state in a task's checkpoint; an empty checkpoint has no outcomes."""
        entry = object_of(checkpoint.get(_STARTED))
        started = StartedProcedure(*_parse_entry(entry)) if entry else None
        outcomes = [ProcedureOutcome(*_parse_entry(each)) for each in objects_of(checkpoint.get(_DETAILS))]
        return cls(outcomes, started)

    def to_json(self) -> JsonObject:
        """Returns the state as a task's checkpoint."""
        return {
            _DETAILS: [_entry(outcome) for outcome in self.outcomes],
            _STARTED: None if self.started is None else _entry(self.started),
        }

    def with_started(self, started: StartedProcedure) -> "Progress":
        """Returns this state with a procedure that is about to be called."""
        return replace(self, started=started)

    def with_outcome(self, outcome: ProcedureOutcome) -> "Progress":
        """Returns this state with one more outcome, and without a started procedure."""
        return Progress([*self.outcomes, outcome])

    def has(self, procedure: Procedure) -> bool:
        """Whether a procedure has an outcome."""
        return any(outcome.procedure is procedure for outcome in self.outcomes)

    def rows(self, task: str, table: TableRef) -> Sequence[Row]:
        """Returns the rows of `system.maintenance` for the task, one for each outcome."""
        return [outcome.row(task, step, table) for step, outcome in enumerate(self.outcomes, 1)]


def _entry(procedure: StartedProcedure | ProcedureOutcome) -> JsonObject:
    """Returns the stored form of a procedure's progress."""
    return {"procedure": procedure.procedure.value, _DETAILS: procedure.details}


def _parse_entry(entry: JsonObject) -> tuple[Procedure, JsonObject]:
    """Reads the stored form of a procedure's progress."""
    return Procedure(str(entry.get("procedure"))), object_of(entry.get(_DETAILS))
