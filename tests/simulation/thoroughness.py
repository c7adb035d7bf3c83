"""How much of each scenario is tried: a share by `make test`; all that a test names, or many times that, where
`ARCO_SIM_RUNS` says how often (`make test-thorough`, `make test-slow`)."""

import os
import zlib
from collections.abc import Sequence

from tests.simulation.explore import Scenario, name_of
from tests.simulation.faults import FaultPlan

_RUNS = int(os.environ.get("ARCO_SIM_RUNS", "0"))
SHARE = 8
"""`make test` tries one in so many of a test's seeds, plans and programs."""
SEARCHES = _RUNS > 0
"""Whether the search for a planted bug passes over the run that is known to find it."""
TIMES = max(1, _RUNS)
"""How often everything is tried that is not a share: each planned fault, under a seed of its own each time."""
EVERYTHING = TIMES > 1
"""Whether no single fault is left out."""


def count(of: int, share: int = SHARE) -> int:
    """How many seeds, random plans or programs are tried where a test names this many."""
    return of * TIMES if _RUNS else -(-of // share)


def sample(scenario: Scenario, plans: Sequence[FaultPlan], most: int, share: int = SHARE) -> Sequence[FaultPlan]:
    """As many of the plans as a test that names `most` of them tries, evenly spread.

    Each scenario's begin elsewhere: together they meet every kind of fault at every kind of call.
    """
    tried = len(plans) if EVERYTHING else min(count(most, share), len(plans))
    first = zlib.crc32(name_of(scenario).encode()) % max(1, len(plans))
    return [plans[(first + number * len(plans) // tried) % len(plans)] for number in range(tried)]
