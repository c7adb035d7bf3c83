"""The interface to all versions, current and previous, of the objects in a bucket with versioning.

A restore of a prefix to an earlier time uses them. A catalog does not, and `ObjectStore` does not include them.
"""

from collections.abc import AsyncGenerator
from typing import Protocol

from storage_backends.base import Version
from storage_backends.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class KeptVersion:
    """One version of an object that a bucket keeps, or a delete marker, for which `version` is None. `id` is the
    bucket's id of the version, `version` is the ETag; `written_ms` is the store's time of the write, or of the
    deletion, in milliseconds since 1970; `latest` is whether it is the newest of the object."""

    key: str
    id: str
    version: Version | None
    written_ms: int
    latest: bool = False


class KeptVersions(Protocol):
    """The interface by which the versions that a bucket keeps of the objects of one store are read."""

    async def enabled(self) -> bool:
        """Whether the bucket keeps versions of what is written now; False if it never did, or if versioning is
        suspended. Raises `StoreError` if that cannot be read."""
        ...

    def list(self, prefix: str) -> AsyncGenerator[KeptVersion, None]:
        """Yields all versions and delete markers of the objects whose keys start with `prefix`, object by object, the
        newest first. Leaves out objects with names that are not valid keys. Raises `StoreError` if a listing fails."""
        ...

    async def get(self, kept: KeptVersion) -> bytes:
        """Returns the bytes of a version. Raises `StoreError` if it is gone, cannot be read, or is a delete marker."""
        ...

    async def close(self) -> None:
        """Closes the connections by which versions are read."""
        ...
