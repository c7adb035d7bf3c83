"""An explicit-state model checker: breadth first, so that a counterexample is a shortest one."""

from collections import deque
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

S = TypeVar("S", bound=Hashable)


class Model(Protocol[S]):
    """A protocol with all of its processes, and what must hold in each state."""

    def initial(self) -> S:
        """The state in which nothing has happened."""
        ...

    def successors(self, state: S) -> Iterator[S]:
        """Every state that one step of one process, of the network or of a collector leads to."""
        ...

    def violation(self, state: S) -> str | None:
        """The promise that a state breaks, None if it breaks none."""
        ...


class TooManyStates(Exception):
    """The bound was reached before all states were seen."""


@dataclass(frozen=True)
class Exploration(Generic[S]):
    """The result of an exploration: how many states were seen, and the way to the first violation if there is one."""

    states: int
    violation: str | None
    trace: tuple[S, ...] = ()


def explore(model: Model[S], max_states: int) -> Exploration[S]:
    """Explores all states up to the first violation. Raises `TooManyStates`."""
    initial = model.initial()
    parents: dict[S, S | None] = {initial: None}
    queue = deque([initial])
    while queue:
        state = queue.popleft()
        violation = model.violation(state)
        if violation is not None:
            return Exploration(len(parents), violation, _trace(parents, state))
        for successor in model.successors(state):
            if successor not in parents:
                parents[successor] = state
                queue.append(successor)
        if len(parents) > max_states:
            raise TooManyStates(f"{len(parents)} states, and more to explore")
    return Exploration(len(parents), None)


def _trace(parents: dict[S, S | None], last: S) -> tuple[S, ...]:
    states = [last]
    while (before := parents[states[-1]]) is not None:
        states.append(before)
    return tuple(reversed(states))
