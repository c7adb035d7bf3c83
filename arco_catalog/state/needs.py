"""Computations on the registry's index that declare their lookups in advance, because parts of the index are in
segments that must be loaded first.

Such a computation is a generator, `Steps`. It yields the lookups that it needs next, is resumed when their segments are
loaded, and returns the result. So it is a pure function of the index, and of the calls outside of the index that it
requests (`Needs.call`), runs once, and never mistakes an entry that was not loaded for one that does not exist.
"""

from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import TypeAlias, TypeVar

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.segments import Ref
from storage_backends.lazy_dataclass import dataclass

T = TypeVar("T")


def never(entry: JsonObject) -> bool:
    """Returns False, so that a scan with this condition does not end early."""
    return False


@dataclass(frozen=True, slots=True)
class Scan:
    """A lookup in the index of all keys that start with `prefix`, in order. It may end at the first key for whose entry
    `until` returns True."""

    prefix: str
    until: Callable[[JsonObject], bool] = never


@dataclass(frozen=True, slots=True)
class Needs:
    """The next lookups in the index that a computation needs: keys, scans, holds on locations (`Index.holds_on`), and
    whole segments. `call`, if it is given, is a call outside of the index to await before the computation goes on."""

    keys: Sequence[str] = ()
    scans: Sequence[Scan] = ()
    holds: Sequence[str] = ()
    segments: Sequence[Ref] = ()
    call: Callable[[], Awaitable[None]] | None = None


Steps: TypeAlias = Generator[Needs, None, T]
"""A pure computation that yields its lookups before it makes them."""


def immediately(value: T) -> Steps[T]:
    """Returns a computation without lookups, whose result is `value`."""
    yield from ()
    return value
