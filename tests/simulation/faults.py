"""What can go wrong with a call to the store, and plans of which calls it befalls.

A fault says two things: what becomes of the request, and what then happens to who sent it. Every fault here is one
that real stores, networks and machines produce.
"""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Literal

Kind = Literal["get", "get_range", "put", "delete", "list"]
WRITES: frozenset[Kind] = frozenset({"put", "delete"})


class Lands(Enum):
    """What becomes of a request. Whenever a write lands, its condition is judged at that instant."""

    NOW = auto()
    NEVER = auto()
    LATER = auto()
    """Up to minutes after its sender was told something, or died."""
    TWICE = auto()
    """Now, and a copy of it later."""
    SOON = auto()
    """Seconds later than others, while its sender waits."""
    SLOWLY = auto()
    """Beyond any deadline, while its sender still waits, or has given up."""


class Then(Enum):
    """What happens next to the process that sent the request."""

    IS_ANSWERED = auto()
    IS_ANSWERED_SLOWLY = auto()
    """Beyond any deadline."""
    IS_TOLD_UNKNOWN = auto()
    IS_TOLD_REFUSED = auto()
    """Even of a write that was applied: the transport sent it twice and reports the second answer."""
    IS_TOLD_UNAVAILABLE = auto()
    IS_TOLD_DENIED = auto()
    """Definitely not, for lack of permission."""
    DIES = auto()
    STANDS_STILL = auto()
    """For minutes, all its timers with it; then it gets its answer and goes on."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One way to go wrong. Only some can befall a read. One that `stays` befalls every later call to the same key too,
    whoever makes it, for a while."""

    name: str
    lands: Lands
    then: Then
    reads: bool = False
    stays: bool = False

    def befalls(self, kind: Kind) -> bool:
        """Whether it can happen to a call of this kind."""
        return self.reads or kind in WRITES

    def __str__(self) -> str:
        return self.name


NONE = Fault("none", Lands.NOW, Then.IS_ANSWERED, reads=True)

CRASH_BEFORE = Fault("crash-before", Lands.NEVER, Then.DIES, reads=True)
CRASH_AFTER = Fault("crash-after", Lands.NOW, Then.DIES)
CRASH_LATE = Fault("crash-late", Lands.LATER, Then.DIES)
LOST_REQUEST = Fault("lost-request", Lands.NEVER, Then.IS_TOLD_UNKNOWN)
LOST_ANSWER = Fault("lost-answer", Lands.NOW, Then.IS_TOLD_UNKNOWN)
LATE = Fault("late", Lands.LATER, Then.IS_TOLD_UNKNOWN)
ECHO = Fault("echo", Lands.NOW, Then.IS_TOLD_REFUSED)
DUPLICATE = Fault("duplicate", Lands.TWICE, Then.IS_ANSWERED)
UNAVAILABLE = Fault("unavailable", Lands.NEVER, Then.IS_TOLD_UNAVAILABLE, reads=True)
DELAY = Fault("delay", Lands.SLOWLY, Then.IS_ANSWERED, reads=True)
DELAY_ANSWER = Fault("delay-answer", Lands.NOW, Then.IS_ANSWERED_SLOWLY, reads=True)
FREEZE = Fault("freeze", Lands.NOW, Then.STANDS_STILL, reads=True)

FAULTS: tuple[Fault, ...] = (
    CRASH_BEFORE,
    CRASH_AFTER,
    CRASH_LATE,
    LOST_REQUEST,
    LOST_ANSWER,
    LATE,
    ECHO,
    DUPLICATE,
    UNAVAILABLE,
    DELAY,
    DELAY_ANSWER,
    FREEZE,
)
CRASHES: tuple[Fault, ...] = (CRASH_BEFORE, CRASH_AFTER, CRASH_LATE)

DENIED = Fault("denied", Lands.NEVER, Then.IS_TOLD_DENIED, reads=True)
STUCK = Fault("stuck", Lands.NEVER, Then.IS_TOLD_UNAVAILABLE, reads=True, stays=True)
STUCK_UNHEARD = Fault("stuck-unheard", Lands.NEVER, Then.IS_TOLD_UNKNOWN, stays=True)

