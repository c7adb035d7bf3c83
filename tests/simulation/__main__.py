"""A campaign: very many schedules of generated programs, in parts, on every core. `make test-slow` runs 1,000,000.

    python -m tests.simulation --schedules 1000000 --state .arco/campaign.json

It goes on where the state file says that it was stopped; a failure is kept there with the line that replays it, and
`--replay LINE` runs that alone and prints its history.
"""

import argparse
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import islice
from pathlib import Path

from tests.simulation.history import render
from tests.simulation.programs.campaign import BATCH, Campaign, part, quietly, replayed

SHOWN_EVERY = 10.0
MOST_FAILURES = 20
"""Failures after which going on tells nothing new."""


def main() -> int:
    """Runs the campaign, or a part of it. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--schedules", type=int, default=1_000_000, help="how many the whole campaign has")
    parser.add_argument("--part", type=int, help="stop after so many more; the next call goes on")
    parser.add_argument("--first", type=int, default=0, help="the number of the first schedule of a new campaign")
    parser.add_argument("--state", type=Path, help="a file that says how far the campaign has come")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--replay", metavar="LINE", help="run what a failure named, and print its history")
    options = parser.parse_args()
    if options.replay is not None:
        return _replay(options.replay)
    campaign = Campaign(options.first)
    if options.state is not None and options.state.exists():
        campaign = Campaign.read(options.state)
    left = options.schedules - campaign.done
    _run(campaign, min(left, options.part or left), options.state, options.processes, options.schedules)
    print(f"{campaign.done} schedules, {campaign.calls} calls, {campaign.deaths} deaths, {campaign.failed} failures")
    for failure in campaign.failures:
        print(failure, end="\n\n")
    return 1 if campaign.failed else 0


def _run(campaign: Campaign, count: int, state: Path | None, processes: int, whole: int) -> None:
    """Runs the next `count` schedules. Batches are counted in order, so that what is written down is a range."""
    began, shown, before = time.monotonic(), 0.0, campaign.seconds
    start = campaign.first + campaign.done
    firsts: Iterator[int] = iter(range(start, start + count, BATCH))
    finished: dict[int, Campaign] = {}
    # New processes, not copies of this one: its threads would not be copied with it.
    with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn")) as pool:

        def submitted(first: int) -> Future[Campaign]:
            return pool.submit(part, first, min(BATCH, start + count - first))

        waiting = {submitted(first) for first in islice(firsts, 2 * processes)}
        while waiting:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                batch = future.result()
                finished[batch.first] = batch
            while (batch_next := finished.pop(campaign.first + campaign.done, None)) is not None:
                campaign.add(batch_next)
            campaign.seconds = before + time.monotonic() - began
            if state is not None:
                campaign.write(state)
            if campaign.failed < MOST_FAILURES:
                waiting |= {submitted(first) for first in islice(firsts, len(done))}
            if time.monotonic() - shown > SHOWN_EVERY:
                shown = time.monotonic()
                rate = campaign.done / max(campaign.seconds, 0.001)
                said = f"{campaign.done} of {whole} schedules, {campaign.failed} failures, {rate:.0f} a second"
                print(said, flush=True)


def _replay(line: str) -> int:
    with quietly():
        outcome = replayed(line)
    if outcome is None:
        print(f"{line} names no program")
        return 2
    print(outcome.program)
    print(render(outcome.world.history))
    print("\n".join(outcome.wrong) or "it passes")
    return 1 if outcome.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
