"""The catalog's plans beside Java's, for drawn tables and scans."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tests.engines.scans.drawn_scans import DrawnScan
from tests.engines.scans.oracle import Case, MadeTable, Oracle
from tests.engines.scans.served_planner import ServedPlanner
from tests.engines.scans.tasks import ScanPlan
from tools.support.asgi_client import Answer

BREAKS = ("NullPointerException", "ArithmeticException")
"""What Java throws where it looks for a prefix of null, and where a time is too far away for nanoseconds."""


@dataclass
class Comparison:
    """What was compared: pairs of a table and a scan by outcome, and the faults found."""

    outcomes: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    faulty: list[tuple[Case, DrawnScan]] = field(default_factory=list)
    """The pairs that have these faults."""


async def compare(oracle: Oracle, served: ServedPlanner, cases: Iterable[Case]) -> Comparison:
    """Compares the plans of all cases, whose tables are registered."""
    comparison = Comparison()
    for case in cases:
        for place, (scan, theirs) in enumerate(case.scans):
            ours = await served.plan(case.name, scan.request)
            outcome, faults = judged(oracle, case.table, scan, theirs, ours)
            comparison.outcomes[outcome] += 1
            comparison.faults += [f"{case.name}, scan {place}: {fault}" for fault in faults]
            comparison.faulty += [(case, scan)] if faults else []
    return comparison


async def notices(oracle: Oracle, served: ServedPlanner, cases: Iterable[Case]) -> bool:
    """Whether a plan of a case has a fault."""
    for case in cases:
        if (await compare(oracle, served, [case])).faults:
            return True
    return False


def judged(
    oracle: Oracle, table: MadeTable, scan: DrawnScan, theirs: ScanPlan | str, ours: ScanPlan | Answer
) -> tuple[str, Sequence[str]]:
    """The outcome of a pair, and its faults."""
    match theirs, ours:
        case _, Answer(status=400) if scan.is_invalid:
            return "refused", []
        case str(), Answer(status=400):
            return "refused", []
        case str(), Answer():
            return "refused", [f"{ours.status} {ours.body!r}, and Java: {theirs}"]
        case str(), ScanPlan():
            excused = theirs.startswith(BREAKS) or _mixes_schemas(table, scan, theirs)
            return "refused", [] if excused else [f"planned, and Java: {theirs}"]
        case ScanPlan(), Answer(status=406) if table.has_lost_partitions and "dropped column" in ours.message:
            return "refused", []
        case ScanPlan(), Answer():
            return "planned", [f"{ours.status} {ours.body!r}"]
        case ScanPlan(), ScanPlan():
            return _outcome(theirs, ours), oracle.faults(table, scan, theirs, ours)
    raise AssertionError


def _mixes_schemas(table: MadeTable, scan: DrawnScan, theirs: str) -> bool:
    """Whether Java has bound the filter to the schema of the snapshot, and then to the present one for partitions. It
    does so if the snapshot is the current one, and a column was renamed or dropped since."""
    return "Cannot find field" in theirs and scan.schema_id != table.metadata["current-schema-id"]


def _outcome(plan: ScanPlan, ours: ScanPlan) -> str:
    if not plan.tasks:
        return "empty"
    if len(ours.tasks) < len(plan.tasks):
        return "ended early"
    return "with deletes" if any(task.deletes for task in plan.tasks) else "without deletes"
