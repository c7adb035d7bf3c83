"""Lists stored objects, page by page."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from arco_catalog.state.access import State
from storage_backends import Cursor, Listed, Page


async def list_objects(state: State, prefix: str) -> AsyncGenerator[Listed, None]:
    """Lists all objects under a prefix, and yields their keys, sizes and versions, in no order. Raises
    `StoreError`."""
    async with aclosing(list_pages(state, prefix)) as pages:
        async for page in pages:
            for each in page.entries:
                yield each


async def list_pages(state: State, prefix: str) -> AsyncGenerator[Page, None]:
    """Yields all pages of the objects under a prefix, in no order. Raises `StoreError`."""
    after: Cursor | None = None
    while True:
        page = await state.store.list(prefix, after)
        yield page
        after = page.after
        if after is None:
            return
