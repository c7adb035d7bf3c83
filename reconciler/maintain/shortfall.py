"""Explains why a call of a procedure rewrote fewer files than expected: a concurrent writer committed first, Iceberg
failed, or it selected other files than the plan (docs/design/pipeline.md#rule-14)."""

from dataclasses import dataclass

from arco_catalog.iceberg.json import JsonObject
from reconciler.compact.values import long_of
from reconciler.maintain.figures import Figures
from reconciler.maintain.formatting import counted
from reconciler.maintain.planning import Step
from reconciler.maintain.progress import CONFLICT, DONE, FAILED, PARTLY

REWRITE = "replace"
"""The operation of a snapshot that changes no row. Such a snapshot is a rewrite, and does not count as a writer's."""


@dataclass(frozen=True, slots=True)
class Shortfall:
    """The files that a procedure was to rewrite and did not: how many were expected, how many of these are missing, how
    many Iceberg reports as failed before their commit (it does not count those with a failed commit), and how many
    snapshots other writers committed during the call, without rewrites."""

    expected: int
    missing: int
    failed: int
    foreign_snapshots: int

    @classmethod
    def of(cls, step: Step, result: JsonObject, before: Figures | None, after: Figures | None) -> "Shortfall | None":
        """Compares a step with the result of the call and with the table before and after it. Returns what the call
        failed to rewrite; None if it rewrote as many files as expected, or reports no number of rewritten data files.
        """
        rewritten = long_of(result.get("rewritten_data_files_count"))
        if rewritten is None or rewritten >= step.files:
            return None
        known = {each.id for each in before.snapshots} if before is not None else set()
        new = [each for each in after.snapshots if each.id not in known] if after is not None else []
        foreign = sum(each.operation != REWRITE for each in new)
        return cls(step.files, step.files - rewritten, long_of(result.get("failed_data_files_count")) or 0, foreign)

    @property
    def is_retryable(self) -> bool:
        """Whether another call may rewrite the files that are missing: a writer committed during the call, or Iceberg
        reports failed files. Otherwise Iceberg selected fewer files than the plan, and would again."""
        return self.foreign_snapshots > 0 or self.failed > 0

    def outcome(self, *, rewrote_some: bool) -> str:
        """Returns the outcome of the step if this was the last call; `rewrote_some` is whether any of its calls rewrote
        files. It is `done` if another call would not rewrite more, either."""
        if not self.is_retryable:
            return DONE
        if rewrote_some:
            return PARTLY
        return CONFLICT if self.foreign_snapshots else FAILED

    def explanation(self, attempt: int) -> str:
        """Returns a sentence for a report that explains why files were not rewritten; `attempt` is the number of the
        call."""
        if not self.is_retryable:
            return f"fewer files than expected: {self.expected - self.missing:,} of {self.expected:,} were rewritten"
        text = f"{self.missing:,} of {self.expected:,} files were not rewritten in attempt {attempt}"
        if self.failed:
            text += f", and Iceberg failed with {self.failed:,}"
        if self.foreign_snapshots:
            text += f", and other writers committed {counted(self.foreign_snapshots, 'snapshot')} during the call"
        return text
