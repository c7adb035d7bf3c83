"""How far the maintenance of one table is: the checkpoint of its task, and the rows that it becomes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from arco_catalog.iceberg.json import JsonObject, dumps
from reconciler.compact.values import long_of, object_of, objects_of, text_of
from reconciler.maintain.calls import Procedure
from reconciler.maintain.looking import Named
from reconciler.maintain.planning import Step
from reconciler.system.definition import Row

DONE, PARTLY, CONFLICT, FAILED, HELD_BACK = "done", "partly", "conflict", "failed", "held-back"
"""What came of a procedure: all of it; some of it, a writer having been first elsewhere; nothing, for the same reason;
nothing, for another; it was not called."""
FIGURES = ("snapshot_id", "data_files", "delete_files", "bytes", "manifests", "snapshots")


@dataclass(frozen=True, slots=True)
class Begun:
    """A procedure that was called, or is about to be: durable before it is. What is told of it is kept as JSON."""

    procedure: Procedure
    told: JsonObject

    @classmethod
    def of(cls, step: Step, before: JsonObject, at_ms: int) -> "Begun":
        """Begins a step on a table of these figures."""
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

    def ended(self, outcome: str, explanation: str | None, after: JsonObject, result: JsonObject, at_ms: int) -> "Told":
        """What came of it."""
        told = {"outcome": outcome, "explanation": explanation, "after": after, "result": result, "ended_ms": at_ms}
        return Told(self.procedure, {**self.told, **told})


@dataclass(frozen=True, slots=True)
class Told:
    """What came of a procedure, with all that a row tells of it."""

    procedure: Procedure
    told: JsonObject

    @property
    def outcome(self) -> str:
        """One of the words above."""
        return str(self.told.get("outcome"))

    def row(self, task: str, step: int, table: Named) -> Row:
        """The row of `system.maintenance`."""
        told, result = self.told, object_of(self.told.get("result"))
        began_ms, ended_ms = long_of(told.get("began_ms")), long_of(told.get("ended_ms"))
        figures = {
            f"{name}_{when}": long_of(object_of(told.get(when)).get(name))
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
            "policy": text_of(told.get("policy")),
            "policy_version": long_of(told.get("policy_version")),
            "reason": text_of(told.get("reason")),
            "expected": text_of(told.get("expected")),
            "arguments": dumps(object_of(told.get("arguments"))).decode(),
            "began_at": began_ms,
            "ended_at": ended_ms,
            "outcome": self.outcome,
            "explanation": text_of(told.get("explanation")),
            "result": dumps(result).decode(),
            "rewritten_bytes": long_of(result.get("rewritten_bytes_count")),
            "took_ms": None if began_ms is None or ended_ms is None else ended_ms - began_ms,
            **figures,
        }


@dataclass(frozen=True, slots=True)
class Progress:
    """What came of procedures so far, and the one that was begun."""

    told: Sequence[Told] = ()
    begun: Begun | None = None

    @classmethod
    def parse(cls, checkpoint: JsonObject) -> "Progress":
        """Reads a checkpoint."""
        said = object_of(checkpoint.get("begun"))
        begun = Begun(Procedure(str(said.get("procedure"))), object_of(said.get("told"))) if said else None
        told = [
            Told(Procedure(str(each.get("procedure"))), object_of(each.get("told")))
            for each in objects_of(checkpoint.get("told"))
        ]
        return cls(told, begun)

    def to_json(self) -> JsonObject:
        """The checkpoint."""
        begun = self.begun
        return {
            "told": [{"procedure": each.procedure.value, "told": each.told} for each in self.told],
            "begun": None if begun is None else {"procedure": begun.procedure.value, "told": begun.told},
        }

    def beginning(self, begun: Begun) -> "Progress":
        """With a procedure that is about to be called."""
        return replace(self, begun=begun)

    def ending(self, told: Told) -> "Progress":
        """With what came of it."""
        return Progress([*self.told, told])

    def has(self, procedure: Procedure) -> bool:
        """Whether it is known what came of a procedure."""
        return any(told.procedure is procedure for told in self.told)

    def rows(self, task: str, table: Named) -> Sequence[Row]:
        """The rows of `system.maintenance`."""
        return [told.row(task, step, table) for step, told in enumerate(self.told, 1)]
