"""Reads and writes metadata files by their locations. Files are written once and cached. The store
confirms for a read that a cached file still exists, unless the catalog has written it and it was confirmed recently. A
commit makes its plan on the cached file without that, since only the swap of the pointer decides.

Locations may be outside of the catalog's folder, so each allowed prefix has a store of its own.
"""

import asyncio
import re
import zlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import lru_cache, partial
from typing import TypeVar
from weakref import WeakValueDictionary

from arco_catalog.iceberg.errors import BadRequest, MetadataTooLarge, NotFound
from arco_catalog.iceberg.json import JsonObject, count_values
from arco_catalog.iceberg.outline import let_long_parts_go
from arco_catalog.iceberg.parsing import UnreadableMetadata, parse_metadata
from arco_catalog.state.access import State
from arco_catalog.state.cache import ByteCache
from arco_catalog.state.gzip_stream import DeflatedPart
from arco_catalog.state.locations import Location, refuse_reserved
from arco_catalog.state.memory import (
    FILE_WEIGHT,
    MAX_METADATA_BYTES,
    VALUES_COUNTED_FROM_BYTES,
    Allocation,
    Hold,
    background_memory,
    max_metadata_values,
    parsed_bytes,
)
from arco_catalog.state.runtime import ClockReading, Runtime
from arco_catalog.state.worker_threads import off_loop
from storage_backends import Cursor, Found, InvalidKey, Missing, ObjectStore, StoreError, Unchanged, Unknown, Version
from storage_backends.lazy_dataclass import dataclass

T = TypeVar("T")

GZIP = b"\x1f\x8b"
MAX_EXAMPLES = 20
"""Objects without valid keys that a listing names; all are counted."""
FIRST_BYTES = 1 << 20
"""The size of the first read of a file. Few files are larger."""
MAX_MEMBERS = 1_000
"""The limit of gzip streams that follow each other in a file. Writers make one."""
PACKED_PART_BYTES = 64 << 10
UNPACKED_PART_BYTES = 1 << 20
COUNTING_SPEED = 8
"""How many bytes are counted, at least, in the time that other work in the event loop may take for one byte: counting
1 MB takes a millisecond."""
_PADDING = re.compile(rb"\0*+")


@dataclass(slots=True)
class Mount:
    """A store that has files of a catalog's tables, and the location of the store's root."""

    root: Location
    store: ObjectStore


@dataclass(slots=True)
class CachedFile:
    """The decompressed bytes of a metadata file at a version. `values` is an upper bound of its JSON values, None if
    they were not counted yet, and 0 for a small file. `confirmed` is when the last call was sent whose answer showed
    that the file exists.

    Three more forms are None until a load requests them: `visible` is the document without snapshots that no branch or
    tag names, `deflated` is the compressed body, and `deflated_visible` is the compressed `visible`.
    """

    version: Version
    body: bytes
    values: int | None
    confirmed: ClockReading
    visible: bytes | None = None
    deflated: DeflatedPart | None = None
    deflated_visible: DeflatedPart | None = None

    @property
    def size(self) -> int:
        """The bytes that the cached file takes: its body, its form without unreferenced snapshots, and the compressed
        forms."""
        parts = (self.deflated, self.deflated_visible)
        return len(self.body) + len(self.visible or b"") + sum(len(part.data) for part in parts if part is not None)


@dataclass(slots=True)
class OtherObjects:
    """The objects in a listing whose names are not valid keys: their number, and the locations of the first
    `MAX_EXAMPLES` of them."""

    number: int = 0
    examples: list[str] = field(default_factory=list)

    def add(self, location: str) -> None:
        """Counts an object with a name that is not a valid key, and keeps its location as an example unless there are
        `MAX_EXAMPLES` already."""
        self.number += 1
        if len(self.examples) < MAX_EXAMPLES:
            self.examples.append(location)


