"""Whether an object in the store is old enough. Ages are differences of times of the store's clock, because protocols
compare no others."""

CLOCK_TOLERANCE_MS = 5_000
"""By how much the clocks of one store's servers may differ."""


def has_passed(age_ms: int, limit_ms: int) -> bool:
    """Whether an object of this age is at least `limit_ms` old.

    A negative age of more than `CLOCK_TOLERANCE_MS` counts as old, too. The store's clock, which for local files is the
    machine's, was then set back after the object was written. How long ago that was is unknown, and to wait for the
    clock to catch up could take days.
    """
    return age_ms >= limit_ms or age_ms < -CLOCK_TOLERANCE_MS
