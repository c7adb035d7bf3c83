"""Deletes many objects with one request for each object, for stores that take no request for many. For all stores,
checks that one call deletes at most `MAX_DELETED` objects."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence

from storage_backends.base import MAX_DELETED, Applied, Deleted, Outcome, StoreError, Unknown

AT_ONCE = 16


def check_number(keys: Sequence[str]) -> None:
    """Raises ValueError if there are more than `MAX_DELETED` keys, the most that one call deletes."""
    if len(keys) > MAX_DELETED:
        raise ValueError(f"expected at most {MAX_DELETED} keys to delete, got {len(keys)}")


async def delete_each(keys: Iterable[str], delete: Callable[[str], Awaitable[Outcome]]) -> Deleted:
    """Deletes objects with one request for each, `AT_ONCE` at a time, by `delete`, which must be unconditional. Returns
    the keys of objects that may still exist, with the reasons, also where `delete` raised `StoreError`; and the store's
    time of the applied deletion that ended last, None if none was applied."""
    left: dict[str, Unknown | StoreError] = {}
    now_ms: int | None = None
    limit = asyncio.Semaphore(AT_ONCE)

    async def attempt(key: str) -> None:
        nonlocal now_ms
        async with limit:
            try:
                outcome = await delete(key)
            except StoreError as error:
                left[key] = error
                return
        if isinstance(outcome, Applied):
            now_ms = outcome.now_ms
        else:
            left[key] = (
                outcome if isinstance(outcome, Unknown) else Unknown("the store refused an unconditional deletion")
            )

    async with asyncio.TaskGroup() as group:
        for key in keys:
            group.create_task(attempt(key))
    return Deleted(left, now_ms)
