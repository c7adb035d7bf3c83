"""The directories outside a table's locations that have files of the table, saved for each table with the version of
its pointer. By them a purge of another table finds whether this one has files at the purged locations, without reading
its manifests if its pointer has not moved since (docs/design/purge.md#rule-27).

A version of a pointer never returns, so an entry stays true. Losing one costs reading the table again: the objects with
entries are written at best effort, and one that can't be read counts as empty."""

import hashlib
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import aclosing
from functools import partial

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.iceberg.json import JsonObject, MalformedJson, dumps, loads
from arco_catalog.state.access import State
from arco_catalog.state.compare_and_swap import update_until_applied
from arco_catalog.state.fields import mapping, objects, optional_text, parse_record, sequence, text, texts
from arco_catalog.state.listing import list_pages
from storage_backends import Found, StoreError
from storage_backends.lazy_dataclass import dataclass

_LOG = logging.getLogger(__name__)

SHARDS = 64
"""How many objects hold the entries."""
FORMAT = 1
WHOLE, INCOMPLETE = "tables", "incomplete"
"""The fields of a shard: tables all of whose files were read, and those with unread files. Without the second field,
as in an old version, these tables are read."""
MAX_DIRECTORIES = 64
"""The limit of directories in an entry. If there are more, the deepest are replaced by the ones around them."""
MAX_UNREAD_FILES = 16
"""The limit of unread files in an entry. A table with more has no entry."""
NO_KEY = ""
"""What stands in place of a version if the catalog has no key for the file."""
MAX_DIRECTORIES_AT_ONCE = 4_096
"""The limit of directories in memory, above which the deepest are replaced."""
TRIES = 3
"""After so many writes of a shard that failed because other purges did, its changes are dropped."""
_INVALID = (
    "the record of tables' directories, which is replaced at the next change of it, or a purge's checkpoint is invalid"
)
"""The beginning of an error about the directories of one table."""


@dataclass(frozen=True, slots=True)
class UnreadFile:
    """A metadata file, manifest list or manifest of a table that could not be read. `version` is the version at which
    it could not be read, `NO_KEY` if the catalog has no key for it, and None if it was missing."""

    location: str
    version: str | None

    @classmethod
    def parse(cls, entry: JsonObject) -> "UnreadFile":
        """Reads a file that could not be read, and its version, from their JSON. Raises `InternalError`."""
        return cls(text(entry, "location"), optional_text(entry, "version"))

    def to_json(self) -> JsonObject:
        """Returns the JSON of a file that could not be read, and of its version."""
        version: JsonObject = {} if self.version is None else {"version": self.version}
        return {"location": self.location, **version}


@dataclass(frozen=True, slots=True)
class FileDirectories:
    """The directories of a table's files, by their normal forms, except in the `locations` of the table.
    `version` is that of its pointer. Where they are `widened`, files may be anywhere below the directories, not
    directly in them alone. Files that only the `unread` files name are left out."""

    version: str
    locations: tuple[str, ...]
    directories: tuple[str, ...]
    widened: bool = False
    unread: tuple[UnreadFile, ...] = ()

    @classmethod
    def parse(cls, entry: JsonObject) -> "FileDirectories":
        """Reads the directories of one table's files from their JSON. Raises `InternalError`."""
        widened = entry.get("widened", False)
        if not isinstance(widened, bool):
            raise InternalError(f"{_INVALID}: the field 'widened' is not a boolean")
        unread = tuple(UnreadFile.parse(each) for each in objects(entry, "unread"))
        return cls(text(entry, "pointer"), _texts(entry, "locations"), _texts(entry, "directories"), widened, unread)

    def may_reach(self, places: Collection[str]) -> bool:
        """Whether one of these directories of a table's files may have a file anywhere in one of `places`, given by
        their normal forms. The table's own locations, and files that only unread files name, are not considered."""
        return any(
            _is_inside(directory, place) or (self.widened and _is_inside(place, directory))
            for directory in self.directories
            for place in places
        )

    def to_json(self) -> JsonObject:
        """Returns the JSON of the directories of one table's files, without empty optional fields."""
        widened: JsonObject = {"widened": True} if self.widened else {}
        unread: JsonObject = {"unread": [each.to_json() for each in self.unread]} if self.unread else {}
        directories: JsonObject = {"locations": [*self.locations], "directories": [*self.directories]}
        return {"pointer": self.version, **directories, **widened, **unread}


