"""The report of a check: inconsistencies, outcomes of repairs, and their JSON documents."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.upkeep.fsck.codes import Code, Severity
from arco_catalog.upkeep.fsck.findings import Finding

ORDER = list(Severity)
"""Severities in the order of a report."""
MAX_FINDINGS = 10_000
"""Findings of one code in a report; all are counted. Findings with a repair are all in the report."""


class FindingCollector:
    """Keeps the findings of a check, in bounded memory."""

    def __init__(self) -> None:
        self._found: list[Finding] = []
        self._counts: Counter[Code] = Counter()

    def add(self, finding: Finding) -> bool:
        """Adds a finding. Returns whether it will be in the report; otherwise it is only counted."""
        self._counts[finding.code] += 1
        kept = finding.repair is not None or self._counts[finding.code] <= MAX_FINDINGS
        if kept:
            self._found.append(finding)
        return kept

    @property
    def count(self) -> int:
        """The number of findings."""
        return self._counts.total()

    def findings(self) -> Sequence[Finding]:
        """Returns the findings in the order of severity, and at the end one entry for each code with findings that were
        only counted."""
        left = self._counts - Counter(finding.code for finding in self._found)
        more = [Finding(code, "", f"and {count:,} more") for code, count in left.items()]
        return [*sorted(self._found, key=_by_severity), *more]


def _by_severity(finding: Finding) -> tuple[int, str, str]:
    return ORDER.index(finding.diagnosis.severity), finding.code, finding.where


class Outcome(StrEnum):
    """The outcome of a repair."""

    PLANNED = "planned"
    MENDED = "mended"
    NOT_NEEDED = "not needed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class RepairResult:
    """A finding with the outcome of the repair."""

    finding: Finding
    outcome: Outcome
    error: str = ""

    def to_json(self) -> JsonObject:
        """Returns the fields of the repair in `--json`."""
        finding = self.finding
        return {"code": finding.code, "where": finding.where, "outcome": self.outcome, "error": self.error or None}


@dataclass(frozen=True, slots=True)
class Report:
    """The report of a check."""

    found: Sequence[Finding]
    repaired: Sequence[RepairResult]
    examined: int

    @property
    def ok(self) -> bool:
        """Whether every error was mended, and no repair failed. A planned repair mends nothing."""
        mended = {id(each.finding) for each in self.repaired if each.outcome is Outcome.MENDED}
        errors = [each for each in self.found if each.diagnosis.severity is Severity.ERROR and id(each) not in mended]
        return not errors and all(each.outcome is not Outcome.FAILED for each in self.repaired)

    def to_json(self) -> JsonObject:
        """Returns the document that `arco fsck --json` and the job on Spark print."""
        listed: list[JsonValue] = [finding.to_json() for finding in self.found]
        repairs: list[JsonValue] = [each.to_json() for each in self.repaired]
        return {"ok": self.ok, "objects": self.examined, "findings": listed, "repairs": repairs}
