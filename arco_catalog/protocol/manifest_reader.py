"""Reads manifest lists and manifests that clients wrote for a request, within bounds: of the bytes, the values and the
memory (docs/bounds.md). Few processes import this module."""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager, nullcontext
from typing import Final, NamedTuple, TypeVar

from arco_catalog.iceberg.appends import NotRebasable
from arco_catalog.iceberg.errors import BadRequest, NotFound
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.iceberg.manifests import AddedFiles, ManifestFile, ManifestListParser, check_list_fields
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.avro import (
    MAX_RECORD_BYTES,
    AvroHeader,
    AvroLimits,
    Composite,
    Fields,
    Unreadable,
    parse_blocks,
)
from arco_catalog.state.memory import Allocation
from storage_backends import InvalidKey, StoreDenied

T = TypeVar("T")

MAX_LIST_BYTES: Final = 2 << 20
"""Maximum bytes of a manifest list, as stored."""
MAX_LISTED: Final = 5_000
"""Maximum manifests in a list. The catalog copies the list for each append, so a table with more of them needs a
compaction of its manifests first."""
MAX_LIST_UNPACKED: Final = 4 << 20
"""Maximum bytes of a manifest list, unpacked."""
MAX_LISTED_BYTES: Final = 64 << 10
"""Maximum bytes of an entry of a manifest list."""
MAX_MANIFEST_BYTES: Final = 8 << 20
"""Maximum bytes of a manifest that an append adds, as stored."""
MAX_MANIFEST_UNPACKED: Final = 16 << 20
"""Maximum bytes of such a manifest, unpacked."""
UNPACKED_WEIGHT: Final = 32
"""Maximum bytes of a list or manifest, unpacked, for each byte of its file, besides `SPARE_BYTES`."""
SPARE_BYTES: Final = 16 << 10

DECODED_WEIGHT: Final = 6
"""Bytes of memory for each unpacked byte of a list or manifest: the block, and text with up to four bytes a letter."""
VALUES_BYTES: Final = 24 << 20
"""Bytes of memory of the most values that a list may have, 5,000 entries and 50,000 summaries, besides their bytes."""
SMALLEST_WEIGHT: Final = 64
"""Bytes of memory for each unpacked byte of a file of the smallest values: a few bytes are a summary, or an entry."""
DECODING: Final = "manifests"
"""The key of the advisory lock under which a process decodes one file of a catalog at a time."""

_LIST_FIELDS: Final[Fields] = {
    **dict.fromkeys(ManifestFile._fields),
    **{f"{what}_data_files_count": None for what in ("added", "existing", "deleted")},
    "partitions": Composite.RECORDS,
}
_ENTRY_FIELDS: Final[Fields] = {
    **dict.fromkeys(("status", "snapshot_id", "sequence_number", "file_sequence_number")),
    "data_file": dict.fromkeys(("content", "record_count", "file_size_in_bytes", "first_row_id")),
}


class AvroFile(NamedTuple):
    """The bytes of a manifest list or manifest. `max_unpacked` is the maximum number of bytes that they may have when
    they are unpacked, and `taken` the memory that was taken for them."""

    location: str
    body: bytes
    max_unpacked: int
    taken: Allocation

    def decoded_bytes(self) -> int:
        """Returns the maximum bytes of memory that the file takes when it is decoded."""
        return min(SMALLEST_WEIGHT * self.max_unpacked, VALUES_BYTES + DECODED_WEIGHT * self.max_unpacked)

    def limits(self, max_records: int, max_record_bytes: int) -> AvroLimits:
        """Returns the limits with which a decoder reads the manifest list or manifest: its unpacked bytes, and the
        records given."""
        return AvroLimits(self.max_unpacked, self.max_unpacked, max_records, max_record_bytes)


