"""Parts of an index of deletes in the store, of which a plan reads no more than it needs (`state/delete_parts.py`)."""

from collections.abc import Sequence, Set
from contextlib import suppress
from functools import partial
from typing import Final

from arco_catalog.protocol.catalog import Session
from arco_catalog.state.access import KeyConflict
from arco_catalog.state.delete_parts import BlockRows, InvalidPart, PartHeader, read_header, rows_found
from arco_catalog.state.memory import Memory
from arco_catalog.state.worker_threads import LoopWork
from storage_backends import Found, StoreError

BEGIN_BYTES: Final = 64 << 10
"""Bytes of a part that are read first, with the header and most often the whole table of hashes."""
MAX_GAP: Final = 32 << 10
"""Bytes between two blocks that are read with them, because another call of the store takes longer."""
RANGE_BYTES: Final = 1 << 20
"""Bytes of blocks that are read at a time; more if one block has more."""
TABLE_WEIGHT: Final = 3
"""Bytes of memory for each byte of the table of hashes: as it was read, as numbers, and the numbers of rows."""
HASH_WORK: Final = 20
"""Bytes that the work on a hash in the table counts as when it is given to a thread."""


class StoredPart:
    """The part of an index under a key of the store. `header` is None until a valid part is opened or made, and `known`
    are the bytes of its beginning that the plan keeps, perhaps all or none."""

    def __init__(self, session: Session, key: str) -> None:
        self._session = session
        self.key = key
        self.header: PartHeader | None = None
        self.known = b""

    async def open(self) -> None:
        """Reads the beginning of the part, which is all of a short one, into `header` and `known`. Neither changes if
        the part does not exist, or is invalid."""
        found = await self._session.state.store.get_range(self.key, 0, BEGIN_BYTES)
        if isinstance(found, Found):
            with suppress(InvalidPart):
                self.header, self.known = read_header(found.body), found.body

    async def create(self, body: bytes) -> bool:
        """Stores the part, at best effort, and returns whether that succeeded: without it the next plan makes it again.
        A failure is only noted."""
        try:
            await self._session.state.create(self.key, body)
        except (StoreError, KeyConflict) as error:
            self._session.note_failed_write("the part of an index of deletes", error)
            return False
        return True

    async def rows(self, hashes: Set[int], work: LoopWork, memory: Memory) -> Sequence[BlockRows]:
        """Returns the rows that have one of these hashes, by block. It takes the bytes that the search needs from
        `memory` and gives them back. Raises `InvalidPart`, and `OutOfMemory`."""
        assert self.header is not None
        start, size = self.header.start, self.header.end - self.header.start
        with memory.hold(self._session.hold.owner) as hold:
            await hold.take(TABLE_WEIGHT * size)
            table = await self.read(start, size) if size else b""
            return await work.run(HASH_WORK * self.header.files, partial(rows_found, self.header, table, hashes))

    async def read(self, start: int, size: int) -> bytes:
        """Returns `size` bytes of the part from `start` on, from the known beginning or else from the store. Raises
        `InvalidPart` if the part ends before them, or was deleted."""
        if start + size <= len(self.known):
            return self.known[start : start + size]
        found = await self._session.state.store.get_range(self.key, start, size)
        if not isinstance(found, Found) or len(found.body) < size:
            raise InvalidPart(
                "the stored part of an index of deletes is missing or too short, so the manifests are read instead"
            )
        return found.body


def ranges_of(blocks: Sequence[BlockRows]) -> Sequence[Sequence[BlockRows]]:
    """Returns the blocks, in their order, in groups that are read by one call: blocks with at most `MAX_GAP` bytes
    between them, and at most `RANGE_BYTES` together unless one block has more."""
    groups: list[list[BlockRows]] = []
    for block in blocks:
        end = block.start + block.size
        if groups and block.start - _end(groups[-1]) <= MAX_GAP and end - groups[-1][0].start <= RANGE_BYTES:
            groups[-1].append(block)
        else:
            groups.append([block])
    return groups


def size_of(group: Sequence[BlockRows]) -> int:
    """Returns the bytes from the beginning of a group of blocks to its end."""
    return _end(group) - group[0].start


def _end(group: Sequence[BlockRows]) -> int:
    """Returns where a group of blocks ends in its part."""
    return group[-1].start + group[-1].size
