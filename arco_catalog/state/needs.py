"""What a computation looks up in the registry's index, said before it looks: parts of the index lie in segments, which
are read first.

Such a computation is a generator, `Steps`: it yields what it needs next, is resumed when that is loaded, and returns
its result. So it stays a pure function of the index, runs once, and never takes what was not read for what is not
there.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.segments import Ref

T = TypeVar("T")


def never(entry: JsonObject) -> bool:
    """Ends no scan early."""
    return False


@dataclass(frozen=True, slots=True)
class Scan:
    """All keys that start with `prefix`, in order, up to the first whose entry `until` is true for."""

    prefix: str
    until: Callable[[JsonObject], bool] = never


@dataclass(frozen=True, slots=True)
class Needs:
    """What is looked up next: keys, scans, the holds on locations themselves (`Index.holds_on`), and whole segments."""

    keys: Sequence[str] = ()
    scans: Sequence[Scan] = ()
    holds: Sequence[str] = ()
    segments: Sequence[Ref] = ()


Steps: TypeAlias = Generator[Needs, None, T]
"""A pure computation that says what it looks up before it does."""


def immediately(value: T) -> Steps[T]:
    """A computation that needs nothing."""
    yield from ()
    return value