class ManifestReader:
    """Reads manifest lists, and the manifests that an append adds, for one request that may be rebased."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def read_list(self, location: str) -> AvroFile:
        """Returns the bytes of a manifest list, undecoded: the cached ones, as of a list that was written by this
        process, or else from the store, for which it takes memory. Raises `NotRebasable` if it does not exist, can't be
        read, or is too long, and `StoreError`."""
        body = self._session.files.cached(location)
        if body is not None and len(body) <= MAX_LIST_BYTES:
            return _avro_file(location, body, MAX_LIST_UNPACKED, await self._session.hold.take(0))
        return await self._read(location, MAX_LIST_BYTES, MAX_LIST_UNPACKED)

    @asynccontextmanager
    async def decoding(self, *files: AvroFile) -> AsyncIterator[None]:
        """Returns a context in which these files may be decoded, and what is in them may be used. All memory for them
        is given back at its end, also that of the undecoded bytes. If the process has locks of tables, one request of
        the catalog at a time decodes, because concurrent ones would each wait for memory that the others have; one that
        has waited for the lock too long goes on without it. Raises `OutOfMemory`."""
        locks = self._session.catalog.table_locks
        async with nullcontext() if locks is None else locks.hold(DECODING):
            taken = await self._session.hold.take(sum(each.decoded_bytes() for each in files))
            try:
                yield
            finally:
                taken.shrink(0)
                for each in files:
                    each.taken.shrink(0)

    async def entries(self, file: AvroFile) -> Sequence[ManifestFile]:
        """Decodes a manifest list. Must be called in a context of `decoding`. Raises `NotRebasable` if it can't be
        read, is beyond a bound, or has fields that the catalog does not know, and `StoreUnavailable` after
        the deadline."""

        def check(header: AvroHeader) -> None:
            check_list_fields(header.fields)

        limits = file.limits(MAX_LISTED, MAX_LISTED_BYTES)
        return await self._decode(file, _LIST_FIELDS, ManifestListParser().parse, limits, check)

    async def added_files(self, manifest: ManifestFile, snapshot_id: int) -> AddedFiles:
        """Reads a manifest that an append adds, and returns the counts of the files in it, not the files; the caller
        compares them with the manifest list and the table (`AddedFiles.check`). Raises `NotRebasable` if it can't be
        read, is beyond a bound, has another partition spec than `manifest`, or has other files than new data files of
        the snapshot; and `StoreError`."""
        files = AddedFiles(manifest, snapshot_id)

        def check(header: AvroHeader) -> None:
            files.read_header(header.metadata)

        location, size = manifest.manifest_path, manifest.manifest_length
        if size > MAX_MANIFEST_BYTES:
            raise NotRebasable(
                f"the manifest {location[:200]} has more than {MAX_MANIFEST_BYTES:,} bytes, the limit of a rebase"
            )
        file = await self._read(location, size, MAX_MANIFEST_UNPACKED)
        async with self.decoding(file):
            limits = file.limits(manifest.added_files_count, MAX_RECORD_BYTES)
            await self._decode(file, _ENTRY_FIELDS, files.add, limits, check)
        return files

    async def _read(self, location: str, max_bytes: int, max_unpacked: int) -> AvroFile:
        """Reads an Avro file of at most `max_bytes`, undecoded, for which it takes memory. Raises `NotRebasable` for a
        longer one, and one that does not exist or can't be read; and `StoreError`, such as `OutOfMemory`."""
        taken = await self._session.hold.take(max_bytes)
        with _readable(location):
            found = await self._session.files.read_range(location, 0, max_bytes + 1)
        if len(found.body) > max_bytes:
            raise NotRebasable(
                f"the file {location[:200]} has more than {max_bytes:,} bytes: the limit of a manifest list, or the "
                "length that the list states for a manifest"
            )
        taken.shrink(len(found.body))
        return _avro_file(location, found.body, max_unpacked, taken)

    async def _decode(
        self,
        file: AvroFile,
        fields: Fields,
        parse: Callable[[JsonObject], T],
        limits: AvroLimits,
        check_header: Callable[[AvroHeader], None],
    ) -> list[T]:
        """Returns what `parse` returns for the records of an Avro file. Raises `NotRebasable` if it can't be read, what
        `parse` and `check_header` raise, and `StoreUnavailable` past the deadline."""

        async def read_range(start: int, length: int) -> bytes:
            return file.body[start : start + length]

        parsed: list[T] = []
        with _readable(file.location):
            async with aclosing(parse_blocks(read_range, fields, parse, limits, check_header)) as blocks:
                async for each in blocks:
                    self._session.check_deadline()
                    parsed += each
        return parsed


def _avro_file(location: str, body: bytes, max_unpacked: int, taken: Allocation) -> AvroFile:
    """Returns the Avro file with these bytes, and with the limit of the bytes to which they may be decompressed:
    `max_unpacked`, or `SPARE_BYTES` plus a multiple of their number if that is less."""
    return AvroFile(location, body, min(max_unpacked, SPARE_BYTES + UNPACKED_WEIGHT * len(body)), taken)


@contextmanager
def _readable(location: str) -> Iterator[None]:
    """Raises `NotRebasable` in place of the errors of a file that does not exist, or can't be read."""
    try:
        yield
    except (Unreadable, NotFound, BadRequest, InvalidKey, StoreDenied) as error:
        raise NotRebasable(f"the file {location[:200]} can't be read: {error}") from error.with_traceback(None)
