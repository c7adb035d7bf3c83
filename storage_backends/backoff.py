"""How long to wait before something is tried again: the one formula of all pauses, below the protocols and in them."""

from collections.abc import Callable, Iterator

ATTEMPTS = 12
BASE_S = 0.05
CAP_S = 2.0


def pause_s(random: float, most_s: float, least_s: float = 0.0) -> float:
    """A pause anywhere between two bounds, so that those who met once do not meet again. `random` is uniform on
    [0, 1)."""
    return least_s + random * (most_s - least_s)


def growing_pause_s(random: float, attempt: int, base_s: float = BASE_S, cap_s: float = CAP_S) -> float:
    """Full jitter: anywhere between nothing and a limit that doubles with each attempt, the first being number 0."""
    return pause_s(random, min(cap_s, base_s * 2**attempt))


def poll_pause_s(random: float, mean_s: float) -> float:
    """Returns the pause before another check of another process's work: never zero, since an early check is in vain."""
    return pause_s(random, 1.5 * mean_s, 0.5 * mean_s)


def full_jitter(random: Callable[[], float]) -> Iterator[float]:
    """The pause in seconds before each of `ATTEMPTS` attempts, none before the first: some 7 s in all on average, 13 s
    at most."""
    yield 0.0
    for attempt in range(ATTEMPTS - 1):
        yield growing_pause_s(random(), attempt)
