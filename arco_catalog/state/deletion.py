"""Deletes many objects for certain: what is of unknown outcome is deleted again. For objects whose names are never used
again."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from storage_backends import StoreError, StoreUnavailable, Unknown

K = TypeVar("K")

TRIES = 10

Delete = Callable[[Sequence[K]], Awaitable[Mapping[K, Unknown | StoreError]]]
"""Deletes at most 1,000 objects, and returns those that are left, each with the reason."""


async def delete_for_certain(items: Sequence[K], delete: Delete[K], pause: Callable[[], Awaitable[None]]) -> None:
    """Returns when all of at most 1,000 objects are gone. Raises the first `StoreError` of one that could not be
    deleted, after all others were tried, and `StoreUnavailable` where it is still unknown after several tries."""
    for _ in range(TRIES):
        left = await delete(items)
        for reason in left.values():
            if isinstance(reason, StoreError):
                raise reason
        if not left:
            return
        items = [*left]
        await pause()
    raise StoreUnavailable(f"whether {len(items)} objects were deleted is unknown: {items[0]}")
