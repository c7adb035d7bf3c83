"""Formats numbers for the reports of `maintain`."""

from arco_catalog.planning.upkeep_policy import DAY_MS


def size(number: float) -> str:
    """Returns a number of bytes as text in B, KiB or MiB, rounded to whole ones, or in GiB with one decimal."""
    for unit in ("B", "KiB", "MiB"):
        if number < 1024:
            return f"{number:.0f} {unit}"
        number /= 1024
    return f"{number:,.1f} GiB"


def days(ms: int) -> str:
    """Returns milliseconds as text in days, rounded to two decimals, and to six digits in all."""
    number = round(ms / DAY_MS, 2)
    return f"{number:g} day{'' if number == 1 else 's'}"


def counted(count: int, noun: str) -> str:
    """Returns a count followed by a noun, which gets an s unless the count is 1."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def percent(share: float) -> str:
    """Returns a share between 0 and 1 as text in percent."""
    return f"{100 * share:g} %"
