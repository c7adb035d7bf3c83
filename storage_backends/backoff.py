"""Computes the pauses between attempts, for storage backends and for the catalog's protocols."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

ATTEMPTS = 12
BASE_S = 0.05
CAP_S = 2.0
MAX_DOUBLINGS = 64
"""Of a pause: beyond, a limit would soon be larger than a number can be."""


def pause_s(random: float, max_s: float, min_s: float = 0.0) -> float:
    """Returns a pause in seconds from `min_s` up to `max_s`, as far between them as `random`, which is uniform on [0,
    1): so writers that collided once rarely collide a second time."""
    return min_s + random * (max_s - min_s)


def growing_pause_s(random: float, attempt: int, base_s: float = BASE_S, cap_s: float = CAP_S) -> float:
    """Returns a pause in seconds with full jitter: between zero and a limit that doubles with each attempt, from
    `base_s` up to `cap_s`. The first attempt has the number 0."""
    return pause_s(random, min(cap_s, base_s * 2.0 ** min(attempt, MAX_DOUBLINGS)))


def poll_pause_s(random: float, mean_s: float) -> float:
    """Returns the pause in seconds before the next check of another process's work: between half and one and a half
    times `mean_s`, never zero, since an early check is in vain."""
    return pause_s(random, 1.5 * mean_s, 0.5 * mean_s)


_attempts = ContextVar("_attempts", default=ATTEMPTS)


@contextmanager
def limit_attempts(attempts: int) -> Iterator[None]:
    """Returns a context in which a store on a cloud attempts a call at most so many times, instead of `ATTEMPTS`, and
    at least once: for a caller that goes on in another way if the store throttles it."""
    token = _attempts.set(attempts)
    try:
        yield
    finally:
        _attempts.reset(token)


def full_jitter(random: Callable[[], float]) -> Iterator[float]:
    """Yields the pause in seconds before each of `ATTEMPTS` attempts (fewer in a `limit_attempts`): 0 before the
    first, then random pauses with a growing limit, some 7 s in all on average, 13 s at most."""
    yield 0.0
    for attempt in range(_attempts.get() - 1):
        yield growing_pause_s(random(), attempt)
