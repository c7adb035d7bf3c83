"""Listings of stored objects, page by page."""

from collections.abc import AsyncGenerator

from arco_catalog.state.access import State
from storage_backends import Cursor, Listed


async def list_objects(state: State, prefix: str) -> AsyncGenerator[Listed, None]:
    """All objects under a prefix, in no order. Raises `StoreError`."""
    after: Cursor | None = None
    while True:
        page = await state.store.list(prefix, after)
        for each in page.entries:
            yield each
        after = page.after
        if after is None:
            return
