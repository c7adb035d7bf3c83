"""`arco fsck`: reads the records of a catalog or a realm, reports the ones that contradict each other, and with
--repair and --apply mends what can be mended without risk."""

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from arco_catalog.cli.columns import as_json as json_text
from arco_catalog.cli.command import CatalogOptions
from arco_catalog.cli.errors import CliError
from arco_catalog.cli.finders import find_catalog, find_catalog_with_state, find_deployment, no_warehouse
from arco_catalog.cli.output import table
from arco_catalog.cli.session import DAY_MS, another, carry_out, open_session, operator_request
from arco_catalog.iceberg.errors import BadRequest, CatalogError
from arco_catalog.protocol.access import ALLOW_ALL
from arco_catalog.protocol.catalog import Session
from arco_catalog.upkeep.fsck.check import check, check_service
from arco_catalog.upkeep.fsck.codes import Code
from arco_catalog.upkeep.fsck.examination import Examination, Findings
from arco_catalog.upkeep.fsck.files import Scope
from arco_catalog.upkeep.fsck.findings import Finding, Repair
from arco_catalog.upkeep.fsck.realm import check_realm
from arco_catalog.upkeep.fsck.report import ORDER, FindingCollector, Outcome, RepairResult, Report
from arco_catalog.upkeep.pace import Pace
from storage_backends import StoreError

MAX_LISTED = 100
"""Maximum number of findings of one code that are printed as text; the JSON report has all."""
HEADINGS = ("SEVERITY", "CODE", "OBJECT", "FOUND")
ADVICE = ("CODE", "MEANS", "WHAT TO DO")
REPAIRS = ("CODE", "OBJECT", "REPAIR", "OUTCOME")


@dataclass(frozen=True, slots=True)
class FsckArguments:
    """The options of `arco fsck`: with `every` check the delegation service, the realm's registry and all catalogs of
    it; with `data` also check the files of tables. If `tables` or `after` selects some, by name or by names after one,
    check only these and the registry. With `repair` report which findings can be mended, and with `apply` mend
    them."""

    every: bool = False
    data: bool = False
    tables: tuple[str, ...] = ()
    after: str = ""
    repair: bool = False
    apply: bool = False


def run(options: CatalogOptions, arguments: FsckArguments, *, as_json: bool) -> int:
    """Checks a catalog or a whole realm, and displays the findings, with `repair` also the repairs that are possible,
    and with `apply`, too, how they ended: without it none is carried out. Returns 1 if an error is left or a repair
    failed, else 0. Raises `CliError`, also for options that do not go together."""
    if arguments.apply and not arguments.repair:
        raise CliError("--apply carries out the repairs that --repair selects: give --repair, too")
    if (arguments.tables or arguments.after) and not arguments.data:
        raise CliError("--table and --after choose the tables whose files --data checks: give --data, too")
    if (arguments.tables or arguments.after) and arguments.every:
        raise CliError("--table and --after choose tables of one catalog: leave --all out")

    async def work() -> Report:
        checking = _Checking(arguments)
        if arguments.every:
            await _check_deployment(options, checking)
        else:
            find = find_catalog if arguments.apply else find_catalog_with_state
            async with open_session(options, "fsck", find, DAY_MS, writes=arguments.apply) as session:
                await checking.catalog(session)
        return Report(checking.found.findings(), checking.repaired, checking.examined)

    report = carry_out(work)
    if as_json:
        print(json_text(report.to_json()))
    else:
        print(as_text(report.found, report.examined))
        if arguments.repair:
            print(repairs_as_text(report.repaired, apply=arguments.apply))
    return 0 if report.ok else 1


