"""`arco prove`: tests a catalog by drawn programs, and reports what was found."""

import shlex
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from arco_catalog.cli.columns import as_json as json_text
from arco_catalog.cli.errors import CliError
from arco_catalog.cli.output import table
from arco_catalog.cli.session import carry_out
from arco_catalog.cli.small_files import read_text
from arco_catalog.cli.tokens import token_for
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.prove.campaign import Campaign, CampaignOptions, CampaignReport, RestartFailed, open_campaign
from arco_catalog.prove.catalog import NoCatalog
from arco_catalog.prove.program import Fault
from arco_catalog.prove.replay_file import MalformedReplay, Replay, decode, encode
from arco_catalog.prove.running import ProgramFailed
from arco_catalog.state.characters import escaped

MAX_REPLAY_BYTES = 1 << 20
TIMES = 20
"""How often a replay is run."""
MAX_FINDINGS = 10
OUTCOMES = ("done", "refused", "unknown")


@dataclass(frozen=True, slots=True)
class ProveOptions:
    """The options of `arco prove`, as its help describes them."""

    servers: Sequence[str]
    warehouse: str | None
    token_file: str | None
    clients: int
    seconds: float
    operations: int
    seed: int
    restart: str | None
    linearizable: bool
    output: str
    shrink_seconds: float
    replay: str | None
    as_json: bool
    environment: Mapping[str, str]


def run(options: ProveOptions) -> int:
    """Tests the catalog, or with a replay runs that program, and reports the counts and what was found. Returns 1 if
    anything was, else 0. Raises `CliError` for an invalid file, if no catalog answers, if a program could not be run to
    its end, and if a search completed no commit and found nothing."""
    replay = _read_replay(options.replay)

    async def work() -> int:
        codes: list[int] = []

        async def use(campaign: Campaign) -> None:
            codes.append(await (_search(campaign, options) if replay is None else _repeat(campaign, replay)))

        try:
            await open_campaign(await _campaign_options(options), use)
        except* (NoCatalog, ProgramFailed, RestartFailed) as errors:
            raise CliError(_first_message(errors)) from errors
        return codes[0]

    return carry_out(work)


def _first_message(errors: BaseExceptionGroup[BaseException]) -> str:
    """Returns the message of the first error in a group, or in the groups in it: each task group makes one."""
    first: BaseException = errors
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]
    return str(first)


async def _campaign_options(options: ProveOptions) -> CampaignOptions:
    """Returns the options of a campaign, with the token for the servers, if there is one. Raises `CliError` if that
    can't be used, and `ValueError` if --restart has an open quote."""
    token = await token_for(options.servers[0], options.token_file, options.environment)
    return CampaignOptions(
        [server.rstrip("/") for server in options.servers],
        {} if token is None else {"Authorization": f"Bearer {token}"},
        options.warehouse,
        options.clients,
        options.seconds,
        options.operations,
        options.seed,
        shlex.split(options.restart or ""),
        options.linearizable,
    )


def _read_replay(path: str | None) -> Replay | None:
    """Returns the replay in a file; None without a path. Raises `CliError` for a file that can't be read or is
    invalid."""
    if path is None:
        return None
    try:
        return decode(read_text(path, "the replay", MAX_REPLAY_BYTES))
    except MalformedReplay as error:
        raise CliError(f"{path}: {error}") from error


