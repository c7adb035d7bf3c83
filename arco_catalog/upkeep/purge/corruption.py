"""Remembers files of tables that can't be read or are missing, with their versions: as long as a file has the same
version, or is missing, a later purge need not read it (docs/design/purge.md#rule-27)."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.state.file_directories import MAX_UNREAD_FILES, NO_KEY, UnreadFile
from arco_catalog.tasks.execution import Sessions, TaskFailed
from storage_backends import InvalidKey


class CorruptFile(TaskFailed):
    """A file of a table can't be read: it exists and is corrupt, or no store of this catalog can have it."""


@dataclass(frozen=True, slots=True)
class Corruption:
    """A file of a table that can't be read, with the reason. `read` reads the file again, and raises `CorruptFile` if
    it still can't be read."""

    location: str
    reason: str
    read: Callable[[], Awaitable[object]]


async def find_versions(
    sessions: Sessions, corrupt: Sequence[Corruption], missing: Collection[str]
) -> tuple[UnreadFile, ...] | None:
    """Returns the files that can't be read, with their present versions, and the missing files, for the record of a
    table; None if a file has changed meanwhile, or if they are more than a record takes. Raises `LeaseLost`, and
    `StoreError`."""
    if len(corrupt) + len(missing) > MAX_UNREAD_FILES:
        return None
    found = [UnreadFile(location, None) for location in missing]
    for file in corrupt:
        version = await _corrupt_version(sessions, file)
        if version is None:
            return None
        found.append(UnreadFile(file.location, version))
    return tuple(found)


async def are_unchanged(sessions: Sessions, unread: Sequence[UnreadFile]) -> bool:
    """Whether each of these unread files still has the version that was recorded, or is still missing. Raises
    `LeaseLost`, and `StoreError`."""
    for file in unread:
        if await _version_of(sessions, file.location) != file.version:
            return False
    return True


async def _corrupt_version(sessions: Sessions, file: Corruption) -> str | None:
    """Returns the version at which a file can't be read; None if it can be read now, or has another version after that
    read. The file is read once more between two calls for the version: another writer may have restored it after the
    first read."""
    version = await _version_of(sessions, file.location)
    try:
        await file.read()
    except CorruptFile:
        return version if await _version_of(sessions, file.location) == version else None
    return None


async def _version_of(sessions: Sessions, location: str) -> str | None:
    """Returns the store's version of the file at a location; None if the file is missing, and `NO_KEY` if no store of
    this catalog can have it."""
    try:
        found = await sessions.session().files.begin_of(location, 1)
    except (BadRequest, InvalidKey):
        return NO_KEY
    return None if found is None else str(found.version)
