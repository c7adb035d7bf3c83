"""Writes the report of a run of `maintain`: for each table the steps that are due, their reasons and their outcomes."""

from collections.abc import Callable

from reconciler.compact.values import long_of, object_of, text_of
from reconciler.maintain.planning import HeldBack, Step
from reconciler.maintain.progress import DONE, ProcedureOutcome
from reconciler.maintain.table_plans import TablePlan, TableRef

REPORTED_FIGURES = ("data_files", "delete_files", "manifests", "snapshots", "bytes")


class Report:
    """An observer of a run of `maintain` that passes lines of text for its report to `write`."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write

    def on_plan(self, table_plan: TablePlan) -> None:
        """Writes the table's figures, and then two lines, with the reason and the policy, for every step that is due
        and every procedure that is held back; if there is neither, a line that nothing is due."""
        figures, plan = table_plan.figures, table_plan.plan
        self._line(
            f"{table_plan.table}: {figures.data_files:,} data files, {figures.delete_files:,} delete files, "
            f"{len(figures.manifests):,} manifests, {len(figures.snapshots):,} snapshots, {figures.bytes:,} bytes"
        )
        for step in plan.steps:
            self._line(f"  {step.call.procedure}: {step.reason}")
            self._line(f"    by {step.policy.name} (version {step.policy.version}); expected: {step.gain}")
        for held in plan.held_back:
            self._line(f"  {held.procedure} is held back: {held.reason}")
            self._line(f"    required by {held.policy.name} (version {held.policy.version})")
        if not plan.steps and not plan.held_back:
            self._line("  nothing is due")

    def on_start(self, table: TableRef, step: Step) -> None:
        """Writes a line: the procedure starts for the table, and why."""
        self._line(f"{table}: {step.call.procedure} starts: {step.reason}")

    def on_end(self, table: TableRef, outcome: ProcedureOutcome) -> None:
        """Writes a line: the outcome of the procedure for the table, the explanation unless that is `done`, how many
        seconds it took, and the figures that have changed, or that nothing did, also if they are unknown."""
        details = outcome.details
        before, after = object_of(details.get("before")), object_of(details.get("after"))
        changed = [
            f"{name.replace('_', ' ')} {was:,} -> {now:,}"
            for name in REPORTED_FIGURES
            if (was := long_of(before.get(name))) is not None
            and (now := long_of(after.get(name))) is not None
            and was != now
        ]
        began, ended = long_of(details.get("began_ms")) or 0, long_of(details.get("ended_ms")) or 0
        explanation = "" if outcome.outcome == DONE else f" ({text_of(details.get('explanation'))})"
        changes = ", ".join(changed) or "nothing changed"
        took_s = (ended - began) / 1000
        self._line(f"{table}: {outcome.procedure} {outcome.outcome}{explanation} in {took_s:.1f} s: {changes}")

    def on_held_back(self, table: TableRef, held: HeldBack) -> None:
        """Writes a line: the procedure is held back for the table, and why."""
        self._line(f"{table}: {held.procedure} is held back: {held.reason}")

    def on_skip(self, table: TableRef, reason: str) -> None:
        """Writes a line: the table is left to a later run, and why."""
        self._line(f"{table} is left to a later run: {reason}")

    def _line(self, text: str) -> None:
        """Passes a text with a line break at the end to `write`."""
        self._write(f"{text}\n")