async def _search(campaign: Campaign, options: ProveOptions) -> int:
    """Runs a campaign, writes the report to stdout, and writes a replay of the worst finding to the output file.
    Returns 1 if there is a finding, else 0. Raises `CliError` if there is none and no commit was completed."""
    report = await campaign.run(_show_progress)
    counts, findings = _counts(report), report.findings[:MAX_FINDINGS]
    document: JsonObject = {
        **counts,
        "findings": [
            {"rule": finding.rule, "breaks": finding.breaks, "text": finding.text, "operations": [*finding.operations]}
            for finding in findings
        ],
    }
    if not options.as_json:
        _print_report(report)
    if report.program is not None:
        print("Looking for a small program that reproduces the worst violation", file=sys.stderr)
        replay = await campaign.make_replay(report.program, findings[0].breaks, options.shrink_seconds)
        runs = sum([await campaign.reproduces(replay) for _ in range(TIMES)])
        Path(options.output).write_text(encode(replay))  # noqa: ASYNC240 (nothing else runs on this loop now)
        document |= {"replay": options.output, "replay_operations": replay.program.steps, "replay_reproduced": runs}
        if not options.as_json:
            _print_replay(replay, runs, options.output)
    if options.as_json:
        print(json_text(document))
    if not findings and not report.outcomes["commit done"]:
        raise CliError("No commit was completed, so that nothing is known of this catalog: see the outcomes above")
    return 1 if findings else 0


async def _repeat(campaign: Campaign, replay: Replay) -> int:
    """Runs a replay `TIMES` times, and reports how often it reproduced the violation, or a worse one. Returns 1 if
    it ever did, else 0."""
    runs = sum([await campaign.reproduces(replay) for _ in range(TIMES)])
    print(f"{runs} of {TIMES} tries of the replay showed the violation ({replay.breaks}), or a worse one")
    return 1 if runs else 0


def _show_progress(report: CampaignReport) -> None:
    """Writes the counts of programs and operations in place of those before, on stderr, if that is a terminal."""
    if sys.stderr.isatty():
        print(f"\r{report.programs:,} programs, {report.operations:,} operations", end="", file=sys.stderr)


def _counts(report: CampaignReport) -> JsonObject:
    """Returns the numbers of a report, as JSON."""
    return {
        "programs": report.programs,
        "operations": report.operations,
        "seconds": round(report.seconds, 1),
        "kills": report.kills,
        "requests_repeated": report.repeated,
        "searches_given_up": report.undecided,
        "answers_not_understood": report.foreign,
        "outcomes": dict(report.outcomes),
    }


def _print_report(report: CampaignReport) -> None:
    """Writes the outcomes of a campaign's operations by kind, the other counts, and up to `MAX_FINDINGS` findings."""
    names = sorted({outcome.partition(" ")[0] for outcome in report.outcomes})
    rows = [[kind, *_numbers(report.outcomes, kind)] for kind in names]
    print(table(("OPERATION", *map(str.upper, OUTCOMES)), rows))
    print(
        f"{report.programs:,} programs with {report.operations:,} operations in all in {report.seconds:,.0f} s, "
        f"{report.kills:,} kills of the servers, {report.repeated:,} requests repeated under their keys"
    )
    if report.undecided:
        print(
            f"{report.undecided:,} searches for an order of operations on names took too many steps, and proved nothing"
        )
    if report.foreign:
        print(f"{report.foreign:,} answers have a form that the specification does not have, and count as unknown")
    for finding in report.findings[:MAX_FINDINGS]:
        print(f"FOUND  {escaped(str(finding))}")
    if len(report.findings) > MAX_FINDINGS:
        print(f"... and {len(report.findings) - MAX_FINDINGS:,} more in this program")
    if not report.findings and report.outcomes["commit done"]:
        print("Nothing was found.")


def _numbers(outcomes: Counter[str], kind: str) -> list[str]:
    """Returns for a kind of operation the number of each outcome."""
    return [f"{outcomes[f'{kind} {outcome}']:,}" for outcome in OUTCOMES]


def _print_replay(replay: Replay, runs: int, output: str) -> None:
    """Writes the operations of a replay, and that `runs` of `TIMES` tries reproduced the finding or a worse one."""
    program = replay.program
    print(
        f"The replay {output} has {program.steps} operations, and {runs} of {TIMES} tries, of {replay.runs} runs at "
        "most, showed the violation or a worse one"
    )
    for client, steps in enumerate(program.clients):
        for step in steps:
            operation = step.operation
            words = (operation.kind, *operation.names, *({step.fault} - {Fault.NONE}))
            print(f"  client {client}, operation {operation.id}: {' '.join(words)}")
