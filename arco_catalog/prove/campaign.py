"""Runs programs against a catalog until the time is over, and makes what is found reproducible: `arco prove`."""

import asyncio
import random
import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

import aiohttp

from arco_catalog.prove.catalog import Catalog, read_catalog
from arco_catalog.prove.checker import HistoryVerdict, apply_claim, check
from arco_catalog.prove.findings import Breaks, Finding
from arco_catalog.prove.network import Network
from arco_catalog.prove.program import Program, draw_program
from arco_catalog.prove.replay_file import MARGIN, RUN_LIMITS, Replay
from arco_catalog.prove.running import ProgramResult, Site, run_program
from arco_catalog.prove.shrinking import shrink

TRIES = 12
"""How often a smaller replay is tried. It takes the place of the larger one if it reproduces each time: one that did so
by luck would not do so again."""
RESTART_S = 120.0
"""The time in which the command that restarts servers must end."""


@dataclass(frozen=True, slots=True)
class CampaignOptions:
    """What to run: the servers of one catalog, the headers of each request, and the warehouse; clients at once; the
    seconds and operations after which no program begins; the seed; the command that kills and starts the servers, and
    whether the catalog claims to be linearizable."""

    servers: Sequence[str]
    headers: Mapping[str, str] = field(default_factory=dict)
    warehouse: str | None = None
    clients: int = 8
    seconds: float = 600.0
    operations: int = 50_000
    seed: int = 0
    restart: Sequence[str] = ()
    linearizable: bool = False


@dataclass(slots=True)
class CampaignReport:
    """What was run, and what was found: operations by kind and outcome, programs, kills, requests sent again, searches
    given up, and answers that are none of the specification. `program` is the one whose run made the first finding."""

    outcomes: Counter[str] = field(default_factory=Counter)
    programs: int = 0
    kills: int = 0
    repeated: int = 0
    undecided: int = 0
    foreign: int = 0
    seconds: float = 0.0
    findings: list[Finding] = field(default_factory=list)
    program: Program | None = None

    @property
    def operations(self) -> int:
        """The number of operations that were sent."""
        return self.outcomes.total()


class RestartFailed(Exception):
    """The command that kills and starts the servers failed, or did not end."""


