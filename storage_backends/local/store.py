"""A folder as a store: plain files, where engines read them, and conditional writes that hold across processes."""

import asyncio
import errno
import itertools
import os
import secrets
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from threading import Event
from typing import TypeVar

from storage_backends.base import (
    ANY,
    Absent,
    Anything,
    Applied,
    Cursor,
    Deleted,
    Found,
    InvalidKey,
    Listed,
    Matches,
    Missing,
    Outcome,
    Page,
    PreconditionFailed,
    StoreError,
    StoreUnavailable,
    Unchanged,
    Unknown,
    Version,
    When,
)
from storage_backends.bulk import check_number
from storage_backends.clock import system_now_ms
from storage_backends.lazy_dataclass import dataclass
from storage_backends.local.config import LocalConfig
from storage_backends.local.files import (
    NotInMemory,
    ParentRemoved,
    exclusive_lock,
    make_folder,
    open_file_nofollow,
    open_folder_nofollow,
    prune_empty,
    read_from_disk,
    read_from_memory,
    status_of,
    store_error,
    version_of,
    write_durably,
    written_ms_of,
)
from storage_backends.local.listing import Listing, PausedWalks, Walk
from storage_backends.validation import PAGE_SIZE, check_deletable, check_key, check_range, holds

PRIVATE_FOLDER = ".arco-store"
STRIPES = 256
TICK_NS = 1_000
"""The least by which one version is later than the one before: what any file system that will do can tell apart."""
REMEMBERED_KEYS = 4_096
WRITE_TRIES = 1_000
"""How often a write is tried: before each further time, a deletion found the directory empty at that moment."""
AT_ONCE_IN_A_ROW = 32
"""After so many reads without a thread, one lets the other tasks run first, which wait for as long as one task reads
again and again."""

_Answer = TypeVar("_Answer")


@dataclass(slots=True)
class _Temporary:
    """A temporary file on disk that is to become an object, with its open descriptor. `renamed` is whether it was
    renamed to the object's name, so that nothing is left at `path`; a hard link leaves the file there."""

    path: str
    descriptor: int
    renamed: bool = False