class FileCache(ByteCache[str, CachedFile]):
    """The cache of metadata files by location. `locks` has the lock under which requests make another form of a file,
    such as the compressed one, so that only one of them does the work."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self.locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()


class Files:
    """Reads and writes the metadata files of one catalog for one request. A file may have at most `max_bytes` bytes,
    unpacked, and a number of values in proportion. Before a file is read, memory for it is taken in the `hold` of the
    request. In `read_written` a cached file, except a local one, needs no confirmation for `confirmed_ms` after the
    last one."""

    def __init__(
        self,
        mounts: Sequence[Mount],
        cache: FileCache,
        state: State,
        runtime: Runtime,
        max_bytes: int = MAX_METADATA_BYTES,
        hold: Hold | None = None,
        confirmed_ms: int = 0,
    ) -> None:
        self._mounts = mounts if len(mounts) == 1 else sorted(mounts, key=_depth, reverse=True)
        self._cache = cache
        self._state = state
        self._runtime = runtime
        self._max_bytes = max_bytes
        self._confirmed_ms = confirmed_ms
        self._hold = hold or Hold()

    def _find(self, location: str) -> tuple[ObjectStore, str]:
        """Returns the store of a location, and the key there. Raises `BadRequest` for an invalid location, for one in
        no store of the catalog, for one with a level '.' or '..', and for one with an empty level except in a file
        system."""
        return self._find_at(_parsed(location))

    def _find_at(self, wanted: Location) -> tuple[ObjectStore, str]:
        """Returns the store of a parsed location, and the key there: of the stores around it, the one with the deepest
        root. Raises `BadRequest` for a location in no store of the catalog, or a `collapsed` one, as with an empty
        level in an object store."""
        if wanted.collapsed:
            raise BadRequest(
                "The location of a file has an empty level (or a slash at the end), '.' or '..', and the catalog uses "
                "no such object: copy it to a location without them. Without empty levels, this one is "
                f"{wanted.uri}, another object"
            )
        for mount in self._mounts:
            if wanted.written_below(mount.root):
                return mount.store, "/".join(wanted.segments[len(mount.root.segments) :])
        raise BadRequest(
            f"Location {wanted.uri} is not in any store of this catalog: an operator can allow a location around "
            "it (--allowed-location, or ARCO_ALLOWED_LOCATIONS)"
        )

    def cached(self, location: str) -> bytes | None:
        """Returns the cached bytes of a metadata file, decompressed, None if it is not cached. Metadata files never
        change, but the store is not called, and the file may have been deleted."""
        known = self._cache.get(location)
        return None if known is None else known.body

    def forget(self, location: str) -> None:
        """Removes a metadata file from the cache, not from the store. Files that are no longer current are rarely read
        again."""
        self._cache.drop(location)

    async def read(self, location: str) -> bytes:
        """Reads a metadata file, decompressed, and puts it into the cache, or returns the cached one after the store
        confirmed it. Memory for it is taken from the request's account. Raises `NotFound`, `MetadataTooLarge`,
        `OutOfMemory`, `UnreadableMetadata` for gzip that can't be decompressed, `BadRequest` for a location that is
        invalid or in no store of this catalog, and `StoreError`."""
        return await self._read(location, *self._find(location))

    async def read_current(self, location: str) -> bytes:
        """Reads a metadata file that a pointer or an earlier metadata file names. Unlike `read` it accepts a location
        with an empty level, which earlier versions stored under the key without that level. Raises as `read` does."""
        return await self._read(location, *self._find_at(_as_written(location)))

    async def read_written(self, location: str) -> bytes:
        """Returns the current metadata file of a table or view, which the catalog wrote itself. It is never written
        again, and the catalog removes it only after the pointer has moved on, so the cached file is used without a
        request if the store confirmed it less than `confirmed_ms` ago. Otherwise, and on local files always, this reads
        as `read_current` does. Raises as `read` does."""
        known = self._cache.get(location)
        if (
            known is not None
            and _parsed(location).scheme != "file"
            and known.confirmed.is_younger(self._confirmed_ms, self._runtime)
        ):
            await self._hold.take(FILE_WEIGHT * len(known.body))
            return known.body
        return await self.read_current(location)

    async def _read(self, location: str, store: ObjectStore, key: str) -> bytes:
        """Reads a metadata file as `_read_bounded` does. Raises `MetadataTooLarge` and `UnreadableMetadata` without
        their tracebacks, which would keep the file in memory."""
        try:
            return await self._read_bounded(location, store, key)
        except (MetadataTooLarge, UnreadableMetadata) as error:
            # The frames of the traceback have the file, and would keep it as long as the refusal.
            raise error.with_traceback(None) from None

    async def _read_bounded(self, location: str, store: ObjectStore, key: str) -> bytes:
        """Returns a metadata file, decompressed: the cached one if the store confirms it, else as it is read and
        cached. Drops the cached one if the store has another or none. Takes memory for it from the request's account.
        Raises as `read` does."""
        known = self._cache.get(location)
        now = ClockReading.take(self._runtime)
        if known is not None:
            await self._hold.take(FILE_WEIGHT * len(known.body))
            found = await store.get(key, known.version)
            if isinstance(found, Unchanged):
                known.confirmed = now
                return known.body
            self._cache.drop(location)
            if isinstance(found, Missing):
                raise _no_such(location)
        taken = await self._hold.take(FIRST_BYTES)
        match await store.get_range(key, 0, min(FIRST_BYTES, self._max_bytes) + 1):
            case Found(raw, version) if len(raw) > FIRST_BYTES:
                taken.shrink(0)  # the size is not known yet, so the largest size is reserved
                taken = await self._hold.take(FILE_WEIGHT * self._max_bytes)
                return await self._rest(location, store, key, taken)
            case Found(raw, version):
                return await self._kept(location, raw, version, now, taken)
            case _:
                raise _no_such(location)

    async def exists(self, location: str) -> bool:
        """Whether a file exists now. Reads one byte of it from the store. Raises `BadRequest` for a location in no
        store of this catalog, with a level '.' or '..', with an empty level except in a file system, or that is no URI,
        and `StoreError`."""
        store, key = self._find(location)
        return isinstance(await store.get_range(key, 0, 1), Found)

    async def begin_of(self, location: str, length: int) -> Found | None:
        """Reads the first `length` bytes of a file as stored, with its version and when it was written; None if it does
        not exist. Raises as `exists` does."""
        store, key = self._find(location)
        found = await store.get_range(key, 0, length)
        return found if isinstance(found, Found) else None

    async def has_size(self, file: Location, size: int | None) -> bool | None:
        """Whether a file has exactly `size` bytes, or exists with any size if that is None; None if it does not exist.
        Its location is used as written, without decoding. Reads at most two bytes of it. Raises as `exists` does."""
        store, key = self._find_at(file)
        found = await store.get_range(key, max((size or 1) - 1, 0), 2)
        if not isinstance(found, Found):
            return None
        return size is None or len(found.body) == min(size, 1)

    async def read_range(self, location: str, start: int, length: int) -> Found:
        """Reads at most `length` bytes of a file from `start` on, as they are stored, which may be compressed, with the
        version of the file; fewer at its end. Not cached. Raises `NotFound`, and as `exists` does."""
        store, key = self._find(location)
        found = await store.get_range(key, start, length)
        if not isinstance(found, Found):
            raise _no_such(location)
        return found

    async def listed(self, folder: str, others: OtherObjects | None = None) -> AsyncGenerator[tuple[str, int], None]:
        """Yields the locations of the files in a folder and in all folders inside it, with their sizes. Objects whose
        names are not valid keys are left out, and added to `others` if that is given. Raises `BadRequest` as `exists`
        does, and `StoreError`."""
        place = Location.parse(folder)
        store, key = self._find_at(place)
        after: Cursor | None = None
        while True:
            page = await store.list(f"{key}/" if key else "", after)
            for each in page.entries:
                yield place.below(each.key.removeprefix(key)).uri, each.size
            if others is not None:
                for name in page.others:
                    others.add(f"{place.uri.rstrip('/')}/{name.removeprefix(f'{key}/')}")
            after = page.after
            if after is None:
                return

    async def _rest(self, location: str, store: ObjectStore, key: str, taken: Allocation) -> bytes:
        """Reads a metadata file again from its start, because it is larger than the first read, puts it into the cache,
        and returns the bytes, decompressed. `taken` is the memory that was taken for it. Raises as `read` does."""
        now = ClockReading.take(self._runtime)
        match await store.get_range(key, 0, self._max_bytes + 1):
            case Found(raw, version):
                return await self._kept(location, raw, version, now, taken)
            case _:
                raise _no_such(location)

    async def _kept(self, location: str, raw: bytes, version: Version, read: ClockReading, taken: Allocation) -> bytes:
        """Unpacks a metadata file that was read at the time `read`, checks the size and number of values, puts it into
        the cache, and returns the body. Takes the memory that it needs besides `taken`. Raises as `read` does."""
        if len(raw) > self._max_bytes:
            raise self._too_large(location)
        body = raw
        if raw.startswith(GZIP):
            body, taken = await self._unpacked(location, raw, taken)
        if taken.size < FILE_WEIGHT * len(body):
            taken.shrink(len(raw))
            await self._hold.take(FILE_WEIGHT * len(body) - taken.size)
        taken.shrink(FILE_WEIGHT * len(body))
        values = await _count(body)  # counted before parsing, because small values take 30 times their bytes in memory
        max_values = max_metadata_values(self._max_bytes)
        if values > max_values:
            raise MetadataTooLarge(
                f"Metadata file {location} has more than {max_values:,} values: expire snapshots with another tool, or "
                "raise --max-metadata (ARCO_MAX_METADATA), of which each 32 bytes allow one JSON value. Commas and "
                "brackets in strings count, too"
            )
        self._remember(location, CachedFile(version, body, values, read))
        return body

    def _remember(self, location: str, file: CachedFile) -> None:
        """Puts a metadata file into the process's cache, unless it is larger than the cache."""
        self._cache.put(location, file, file.size + len(location))

    async def form(
        self,
        location: str,
        body: bytes,
        find: Callable[[CachedFile], T | None],
        make: Callable[[], Awaitable[T]],
        keep: Callable[[CachedFile, T], CachedFile],
    ) -> T:
        """Returns another form of a metadata file with this body, such as the compressed one: what `find` returns for
        the cached file, else what `make` returns. `keep` adds that to the cached file, if it is still cached.
        Concurrent requests for one form of a cached file make it once."""
        known = self._known(location, body)
        made = None if known is None else find(known)
        if made is not None:
            return made
        lock = self._cache.locks.setdefault(location, asyncio.Lock())
        async with lock:
            known = self._known(location, body)
            made = None if known is None else find(known)
            if made is None:
                made = await make()
                known = self._known(location, body)
                if known is not None:
                    self._remember(location, keep(known, made))
        return made

    def _known(self, location: str, body: bytes) -> CachedFile | None:
        """Returns the cached metadata file at a location if its body is this very object `body`; None otherwise."""
        known = self._cache.get(location)
        return known if known is not None and known.body is body else None

    async def extract(self, location: str, use: Callable[[JsonObject], T], *, current: bool = False) -> T:
        """Returns what `use` returns for the document in a metadata file. The document is freed afterwards, so the
        result must have none of its arrays and objects except those of an outline. A worker thread parses a long
        document and calls `use`. Memory for it is taken from the account of the request if there is one, else from that
        of all background work for as long as the call lasts. With `current` the file is read as by `read_current`.
        Raises what `use` raises, `UnreadableMetadata`, and as `read` does."""
        if self._hold.counts:
            body = await (self.read_current(location) if current else self.read(location))
            return await self.parse(location, body, partial(_use_and_free, use, len(body)))
        memory = background_memory()
        with memory.hold() as hold:
            files = Files(self._mounts, self._cache, self._state, self._runtime, self._max_bytes, hold)
            body = await (files.read_current(location) if current else files.read(location))
            # Tasks that hold files would wait for memory that the others hold. So one document after the other is
            # parsed, also where there is not as much.
            async with memory.parsing:
                hold.take_now(await files.parsed_bytes(location, body))
                return await off_loop(len(body), lambda: _use_and_free(use, len(body), parse_metadata(body, location)))

    async def parse(self, location: str, body: bytes, use: Callable[[JsonObject], T]) -> T:
        """Returns what `use` returns for the document in these bytes of a metadata file. A worker thread parses a long
        document and calls `use`. Memory for the document is taken from the account of the request, until it ends.
        Raises what `use` raises, `UnreadableMetadata`, and `OutOfMemory`."""
        await self._hold.take(await self.parsed_bytes(location, body))
        return await off_loop(len(body), lambda: use(parse_metadata(body, location)))

    async def parsed_bytes(self, location: str, body: bytes) -> int:
        """Returns the memory in bytes that parsing and changing a metadata file needs, given its bytes. Counts the
        values unless the cached file has their number, and adds the number to the cached file if that has this very
        body."""
        known = self._cache.get(location)
        if known is None or known.body is not body:
            return parsed_bytes(len(body), await _count(body))
        if known.values is None:
            known = replace(known, values=await _count(body))
            self._remember(location, known)
        return parsed_bytes(len(body), known.values or 0)

    async def create(self, location: str, body: bytes, *, packed: bool) -> None:
        """Writes a new file whose name contains an id of the writer, and caches it; `packed` compresses it. Raises
        `KeyConflict` if there is another file under the name, `BadRequest` for a location in no store of this catalog,
        and `StoreError`, after which the file may exist."""
        store, key = self._find(location)
        raw = await asyncio.to_thread(_packed, body) if packed else body
        now = ClockReading.take(self._runtime)
        version = await self._state.create(key, raw, store)
        if version is not None:
            self._remember(location, CachedFile(version, body, None, now))

    async def remove(self, location: str) -> None:
        """Deletes a file, and drops it from the cache; returns also if there is none, or the outcome is unknown, so
        that the file may still exist. Raises `BadRequest` for one in a catalog's own state, and as `exists` does."""
        file = _parsed(location)
        store, key = self._find_at(file)
        refuse_reserved(file)
        await store.delete(key)
        self._cache.drop(location)

    async def remove_many(self, files: Sequence[Location]) -> Mapping[Location, Unknown | StoreError]:
        """Deletes at most 1,000 files, whose locations are used as written, without decoding. Returns the files that
        may be left, each with the reason: `InvalidKey` for a name that no object of the store can have. The cache is
        not changed. Raises `BadRequest`, before any is deleted, for a file in a catalog's own state, in no store of
        this catalog, or with a `collapsed` location, and `StoreError` if the call to a store fails as a whole: others
        may have deleted files by then."""
        stores: dict[int, tuple[ObjectStore, dict[str, Location]]] = {}
        for file in files:
            refuse_reserved(file)
            store, key = self._find_at(file)
            stores.setdefault(id(store), (store, {}))[1][key] = file
        left: dict[Location, Unknown | StoreError] = {}
        for store, keys in stores.values():
            left |= {keys[key]: reason for key, reason in (await _delete_valid(store, [*keys])).items()}
        return left

    async def _unpacked(self, location: str, raw: bytes, taken: Allocation) -> tuple[bytes, Allocation]:
        """Returns the unpacked gzip file and the memory taken for it in place of `taken`. The first try takes memory
        for the size in the gzip trailer, which may be wrong; the second for the largest size. Raises `MetadataTooLarge`
        if the file is larger than that, `UnreadableMetadata` for gzip that can't be decompressed, and `OutOfMemory`."""
        claimed = min(self._max_bytes, max(len(raw), int.from_bytes(raw[-4:], "little")))
        try:
            for limit in (claimed, self._max_bytes):
                if FILE_WEIGHT * limit > taken.size:
                    taken.shrink(0)
                    taken = await self._hold.take(FILE_WEIGHT * limit)
                body = await asyncio.to_thread(unpack, raw, limit)
                if body is not None:
                    return body, taken
        except (zlib.error, EOFError) as error:
            raise UnreadableMetadata(
                f"{location}, which a table, view or request names, is not a metadata file: its gzip data can't be "
                f"unpacked: {error}"
            ) from None
        raise self._too_large(location)

    def _too_large(self, location: str) -> MetadataTooLarge:
        """Returns the error for a metadata file with more than the maximum of bytes, unpacked."""
        return MetadataTooLarge(
            f"Metadata file {location} is larger than {self._max_bytes:,} bytes, unpacked: expire snapshots with "
            "another tool, or raise --max-metadata (ARCO_MAX_METADATA)"
        )


