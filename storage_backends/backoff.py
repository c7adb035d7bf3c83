"""How long to wait before asking a store again."""

from collections.abc import Callable, Iterator

ATTEMPTS = 12
BASE_S = 0.05
CAP_S = 2.0


def full_jitter(random: Callable[[], float]) -> Iterator[float]:
    """The pause in seconds before each of `ATTEMPTS` attempts, none before the first.

    Each is anywhere between nothing and a limit that doubles, so that writers who met once do not meet again: some 7 s
    in all on average, 13 s at most. `random` is uniform on [0, 1).
    """
    yield 0.0
    for attempt in range(ATTEMPTS - 1):
        yield random() * min(CAP_S, BASE_S * 2**attempt)
