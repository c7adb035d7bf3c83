"""How old a stored object is, by the store's clock, which alone protocols compare."""

CLOCK_TOLERANCE_MS = 5_000
"""By how much the clocks of one store's servers may differ."""


def has_passed(age_ms: int, limit_ms: int) -> bool:
    """Whether a limit of time has passed for an object of this age.

    An age may be negative: the store's clock, which on local files is the machine's, was set back since. How long ago
    the object was written is then unknown, and to wait until the clock is there again could take days: it has passed.
    """
    return age_ms >= limit_ms or age_ms < -CLOCK_TOLERANCE_MS
