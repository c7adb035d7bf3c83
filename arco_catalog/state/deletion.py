"""Deletes many objects, and deletes those again whose outcome is unknown. Only for objects whose keys are never used
again."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from storage_backends import StoreError, StoreUnavailable, Unknown

K = TypeVar("K")

TRIES = 10

Delete = Callable[[Sequence[K]], Awaitable[Mapping[K, Unknown | StoreError]]]
"""Deletes at most 1,000 objects, and returns those that may be left, each with the reason."""


async def delete_for_certain(items: Sequence[K], delete: Delete[K], pause: Callable[[], Awaitable[None]]) -> None:
    """Deletes at most 1,000 objects by `delete`, and returns when none of them exists. Objects of unknown outcome are
    deleted again after a `pause`. After a try in which an object could not be deleted, raises the first
    such `StoreError`, and does not retry the objects of unknown outcome. Raises `StoreUnavailable` if an outcome is
    unknown after `TRIES` tries, and the errors of `delete`."""
    for _ in range(TRIES):
        left = await delete(items)
        for reason in left.values():
            if isinstance(reason, StoreError):
                raise reason
        if not left:
            return
        items = [*left]
        await pause()
    raise StoreUnavailable(
        f"The store did not confirm in {TRIES} attempts that {len(items)} objects were deleted, such as {items[0]}: "
        "they may still exist, and the next run or attempt deletes them"
    )
