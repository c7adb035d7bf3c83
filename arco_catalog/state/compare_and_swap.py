"""Changing one stored object by compare-and-swap, beside others who change it too."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from arco_catalog.state.access import State
from storage_backends import ABSENT, Applied, Found, Matches, StoreUnavailable, Version

T = TypeVar("T")

TRIES = 16
"""How often an object is read anew because others write it, unless the caller says otherwise."""


class Contended(StoreUnavailable):
    """Others changed the object each time that we tried to: nothing of ours is in it."""


@dataclass(frozen=True, slots=True)
class Stored(Generic[T]):
    """What an object holds at a version; None is the version of one that is not there."""

    value: T
    version: Version | None


async def update_until_applied(
    state: State,
    key: str,
    read: Callable[[Found | None], T],
    mutate: Callable[[T], T | None],
    encode: Callable[[T], bytes],
    *,
    known: Stored[T] | None = None,
    tries: int = TRIES,
) -> Stored[T]:
    """Changes the object under `key` and returns what was applied; or what is there, if `mutate` has nothing to change.

    Each try takes the value that `read` makes of the object (None: there is none), lets `mutate` change it and swaps it
    for the version that was read. A write that was refused, or whose outcome is unknown, is followed by another read:
    `mutate` must recognise a change of ours that has been made. With `known` the first try needs no read. `mutate` and
    `encode` are pure.

    Raises `Contended` after so many tries, what `read` raises, and `StoreError`.
    """
    stored = known
    for _ in range(tries):
        if stored is None:
            found = await state.store.get(key)
            stored = Stored(read(found), found.version) if isinstance(found, Found) else Stored(read(None), None)
        value = mutate(stored.value)
        if value is None:
            return stored
        when = ABSENT if stored.version is None else Matches(stored.version)
        outcome = await state.store.put(key, encode(value), when)
        if isinstance(outcome, Applied):
            return Stored(value, outcome.version)
        stored = None
        await state.pause()
    raise Contended(f"{key} was changed by others in each of {tries} attempts: try again")
