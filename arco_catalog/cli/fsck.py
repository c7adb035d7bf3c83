"""`arco fsck`: reads everything that a catalog has stored, and says what does not fit together."""

import sys
from collections import Counter
from collections.abc import Callable, Sequence

from arco_catalog.cli.columns import as_json as json_text
from arco_catalog.cli.command import CatalogOptions
from arco_catalog.cli.output import table
from arco_catalog.cli.session import carry_out, looking, no_warehouse, saying_that_it_waits
from arco_catalog.iceberg.json import JsonValue
from arco_catalog.operations.fsck.check import check
from arco_catalog.operations.fsck.examination import Examination
from arco_catalog.operations.fsck.findings import Code, Finding, Severity

DAY_MS = 24 * 60 * 60 * 1000
REPORT_MS = 1000
"""How often progress is told, at most."""
MOST = 100
"""Findings of one code that are listed for people."""
HEADINGS = ("SEVERITY", "CODE", "OBJECT", "FOUND")
ADVICE = ("CODE", "MEANS", "WHAT TO DO")
ORDER = list(Severity)


def run(options: CatalogOptions, *, as_json: bool) -> int:
    """Prints what was found. Returns 1 if there is an error among it. Raises `CliError`."""

    async def work() -> tuple[list[Finding], int]:
        async with looking(options, "fsck", DAY_MS) as session:
            examination = Examination(session)
            found: list[Finding] = []
            progress = Progress(session.runtime.now_ms)
            async with saying_that_it_waits(options.store):
                page = await session.state.store.list(f"{examination.paths.state}/")
            if not page.entries:
                raise no_warehouse(session, options.store)
            async for finding in check(examination, progress.told):
                found.append(finding)
            return found, examination.looked_at

    found, looked_at = carry_out(work)
    found.sort(key=lambda finding: (ORDER.index(finding.diagnosis.severity), finding.code, finding.where))
    errors = sum(finding.diagnosis.severity is Severity.ERROR for finding in found)
    if as_json:
        listed: list[JsonValue] = [finding.to_json() for finding in found]
        print(json_text({"ok": errors == 0, "objects": looked_at, "findings": listed}))
    else:
        print(as_text(found, looked_at))
    return 1 if errors else 0


class Progress:
    """Tells on stderr how far a check has come, once a second."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._next_ms = now_ms() + REPORT_MS

    def told(self, looked_at: int) -> None:
        """A line, unless there was one just before."""
        if self._now_ms() >= self._next_ms:
            self._next_ms = self._now_ms() + REPORT_MS
            print(f"arco: {looked_at:,} objects looked at so far", file=sys.stderr, flush=True)


def as_text(found: Sequence[Finding], looked_at: int) -> str:
    """The findings, the worst first, and what to do about each kind."""
    if not found:
        return f"{looked_at:,} objects were looked at. Nothing is wrong."
    counts = Counter(finding.code for finding in found)
    shown: Counter[Code] = Counter()
    lines: list[tuple[str, ...]] = []
    for finding in found:
        shown[finding.code] += 1
        if shown[finding.code] <= MOST:
            lines.append((finding.diagnosis.severity, finding.code, finding.where, finding.found))
    left = [f"... and {count - MOST:,} more of {code}" for code, count in counts.items() if count > MOST]
    first = {finding.code: finding.diagnosis for finding in found}
    advice = [(code, diagnosis.meaning, diagnosis.remedy) for code, diagnosis in first.items()]
    severities = Counter(finding.diagnosis.severity for finding in found)
    told = ", ".join(f"{severities[each]:,} {each}{'' if severities[each] == 1 else 's'}" for each in ORDER)
    return "\n".join(
        [table(HEADINGS, lines), *left, "", table(ADVICE, advice), "", f"{looked_at:,} objects were looked at: {told}."]
    )
