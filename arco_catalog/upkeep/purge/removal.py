"""Deletes files of one dropped table, and no others (docs/design/purge.md#what-is-deleted)."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from arco_catalog.protocol.concurrency import batches
from arco_catalog.state.deletion import delete_for_certain
from arco_catalog.state.locations import Location
from arco_catalog.state.purge_progress import Progress
from arco_catalog.tasks.execution import Sessions
from arco_catalog.upkeep.purge.reach import ReachedFile
from storage_backends import MAX_DELETED, InvalidKey, StoreError, Unknown

AT_ONCE = MAX_DELETED
"""Files in one call to delete."""
MAX_REMEMBERED_FILES = 1_000_000
"""Deleted files that a removal remembers. Further files may be deleted, and counted, twice."""
MAX_REMEMBERED_FOLDERS = 4_096
"""Folders for which a removal remembers whether their files are the entity's own."""
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._=-]*")
"""A file name that cannot change the folder it is in, however it is decoded, nor be part of a catalog's state."""


class Removal:
    """Deletes files inside the locations of one dropped table, which are given in normal form, and counts the others.
    `allows` may exclude directories. Each request to delete uses a fresh session of `sessions`."""

    def __init__(
        self,
        sessions: Sessions,
        locations: Sequence[str],
        progress: Progress,
        allows: Callable[[Location], bool] = lambda _: True,
    ) -> None:
        self._sessions = sessions
        self._folders = frozenset(location.rstrip("/") for location in locations)
        self._allows = allows
        self._parents: dict[str, Location | None] = {}
        self._deleted: set[int] = set()
        self.progress = progress

    async def delete(self, files: Iterable[ReachedFile]) -> None:
        """Deletes the files whose locations `own` returns, and counts them in `progress`. Other files, and files with
        names that are no keys of the store, are counted as `outside`; files whose location has `//`, `.` or `..` are
        counted as `unaddressable`, and not deleted. A file of the table that this object has met before is passed over,
        unless it was not one of the first `MAX_REMEMBERED_FILES`; files outside of the locations count every time.
        Raises `LeaseLost`, and `StoreError`."""
        await self._all(files)

    async def _all(self, files: Iterable[ReachedFile]) -> None:
        """Deletes the files that are the table's own, have a key in this catalog, and were not deleted before. Counts
        in the progress these, the ones without a key, and as outside the ones that are outside of the table's locations
        or have names that are no keys of the store."""
        for batch in batches(files, AT_ONCE):
            own: dict[Location, int] = {}
            outside, unaddressable = 0, list[str]()
            for file in batch:
                location = self.own(file.location)
                if location is None:
                    outside += 1
                elif self._is_new(location):
                    if location.collapsed:
                        unaddressable.append(file.location)
                    else:
                        own[location] = file.size
            if own:
                invalid: set[Location] = set()
                await delete_for_certain([*own], partial(self._delete, invalid), self._pause)
                outside += len(invalid)
                own = {location: size for location, size in own.items() if location not in invalid}
            now = self.progress.with_unaddressable(len(unaddressable), unaddressable)
            self.progress = replace(
                now,
                files=now.files + len(own),
                bytes=now.bytes + sum(own.values()),
                outside=now.outside + outside,
            )

    def own(self, text: str) -> Location | None:
        """Returns the location of a file; None if it is outside the entity's own locations or in a catalog's own state,
        if `text` is malformed, or if `allows` excludes it.
        In an object store, one with `//`, `.` or `..` is returned too: `delete` counts such a file, and does not delete
        it."""
        folder, _, name = text.rpartition("/")
        if _PLAIN_NAME.fullmatch(name) is None:
            return self._own(text)
        if folder not in self._parents:
            if len(self._parents) == MAX_REMEMBERED_FOLDERS:
                self._parents.clear()
            file = self._own(f"{folder}/name")
            self._parents[folder] = None if file is None else replace(file, segments=file.segments[:-1])
        parent = self._parents[folder]
        return None if parent is None else parent.below(name)

    def _own(self, text: str) -> Location | None:
        """Returns the location of a file in the entity's folders; None for any other file, for one of a catalog's own
        state, and for one that `allows` excludes."""
        location = Location.of_file(text)
        if location is None or location.reserved or not any(each in self._folders for each in location.around()):
            return None
        return location if self._allows(location) else None

    def _is_new(self, location: Location) -> bool:
        """Notes a location, and returns whether it was not noted before. Beyond `MAX_REMEMBERED_FILES` it notes none,
        and all others are new."""
        digest = hash(location)
        if digest in self._deleted:
            return False
        if len(self._deleted) < MAX_REMEMBERED_FILES:
            self._deleted.add(digest)
        return True

    async def _delete(
        self, invalid: set[Location], files: Sequence[Location]
    ) -> Mapping[Location, Unknown | StoreError]:
        """Deletes these files by one call, and the checksum files beside local files by another, both within the lease
        (docs/design/purge.md#rule-5). Files with names that are no keys of the store are added to `invalid`: no such
        object exists, and no retry would change that. Returns the files that are not known to be deleted, each with the
        reason."""
        left = await self._sessions.session().files.remove_many(files)
        invalid.update(file for file, reason in left.items() if isinstance(reason, InvalidKey))
        beside = {checksum_beside(file): file for file in files if file.scheme == "file"}
        if beside:
            stay = await self._sessions.session().files.remove_many([*beside])
            left = {**left, **{beside[checksum]: reason for checksum, reason in stay.items()}}
        return {file: reason for file, reason in left.items() if not isinstance(reason, InvalidKey)}

    async def _pause(self) -> None:
        """Waits before another request to delete is sent."""
        await self._sessions.session().state.pause()


def checksum_beside(file: Location) -> Location:
    """Returns the location of the checksum file that Hadoop's local file system writes beside a file, and requires when
    it reads the file."""
    return replace(file, segments=(*file.segments[:-1], f".{file.segments[-1]}.crc"))