async def _delete_valid(store: ObjectStore, keys: Sequence[str]) -> Mapping[str, Unknown | StoreError]:
    """Deletes objects, and returns the keys that may be left, with the reasons: `InvalidKey` for an invalid one. A
    store rejects a call if one key is invalid, so the keys are halved until the invalid ones are found."""
    try:
        return (await store.delete_many(keys)).left
    except InvalidKey as error:
        if len(keys) == 1:
            return {keys[0]: error}
    middle = len(keys) // 2
    return {**await _delete_valid(store, keys[:middle]), **await _delete_valid(store, keys[middle:])}


def _use_and_free(use: Callable[[JsonObject], T], size: int, document: JsonObject) -> T:
    """Returns the result of `use` for the document of a metadata file of `size` bytes, and frees the long parts of a
    large one, also if `use` raises."""
    try:
        return use(document)
    finally:
        let_long_parts_go(document, size)


async def _count(body: bytes) -> int:
    """Returns an upper bound of the number of JSON values in the body of a metadata file; 0 for a body that is too
    small to need much memory."""
    if len(body) <= VALUES_COUNTED_FROM_BYTES:
        return 0
    return await off_loop(len(body) // COUNTING_SPEED, lambda: count_values(body))


def _depth(mount: Mount) -> int:
    """Returns the number of levels of a store's root."""
    return len(mount.root.segments)


def unpack(raw: bytes, limit: int) -> bytes | None:
    """Returns the unpacked bytes of a gzip file, of one or several members and zero bytes after them; None if they are
    more than `limit`, as soon as one byte more was unpacked. Raises `zlib.error` for corrupt data or more than
    `MAX_MEMBERS` members, and `EOFError` for a truncated file."""
    parts: list[bytes] = []
    room, place, view = limit, 0, memoryview(raw)
    for _ in range(MAX_MEMBERS):
        member = zlib.decompressobj(wbits=31)
        while not member.eof:
            # Input and output are small, since zlib copies what it has unpacked, and input that it has not used, under
            # the interpreter lock: 64 MB in one call would make the event loop wait for a tenth of a second.
            part: bytes | memoryview = member.unconsumed_tail
            if not part:
                part = view[place : place + PACKED_PART_BYTES]
                place += len(part)
            parts.append(member.decompress(part, min(room + 1, UNPACKED_PART_BYTES)))
            room -= len(parts[-1])
            if room < 0:
                return None
            if not (part or parts[-1] or member.eof):
                raise EOFError("the gzip stream is truncated")
        place = _end_of_padding(raw, place - len(member.unused_data))
        if place == len(raw):
            return b"".join(parts)
    raise zlib.error(f"the file has more than {MAX_MEMBERS:,} gzip members, and a writer makes one")


def _end_of_padding(raw: bytes, place: int) -> int:
    """Returns the position after the zero bytes with which a gzip file may be padded."""
    padding = _PADDING.match(raw, place)
    return place if padding is None else padding.end()


def _packed(body: bytes) -> bytes:
    """Returns a metadata file compressed by gzip. Equal files give equal bytes."""
    from gzip import compress  # deferred: few tables have compressed metadata files

    return compress(body, 6, mtime=0)


def _no_such(location: str) -> NotFound:
    """Returns, for the caller to raise, the error for a metadata file, or another file of a table, that is missing in
    the store."""
    return NotFound(f"Failed to open input stream for file: {location}")


@lru_cache(4_096)  # keys of bounded length: nothing longer than a location may be is parsed
def _parsed(location: str) -> Location:
    """Reads the location of a file. In an object store one with a slash at the end counts as `collapsed`, because it
    names another object than the location without the slash."""
    parsed = Location.parse_stored(location)
    return replace(parsed, collapsed=True) if location.endswith("/") and parsed.scheme != "file" else parsed


@lru_cache(4_096)
def _as_written(location: str) -> Location:
    """Reads the location of a file as `_parsed` does, but with an empty level as it is written: not `collapsed`."""
    return replace(_parsed(location), collapsed=False)
