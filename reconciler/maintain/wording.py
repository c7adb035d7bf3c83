"""Figures as people read them."""

from reconciler.maintain.policies import DAY_MS


def size(number: float) -> str:
    """A number of bytes."""
    for unit in ("B", "KiB", "MiB"):
        if number < 1024:
            return f"{number:.0f} {unit}"
        number /= 1024
    return f"{number:,.1f} GiB"


def days(ms: int) -> str:
    """Milliseconds, in days."""
    number = round(ms / DAY_MS, 2)
    return f"{number:g} day{'' if number == 1 else 's'}"


def counted(count: int, noun: str) -> str:
    """So many of something."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def percent(share: float) -> str:
    """A share of 1."""
    return f"{100 * share:g} %"
