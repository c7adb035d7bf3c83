"""What came of a check: findings as they are gathered, what became of repairs, and how both are told to machines."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.upkeep.fsck.codes import Code, Severity
from arco_catalog.upkeep.fsck.findings import Finding

ORDER = list(Severity)
"""The worst first."""
KEPT = 10_000
"""Findings of one code that a report has; all are counted. Those that can be mended it has all."""


class Gathered:
    """Findings of a whole catalog as they come, in bounded memory."""

    def __init__(self) -> None:
        self._found: list[Finding] = []
        self._counts: Counter[Code] = Counter()

    def add(self, finding: Finding) -> bool:
        """Takes one in. Returns whether the report will have it; else it is only counted."""
        self._counts[finding.code] += 1
        kept = finding.repair is not None or self._counts[finding.code] <= KEPT
        if kept:
            self._found.append(finding)
        return kept

    @property
    def count(self) -> int:
        """How many there are."""
        return self._counts.total()

    def findings(self) -> Sequence[Finding]:
        """The worst first; for those of a code that were only counted, how many they are."""
        left = self._counts - Counter(finding.code for finding in self._found)
        more = [Finding(code, "", f"and {count:,} more") for code, count in left.items()]
        return [*sorted(self._found, key=_by_severity), *more]


def _by_severity(finding: Finding) -> tuple[int, str, str]:
    return ORDER.index(finding.diagnosis.severity), finding.code, finding.where


class Outcome(StrEnum):
    """What became of a repair."""

    PLANNED = "planned"
    MENDED = "mended"
    NOT_NEEDED = "not needed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Repaired:
    """A finding, and what became of its repair."""

    finding: Finding
    outcome: Outcome
    error: str = ""

    def to_json(self) -> JsonObject:
        """For `--json`."""
        finding = self.finding
        return {"code": finding.code, "where": finding.where, "outcome": self.outcome, "error": self.error or None}


@dataclass(frozen=True, slots=True)
class Report:
    """What came of a check."""

    found: Sequence[Finding]
    repaired: Sequence[Repaired]
    looked_at: int

    @property
    def ok(self) -> bool:
        """Whether no error is left, and no repair failed."""
        mended = {id(each.finding) for each in self.repaired if each.outcome is Outcome.MENDED}
        errors = [each for each in self.found if each.diagnosis.severity is Severity.ERROR and id(each) not in mended]
        return not errors and all(each.outcome is not Outcome.FAILED for each in self.repaired)

    def to_json(self) -> JsonObject:
        """For machines: what `arco fsck --json` prints, and the job on Spark."""
        listed: list[JsonValue] = [finding.to_json() for finding in self.found]
        repairs: list[JsonValue] = [each.to_json() for each in self.repaired]
        return {"ok": self.ok, "objects": self.looked_at, "findings": listed, "repairs": repairs}