class DirectorySet:
    """A set of directories of one table's files, given by normal forms. If `add` finds more than
    `MAX_DIRECTORIES_AT_ONCE`, or `entry` more than `MAX_DIRECTORIES`, the deepest are replaced by the ones around them
    until at most `MAX_DIRECTORIES` are left, or only buckets."""

    def __init__(self) -> None:
        self._directories: set[str] = set()
        self._widened = False

    def add(self, directory: str) -> None:
        """Adds a directory, given by its normal form, to the set. If the set has more than `MAX_DIRECTORIES_AT_ONCE`
        then, the deepest are replaced by the ones around them until at most `MAX_DIRECTORIES` are left, or
        only buckets."""
        self._directories.add(directory)
        if len(self._directories) > MAX_DIRECTORIES_AT_ONCE:
            self._widen()

    def add_all(self, entry: FileDirectories) -> None:
        """Adds the directories of an entry to the set, also over `MAX_DIRECTORIES_AT_ONCE`. The set's own entry is
        widened if that one is."""
        self._directories.update(entry.directories)
        self._widened = self._widened or entry.widened

    def entry(self, version: str, locations: Iterable[str]) -> FileDirectories | None:
        """Returns the entry with the directories that were added, which records also the version of a pointer and the
        locations of its table. Of more than `MAX_DIRECTORIES` the deepest are replaced by the ones around them, also in
        the set. None if they are in more buckets than that."""
        self._widen()
        if len(self._directories) > MAX_DIRECTORIES:
            return None
        return FileDirectories(version, tuple(sorted(locations)), tuple(sorted(self._directories)), self._widened)

    def _widen(self) -> None:
        """Replaces the deepest directories by the ones around them while there are more than `MAX_DIRECTORIES` and not
        only buckets are left. If it replaces any, marks the set as widened."""
        while len(self._directories) > MAX_DIRECTORIES and (deepest := max(map(_depth, self._directories))):
            self._directories = {_around(each) if _depth(each) == deepest else each for each in self._directories}
            self._widened = True


async def read_shard(state: State, shard: int) -> Mapping[str, FileDirectories]:
    """Reads one of the objects in which purges store the directories of tables' files: the directories by entity id. If
    it does not exist it is empty, and so is a corrupt one or one of a later version, which is logged. Raises
    `StoreError`."""
    key = state.paths.file_directories(shard)
    found = await state.read(key)
    try:
        return parse_shard(key, found)
    except InternalError as error:
        _LOG.warning(
            "the record %s of tables' directories is not used, so purges read the manifests of the tables in it: %s",
            key,
            error.message,
        )
        return {}


async def write_shard(
    state: State, shard: int, entries: Mapping[str, FileDirectories], entities: Collection[str]
) -> None:
    """Adds the directories of tables' files in `entries` to one of the objects that have them, and removes the
    directories of all entities that are not in `entities`, also of new ones. A failure is only logged, since it only
    costs rereading the tables."""

    def merge(stored: Mapping[str, FileDirectories]) -> Mapping[str, FileDirectories]:
        return {entity: entry for entity, entry in {**stored, **entries}.items() if entity in entities}

    await _update(state, shard, merge)


async def read_entities(state: State) -> Collection[str]:
    """Reads the ids of all entities for which some shard stores the directories of their files; a corrupt shard, or one
    of a later version, counts as empty. Raises `StoreError`."""
    found: set[str] = set()
    async with aclosing(list_pages(state, state.paths.all_file_directories)) as pages:
        async for page in pages:
            stored = {listed.key for listed in page.entries}
            for shard in range(SHARDS):
                if state.paths.file_directories(shard) in stored:
                    found |= (await read_shard(state, shard)).keys()
    return found


async def forget_entities(state: State, entities: Collection[str]) -> None:
    """Removes the stored directories of the files of entities that no longer exist. A failure is logged: the next
    collection removes them."""

    def remove(stored: Mapping[str, FileDirectories]) -> Mapping[str, FileDirectories]:
        return {entity: entry for entity, entry in stored.items() if entity not in entities}

    for shard in sorted({shard_of(entity) for entity in entities}):
        await _update(state, shard, remove)


