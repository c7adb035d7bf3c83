"""The directories of tables' files, recorded by one purge so that the next need not read their manifests
(docs/design/purge.md#rule-27)."""

import re
from collections.abc import Collection, Mapping

from arco_catalog.protocol.concurrency import batches, gather
from arco_catalog.state.file_directories import DirectorySet, FileDirectories, read_shard, shard_of, write_shard
from arco_catalog.state.locations import Location
from arco_catalog.tasks.execution import Execution

SHARDS_AT_ONCE = 16
"""Shards that are read, or written, concurrently."""
WRITE_AFTER_MS = 4_000
WRITE_AFTER_TABLES = 1_000
"""The time, and the number of tables, after which entries are written: a worker may be killed at any time."""
MAX_DIRECTORIES_IN_MEMORY = 4_096
"""Directories of a table's files that are compared with the locations once, not for each file."""
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._=-]*")
"""A file name that cannot change its directory, however it is decoded."""


class ComparedFiles:
    """Compares the directories of one table's files with the places of a purge, which are the locations of the table to
    purge, and records directories outside of the table's own locations. Places and locations are normal forms."""

    def __init__(self, places: Collection[str], locations: Collection[str]) -> None:
        self._places = places
        self._locations = frozenset(locations)
        self._location_directories = frozenset(each.rstrip("/") for each in locations)
        self._outside = DirectorySet()
        self._compared: set[str] = set()

    def add(self, file: str) -> bool:
        """Compares the location of a file with the places of the purge. Returns whether the file is inside one of them;
        if not, remembers the file's directory, unless that is at the table's own locations. A malformed location is in
        none, and is not remembered."""
        directory, _, name = file.rpartition("/")
        plain = _PLAIN_NAME.fullmatch(name) is not None
        if plain and directory in self._compared:
            return False
        location = Location.of_file(file)
        if location is None:
            return False
        around = [*location.around()]
        if any(each in self._places for each in around):
            return True
        if around and self._location_directories.isdisjoint(around):
            self._outside.add(around[0])
        if plain and len(self._compared) < MAX_DIRECTORIES_IN_MEMORY:
            self._compared.add(directory)
        return False

    def add_directories(self, read: FileDirectories) -> None:
        """Adds directories outside the places, of files that a previous lease compared."""
        self._outside.add_all(read)

    def entry(self, version: str | None) -> FileDirectories | None:
        """Returns the record of the table's directories for this version of its pointer, where too many are replaced by
        the ones around them (`DirectorySet.entry`); None without a version, or if they are in too many buckets."""
        return None if version is None else self._outside.entry(version, self._locations)


class KnownDirectories:
    """Reads the recorded directories of other tables, by which a purge need not read their files, and records new ones.
    It is for one round of a purge of these places."""

    def __init__(self, execution: Execution, places: Collection[str]) -> None:
        self._execution = execution
        self._places = places
        self._entities: Collection[str] = frozenset()
        self._added: dict[str, FileDirectories] = {}
        self._incomplete: dict[str, FileDirectories] = {}
        self._written_ms = execution.runtime.boot_ms()

    async def find_unchanged(
        self, tables: Mapping[str, Collection[str]], versions: Mapping[str, str]
    ) -> Collection[str]:
        """Returns the tables, of these with their locations by entity, that have no file inside the places: `versions`
        has the present versions of pointers, and a record of the table for that version proves it. Tables of which some
        files could not be read are not returned; `incomplete` has their records. Remembers the entities in `versions`
        as the ones that exist, for `write`. Raises `LeaseLost`, and `StoreError`."""
        self._entities = versions.keys()
        unchanged: set[str] = set()

        async def read(shard: int) -> None:
            entries = await read_shard(self._execution.session().state, shard)
            for entity, entry in entries.items():
                if entity in tables and self._is_elsewhere(entry, tables[entity], versions.get(entity)):
                    if entry.unread:
                        self._incomplete[entity] = entry
                    else:
                        unchanged.add(entity)

        for shards in batches(sorted({shard_of(entity) for entity in tables}), SHARDS_AT_ONCE):
            await gather(*(read(shard) for shard in shards))
        return unchanged

    def incomplete(self, entity: str) -> FileDirectories | None:
        """Returns the record of a table that has not changed since, and of which some files could not be read; None for
        any other table. The files that were read are not inside the places."""
        return self._incomplete.get(entity)

    def add(self, entity: str, entry: FileDirectories) -> None:
        """Adds the record of a table that was read, to be written later."""
        self._added[entity] = entry

    async def write_if_due(self) -> None:
        """Stores the records that were added, as `write` does, if there are many or the last write was long ago. Raises
        `LeaseLost` if the lease of the purge is over."""
        passed_ms = self._execution.runtime.boot_ms() - self._written_ms
        if len(self._added) >= WRITE_AFTER_TABLES or passed_ms >= WRITE_AFTER_MS:
            await self.write()

    async def write(self) -> None:
        """Stores the records that were added, and removes from the same shards the records of tables that had no
        pointer in `find_unchanged`. A failure of the store is only logged, and later purges read these tables again.
        Raises `LeaseLost` if the lease of the purge is over."""
        shards: dict[int, dict[str, FileDirectories]] = {}
        for entity, entry in self._added.items():
            shards.setdefault(shard_of(entity), {})[entity] = entry
        self._added = {}
        self._written_ms = self._execution.runtime.boot_ms()
        for batch in batches(shards.items(), SHARDS_AT_ONCE):
            await gather(*(write_shard(self._execution.session().state, *each, self._entities) for each in batch))

    def _is_elsewhere(self, entry: FileDirectories, locations: Collection[str], version: str | None) -> bool:
        """Whether a record proves that a table has no file inside the places: it is of this version of the pointer, and
        has no directory there. The record leaves out files at the table's own locations, which the begin of a purge
        compares by itself: so these locations must still be the table's."""
        return entry.version == version and {*entry.locations} <= {*locations} and not entry.may_reach(self._places)
