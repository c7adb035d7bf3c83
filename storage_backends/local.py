"""A folder as a store: plain files, where engines read them, and conditional writes that hold across processes."""

import asyncio
import errno
import itertools
import os
import secrets
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from stat import S_ISREG
from typing import TypeVar

from storage_backends.arguments import PAGE_SIZE, check_deletable, check_key, check_range
from storage_backends.base import (
    ANY,
    Absent,
    Anything,
    Applied,
    Cursor,
    Found,
    InvalidKey,
    Listed,
    Matches,
    Missing,
    Outcome,
    Page,
    Refused,
    StoreError,
    Unchanged,
    Unknown,
    Version,
    When,
)
from storage_backends.clock import system_now_ms
from storage_backends.local_files import (
    exclusive_lock,
    folder_beneath,
    make_folder,
    status_of,
    store_errors,
    version_of,
    written_ms_of,
)
from storage_backends.local_listing import Listing

PRIVATE_FOLDER = ".arco-store"
STRIPES = 256
THREADS = 16
STALE_AFTER_MS = 24 * 60 * 60 * 1_000
TICK_NS = 1_000
"""The least by which one version is later than the one before: what any file system that will do can tell apart."""

_Answer = TypeVar("_Answer")


class LocalStore:
    """The folder `root`, made if need be, shared by any number of tasks, threads and processes of one machine.

    An object is written whole to a temporary file, made to last (fsync), and then appears under its key at once, by a
    hard link (create-only) or a rename, so a crash leaves the old object or the new one, and at worst a temporary
    file, which is removed a day later. Its folder is made to last before the write is acknowledged.

    Every change of a key is made under one of 256 lock files, so nothing comes between looking at the version and
    replacing it. A version is the file's modification time, which the store sets: under the lock, always later than
    that of the object replaced, or than that of any object ever deleted under this lock, which the lock file keeps.
    Hence a version never comes back, whatever the clock does.

    Keys are paths, so `a` and `a/b` cannot both exist: `InvalidKey`, as for symbolic links and for segments of more
    than 255 bytes. Each call is one hop to a thread; a cancelled write that had begun still lands.
    """

    def __init__(self, root: Path | str, now_ms: Callable[[], int] = system_now_ms) -> None:
        if not os.path.isabs(root):
            raise ValueError(f"the root of a local store is an absolute path, not {os.fspath(root)!r}")
        self._root = os.fspath(root)
        self._temporaries = os.path.join(self._root, PRIVATE_FOLDER, "tmp")
        self._locks = os.path.join(self._root, PRIVATE_FOLDER, "locks")
        self._now_ms = now_ms
        self._prepared = False
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="local-store")

    async def get(self, key: str, if_changed_from: Version | None = None) -> Found | Unchanged | Missing:
        """See `ObjectStore.get`."""
        _check_path(key)
        return await self._in_thread(key, lambda: self._get(key, if_changed_from))

    async def get_range(self, key: str, start: int, length: int) -> Found | Missing:
        """See `ObjectStore.get_range`."""
        _check_path(key)
        check_range(start, length)
        return await self._in_thread(key, lambda: self._get_range(key, start, length))

    async def put(self, key: str, body: bytes, when: When) -> Outcome:
        """See `ObjectStore.put`."""
        _check_path(key)
        return await self._in_thread(key, lambda: self._put(key, body, when))

    async def delete(self, key: str, when: When = ANY) -> Outcome:
        """See `ObjectStore.delete`. Folders that it leaves empty stay."""
        _check_path(key)
        condition = check_deletable(when)
        return await self._in_thread(key, lambda: self._delete(key, condition))

    async def list(self, prefix: str, after: Cursor | None = None) -> Page:
        """See `ObjectStore.list`. In key order; the cursor is the last key of the page."""
        return await self._in_thread(prefix, lambda: self._list(prefix, after or ""))

    async def close(self) -> None:
        """Waits for the calls under way and ends the threads."""
        await asyncio.to_thread(self._threads.shutdown)

    async def _in_thread(self, key: str, work: Callable[[], _Answer]) -> _Answer:
        def guarded() -> _Answer:
            with store_errors(key):
                self._prepare()
                return work()

        return await asyncio.get_running_loop().run_in_executor(self._threads, guarded)

    def _prepare(self) -> None:
        """Makes the store's folders and removes what crashed writers left; the first call of all does it."""
        if self._prepared:
            return
        make_folder(self._temporaries)
        make_folder(self._locks)
        with os.scandir(self._temporaries) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):
                    if entry.stat().st_mtime * 1_000 < self._now_ms() - STALE_AFTER_MS:
                        os.unlink(entry.path)
        self._prepared = True

    def _get(self, key: str, if_changed_from: Version | None) -> Found | Unchanged | Missing:
        with self._open(key) as descriptor:
            if descriptor is None:
                return Missing(self._now_ms())
            status = os.fstat(descriptor)
            if version_of(status) == if_changed_from:
                return Unchanged(self._now_ms())
            with open(descriptor, "rb", closefd=False) as file:
                return Found(file.read(), version_of(status), written_ms_of(status), self._now_ms())

    def _get_range(self, key: str, start: int, length: int) -> Found | Missing:
        with self._open(key) as descriptor:
            if descriptor is None:
                return Missing(self._now_ms())
            status = os.fstat(descriptor)
            with open(descriptor, "rb", closefd=False) as file:
                file.seek(start)
                return Found(file.read(length), version_of(status), written_ms_of(status), self._now_ms())

    def _put(self, key: str, body: bytes, when: When) -> Outcome:
        *folders, name = key.split("/")
        with folder_beneath(self._root, folders, make=not isinstance(when, Matches)) as folder:
            current = None if folder is None else status_of(folder, name)
            if folder is None or not _holds(when, current):  # a lost race, which is common, writes nothing
                return self._refused(current)
            with self._temporary(body) as temporary, exclusive_lock(self._lock_of(key)) as lock:
                current = status_of(folder, name)
                if not _holds(when, current):
                    return self._refused(current)
                version = self._stamp(temporary, _read_mark(lock) if current is None else current.st_mtime_ns)
                try:
                    if isinstance(when, Absent):
                        os.link(temporary, name, dst_dir_fd=folder, follow_symlinks=False)
                    else:
                        os.replace(temporary, name, dst_dir_fd=folder)
                except (FileExistsError, IsADirectoryError) as error:
                    if current := status_of(folder, name):  # a writer that takes no lock was faster
                        return self._refused(current)
                    raise InvalidKey(f"{key!r} is a folder or a link") from error
                except OSError as error:
                    return _unknown_if_io(error)
                return _made_to_last(folder) or Applied(version, self._now_ms())

    def _delete(self, key: str, when: Matches | Anything) -> Outcome:
        *folders, name = key.split("/")
        with folder_beneath(self._root, folders) as folder, exclusive_lock(self._lock_of(key)) as lock:
            current = None if folder is None else status_of(folder, name)
            if not _holds(when, current):
                return self._refused(current)
            if folder is None or current is None:
                return Applied(Version(""), self._now_ms())
            _raise_mark(lock, current.st_mtime_ns)
            try:
                os.unlink(name, dir_fd=folder)
            except OSError as error:
                return _unknown_if_io(error)
            return _made_to_last(folder) or Applied(version_of(current), self._now_ms())

    def _list(self, prefix: str, after: str) -> Page:
        folders = prefix.split("/")[:-1]
        path = "".join(f"{segment}/" for segment in folders)
        entries: Sequence[Listed] = ()
        with suppress(InvalidKey):  # below what cannot be in a key, or is a link, there are no objects
            if folders:
                _check_path("/".join(folders))
            with folder_beneath(self._root, folders) as folder:
                if folder is not None:
                    with closing(Listing(prefix, after, PRIVATE_FOLDER).walk(folder, path)) as found:
                        entries = tuple(itertools.islice(found, PAGE_SIZE + 1))
        if len(entries) <= PAGE_SIZE:
            return Page(entries, None, self._now_ms())
        return Page(entries[:PAGE_SIZE], Cursor(entries[PAGE_SIZE - 1].key), self._now_ms())

    @contextmanager
    def _open(self, key: str) -> Iterator[int | None]:
        """One descriptor of the object: what is read and what is known of it are of one instant."""
        *folders, name = key.split("/")
        with folder_beneath(self._root, folders) as folder:
            if folder is None:
                yield None
                return
            try:
                descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
            except FileNotFoundError:
                yield None
                return
            try:
                yield descriptor if S_ISREG(os.fstat(descriptor).st_mode) else None
            finally:
                os.close(descriptor)

    @contextmanager
    def _temporary(self, body: bytes) -> Iterator[str]:
        """The path of a file that holds `body` and will survive a crash under whatever name it gets."""
        path = os.path.join(self._temporaries, secrets.token_hex(16))
        try:
            with open(path, "xb") as file:
                file.write(body)
                file.flush()
                os.fsync(file.fileno())
            yield path
        finally:
            with suppress(OSError):  # what is left is harmless, and the write's outcome is known already
                os.unlink(path)

    def _stamp(self, temporary: str, latest_ns: int) -> Version:
        """Gives a file its version, later than every one that its key had."""
        modified_ns = max(self._now_ms() * 1_000_000, latest_ns + TICK_NS)
        os.utime(temporary, ns=(modified_ns, modified_ns))
        status = os.stat(temporary)
        if status.st_mtime_ns <= latest_ns:
            raise StoreError(f"the file system of {self._root} keeps times too coarsely to tell versions apart")
        return version_of(status)

    def _lock_of(self, key: str) -> str:
        return os.path.join(self._locks, f"{zlib.crc32(key.encode()) % STRIPES:02x}")

    def _refused(self, current: os.stat_result | None) -> Refused:
        return Refused(version_of(current) if current else None, self._now_ms())