class LocalStore:
    """A store of local files: the folder `root`, made by the first write, shared by any number of tasks, threads and
    processes of one machine.

    An object is written to a temporary file, which is fsynced, and then appears under its key at once, by a hard link
    (create-only) or a rename. So a crash leaves the old object or the new one, and at worst a temporary file; once it
    is a day old, the first write of a store that is opened later removes it. The folder is fsynced before the write is
    acknowledged.

    Every change of a key is made under one of 256 lock files, so nothing comes between looking at the version and
    replacing it. A version is the file's inode with the modification time, which the store sets: under the lock, always
    later than that of the object replaced, or than that of any object ever deleted under this lock, which the lock file
    keeps. Hence a version never comes back, whatever the clock does.

    A deletion removes the directories that it leaves empty. A write whose directory is removed meanwhile is repeated.
    Other programs that make a directory in the store, and then write into it, may find it gone while it is empty.

    Keys are paths, so `a` and `a/b` cannot both exist: `InvalidKey`, as for symbolic links and for segments of more
    than 255 bytes. Only a write under `ANY` replaces a link that has the key's name, and a deletion does not touch it.
    What waits for a disk or a lock does so in a thread; a cancelled write that had begun still lands. To see that an
    object is unchanged, and to read a small one that the operating system holds in memory, takes less than to wake a
    thread, and is done at once.
    """

    def __init__(
        self,
        root: Path | str,
        now_ms: Callable[[], int] = system_now_ms,
        *,
        config: LocalConfig = LocalConfig(),  # noqa: B008  frozen
    ) -> None:
        if not os.path.isabs(root):
            raise ValueError(f"expected an absolute path as the root of a local store, got {os.fspath(root)!r}")
        self._root = os.fspath(root)
        self._config = config
        self._temporaries = os.path.join(self._root, PRIVATE_FOLDER, "tmp")
        self._locks = os.path.join(self._root, PRIVATE_FOLDER, "locks")
        self._now_ms = now_ms
        self._prepared = False
        self._root_seen = False
        self._threads = ThreadPoolExecutor(config.threads, thread_name_prefix="local-store")
        self._at_once = 0
        self._walks = PausedWalks()
        self._unsynced: set[str] = set()
        """Folders whose last fsync failed: a change in them is visible, and a power cut may undo it."""

    async def get(self, key: str, if_changed_from: Version | None = None) -> Found | Unchanged | Missing:
        """Returns the object at a key, `Unchanged` if it still has the version `if_changed_from`, or `Missing` if there
        is none."""
        _check_path(key)
        return await self._read_object(key, lambda at_once: self._get(key, if_changed_from, at_once=at_once))

    async def get_range(self, key: str, start: int, length: int) -> Found | Missing:
        """Returns the bytes of an object from `start` up to `start + length`, fewer at the end of the object and none
        after it, with the version of the object; `Missing` if there is none. Raises ValueError for a negative start or
        a length under 1."""
        _check_path(key)
        check_range(start, length)
        return await self._read_object(key, lambda at_once: self._get_range(key, start, length, at_once=at_once))

    async def put(self, key: str, body: bytes, when: When) -> Outcome:
        """Writes an object if the condition `when` holds. Returns `Applied` with the new version, `PreconditionFailed`
        if the condition does not hold, or `Unknown` if the write may have been applied. Raises `StoreError` if it was
        not applied for another reason."""
        _check_path(key)
        return await self._in_thread(key, lambda: self._put(key, body, when), writes=True)

    async def delete(self, key: str, when: When = ANY) -> Outcome:
        """Deletes an object if the condition `when` holds, and returns the outcome: for a missing object `Applied`
        under `ANY`, and `PreconditionFailed` under a version. Raises ValueError for `ABSENT`. Also removes the
        directories that become empty."""
        _check_path(key)
        condition = check_deletable(when)
        return await self._in_thread(key, lambda: self._delete(key, condition), writes=True)

    async def delete_many(self, keys: Sequence[str]) -> Deleted:
        """Deletes at most 1,000 objects, whatever their versions, and the directories that become empty. Returns the
        keys of objects that may still exist, with the reasons. Raises ValueError for more keys. If the call is
        cancelled, the deletion stops after the object that is being deleted."""
        check_number(keys)
        for key in keys:
            _check_path(key)
        cancelled = Event()
        try:
            return await self._in_thread("", lambda: self._delete_many(keys, cancelled), writes=True)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    async def list(self, prefix: str, after: Cursor | None = None) -> Page:
        """Returns a page of at most 1,000 objects whose keys start with `prefix`, in the order of the keys: the first
        page, or the one after `after`, the last key, or name in `others`, of a page. It has the objects that a
        directory had when the listing came to it; later ones may be missing."""
        return await self._in_thread(prefix, lambda: self._list(prefix, after or ""))

    async def close(self) -> None:
        """Waits for the calls under way, ends the threads, and closes the listings that are paused."""
        await asyncio.to_thread(self._threads.shutdown)
        self._walks.close()

    async def _read_object(self, key: str, read: Callable[[bool], _Answer]) -> _Answer:
        """Returns what `read` returns. Calls it with True if it may be tried without a thread, and with False in a
        thread if it may not, or if the object is not in memory. Every so often it lets other tasks run before."""
        self._at_once += 1
        if self._at_once % AT_ONCE_IN_A_ROW == 0:
            await asyncio.sleep(0)
        if self._root_seen and not self._unsynced:  # while a folder is not fsynced, a read does that first
            try:
                return read(True)
            except NotInMemory:
                pass  # in a thread, then
            except OSError as error:
                raise store_error(key, error) from error
        return await self._in_thread(key, lambda: read(False))

    async def _in_thread(self, key: str, work: Callable[[], _Answer], *, writes: bool = False) -> _Answer:
        """Returns the result of `work`, which a thread calls. If it `writes`, the thread first makes the directories of
        the store. It also notes whether the root exists. Raises a `StoreError`, in whose message `key` is named, for an
        `OSError`."""

        def guarded() -> _Answer:
            try:
                if writes:
                    self._prepare()
                self._root_seen = self._root_seen or os.path.isdir(self._root)
                return work()
            except OSError as error:
                raise store_error(key, error) from error

        return await asyncio.get_running_loop().run_in_executor(self._threads, guarded)

    def _prepare(self) -> None:
        """Makes the directories of the store, and removes old temporary files that writers left when they crashed. Does
        nothing once it has succeeded for this object."""
        if self._prepared:
            return
        make_folder(self._temporaries)
        make_folder(self._locks)
        with os.scandir(self._temporaries) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):
                    if entry.stat().st_mtime * 1_000 < self._now_ms() - self._config.stale_after_ms:
                        os.unlink(entry.path)
        self._prepared = True

    def _get(self, key: str, if_changed_from: Version | None, *, at_once: bool) -> Found | Unchanged | Missing:
        """Reads an object: `Unchanged` if it still has the version `if_changed_from`, `Missing` if there is none. With
        `at_once`, raises `NotInMemory` as `_read` does."""
        opened = self._open(key)
        if opened is None:
            return Missing(self._now_ms())
        descriptor, status = opened
        try:
            if version_of(status) == if_changed_from:
                return Unchanged(self._now_ms())
            return self._read(descriptor, status, 0, status.st_size, at_once)
        finally:
            os.close(descriptor)

    def _get_range(self, key: str, start: int, length: int, *, at_once: bool) -> Found | Missing:
        """Reads at most `length` bytes of an object's file, from `start` on; `Missing` if there is no object. With
        `at_once`, raises `NotInMemory` as `_read` does."""
        opened = self._open(key)
        if opened is None:
            return Missing(self._now_ms())
        descriptor, status = opened
        try:
            return self._read(descriptor, status, start, max(0, min(length, status.st_size - start)), at_once)
        finally:
            os.close(descriptor)

    def _open(self, key: str) -> tuple[int, os.stat_result] | None:
        """Opens the file of an object, after an fsync of its folder if the last one failed. Returns its descriptor,
        which the caller closes, and its status; None if there is no such object, or the root does not exist yet. Raises
        `InvalidKey` for a link in place of a folder, and `OSError` for any other failure."""
        if not self._root_seen:
            return None
        *folders, name = key.split("/")
        self._retry_failed_fsync(folders)
        return open_file_nofollow(self._root, folders, name)

    def _read(self, descriptor: int, status: os.stat_result, start: int, size: int, at_once: bool) -> Found:
        """Reads `size` bytes of an open file from `start` on. With `at_once`, raises `NotInMemory` for more than
        `read_at_once` bytes, and instead of waiting for a disk."""
        if at_once and size > self._config.read_at_once:
            raise NotInMemory
        body = (read_from_memory if at_once else read_from_disk)(descriptor, size, start)
        return Found(body, version_of(status), written_ms_of(status), self._now_ms())

    def _retry_failed_fsync(self, folders: Sequence[str]) -> None:
        """Repeats the fsync of a folder if the last one failed, so that no read, write or deletion of an object in it
        answers about a change that a power cut may undo; listings do not wait for this. Raises `OSError` if it fails
        once more."""
        if self._unsynced and "/".join(folders) in self._unsynced:
            with open_folder_nofollow(self._root, folders) as folder:
                if folder is not None:
                    os.fsync(folder)
            self._unsynced.discard("/".join(folders))

    def _fsync_folder(self, folder: int, folders: Sequence[str]) -> Unknown | None:
        """Fsyncs a folder after a change in it. Returns None, or `Unknown` if that fails: later reads, writes and
        deletions of objects in the folder then repeat the fsync first."""
        try:
            os.fsync(folder)
        except OSError as error:
            self._unsynced.add("/".join(folders))
            return Unknown(
                f"the change is visible, but a power cut may undo it: the folder's fsync failed: {error.strerror}"
            )
        self._unsynced.discard("/".join(folders))
        return None

    def _put(self, key: str, body: bytes, when: When) -> Outcome:
        """Writes an object under a condition, and returns the outcome. Tries again if a deletion removes the empty
        folder meanwhile: `WRITE_TRIES` times in all, then raises `StoreUnavailable`."""
        for _ in range(WRITE_TRIES):
            with suppress(ParentRemoved):
                return self._put_once(key, body, when)
        raise StoreUnavailable(
            f"{key!r} was not written: at each of {WRITE_TRIES} tries a deletion removed its folder, which was empty"
        )

    def _put_once(self, key: str, body: bytes, when: When) -> Outcome:
        """Writes an object if the condition `when` holds, and returns the outcome: `Unknown` after an I/O error in
        giving it the name, or if it is visible but the fsync of its folder failed. Raises `OSError` for an I/O error
        before that, and `ParentRemoved` if a deletion removes the directory meanwhile."""
        *folders, name = key.split("/")
        self._retry_failed_fsync(folders)
        with open_folder_nofollow(self._root, folders, make=not isinstance(when, Matches)) as folder:
            current = None if folder is None else status_of(folder, name)
            if folder is None or not holds(when, _version(current)):  # a lost race, which is common, writes nothing
                return self._refused(current)
            with self._temporary(body) as temporary:
                with self._exclusive_lock(key) as lock:
                    outcome = self._give_name(temporary, key, folder, when, lock)
                # After the lock is released: the next writer of this object fsyncs the same folder.
                return (self._fsync_folder(folder, folders) if isinstance(outcome, Applied) else None) or outcome

    def _give_name(self, temporary: _Temporary, key: str, folder: int, when: When, lock: int) -> Outcome:
        """Gives a temporary file the name of an object, by a hard link under `ABSENT` and else by a rename, with a
        later time than any before, if the condition `when` holds, and returns the outcome: `Unknown` after an I/O error
        of the link or rename. Raises `InvalidKey` if a folder has that name, or if a link has it and `when` is `ABSENT`
        (`ANY` replaces a link), and `ParentRemoved` if the object's folder was removed meanwhile."""
        name = key.rpartition("/")[2]
        current = status_of(folder, name)
        if not holds(when, _version(current)):
            return self._refused(current)
        version = self._set_time(
            temporary.descriptor, _read_high_water(lock) if current is None else current.st_mtime_ns
        )
        try:
            if isinstance(when, Absent):
                os.link(temporary.path, name, dst_dir_fd=folder, follow_symlinks=False)
            else:
                os.replace(temporary.path, name, dst_dir_fd=folder)
                temporary.renamed = True
        except (FileExistsError, IsADirectoryError) as error:
            if current := status_of(folder, name):  # a writer that takes no lock was faster
                return self._refused(current)
            raise InvalidKey(
                f"cannot write {key!r}: a folder, a symbolic link, or another thing that is no plain file has this name"
            ) from error
        except FileNotFoundError as error:
            if os.path.exists(temporary.path):
                raise ParentRemoved(key) from error
            raise
        except OSError as error:
            return _unknown_if_io(error)
        return Applied(version, self._now_ms())

    def _delete(self, key: str, when: Matches | Anything) -> Outcome:
        """Deletes an object under a condition, and then the folders above it that are empty. Returns the outcome."""
        outcome = self._delete_file(key, when)
        if isinstance(outcome, Applied):
            prune_empty(self._root, key.split("/")[:-1])
        return outcome

    def _delete_file(self, key: str, when: Matches | Anything) -> Outcome:
        """Deletes the file of an object if the condition `when` holds, and returns the outcome: `Applied` without a
        version if there is none and `when` is `ANY`. Leaves the directory, also if it becomes empty."""
        *folders, name = key.split("/")
        self._retry_failed_fsync(folders)
        with open_folder_nofollow(self._root, folders) as folder, self._exclusive_lock(key) as lock:
            current = None if folder is None else status_of(folder, name)
            if not holds(when, _version(current)):
                return self._refused(current)
            if folder is None or current is None:
                return Applied(Version(""), self._now_ms())
            _raise_high_water(lock, current.st_mtime_ns)
            try:
                os.unlink(name, dir_fd=folder)
            except OSError as error:
                return _unknown_if_io(error)
            return self._fsync_folder(folder, folders) or Applied(version_of(current), self._now_ms())

    def _delete_many(self, keys: Sequence[str], cancelled: Event) -> Deleted:
        """Deletes objects folder by folder; each folder is fsynced once, and removed with empty ones around it if it is
        empty then. Returns the keys of objects that may still exist, with the reasons: all keys of a folder whose fsync
        failed. Deletes no more objects once `cancelled` is set."""
        left: dict[str, Unknown | StoreError] = {}
        by_folder: dict[str, list[str]] = {}
        for key in keys:
            by_folder.setdefault(key.rpartition("/")[0], []).append(key)
        for path, inside in by_folder.items():
            folders = path.split("/") if path else []
            try:
                self._retry_failed_fsync(folders)
                with open_folder_nofollow(self._root, folders) as folder:
                    if folder is not None:
                        left |= self._delete_in(folder, inside, cancelled)
                        if (unsynced := self._fsync_folder(folder, folders)) is not None:
                            left |= dict.fromkeys(inside, unsynced)
                prune_empty(self._root, folders)
            except OSError as error:
                left |= dict.fromkeys(inside, store_error(path, error))
            except StoreError as error:
                left |= dict.fromkeys(inside, error)
        return Deleted(left, self._now_ms())

    def _delete_in(self, folder: int, keys: Sequence[str], cancelled: Event) -> dict[str, Unknown | StoreError]:
        """Deletes the objects with these keys in one open directory, without an fsync of it, until `cancelled` is set.
        Returns the keys of objects that may still exist, with the reasons; after a cancellation also those that were
        not tried."""
        left: dict[str, Unknown | StoreError] = {}
        for key in keys:
            if cancelled.is_set():
                left[key] = StoreUnavailable(
                    "the object was not deleted: the call that deletes many objects was cancelled before"
                )
                continue
            name = key.rpartition("/")[2]
            try:
                with self._exclusive_lock(key) as lock:
                    current = status_of(folder, name)
                    if current is not None:
                        _raise_high_water(lock, current.st_mtime_ns)
                        os.unlink(name, dir_fd=folder)
            except OSError as error:
                left[key] = (
                    Unknown(f"the disk failed, and may have deleted the object: {error}")
                    if error.errno == errno.EIO
                    else store_error(key, error)
                )
            except StoreError as error:  # the lock is another's
                left[key] = error
        return left

    def _list(self, prefix: str, after: str) -> Page:
        """Returns a page of the objects whose keys start with `prefix` and come after `after`, empty for the start, and
        keeps the paused walk for the next page. The page is empty if the root does not exist."""
        if not self._root_seen:
            return Page((), None, self._now_ms(), in_order=True)
        walk = self._walks.take(prefix, after) or self._walk(prefix, after)
        met = tuple(itertools.islice(walk, PAGE_SIZE))
        entries = tuple(each for each in met if isinstance(each, Listed))
        others = tuple(each.encode(errors="backslashreplace").decode() for each in met if isinstance(each, str))
        if len(met) < PAGE_SIZE:
            return Page(entries, None, self._now_ms(), in_order=True, others=others)
        last = met[-1].key if isinstance(met[-1], Listed) else met[-1]
        self._walks.keep(prefix, last, walk)
        return Page(entries, Cursor(last), self._now_ms(), in_order=True, others=others)

    def _walk(self, prefix: str, after: str) -> Walk:
        """Yields the objects whose keys start with `prefix` and come after `after`, in the order of keys, and the names
        of what is no object."""
        folders = prefix.split("/")[:-1]
        with suppress(InvalidKey):  # below what cannot be in a key, or is a link, there are no objects
            if folders:
                _check_path("/".join(folders))
            with open_folder_nofollow(self._root, folders) as folder:
                if folder is not None:
                    path = "".join(f"{segment}/" for segment in folders)
                    yield from Listing(prefix, after, PRIVATE_FOLDER).walk(folder, path)

    @contextmanager
    def _temporary(self, body: bytes) -> Iterator[_Temporary]:
        """Yields a temporary file that holds `body`, durably. At the end it is removed, unless it was renamed."""
        path = os.path.join(self._temporaries, secrets.token_hex(16))
        temporary: _Temporary | None = None
        try:
            temporary = _Temporary(path, write_durably(path, body))
            yield temporary
        finally:
            if temporary is not None:
                os.close(temporary.descriptor)
            if temporary is None or not temporary.renamed:
                with suppress(OSError):  # what is left is harmless, and the write's outcome is known already
                    os.unlink(path)

    def _set_time(self, temporary: int, latest_ns: int) -> Version:
        """Sets the modification time of a temporary file, later than `latest_ns`, the latest time that a file of its
        key had. Returns the version that this makes. Raises `StoreError` if the file system stores times too coarsely.
        """
        modified_ns = max(self._now_ms() * 1_000_000, latest_ns + TICK_NS)
        os.utime(temporary, ns=(modified_ns, modified_ns))
        status = os.fstat(temporary)
        if status.st_mtime_ns <= latest_ns:
            raise StoreError(
                f"the object was not written: the file system of {self._root} stores times too coarsely: "
                "use another file system"
            )
        return version_of(status)

    def _exclusive_lock(self, key: str) -> AbstractContextManager[int]:
        """Returns the lock for changes of the object at a key, one of the 256 that all keys share. Raises
        `StoreUnavailable` on entry if another holder does not release it in time."""
        path = os.path.join(self._locks, f"{zlib.crc32(key.encode()) % STRIPES:02x}")
        return exclusive_lock(path, self._config.lock_timeout_s)

    def _refused(self, current: os.stat_result | None) -> PreconditionFailed:
        """Returns the outcome of a write or deletion whose condition does not hold, with the version that the object
        has, None if there is no object."""
        return PreconditionFailed(_version(current), self._now_ms())


