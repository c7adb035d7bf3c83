"""Cost without a clock: how many steps some work takes, in Python and in what C does for it.

Python's own steps are counted by tracing calls and lines, each turn of a loop or comprehension being one. What C does
in one step shows where the values take part: documents are made of lists, objects, numbers and texts that count how
often they are compared, hashed, copied and walked through, so that `max`, `sorted`, `in`, `index`, `copy` and `{**x}`
cost what they are long.
"""

import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from types import FrameType
from typing import Any, SupportsIndex

from tests.iceberg.values import Json


class Meter:
    """What was counted."""

    def __init__(self) -> None:
        self.steps = 0

    def add(self, steps: int) -> None:
        self.steps += steps


METER = Meter()


class Number(int):
    """An integer that counts."""

    def __hash__(self) -> int:
        METER.add(1)
        return super().__hash__()

    def __eq__(self, other: object) -> bool:
        METER.add(1)
        return super().__eq__(other)

    def __lt__(self, other: int) -> bool:
        METER.add(1)
        return super().__lt__(other)

    def __gt__(self, other: int) -> bool:
        METER.add(1)
        return super().__gt__(other)


class Text(str):
    """Text that counts, an eighth of its characters at a time."""

    __slots__ = ()

    def __hash__(self) -> int:
        METER.add(1)
        return super().__hash__()

    def __eq__(self, other: object) -> bool:
        METER.add(1 + (len(self) // 8 if isinstance(other, str) and len(other) == len(self) else 0))
        return super().__eq__(other)

    def __lt__(self, other: str) -> bool:
        METER.add(1)
        return super().__lt__(other)

    def lower(self) -> str:
        METER.add(1 + len(self) // 8)
        return super().lower()

    def casefold(self) -> str:
        METER.add(1 + len(self) // 8)
        return super().casefold()


class Items(list[Any]):
    """A list that counts."""

    def __iter__(self) -> Iterator[Any]:
        for item in super().__iter__():
            METER.add(1)
            yield item

    def __contains__(self, item: object) -> bool:
        METER.add(len(self))
        return super().__contains__(item)

    def __eq__(self, other: object) -> bool:
        METER.add(len(self))
        return super().__eq__(other)

    def __getitem__(self, place: Any) -> Any:
        found = super().__getitem__(place)
        METER.add(len(found) if isinstance(place, slice) else 1)
        return Items(found) if isinstance(place, slice) else found

    def copy(self) -> "Items":
        METER.add(len(self))
        return Items(super().copy())

    def index(self, item: Any, start: SupportsIndex = 0, stop: SupportsIndex = sys.maxsize) -> int:
        METER.add(len(self))
        return super().index(item, start, stop)

    def remove(self, item: Any) -> None:
        METER.add(len(self))
        super().remove(item)

    __hash__ = None


class Fields(dict[str, Any]):
    """An object that counts. Its own `__iter__` makes C copy it as it would any mapping: key by key."""

    def __iter__(self) -> Iterator[str]:
        for name in super().__iter__():
            METER.add(1)
            yield name

    def __getitem__(self, name: str) -> Any:
        METER.add(1)
        return super().__getitem__(name)

    def keys(self) -> Any:
        METER.add(len(self))
        return super().keys()

    def values(self) -> Any:
        METER.add(len(self))
        return super().values()

    def items(self) -> Any:
        METER.add(len(self))
        return super().items()

    def __eq__(self, other: object) -> bool:
        METER.add(len(self))
        return super().__eq__(other)

    def copy(self) -> "Fields":
        METER.add(len(self))
        return Fields(super().copy())

    __hash__ = None


def counted(value: Json) -> Json:
    """A JSON value that counts each access to it."""
    if isinstance(value, dict):
        return Fields({Text(name): counted(item) for name, item in value.items()})
    if isinstance(value, list):
        return Items(counted(item) for item in value)
    if isinstance(value, str):
        return Text(value)
    return Number(value) if isinstance(value, int) and not isinstance(value, bool) else value


def steps_of(work: Callable[[], object]) -> int:
    """How many steps a function takes. An exception of it is raised."""

    before = METER.steps
    with _traced():
        work()
    return METER.steps - before


async def steps_of_task(work: Awaitable[object]) -> int:
    """How many steps an awaited task takes, including those of the event loop until it ends."""
    before = METER.steps
    with _traced():
        await work
    return METER.steps - before


@contextmanager
def _traced() -> Iterator[None]:
    def trace(frame: FrameType, event: str, argument: object) -> Any:
        METER.steps += 1
        return trace

    traced = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(traced)


ROOM = 1.35
"""What is allowed over twice the growth: sorting and heaps take a logarithm more, and sizes have a constant part."""


def assert_linear(costs: Iterable[int], what: str) -> None:
    """Fails unless the costs, each for twice the size of the one before it, grow as the sizes do."""
    series = [*costs]
    growth = [later - earlier for earlier, later in pairwise(series)]
    for earlier, later in pairwise(growth):
        assert later <= 2 * ROOM * max(earlier, series[0] // 2, 200), f"{what} grows beyond linear: {series}"
