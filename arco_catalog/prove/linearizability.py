"""Searches for an order of operations that an atomic object could have executed (Wing and Gong's search, with the
memory of visited states that Lowe added, as Porcupine has it)."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

Names = tuple[str | None, ...]
"""The state of the names of a namespace: for each the creation of its table, None for a name that no table has."""


@dataclass(frozen=True, slots=True)
class Event:
    """An operation on names: `apply` returns the state after it, None if its outcome is impossible in this state. It
    took effect between `invoked` and `completed`. One that is `optional` may have had no effect at all."""

    id: str
    invoked: int
    completed: float
    apply: Callable[[Names], Names | None]
    optional: bool = False


class Verdict(Enum):
    """The verdict of a search for an order."""

    LINEARIZABLE = "linearizable"
    NOT_LINEARIZABLE = "not linearizable"
    UNDECIDED = "undecided"
    """The search was given up after its maximum of steps."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The verdict of a search. Unless an order was found, `blocked` is the id of the event that was to come next at the
    latest where the search got furthest."""

    verdict: Verdict
    blocked: str = ""


def search(events: Sequence[Event], initial: Names, max_steps: int = 200_000) -> SearchResult:
    """Searches for an order in which an object with the state `initial` could have executed all events, of which
    optional ones may be left out. Returns whether there is one, and if not, the event that was to come next where the
    search got furthest; undecided after `max_steps` steps. A step takes time from linear to quadratic in the
    number of events."""
    required = sum(1 << number for number, event in enumerate(events) if not event.optional)
    visited: set[tuple[int, Names]] = set()
    stack = [(0, initial)]
    furthest, blocked = -1, ""
    for _ in range(max_steps):
        if not stack:
            return SearchResult(Verdict.NOT_LINEARIZABLE, blocked)
        done, state = _with_reads(events, *stack.pop())
        if done & required == required:
            return SearchResult(Verdict.LINEARIZABLE)
        if (done, state) in visited:
            continue
        visited.add((done, state))
        first = min(_left(events, done), key=lambda event: event.completed)
        if done.bit_count() > furthest:
            furthest, blocked = done.bit_count(), first.id
        for number, event in enumerate(events):
            if not done >> number & 1 and event.invoked < first.completed:
                after = event.apply(state)
                if after is not None and not (event.optional and after == state):
                    stack.append((done | 1 << number, after))
    return SearchResult(Verdict.UNDECIDED, blocked)


def _left(events: Sequence[Event], done: int) -> Iterator[Event]:
    """Yields the events that must be executed, since they are not optional, and whose bit is not set in `done`."""
    return (event for number, event in enumerate(events) if not done >> number & 1 and not event.optional)


def _with_reads(events: Sequence[Event], done: int, state: Names) -> tuple[int, Names]:
    """Returns the bits of `done` with those of the events that may be next and change nothing in this state, and the
    state as it is. They can always be the next ones: whatever comes in an order before such an event could also come
    after it. Optional events are not added."""
    changed = True
    while changed:
        changed = False
        limit = min((event.completed for event in _left(events, done)), default=math.inf)
        for number, event in enumerate(events):
            if not done >> number & 1 and not event.optional and event.invoked < limit and event.apply(state) == state:
                done |= 1 << number
                changed = True
    return done, state
