"""The report of a check: inconsistencies, outcomes of repairs, and the JSON documents of them."""

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
    """Keeps the findings of a check for its report, up to `MAX_FINDINGS` for a code and all that have a repair, and
    counts all of them."""

    def __init__(self) -> None:
        self._found: list[Finding] = []
        self._counts: Counter[Code] = Counter()

    def add(self, finding: Finding) -> bool:
        """Counts a finding, and keeps it if it has a repair or is among the first `MAX_FINDINGS` of its code. Returns
        whether it is kept, and so will be in the report."""
        self._counts[finding.code] += 1
        kept = finding.repair is not None or self._counts[finding.code] <= MAX_FINDINGS
        if kept:
            self._found.append(finding)
        return kept

    @property
    def count(self) -> int:
        """The number of findings that were added, kept or not."""
        return self._counts.total()

    def findings(self) -> Sequence[Finding]:
        """Returns the kept findings in the order of severity, and then for each code with further findings one that has
        their number."""
        left = self._counts - Counter(finding.code for finding in self._found)
        more = [Finding(code, "", f"and {count:,} more findings of this code") for code, count in left.items()]
        return [*sorted(self._found, key=_by_severity), *more]


def _by_severity(finding: Finding) -> tuple[int, str, str]:
    """Returns the sort key of findings: by severity, errors first, then by code and place."""
    return ORDER.index(finding.code.severity), finding.code, finding.where


class Outcome(StrEnum):
    """What became of the repair of an inconsistency: planned, mended, not needed or failed."""

    PLANNED = "planned"
    MENDED = "mended"
    NOT_NEEDED = "not needed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class RepairResult:
    """An inconsistency with a repair, and the outcome of the repair."""

    finding: Finding
    outcome: Outcome
    error: str = ""

    def to_json(self) -> JsonObject:
        """Returns the fields of the repair's result in the output of `--json`."""
        finding = self.finding
        return {"code": finding.code, "where": finding.where, "outcome": self.outcome, "error": self.error or None}


@dataclass(frozen=True, slots=True)
class Report:
    """The report of a check by `arco fsck`: the findings, the results of repairs, and the number of examined
    objects."""

    found: Sequence[Finding]
    repaired: Sequence[RepairResult]
    examined: int

    @property
    def ok(self) -> bool:
        """Whether every finding that is an error was mended, and no repair failed. A repair that was only planned mends
        nothing."""
        mended = {id(each.finding) for each in self.repaired if each.outcome is Outcome.MENDED}
        errors = [each for each in self.found if each.code.severity is Severity.ERROR and id(each) not in mended]
        return not errors and all(each.outcome is not Outcome.FAILED for each in self.repaired)

    def to_json(self) -> JsonObject:
        """Returns the document that `arco fsck --json` and the job on Spark print."""
        listed: list[JsonValue] = [finding.to_json() for finding in self.found]
        repairs: list[JsonValue] = [each.to_json() for each in self.repaired]
        return {"ok": self.ok, "objects": self.examined, "findings": listed, "repairs": repairs}
