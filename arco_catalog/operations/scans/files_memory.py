"""The memory of the matching files that an answer has not added yet."""

from collections.abc import Awaitable, Callable
from typing import Final

from arco_catalog.state.memory import Allocation

MAX_FILES_BYTES: Final = 20 << 20
"""Bytes of memory of the matching files of one manifest, after which a plan task has the rest: 5,000 files with the
statistics of six columns have that much. Those of all manifests that are read after it may have as much together."""
FREE_BYTES: Final = 12 << 20
"""Bytes of memory of matching files for which a request takes no further memory: 10,000 files without statistics have
that much. Requests that need more take so much at once."""


class FilesMemory:
    """Counts the bytes of the matching files of some manifests, until an answer has them, and takes memory for them by
    `take`, which raises `OutOfMemory`. It must be closed."""

    def __init__(self, take: Callable[[int], Awaitable[Allocation]]) -> None:
        self._take = take
        self._taken: list[Allocation] = []
        self._used = self._of_others = 0
        self._reserved = FREE_BYTES

    @property
    def is_full(self) -> bool:
        """Whether the manifests after the first have so many files that no further one should be read."""
        return self._of_others > MAX_FILES_BYTES

    async def add(self, size: int, *, is_first: bool) -> None:
        """Counts matching files of this size in bytes, of the first manifest or another one. Takes memory for all after
        the first `FREE_BYTES`, at least `FREE_BYTES` at a time. Raises `OutOfMemory`."""
        self._used += size
        self._of_others += 0 if is_first else size
        missing = self._used - self._reserved
        if missing > 0:
            step = max(missing, FREE_BYTES)
            self._reserved += step
            self._taken.append(await self._take(step))

    def clear(self) -> None:
        """Sets the count of matching files to zero. The request keeps the memory that it holds."""
        self._used = self._of_others = 0

    def close(self) -> None:
        """Gives back the memory of matching files, which must not be used afterwards."""
        while self._taken:
            self._taken.pop().shrink(0)