async def _update(
    state: State, shard: int, change: Callable[[Mapping[str, FileDirectories]], Mapping[str, FileDirectories]]
) -> None:
    """Stores the result of `change` for the directories of tables' files in one object, unless that is equal. A failure
    is only logged."""
    key = state.paths.file_directories(shard)

    def changed(stored: Mapping[str, FileDirectories]) -> Mapping[str, FileDirectories] | None:
        entries = change(stored)
        return None if entries == stored else entries

    try:
        await update_until_applied(state, key, partial(_replaceable, key), changed, _encode, tries=TRIES)
    except (StoreError, InternalError) as error:
        _LOG.info(
            "the directories that have tables' files outside the tables' locations were not changed in %s: purges read "
            "the tables that have no entry, and the next collection removes entries of tables that are gone: %s",
            key,
            error,
        )


def shard_of(entity: str) -> int:
    """Returns the number, below `SHARDS`, of the object that stores the directories of an entity's files."""
    return hashlib.sha256(entity.encode()).digest()[0] % SHARDS


def parse_shard(key: str, found: Found | None) -> Mapping[str, FileDirectories]:
    """Reads the directories of tables' files from a stored shard, by entity id; empty if the shard does not exist.
    Raises `InternalError` if it is corrupt, or was written by a later version."""
    if found is None:
        return {}
    document = parse_record(found.body, key, newest=FORMAT)
    entries = {**mapping(document, INCOMPLETE), **mapping(document, WHOLE)}
    parsed = {entity: FileDirectories.parse(entry) for entity, entry in entries.items() if isinstance(entry, dict)}
    if any(not parsed[entity].unread for entity in mapping(document, INCOMPLETE) if entity in parsed):
        raise InternalError(
            f"The record {key} is invalid, and is replaced at the next change of it: a table in 'incomplete' names "
            "no file that could not be read"
        )
    return parsed


def _replaceable(key: str, found: Found | None) -> Mapping[str, FileDirectories]:
    """Reads the directories of tables' files from a shard that is about to be written again; empty if the shard does
    not exist or is corrupt. Raises `InternalError` for a shard of a later version, which is not replaced."""
    if found is None:
        return {}
    try:
        return parse_shard(key, found)
    except InternalError:
        if _is_later(found):
            raise
        return {}


def _is_later(found: Found) -> bool:
    """Whether a later version of the program wrote the object of directories of tables' files."""
    try:
        document = loads(found.body)
    except MalformedJson:
        return False
    version = document.get("version") if isinstance(document, dict) else None
    return isinstance(version, int) and version > FORMAT


def _encode(entries: Mapping[str, FileDirectories]) -> bytes:
    """Returns the stored form of the directories of tables' files, given by entity id."""
    whole: JsonObject = {entity: entry.to_json() for entity, entry in entries.items() if not entry.unread}
    rest: JsonObject = {entity: entry.to_json() for entity, entry in entries.items() if entry.unread}
    return dumps({"version": FORMAT, WHOLE: whole, **({INCOMPLETE: rest} if rest else {})}, sort_keys=True)


def _texts(entry: JsonObject, name: str) -> tuple[str, ...]:
    """Returns the array of strings in a required field of a document. Raises `InternalError` if the field is missing,
    is no array, or has another item."""
    values = texts(entry, name)
    if not isinstance(entry.get(name), list) or len(values) != len(sequence(entry, name)):
        raise InternalError(f"{_INVALID}: the field {name!r} is missing or not an array of strings")
    return values


def _depth(directory: str) -> int:
    """Returns the number of levels by which a directory is below its bucket."""
    path = directory.partition("://")[2].partition("/")[2].strip("/")
    return path.count("/") + 1 if path else 0


def _around(directory: str) -> str:
    """Returns the directory that contains this one, which must not be a bucket."""
    bucket, _, path = directory.rstrip("/").partition("://")
    authority, _, path = path.partition("/")
    return f"{bucket}://{authority}/{path.rpartition('/')[0]}"


def _is_inside(inner: str, outer: str) -> bool:
    """Whether a directory is another one or inside it."""
    return f"{inner.rstrip('/')}/".startswith(f"{outer.rstrip('/')}/")
