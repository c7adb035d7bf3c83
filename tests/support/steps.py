"""Computations over the registry's index, run at once."""

from typing import TypeVar

from arco_catalog.state.index import Index
from arco_catalog.state.needs import Steps

T = TypeVar("T")


def result(steps: Steps[T], index: Index | None = None) -> T:
    """What a computation returns. With an index, all that it needs of that must be loaded."""
    while True:
        try:
            needs = next(steps)
        except StopIteration as end:
            returned: T = end.value
            return returned
        assert index is None or not index.missing(needs)


def lacks(steps: Steps[object], index: Index) -> bool:
    """Whether a computation needs a segment that is not loaded."""
    try:
        while not index.missing(next(steps)):
            pass
    except StopIteration:
        return False
    return True