@lru_cache(REMEMBERED_KEYS)  # those that are refused, of any length, are not remembered
def _check_path(key: str) -> None:
    """Raises `InvalidKey` for a key that is not valid, that has a segment of more than 255 bytes, or that is in the
    store's private directory."""
    check_key(key)
    segments = key.split("/")
    if segments[0] == PRIVATE_FOLDER:
        raise InvalidKey(f"the folder {PRIVATE_FOLDER} is reserved for the store's own files: {key!r}")
    if any(len(segment.encode()) > 255 for segment in segments):
        raise InvalidKey(f"a segment of the key is longer than 255 bytes: {key!r}")


def _version(current: os.stat_result | None) -> Version | None:
    """Returns the version of the object whose file has this status; None if there is no file (`current` is None)."""
    return None if current is None else version_of(current)


def _unknown_if_io(error: OSError) -> Unknown:
    """Returns `Unknown` for an I/O error of the disk, which may have made the change. Raises any other error again,
    since the change was not made."""
    if error.errno != errno.EIO:
        raise error
    return Unknown(f"the disk failed (I/O error), and may have applied the change: {error.strerror}")


def _read_high_water(lock: int) -> int:
    """Returns the latest version that was deleted under this lock, as a time in nanoseconds; 0 if none was. After a
    power cut it may be 0 too, but then no process is left that has an old version."""
    high_water = os.pread(lock, 20, 0)
    return int(high_water) if high_water.isdigit() else 0


def _raise_high_water(lock: int, deleted_ns: int) -> None:
    """Writes the time of an object that is to be deleted, in nanoseconds, into the lock file, unless a later one is
    there already."""
    os.pwrite(lock, b"%020d" % max(_read_high_water(lock), deleted_ns), 0)
