"""Reads the manifest lists of snapshots for plans, within bounds (docs/bounds.md): clients that may commit to a table
write them."""

from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from functools import partial
from typing import Final

from arco_catalog.iceberg.appends import NotRebasable
from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.iceberg.manifests import DATA, MAX_COUNT, ManifestFile, ManifestListParser
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.avro import (
    AvroLimits,
    Composite,
    Fields,
    UnpacksTooLong,
    Unreadable,
    parse_blocks,
)
from arco_catalog.state.compressed_manifests import ManifestList
from arco_catalog.state.worker_threads import off_loop
from storage_backends import InvalidKey, StoreDenied

MAX_LIST_BYTES: Final = 8 << 20
"""Maximum bytes of a manifest list, as stored."""
MAX_LISTED: Final = 50_000
"""Maximum manifests of a snapshot."""
MAX_SUMMARIES: Final = 200_000
"""Maximum summaries of partition fields in a manifest list."""
SMALLEST_ENTRY: Final = 64
"""Bytes of an entry of a manifest, by which the number of entries is estimated where none is stated."""
COMPRESSION: Final = 16
"""Bytes of most manifest lists, decompressed, for each byte as stored. Those of one in Java are six."""
USUAL_BYTES: Final = 256 << 10
"""Bytes, decompressed, that a manifest list may have in any case before the request takes more memory for it."""
LISTED_WORK: Final = 100
"""Bytes that a manifest in a list counts as when its work is given to a thread."""
MAX_UNPACKED: Final = 64 << 20
"""Maximum bytes of a manifest list, decompressed."""
MAX_ENTRY_BYTES: Final = 64 << 10
"""Maximum bytes of an entry of a manifest list."""
ADVICE: Final = "plan scans of this table in the client"
UNLISTED_BYTES: Final = 8 << 20
"""Maximum bytes of a manifest whose length no list has."""

_COUNTS: Final = {
    **{f"{what}_files_count": f"{what}_data_files_count" for what in ("added", "existing", "deleted")},
    **{f"{what}_rows_count": f"{what}_rows_count" for what in ("added", "existing", "deleted")},
}
"""The counts in an entry of a manifest list, with their older names."""
_LIST_FIELDS: Final[Fields] = {
    **dict.fromkeys(ManifestFile._fields),
    **dict.fromkeys(_COUNTS.values()),
    "partitions": Composite.RECORDS,
}


async def read_list(session: Session, location: str) -> ManifestList:
    """Reads the manifest list at a location, in memory that the request takes for it. Raises `BadRequest` for a list
    that can't be read or is beyond a bound, `NotFound` for a missing one, `OutOfMemory`, and `StoreError`."""
    with readable(location):
        body = (await session.files.read_range(location, 0, MAX_LIST_BYTES + 1)).body
        if len(body) > MAX_LIST_BYTES:
            raise Unreadable(f"the manifest list has more than {MAX_LIST_BYTES:,} bytes, the limit of a scan plan")
        usual = min(MAX_UNPACKED, max(USUAL_BYTES, COMPRESSION * len(body)))
        await session.hold.take(usual)
        try:
            return await _parsed_list(session, body, usual)
        except UnpacksTooLong:  # most lists are no such
            await session.hold.take(MAX_UNPACKED)
            return await _parsed_list(session, body, MAX_UNPACKED)


async def _parsed_list(session: Session, body: bytes, max_bytes: int) -> ManifestList:
    """Parses a manifest list that has at most so many bytes, decompressed, and takes memory for what it keeps of it.
    Raises `UnpacksTooLong`, `Unreadable`, `NotRebasable`, and `OutOfMemory`."""
    parser = ManifestListParser(MAX_SUMMARIES)
    found = ManifestList()
    reserved = 0

    async def read_range(start: int, length: int) -> bytes:
        return body[start : start + length]

    def parse(record: JsonObject) -> ManifestFile:
        return parser.parse(_with_counts(record))

    limits = AvroLimits(max_bytes, max_bytes, MAX_LISTED, record_bytes=MAX_ENTRY_BYTES)
    async with aclosing(parse_blocks(read_range, _LIST_FIELDS, parse, limits, lambda _: None)) as blocks:
        async for each in blocks:
            session.check_deadline()
            await off_loop(LISTED_WORK * len(each), partial(found.add, each))
            if found.size > reserved:
                step = max(found.size - reserved, reserved)
                reserved += step
                await session.hold.take(step)
    found.end()
    return found


def _with_counts(record: JsonObject) -> JsonObject:
    """Returns a copy of an entry of a manifest list with the counts that one of a table of version 1 may not have: of
    added files an estimate by the manifest's length, since a reader must take it for one with files, of all others
    0."""
    length = record.get("manifest_length")
    estimate = min(MAX_COUNT, 1 + length // SMALLEST_ENTRY) if isinstance(length, int) and length > 0 else 1
    filled = {**record}
    for name, older in _COUNTS.items():
        if record.get(name) is None and record.get(older) is None:
            filled[name] = estimate if name == "added_files_count" else 0
    return filled


def unlisted(location: str, snapshot_id: int) -> ManifestFile:
    """Returns the entry for a data manifest that a snapshot of an old table names itself, as no list has one: with the
    length `UNLISTED_BYTES`, one added file, spec 0, and no summaries of partitions."""
    return ManifestFile(location, UNLISTED_BYTES, 0, DATA, 0, 0, snapshot_id, 1, 0, 0, 0, 0, 0)


@contextmanager
def readable(location: str) -> Iterator[None]:
    """Returns a context that raises `BadRequest`, which names the file at `location`, in place of the errors of a file
    that can't be read, because of the content, the name or the store's denial. Others, such as `NotFound` and a store
    that does not answer, are raised unchanged."""
    try:
        yield
    except (Unreadable, NotRebasable, InvalidKey, StoreDenied) as error:
        reason = f"The table's file {location[:200]} can't be read: {error}"
        raise BadRequest(reason) from error.with_traceback(None)