class _Checking:
    """One run of `arco fsck`: the findings so far in everything that was read, the outcomes of repairs, and the number
    of objects examined."""

    def __init__(self, arguments: FsckArguments) -> None:
        self._arguments = arguments
        self.found = FindingCollector()
        self.repaired: list[RepairResult] = []
        self.examined = 0

    @property
    def writes(self) -> bool:
        """Whether this run applies repairs (--apply), so that the store must be opened for writing."""
        return self._arguments.apply

    async def catalog(self, session: Session) -> None:
        """Reads the records of a catalog, and adds the findings; with the option `data` also the files of the tables;
        if the options select some of these, only the registry and their files. Applies repairs if the options include
        that. Raises `NoSuchTable`, before files are read and repairs applied, if --table has the name of no table or
        view, live or dropped, in a registry that could be read."""
        arguments = self._arguments
        scope = Scope(frozenset(arguments.tables), arguments.after) if arguments.data else None
        examination = self._examination(session)
        await self._take(examination, check(examination, scope))

    async def realm(self, session: Session) -> bool:
        """Reads the registry of a realm, and adds the findings. Applies repairs if the options include that. Returns
        whether the index in the registry could be read: without it the realm's catalogs are not known."""
        examination = self._examination(session)
        await self._take(examination, check_realm(examination))
        return examination.index_read

    async def service(self, session: Session) -> None:
        """Reads the tasks and markers of the delegation service, and adds the findings. Applies repairs if the options
        include that."""
        examination = self._examination(session)
        await self._take(examination, check_service(examination))

    def _examination(self, session: Session) -> Examination:
        """Returns an examination that writes its progress."""
        return Examination(session, progress=Progress(session.runtime.now_ms).report)

    async def _take(self, examination: Examination, findings: Findings) -> None:
        """Adds the findings of an examination to the report, and with --repair carries out or lists the repairs."""
        to_mend: list[tuple[Finding, Repair]] = []
        async for finding in findings:
            self.found.add(finding)
            if self._arguments.repair and finding.repair is not None:
                to_mend.append((finding, finding.repair))
        self.examined += examination.examined
        for finding, repair in to_mend:
            self.repaired.append(await self._carry_out(examination.session, finding, repair))

    async def _carry_out(self, session: Session, finding: Finding, repair: Repair) -> RepairResult:
        """Carries out one repair, or without --apply nothing. Returns the outcome, also that the repair failed."""
        if not self._arguments.apply:
            return RepairResult(finding, Outcome.PLANNED)
        try:
            mended = await repair(another(session))
        except (StoreError, CatalogError) as error:
            return RepairResult(finding, Outcome.FAILED, str(error))
        return RepairResult(finding, Outcome.MENDED if mended else Outcome.NOT_NEEDED)


async def _check_deployment(options: CatalogOptions, checking: _Checking) -> None:
    """Checks the delegation service, the realm's registry and each of its catalogs, or the one catalog of a store
    without a realm. The catalogs are not checked if the registry can't be read; a catalog of a realm that can't be
    opened or has no state is a finding. Raises `NotThere` if the store has neither a realm nor a catalog,
    or --realm names no realm."""
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
    """Displays the progress of `arco fsck` on stderr, at most once a second."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._pace = Pace(now_ms)

    def report(self, examination: Examination) -> None:
        """Prints a line with the number of objects checked so far on stderr, unless one was printed within the last
        second, or the check is younger than that."""
        if self._pace.is_due():
            at = f", now at the files of {examination.at}" if examination.at else ""
            print(f"arco: {examination.examined:,} objects checked so far{at}", file=sys.stderr, flush=True)


def as_text(found: Sequence[Finding], examined: int) -> str:
    """Formats the findings in the given order, at most `MAX_LISTED` of each code, then the meaning and the remedy of
    each code, then the counts. Without findings it is one line."""
    if not found:
        return f"{examined:,} objects were checked. Nothing is wrong."
    counts = Counter(finding.code for finding in found)
    shown: Counter[Code] = Counter()
    lines: list[tuple[str, ...]] = []
    for finding in found:
        shown[finding.code] += 1
        if shown[finding.code] <= MAX_LISTED:
            lines.append((finding.code.severity, finding.code, finding.where, finding.found))
    left = [f"... and {count - MAX_LISTED:,} more of {code}" for code, count in counts.items() if count > MAX_LISTED]
    advice = [(code, code.meaning, code.remedy) for code in counts]
    severities = Counter(finding.code.severity for finding in found)
    summary = ", ".join(f"{severities[each]:,} {each}{'' if severities[each] == 1 else 's'}" for each in ORDER)
    return "\n".join(
        [table(HEADINGS, lines), *left, "", table(ADVICE, advice), "", f"{examined:,} objects were checked: {summary}."]
    )


def repairs_as_text(repaired: Sequence[RepairResult], *, apply: bool) -> str:
    """Formats each repair with the outcome, or without `apply` the repairs that --apply would carry out; one line if
    there are none."""
    if not repaired:
        return "\nNothing of this is mended by --repair."
    lines = [
        (
            each.finding.code,
            each.finding.where,
            each.finding.code.repair,
            f"{each.outcome}{': ' if each.error else ''}{each.error}",
        )
        for each in repaired
    ]
    left = [] if apply else ["", "Nothing was written. To carry out the repairs, add --apply."]
    return "\n".join(["", table(REPAIRS, lines), *left])