def _check_path(key: str) -> None:
    check_key(key)
    segments = key.split("/")
    if segments[0] == PRIVATE_FOLDER:
        raise InvalidKey(f"{PRIVATE_FOLDER} is the store's own: {key!r}")
    if any(len(segment.encode()) > 255 for segment in segments):
        raise InvalidKey(f"a segment of a local key has at most 255 bytes: {key!r}")


def _holds(when: When, current: os.stat_result | None) -> bool:
    match when:
        case Absent():
            return current is None
        case Matches(version):
            return current is not None and version_of(current) == version
        case Anything():
            return True


def _made_to_last(folder: int) -> Unknown | None:
    try:
        os.fsync(folder)
    except OSError as error:
        return Unknown(f"the change is visible, but may not last: {error.strerror}")
    return None


def _unknown_if_io(error: OSError) -> Unknown:
    """A failing disk may have made the change; for any other reason it was not made."""
    if error.errno != errno.EIO:
        raise error
    return Unknown(f"the disk failed: {error.strerror}")


def _read_mark(lock: int) -> int:
    """The latest version deleted under this lock, as nanoseconds. Empty at first; a power cut may also leave it blank,
    but then no process is left that holds an old version."""
    mark = os.pread(lock, 20, 0)
    return int(mark) if mark.isdigit() else 0


def _raise_mark(lock: int, deleted_ns: int) -> None:
    os.pwrite(lock, b"%020d" % max(_read_mark(lock), deleted_ns), 0)
