"""What a run tells on its way: for each table what is due and why, and what came of it."""

from collections.abc import Callable

from reconciler.compact.values import long_of, object_of, text_of
from reconciler.maintain.looking import Looked, Named
from reconciler.maintain.planning import HeldBack, Step
from reconciler.maintain.progress import DONE, Told

SHOWN = ("data_files", "delete_files", "manifests", "snapshots", "bytes")


class Report:
    """Writes lines for people."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write

    def planned(self, looked: Looked) -> None:
        figures, plan = looked.figures, looked.plan
        self._line(
            f"{looked.table}: {figures.data_files:,} data files, {figures.delete_files:,} delete files, "
            f"{len(figures.manifests):,} manifests, {len(figures.snapshots):,} snapshots, {figures.bytes:,} bytes"
        )
        for step in plan.steps:
            self._line(f"  {step.call.procedure}: {step.reason}")
            self._line(f"    by {step.policy.name} (version {step.policy.version}); expected: {step.gain}")
        for held in plan.held_back:
            self._line(f"  {held.procedure} is held back: {held.reason}")
            self._line(f"    asked for by {held.policy.name} (version {held.policy.version})")
        if not plan.steps and not plan.held_back:
            self._line("  nothing is due")

    def begins(self, table: Named, step: Step) -> None:
        self._line(f"{table}: {step.call.procedure} begins: {step.reason}")

    def ended(self, table: Named, told: Told) -> None:
        before, after = object_of(told.told.get("before")), object_of(told.told.get("after"))
        changed = [
            f"{name.replace('_', ' ')} {was:,} -> {now:,}"
            for name in SHOWN
            if (was := long_of(before.get(name))) is not None
            and (now := long_of(after.get(name))) is not None
            and was != now
        ]
        began, ended = long_of(told.told.get("began_ms")) or 0, long_of(told.told.get("ended_ms")) or 0
        outcome = told.outcome if told.outcome == DONE else f"{told.outcome} ({text_of(told.told.get('explanation'))})"
        what = ", ".join(changed) or "nothing changed"
        self._line(f"{table}: {told.procedure} {outcome} in {(ended - began) / 1000:.1f} s: {what}")

    def held_back(self, table: Named, held: HeldBack) -> None:
        self._line(f"{table}: {held.procedure} is held back: {held.reason}")

    def left(self, table: Named, reason: str) -> None:
        self._line(f"{table} is left: {reason}")

    def _line(self, text: str) -> None:
        self._write(f"{text}\n")
