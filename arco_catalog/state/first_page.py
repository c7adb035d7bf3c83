"""Finds out whether a store has objects with a prefix, by the first page of a listing that has any."""

from collections.abc import Sequence

from storage_backends import Cursor, Listed, ObjectStore


async def first_entries(store: ObjectStore, prefix: str) -> Sequence[Listed]:
    """Returns the objects on the first page of a listing that has any, in no order; none if no object's key starts with
    `prefix`. Pages without objects may come before it, in Azure for example. Raises `StoreError`."""
    after: Cursor | None = None
    while True:
        page = await store.list(prefix, after)
        after = page.after
        if page.entries or after is None:
            return page.entries
