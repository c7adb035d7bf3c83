"""Garbage of runs: collected before the next one, when it is small and still in the processor's caches.

A run leaves thousands of objects in cycles. To find them Python's collector goes through everything that was ever
imported, again and again: `collecting_new_garbage_alone` leaves that out.
"""

import gc
import itertools
from collections.abc import Iterator
from contextlib import contextmanager

MANY = 200_000
"""Objects that are made before the collector starts by itself: more than a run makes."""
RUNS = 50
"""Runs until old garbage is collected, too: memory grew to 2 GB without."""

_runs = itertools.count(1)


@contextmanager
def collecting_new_garbage_alone() -> Iterator[None]:
    """Leaves what there is now out of collections, until the end."""
    threshold = gc.get_threshold()
    gc.set_threshold(MANY, 10, 10)
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.set_threshold(*threshold)


def collect() -> None:
    """Collects what the run before left. What is still in use then is old for the next collection, which leaves it out:
    a collection of all is due after some runs."""
    gc.collect(2 if next(_runs) % RUNS == 0 else 1)