DRAWN_TOO: tuple[Fault, ...] = (DENIED, STUCK, STUCK_UNHEARD)
"""Those that only generated programs meet: their clients know what to make of each."""

SLOW = Fault("slow", Lands.SOON, Then.IS_ANSWERED, reads=True)
"""Only where a program names the step."""

BY_NAME = {fault.name: fault for fault in (*FAULTS, *DRAWN_TOO, SLOW)}


@dataclass(frozen=True, slots=True)
class PlannedFault:
    """A fault of one call: the `number`th that this process makes, counted from 1 in the order of sending."""

    process: str
    number: int
    fault: Fault

    def __str__(self) -> str:
        return f"{self.process}@{self.number}:{self.fault}"

    @classmethod
    def parse(cls, text: str) -> "PlannedFault":
        """Reads `p1@7:crash-after`. Raises ValueError."""
        process, at, rest = text.partition("@")
        number, colon, name = rest.partition(":")
        if not (process and at and colon and number.isdecimal() and int(number) > 0 and name in BY_NAME):
            raise ValueError(f"a planned fault reads process@number:fault, not {text!r}; faults: {', '.join(BY_NAME)}")
        return cls(process, int(number), BY_NAME[name])


@dataclass(frozen=True, slots=True)
class FaultPlan:
    """The faults of one run, at most one a call. Its text, as in `p1@7:crash-after,p2@3:echo`, is the whole of it."""

    faults: tuple[PlannedFault, ...] = ()

    def __post_init__(self) -> None:
        if len(self.by_call()) < len(self.faults):
            raise ValueError(f"two faults befall one call: {self}")

    def by_call(self) -> dict[tuple[str, int], Fault]:
        """The faults by process and number of the call."""
        return {(planned.process, planned.number): planned.fault for planned in self.faults}

    def without(self, planned: PlannedFault) -> "FaultPlan":
        """The same plan but for one fault."""
        return FaultPlan(tuple(other for other in self.faults if other != planned))

    def __str__(self) -> str:
        return ",".join(map(str, self.faults))

    @classmethod
    def parse(cls, text: str) -> "FaultPlan":
        """Reads what `str` wrote. Raises ValueError."""
        return cls(tuple(PlannedFault.parse(part) for part in text.split(","))) if text else cls()


NO_FAULTS = FaultPlan()


def every_single_fault(
    calls_by_process: Mapping[str, Sequence[Kind]], faults: Iterable[Fault] = FAULTS
) -> Iterator[FaultPlan]:
    """One plan for each fault of each call that it can befall: every crash point, and every other one."""
    wanted = tuple(faults)
    for process, kinds in calls_by_process.items():
        for number, kind in enumerate(kinds, start=1):
            for fault in wanted:
                if fault.befalls(kind):
                    yield FaultPlan((PlannedFault(process, number, fault),))


def distinct_crashes(calls_by_process: Mapping[str, Sequence[Kind]]) -> Iterator[FaultPlan]:
    """Every crash point but those that leave the store as another does: a process that dies at the second of two reads
    in a row has asked for no more than one that dies at the first."""
    for plan in every_single_fault(calls_by_process, CRASHES):
        [planned] = plan.faults
        kinds = calls_by_process[planned.process][max(0, planned.number - 2) : planned.number]
        if len(kinds) < 2 or WRITES & {*kinds}:
            yield plan


def random_plans(
    seed: int,
    count: int,
    calls_by_process: Mapping[str, Sequence[Kind]],
    faults: Iterable[Fault] = FAULTS,
    most: int = 3,
) -> Iterator[FaultPlan]:
    """`count` plans of one to `most` faults, spread over the calls of a run without faults and half as many again:
    whoever meets a fault makes more calls."""
    rng = random.Random(f"{seed}/plans")
    wanted = tuple(faults)
    points = [
        (process, number, kinds[number - 1 : number])
        for process, kinds in calls_by_process.items()
        for number in range(1, len(kinds) * 3 // 2 + 1)
    ]
    for _ in range(count):
        chosen = rng.sample(points, min(rng.randint(1, most), len(points)))
        yield FaultPlan(
            tuple(
                PlannedFault(process, number, rng.choice([f for f in wanted if all(map(f.befalls, kind))]))
                for process, number, kind in chosen
            )
        )
