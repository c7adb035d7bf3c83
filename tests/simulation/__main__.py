"""A campaign: very many random schedules, on every core, with progress. `make test-slow` runs 100,000.

    python -m tests.simulation --schedules 100000 --seed 7 [--scenario NAME]

A failure ends it with the line that replays the run.
"""

import argparse
import logging
import os
import random
import sys
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import islice

from tests.simulation.explore import Scenario, explore, name_of
from tests.simulation.faults import NO_FAULTS, Kind, random_plans
from tests.simulation.scenarios import SCENARIOS, TRANSACTIONS
from tests.simulation.test_protocols import calls_of

BATCH = 100
SECONDS_A_BATCH = 600.0


def batch(seed: int, names: tuple[str, ...]) -> tuple[int, int, str | None]:
    """Runs one batch: (schedules, deaths, what failed). Each schedule has a seed and a plan of its own; one in five
    meets no fault, so that order alone is explored too."""
    logging.getLogger("arco_catalog").setLevel(logging.ERROR)
    rng = random.Random(f"campaign {seed}")
    chosen: list[Scenario] = [scenario for scenario in SCENARIOS if name_of(scenario) in names]
    calls: dict[str, dict[str, list[Kind]]] = {}
    runs = deaths = 0
    for _ in range(BATCH):
        scenario = rng.choice(chosen)
        name = name_of(scenario)
        if name not in calls:
            calls[name] = calls_of(scenario)
        plan = NO_FAULTS if rng.random() < 0.2 else next(random_plans(rng.getrandbits(48), 1, calls[name], most=4))
        try:
            explored = explore(scenario, [rng.getrandbits(32)], [plan], seconds=SECONDS_A_BATCH)
        except AssertionError as failure:
            return runs, deaths, str(failure)
        runs += explored.runs
        deaths += explored.deaths
    return runs, deaths, None


def main() -> int:
    """Runs the campaign. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--schedules", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--scenario",
        action="append",
        choices=[name_of(scenario) for scenario in SCENARIOS],
        metavar="NAME",
        help="only this one; by default, those of transactions",
    )
    options = parser.parse_args()
    names = tuple(options.scenario or map(name_of, TRANSACTIONS))
    began, shown, runs, deaths = time.monotonic(), 0.0, 0, 0
    batches = -(-options.schedules // BATCH)
    seeds: Iterator[int] = iter(range(options.seed * 1_000_000, options.seed * 1_000_000 + batches))
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        waiting: set[Future[tuple[int, int, str | None]]] = {
            pool.submit(batch, seed, names) for seed in islice(seeds, 2 * (os.cpu_count() or 1))
        }
        while waiting:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                some, died, failure = future.result()
                runs, deaths = runs + some, deaths + died
                if failure is not None:
                    pool.shutdown(wait=False, cancel_futures=True)
                    print(failure)
                    print(f"failed after {runs} schedules")
                    return 1
                waiting |= {pool.submit(batch, seed, names) for seed in islice(seeds, 1)}
            if time.monotonic() - shown > 10:
                shown = time.monotonic()
                rate = runs / max(shown - began, 0.001)
                print(f"{runs} of {options.schedules} schedules, {deaths} deaths, {rate:.0f} a second", flush=True)
    print(f"{runs} schedules, {deaths} deaths, no lie: {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
