"""Stores of objects in the clouds, on the local disk and in memory, behind one interface, `ObjectStore`. A vendor's SDK
is imported only by the first call of a store that needs it.

Examples:
    A write has a condition, and an outcome that states whether it was applied:

    >>> import asyncio
    >>> from storage_backends.open import open_store
    >>> async def main():
    ...     store = open_store("memory:", {})
    ...     first = await store.put("name", b"ours", ABSENT)
    ...     second = await store.put("name", b"theirs", ABSENT)
    ...     found = await store.get("name")
    ...     third = await store.put("name", b"ours again", Matches(found.version))
    ...     await store.close()
    ...     return type(first).__name__, type(second).__name__, found.body, type(third).__name__
    >>> asyncio.run(main())
    ('Applied', 'PreconditionFailed', b'ours', 'Applied')
"""

from storage_backends.base import (
    ABSENT,
    ANY,
    MAX_DELETED,
    Absent,
    Anything,
    Applied,
    Cursor,
    DeadlinePassed,
    Deleted,
    Found,
    InvalidContent,
    InvalidKey,
    Listed,
    Matches,
    Missing,
    ObjectStore,
    Outcome,
    Page,
    PreconditionFailed,
    StoreDenied,
    StoreError,
    StoreUnavailable,
    Unchanged,
    Unknown,
    Version,
    When,
)

__all__ = [
    "ABSENT",
    "ANY",
    "MAX_DELETED",
    "Absent",
    "Anything",
    "Applied",
    "Cursor",
    "DeadlinePassed",
    "Deleted",
    "Found",
    "InvalidContent",
    "InvalidKey",
    "Listed",
    "Matches",
    "Missing",
    "ObjectStore",
    "Outcome",
    "Page",
    "PreconditionFailed",
    "StoreDenied",
    "StoreError",
    "StoreUnavailable",
    "Unchanged",
    "Unknown",
    "Version",
    "When",
]
