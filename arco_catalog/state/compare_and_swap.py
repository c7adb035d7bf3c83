"""Changes one stored object by compare-and-swap, concurrently with other writers."""

from collections.abc import Callable
from typing import Generic, TypeVar

from arco_catalog.state.access import State
from storage_backends import ABSENT, Applied, Found, Matches, StoreUnavailable, Version
from storage_backends.lazy_dataclass import dataclass

T = TypeVar("T")

TRIES = 16
"""The default limit of tries, of which each reads the object anew because another writer changed it."""


class UpdateContention(StoreUnavailable):
    """Each try to change the object failed, because another writer changed it first or the outcome of the write was
    unknown. After an unknown outcome the change may have been applied."""


@dataclass(frozen=True, slots=True)
class StoredValue(Generic[T]):
    """The value of an object at a version; the version is None if the object does not exist."""

    value: T
    version: Version | None


async def update_until_applied(
    state: State,
    key: str,
    read: Callable[[Found | None], T],
    mutate: Callable[[T], T | None],
    encode: Callable[[T], bytes],
    *,
    known: StoredValue[T] | None = None,
    tries: int = TRIES,
) -> StoredValue[T]:
    """Changes the object under `key`, and returns the value that was written, or the stored one if `mutate` returns
    None because there is nothing to change.

    Each of at most `tries` tries reads the object by `read` (None if it does not exist), changes the value by `mutate`,
    and writes it if the object still has the version that was read. After a write that was refused or has an unknown
    outcome, the next try, after a short random wait, reads again, so `mutate` must return None for a value that has the
    change already. With `known` the first try needs no read. `mutate` and `encode` must be pure.

    Raises `UpdateContention` after the last try, what `read` raises, and `StoreError`.
    """
    stored = known
    for _ in range(tries):
        if stored is None:
            found = await state.store.get(key)
            if isinstance(found, Found):
                stored = StoredValue(read(found), found.version)
            else:
                stored = StoredValue(read(None), None)
        value = mutate(stored.value)
        if value is None:
            return stored
        when = ABSENT if stored.version is None else Matches(stored.version)
        outcome = await state.store.put(key, encode(value), when)
        if isinstance(outcome, Applied):
            return StoredValue(value, outcome.version)
        stored = None
        await state.pause()
    raise UpdateContention(
        f"The change of the object {key} was not confirmed in {tries} attempts: another process changed the object "
        "first, or the store did not answer: try again"
    )