class Campaign:
    """Runs programs against one catalog, and adds the results to `report`."""

    def __init__(self, options: CampaignOptions, session: aiohttp.ClientSession, catalog: Catalog) -> None:
        self.session = session
        self._options = options
        self._catalog = catalog
        self._run = uuid.uuid4().hex[:10]  # of this campaign alone: its names are never used again
        self._number = 0
        self._restarting = asyncio.Lock()
        self.report = CampaignReport()
        new_key = _new_key if catalog.features.keys else _no_key
        self._site = Site(session, options.servers, catalog.prefix, self._restart, _now_ms, new_key)

    async def run(self, on_program: Callable[[CampaignReport], None]) -> CampaignReport:
        """Runs programs until one has findings, or until the time or the operations are used up. Calls `on_program`
        after each. Returns the report, in which the findings are those of the last program, the worst first. Raises an
        `ExceptionGroup` with `ProgramFailed`, or with `RestartFailed`."""
        options, report = self._options, self.report
        began = time.monotonic()
        rng = random.Random(options.seed)
        while not report.findings and report.seconds < options.seconds and report.operations < options.operations:
            program = draw_program(rng, self._catalog.features, options.clients)
            verdict = await self.play(program)
            report.findings = sorted(verdict.findings, key=lambda finding: -finding.breaks.severity)
            report.program = program if verdict.findings else None
            report.seconds = time.monotonic() - began
            on_program(report)
        return report

    async def play(self, program: Program) -> HistoryVerdict:
        """Runs one program, judges its history, and adds its counts, but not the findings, to the report. Returns the
        findings, and the names for which the search was given up. Raises an `ExceptionGroup` with `ProgramFailed`, or
        with `RestartFailed`."""
        self._number += 1
        result = await run_program(self._site, f"prove_{self._run}_{self._number}", program)
        verdict = await asyncio.to_thread(check, result.history)
        self._count(result, verdict)
        return HistoryVerdict(apply_claim(verdict.findings, linearizable=self._options.linearizable), verdict.undecided)

    async def make_replay(self, program: Program, breaks: Breaks, seconds: float) -> Replay:
        """Returns a replay of a program of which a run broke something. First finds how many runs of `RUN_LIMITS` it
        takes to break this, or worse, in all of `TRIES` tries (the most if none suffices); then makes the program
        smaller while it can. It stops when the `seconds` since the call are over; the result may take `MARGIN` times
        the runs. Raises as `play` does."""
        end = time.monotonic() + seconds
        runs = max(RUN_LIMITS)
        for fewer in RUN_LIMITS:
            if await self._reproduces_often(Replay(program, breaks, fewer), end):
                runs = fewer
                break

        async def breaks_again(candidate: Program) -> bool:
            return await self._reproduces_often(Replay(candidate, breaks, runs), end)

        smallest = await shrink(program, breaks_again, lambda: time.monotonic() >= end)
        return Replay(smallest, breaks, runs * MARGIN)

    async def _reproduces_often(self, replay: Replay, end: float) -> bool:
        """Returns whether a replay reproduces in each of `TRIES` tries, before the time `end`."""
        for _ in range(TRIES):
            if not await self.reproduces(replay) or time.monotonic() >= end:
                return False
        return True

    async def reproduces(self, replay: Replay) -> bool:
        """Runs a replay until a run breaks what it breaks, or something worse, and returns True; False if no run does,
        of as many as it may take. Raises as `play` does."""
        for _ in range(replay.runs):
            findings = (await self.play(replay.program)).findings
            if any(finding.breaks.severity >= replay.breaks.severity for finding in findings):
                return True
        return False

    def _count(self, result: ProgramResult, verdict: HistoryVerdict) -> None:
        """Adds the counts of one program to the report: operations by kind and outcome, requests that were repeated,
        names for which the search was given up, and foreign answers; not the findings."""
        report = self.report
        report.programs += 1
        report.outcomes.update(
            f"{observation.operation.kind} {observation.status}" for observation in result.history.observations
        )
        report.repeated += len(result.history.repeated)
        report.undecided += len(verdict.undecided)
        report.foreign += len(result.foreign)

    async def _restart(self) -> None:
        """Runs the command that kills and starts the servers, and waits until it ends; no two run concurrently. Counts
        a kill, even if it raises. Raises `RestartFailed` if the command can't be started, ends with another code than
        0, or does not end within `RESTART_S`, after which it is killed itself."""
        command = self._options.restart[0]
        async with self._restarting:
            self.report.kills += 1
            try:
                process = await asyncio.create_subprocess_exec(*self._options.restart, stdin=asyncio.subprocess.DEVNULL)
            except OSError as error:
                raise RestartFailed(f"The command {command} of --restart was not started: {error.strerror}") from error
            try:
                async with asyncio.timeout(RESTART_S):
                    code = await process.wait()
            except TimeoutError:
                process.kill()
                raise RestartFailed(
                    f"The command {command} of --restart did not end within {RESTART_S:.0f} s"
                ) from None
        if code != 0:
            raise RestartFailed(f"The command {command} of --restart ended with exit code {code}")


async def open_campaign(options: CampaignOptions, use: Callable[[Campaign], Awaitable[None]]) -> None:
    """Reads the catalog's configuration, and calls `use` with the campaign. Raises an `ExceptionGroup` with
    `NoCatalog` if the configuration can't be read, and what `use` raises."""
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(headers=options.headers, connector=connector) as session:
        session._retry_connection = False  # it would send a GET, HEAD or DELETE again by itself after a lost answer
        async with asyncio.TaskGroup() as tasks:
            network = Network(session, options.servers, tasks)
            catalog = await read_catalog(network, options.warehouse, kills=bool(options.restart))
        await use(Campaign(options, session, catalog))


def _now_ms() -> int:
    """Returns the wall clock in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def _new_key() -> str:
    """Returns a new UUID of version 7, of the present time and random bits, which the specification recommends for
    keys."""
    value = _now_ms() << 80 | uuid.uuid4().int & ((1 << 80) - 1)
    return str(uuid.UUID(int=value & ~(0xF << 76) & ~(0x3 << 62) | 0x7 << 76 | 0x2 << 62))


def _no_key() -> None:
    """Returns None, for requests without an idempotency key."""
    return None
