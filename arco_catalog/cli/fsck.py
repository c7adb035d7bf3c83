"""`arco fsck`: reads everything that a catalog has stored, says what does not fit together, and mends what is safe to
mend."""

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from arco_catalog.cli.columns import as_json as json_text
from arco_catalog.cli.command import CatalogOptions
from arco_catalog.cli.errors import CliError
from arco_catalog.cli.finders import find_catalog, find_catalog_with_state, find_deployment, no_warehouse
from arco_catalog.cli.output import table
from arco_catalog.cli.session import another, carry_out, open_session, operator_request
from arco_catalog.iceberg.errors import BadRequest, CatalogError
from arco_catalog.protocol.access import ALLOW_ALL
from arco_catalog.protocol.catalog import Session
from arco_catalog.upkeep.fsck.check import check, require_known
from arco_catalog.upkeep.fsck.codes import Code
from arco_catalog.upkeep.fsck.examination import Examination, Findings
from arco_catalog.upkeep.fsck.files import Scope
from arco_catalog.upkeep.fsck.findings import Finding, Repair
from arco_catalog.upkeep.fsck.realm import check_realm
from arco_catalog.upkeep.fsck.report import ORDER, FindingCollector, Outcome, RepairResult, Report
from arco_catalog.upkeep.fsck.service import check_service
from arco_catalog.upkeep.pace import Pace
from storage_backends import StoreError

DAY_MS = 24 * 60 * 60 * 1000
MOST = 100
"""Findings of one code that are listed for people."""
HEADINGS = ("SEVERITY", "CODE", "OBJECT", "FOUND")
ADVICE = ("CODE", "MEANS", "WHAT TO DO")
REPAIRS = ("CODE", "OBJECT", "REPAIR", "OUTCOME")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be done beside the check of one catalog: check the realm and every catalog of it, look at the files of
    tables, mend what can be mended; and whether that is carried out, or only told."""

    every: bool = False
    data: bool = False
    tables: tuple[str, ...] = ()
    after: str = ""
    repair: bool = False
    apply: bool = False


def run(options: CatalogOptions, wanted: Wanted, *, as_json: bool) -> int:
    """Prints what was found, and what became of repairs. Returns 1 if an error is left. Raises `CliError`."""
    if wanted.apply and not wanted.repair:
        raise CliError("--apply carries out repairs: give --repair, too")
    if (wanted.tables or wanted.after) and not wanted.data:
        raise CliError("--table and --after choose whose files are looked at: give --data, too")
    if (wanted.tables or wanted.after) and wanted.every:
        raise CliError("--table and --after choose tables of one catalog: leave --all out")

    async def work() -> Report:
        checking = _Checking(wanted)
        if wanted.every:
            await _check_deployment(options, checking)
        else:
            find = find_catalog if wanted.apply else find_catalog_with_state
            async with open_session(options, "fsck", find, DAY_MS, writes=wanted.apply) as session:
                await checking.catalog(session)
        return Report(checking.found.findings(), checking.repaired, checking.examined)

    report = carry_out(work)
    if as_json:
        print(json_text(report.to_json()))
    else:
        print(as_text(report.found, report.examined))
        if wanted.repair:
            print(repairs_as_text(report.repaired, apply=wanted.apply))
    return 0 if report.ok else 1


class _Checking:
    """What was found so far, and what became of repairs."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self.found = FindingCollector()
        self.repaired: list[RepairResult] = []
        self.examined = 0

    @property
    def writes(self) -> bool:
        """Whether anything may be mended."""
        return self._wanted.apply

    async def catalog(self, session: Session) -> None:
        """Checks a catalog."""
        wanted = self._wanted
        scope = Scope(frozenset(wanted.tables), wanted.after) if wanted.data else None
        examination = self._examination(session)
        await self._take(examination, check(examination, scope))
        if scope is not None:
            require_known(examination, scope)

    async def realm(self, session: Session) -> bool:
        """Checks the registry of a realm. Returns whether it tells of the realm's catalogs."""
        examination = self._examination(session)
        await self._take(examination, check_realm(examination))
        return examination.index_read

    async def service(self, session: Session) -> None:
        """Checks the tasks and markers of the delegation service."""
        examination = self._examination(session)
        await self._take(examination, check_service(examination))

    def _examination(self, session: Session) -> Examination:
        return Examination(session, progress=Progress(session.runtime.now_ms).told)

    async def _take(self, examination: Examination, findings: Findings) -> None:
        to_mend: list[tuple[Finding, Repair]] = []
        async for finding in findings:
            self.found.add(finding)
            if self._wanted.repair and finding.repair is not None:
                to_mend.append((finding, finding.repair))
        self.examined += examination.examined
        for finding, repair in to_mend:
            self.repaired.append(await self._mended(examination.session, finding, repair))

    async def _mended(self, session: Session, finding: Finding, repair: Repair) -> RepairResult:
        if not self._wanted.apply:
            return RepairResult(finding, Outcome.PLANNED)
        try:
            mended = await repair(another(session))
        except (StoreError, CatalogError) as error:
            return RepairResult(finding, Outcome.FAILED, str(error))
        return RepairResult(finding, Outcome.MENDED if mended else Outcome.NOT_NEEDED)


async def _check_deployment(options: CatalogOptions, checking: _Checking) -> None:
    """Checks a realm and each of its catalogs, or the one catalog of a store that has none; and the delegation
    service."""
    async with open_session(options, "fsck", find_deployment, DAY_MS, writes=checking.writes) as deployed:
        if deployed.service is not None:
            await checking.service(deployed.service)
        if deployed.registry is not None and not await checking.realm(deployed.registry):
            return
        for each in await deployed.catalogs():
            try:
                opened = each.open()
            except BadRequest as error:
                checking.found.add(Finding(Code.CATALOG_OUT_OF_REACH, each.name, error.message))
                continue
            session = opened.session(operator_request(opened.runtime, "fsck", DAY_MS), ALLOW_ALL)
            if await session.state.has_any():
                await checking.catalog(session)
            elif each.realm is None:
                raise await no_warehouse(session, options.store)
            else:
                checking.found.add(Finding(Code.CATALOG_MISSING, session.state.paths.state, f"catalog {each.name}"))


class Progress:
    """Tells on stderr how far a check has come, once a second."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._pace = Pace(now_ms)

    def told(self, examination: Examination) -> None:
        """A line, unless there was one just before."""
        if self._pace.is_due():
            at = f", now at the files of {examination.at}" if examination.at else ""
            print(f"arco: {examination.examined:,} objects looked at so far{at}", file=sys.stderr, flush=True)


def as_text(found: Sequence[Finding], examined: int) -> str:
    """The findings, the worst first, and what to do about each kind."""
    if not found:
        return f"{examined:,} objects were looked at. Nothing is wrong."
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
        [table(HEADINGS, lines), *left, "", table(ADVICE, advice), "", f"{examined:,} objects were looked at: {told}."]
    )


def repairs_as_text(repaired: Sequence[RepairResult], *, apply: bool) -> str:
    """What became of repairs, or what would."""
    if not repaired:
        return "\nNothing of this is mended by --repair."
    lines = [
        (
            each.finding.code,
            each.finding.where,
            each.finding.diagnosis.repair,
            f"{each.outcome}{': ' if each.error else ''}{each.error}",
        )
        for each in repaired
    ]
    left = [] if apply else ["", "Nothing was written. To carry out the repairs, add --apply."]
    return "\n".join(["", table(REPAIRS, lines), *left])
