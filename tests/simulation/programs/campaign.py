"""Many programs, one after the other: the state of a campaign, which can be stopped and gone on with."""

import json
import logging
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.simulation.faults import FaultPlan
from tests.simulation.garbage import collecting_new_garbage_alone
from tests.simulation.programs.focused import FOCUSED
from tests.simulation.programs.profiles import PROFILES
from tests.simulation.programs.requests import Program
from tests.simulation.programs.run import DRAWN, Outcome, failure, play, program_of
from tests.support.json_file import write_json

BATCH = 50
"""Schedules a batch: after each, the state of a campaign is written."""
REPLAYED = 20
"""Failures of which a campaign keeps the replay lines."""

Make = Callable[[], Program]


@dataclass(frozen=True, slots=True)
class Schedule:
    """One run: what is played, and the seed."""

    about: str
    seed: int

    def program(self) -> Program:
        """The program: one of those by hand, or drawn."""
        by_hand = {make.__name__: make for make in FOCUSED}
        return by_hand[self.about]() if self.about in by_hand else program_of(self.seed, PROFILES[self.about])

    def played(self, plan: FaultPlan | None = None) -> Outcome:
        """What comes of it, under the faults that the seed draws or under these."""
        return play(self.seed, self.program(), plan)


def replayed(line: str) -> Outcome | None:
    """The run that a failure named: `about|seed|faults`. None if the line is of no program."""
    about, seed, faults = line.split("|")
    if about not in PROFILES and about not in [make.__name__ for make in FOCUSED]:
        return None
    return Schedule(about, int(seed)).played(None if faults == DRAWN else FaultPlan.parse(faults))


def schedule(number: int) -> Schedule:
    """The schedule of this number: every fifth is a program written by hand, the others are drawn."""
    names = [make.__name__ for make in FOCUSED] if number % 5 == 4 else list(PROFILES)
    return Schedule(random.Random(f"schedule {number}").choice(names), number)


@contextmanager
def without_warnings() -> Iterator[None]:
    """Silences the catalog's log."""
    log = logging.getLogger("arco_catalog")
    level = log.level
    log.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        log.setLevel(level)


@contextmanager
def quietly() -> Iterator[None]:
    """Without the catalog's warnings, and with little work for the garbage collector: for a command."""
    with without_warnings(), collecting_new_garbage_alone():
        yield


@dataclass(slots=True)
class Campaign:
    """How far a campaign has come: which schedules are done, from `first` on, and what failed. `seconds` are those of
    its parts together."""

    first: int = 0
    done: int = 0
    calls: int = 0
    deaths: int = 0
    seconds: float = 0.0
    failed: int = 0
    failures: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> "Campaign":
        """One that was begun before, or a new one where there is no file."""
        return cls(**json.loads(path.read_text())) if path.exists() else cls()

    def write(self, path: Path) -> None:
        """Keeps it; a campaign that is stopped meanwhile finds the one before."""
        write_json(path, asdict(self))

    def add(self, other: "Campaign") -> None:
        """Adds a part that was run elsewhere."""
        self.done += other.done
        self.calls += other.calls
        self.deaths += other.deaths
        self.failed += other.failed
        self.failures = [*self.failures, *other.failures][:REPLAYED]


def part(first: int, count: int, explain: int = 1) -> Campaign:
    """Runs some schedules; of the first failures, `explain` of them, it says how to replay them."""
    campaign = Campaign(first)
    began = time.monotonic()
    with quietly():
        for number in range(first, first + count):
            chosen = schedule(number)
            outcome = chosen.played()
            campaign.done += 1
            campaign.calls += outcome.calls
            campaign.deaths += sum(event.step == "dies" for event in outcome.world.history)
            if outcome.wrong:
                campaign.failed += 1
                said = failure(outcome, chosen.about) if campaign.failed <= explain else outcome.wrong[0]
                campaign.failures.append(f"{chosen.about}, seed {chosen.seed}: {said}")
            del outcome  # garbage of the next run
    campaign.seconds = time.monotonic() - began
    return campaign
