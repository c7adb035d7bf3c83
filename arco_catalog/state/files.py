"""Metadata files: found by location, read through a cache that is always revalidated, written once.

Locations reach beyond the catalog's own folder, so each allowed prefix has its own store.
"""

import asyncio
import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from arco_catalog.iceberg.errors import BadRequest, NotFound
from arco_catalog.state.access import State
from arco_catalog.state.cache import ByteCache
from arco_catalog.state.locations import Location, refuse_reserved
from storage_backends import Found, ObjectStore, Unchanged, Version


@dataclass(frozen=True, slots=True)
class Space:
    """A store, and the location of its root."""

    root: Location
    store: ObjectStore


@dataclass(frozen=True, slots=True)
class CachedFile:
    """A file's bytes, decompressed, at a version."""

    version: Version
    body: bytes


FileCache = ByteCache[str, CachedFile]


class Files:
    """The files of one catalog as one request reaches them."""

    def __init__(self, spaces: Sequence[Space], cache: FileCache, state: State) -> None:
        self._spaces = sorted(spaces, key=lambda space: len(space.root.segments), reverse=True)
        self._cache = cache
        self._state = state

    def _find(self, location: str) -> tuple[ObjectStore, str]:
        wanted = _parsed(location)
        for space in self._spaces:
            if wanted.written_below(space.root):
                return space.store, "/".join(wanted.segments[len(space.root.segments) :])
        raise BadRequest(f"Location {location} is not in any store of this catalog")

    def cached(self, location: str) -> bytes | None:
        """The file as this process saw it last. Metadata files never change, but they can go."""
        known = self._cache.get(location)
        return None if known is None else known.body

    def forget(self, location: str) -> None:
        """Keeps a file in memory no longer: what is not current is hardly asked for again."""
        self._cache.drop(location)

    async def read(self, location: str) -> bytes:
        """The file as it is now, decompressed. Raises `NotFound`."""
        store, key = self._find(location)
        known = self._cache.get(location)
        match await store.get(key, None if known is None else known.version):
            case Found(raw, version):
                body = await self._unpacked(location, raw)
                self._cache.put(location, CachedFile(version, body), len(body))
                return body
            case Unchanged() if known is not None:
                return known.body
            case _:
                self._cache.drop(location)
                raise NotFound(f"Failed to open input stream for file: {location}")

    async def exists(self, location: str) -> bool:
        """Whether a file is there now; no more of it is read than that takes. Raises `BadRequest` for a place that is
        in no store of this catalog."""
        store, key = self._find(location)
        return isinstance(await store.get_range(key, 0, 1), Found)

    async def create(self, location: str, body: bytes, *, packed: bool) -> None:
        """Writes a new file whose name holds an id of its writer's. Raises `Occupied`."""
        store, key = self._find(location)
        raw = await asyncio.to_thread(gzip.compress, body, 6, mtime=0) if packed else body
        version = await self._state.create(key, raw, store)
        if version is not None:
            self._cache.put(location, CachedFile(version, body), len(body))

    async def remove(self, location: str) -> None:
        """Deletes a file that nothing refers to any more. Raises `BadRequest` for one in a catalog's own state, whoever
        asks."""
        store, key = self._find(location)
        refuse_reserved(_parsed(location))
        await store.delete(key)
        self._cache.drop(location)

    @staticmethod
    async def _unpacked(location: str, raw: bytes) -> bytes:
        if not raw.startswith(b"\x1f\x8b"):
            return raw
        try:
            return await asyncio.to_thread(gzip.decompress, raw)
        except (OSError, EOFError) as error:
            raise NotFound(f"Failed to read gzip file: {location}") from error


@lru_cache(4_096)
def _parsed(location: str) -> Location:
    """A location, of which the same few are asked for again and again."""
    return Location.parse(location)
