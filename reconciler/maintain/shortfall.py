"""Fewer files were rewritten than foreseen: a writer was first, Iceberg failed, or it chose others than foreseen
(docs/design/pipeline.md#rule-14)."""

from dataclasses import dataclass

from arco_catalog.iceberg.json import JsonObject
from reconciler.compact.values import long_of
from reconciler.maintain.figures import Figures
from reconciler.maintain.planning import Step
from reconciler.maintain.progress import CONFLICT, DONE, FAILED, PARTLY
from reconciler.maintain.wording import counted

REWRITE = "replace"
"""The operation of a snapshot in which no row is another: a rewrite is no writer."""


@dataclass(frozen=True, slots=True)
class Shortfall:
    """How many files were foreseen and not rewritten, how many of these Iceberg says failed before they could be
    committed, and how many snapshots others committed meanwhile. Iceberg counts none as failed whose commit did."""

    foreseen: int
    missing: int
    failed: int
    others: int

    @classmethod
    def of(cls, step: Step, result: JsonObject, before: Figures | None, after: Figures | None) -> "Shortfall | None":
        """What a call's answer and the table before and afterwards tell; None where nothing is missing."""
        rewritten = long_of(result.get("rewritten_data_files_count"))
        if rewritten is None or rewritten >= step.files:
            return None
        known = {each.id for each in before.snapshots} if before is not None else set()
        new = [each for each in after.snapshots if each.id not in known] if after is not None else []
        others = sum(each.operation != REWRITE for each in new)
        return cls(step.files, step.files - rewritten, long_of(result.get("failed_data_files_count")) or 0, others)

    @property
    def is_lost(self) -> bool:
        """Whether there is a sign that another try gains more."""
        return self.others > 0 or self.failed > 0

    def outcome(self, *, some: bool) -> str:
        """What came of the call; `some` says that it, or one before it, rewrote files."""
        if not self.is_lost:
            return DONE
        if some:
            return PARTLY
        return CONFLICT if self.others else FAILED

    def explanation(self, tried: int) -> str:
        """What is told of it."""
        if not self.is_lost:
            return f"fewer files than foreseen: {self.foreseen - self.missing:,} of {self.foreseen:,} were rewritten"
        told = f"{self.missing:,} of {self.foreseen:,} files were not rewritten in try {tried}"
        if self.failed:
            told += f", and Iceberg failed with {self.failed:,}"
        if self.others:
            told += f", and others had committed {counted(self.others, 'snapshot')} meanwhile"
        return told
