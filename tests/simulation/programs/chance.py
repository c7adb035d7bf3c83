"""Faults drawn call by call, more of them where a protocol is at its most delicate: at compare-and-swaps, and at the
one that follows a lost one."""

from storage_backends import Matches, When
from tests.simulation.faults import (
    BY_NAME,
    CRASHES,
    DRAWN_TOO,
    ECHO,
    FAULTS,
    LATE,
    LOST_ANSWER,
    NONE,
    STUCK,
    STUCK_UNHEARD,
    Fault,
    Kind,
)
from tests.simulation.programs.requests import Conditions
from tests.simulation.world import World

AT_A_SWAP = 3.0
"""How much more often a compare-and-swap goes wrong than any other call."""
AFTER_A_LOST_ONE = 8.0
MOST = 6
"""Faults a run: most failures need few, and many hide each other."""


class Drawn:
    """The chance of one run."""

    def __init__(self, world: World, conditions: Conditions, until: float) -> None:
        self._loop = world.loop
        self._rng = world.loop.stream("chance")
        self._rate = conditions.rate
        self._until = until
        self._left = MOST
        self._doomed = conditions.doomed
        self._swaps_left = self._rng.randint(1, 4)
        stays = {STUCK, STUCK_UNHEARD}
        faults = [fault for fault in (*FAULTS, *DRAWN_TOO) if fault not in stays or self._rng.random() < 0.5]
        self._faults = [fault for fault in faults if conditions.crashes or fault not in CRASHES]
        self._steps = dict.fromkeys(conditions.steps, 0)
        self._only = [fault for fault in (*FAULTS, *DRAWN_TOO) if fault.name in conditions.faults]

    def fault(self, process: str, kind: Kind, key: str, when: When | None, lost: bool) -> Fault:
        """See `Chance`."""
        for step in self._steps:
            if (process, kind) == (step.process, step.kind) and step.key in key:
                self._steps[step] += 1
                if self._steps[step] == step.number:
                    return BY_NAME[step.fault]
        if process == "setup" or not self._left or self._loop.time() > self._until:
            return NONE
        swap = isinstance(when, Matches)
        if swap and process == self._doomed:
            self._swaps_left -= 1
            if not self._swaps_left:
                return self._rng.choice(CRASHES)
        rate = self._rate * ((AFTER_A_LOST_ONE if lost else AT_A_SWAP) if swap else 1.0)
        if self._rng.random() >= rate:
            return NONE
        if self._only:
            fault = self._rng.choice(self._only)
        elif swap and self._rng.random() < 0.4:
            fault = self._rng.choice((LOST_ANSWER, ECHO, LATE))
        else:
            fault = self._rng.choice(self._faults)
        if not fault.befalls(kind):
            return NONE
        self._left -= 1
        return fault
