"""File-system calls of the local store: opening without following links, reading, writing, versions, locks.

Most may wait for a disk or a lock, so they belong in a thread; not so opening an existing file, `read_from_memory`, and
what only computes.
"""

import errno
import fcntl
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from stat import S_ISLNK, S_ISREG

from storage_backends.base import InvalidKey, StoreDenied, StoreError, StoreUnavailable, Version
from storage_backends.local.open_nofollow import open_nofollow

LOCK_POLL_S = 0.001

FOLDER_ITSELF = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
"""Flags that open a folder and never what a link points to."""
FILE_ITSELF = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
"""Flags that open a file, never what a link points to, and without waiting at a pipe."""


class ParentRemoved(Exception):
    """The parent directory was removed, because it was empty, while a file or directory was made in it."""


class NotInMemory(Exception):
    """A file's bytes are not in the operating system's cache, so that reading them waits for a disk; or whether they
    are is unknown, or they are too many to be read without a thread."""


def store_error(key: str, error: OSError) -> StoreError:
    """Returns the store's error for a failure of the operating system in a call for `key`: `StoreDenied` for a lack of
    rights, `InvalidKey` for a path that can't be that of a file, else `StoreUnavailable`, since it may pass."""
    reason = f"a call of the local store for {key!r} failed: {error.strerror}"
    if error.errno == errno.ENOTDIR and error.filename is not None:
        reason = f"{reason} (a file is in the place of a folder of the path {error.filename})"
    match error.errno:
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return StoreDenied(reason)
        case errno.ENAMETOOLONG | errno.ENOTDIR | errno.EISDIR | errno.ELOOP:
            return InvalidKey(reason)
        case _:  # no space, too many open files, an unwell disk: may pass
            return StoreUnavailable(reason)


def make_folder(path: str) -> None:
    """Makes a folder and its missing parents, outermost first, and fsyncs the parent of each; does nothing if the
    folder exists. Raises `NotADirectoryError` for a file in the place of one, and other errors of `OSError`."""
    missing = []
    while not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path)
    for folder in reversed(missing):
        with suppress(FileExistsError):
            os.mkdir(folder)
        above = os.open(os.path.dirname(folder), os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(above)
        finally:
            os.close(above)
    if missing and not os.path.isdir(missing[0]):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), missing[0])


@contextmanager
def open_folder_nofollow(root: str, segments: Sequence[str], *, make: bool = False) -> Iterator[int | None]:
    """Yields a descriptor of the directory at `root/segments`, and closes it afterwards; None if there is none and
    `make` is false. With `make`, makes those that are missing on the way.

    Below the root no symbolic link is followed, not even one made meanwhile, so nothing outside the root is opened.
    Raises `InvalidKey` for a link in the place of a directory, and for a file where one is to be made; `ParentRemoved`
    if one is removed while the next one is made in it; `FileNotFoundError` if the root does not exist.
    """
    above = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    folder: int | None = above
    try:
        if segments and (at_once := _open_folder(above, segments)) is not None:
            folder = at_once
            os.close(above)
        else:  # step by step, from each descriptor to the next, to find what is in the way or make what is missing
            for segment in segments:
                if folder is None:
                    break
                above, folder = folder, None
                try:
                    folder = _step(above, segment, make)
                finally:
                    os.close(above)
        yield folder
    finally:
        if folder is not None:
            os.close(folder)


def _open_folder(above: int, segments: Sequence[str]) -> int | None:
    """Opens a folder below another one in one step; None if it does not exist, or can't be opened so, as
    `open_nofollow` describes."""
    with suppress(FileNotFoundError):
        return open_nofollow(above, "/".join(segments), FOLDER_ITSELF)
    return None


def open_file_nofollow(root: str, folders: Sequence[str], name: str) -> tuple[int, os.stat_result] | None:
    """Returns a descriptor of the plain file `name` in the folder at `root/folders`, for the caller to close, with the
    status of that file at the same instant. None if there is no such file. Raises `InvalidKey` for a symbolic link in
    place of a folder, and `OSError`, also for a link in place of the file."""
    descriptor = _open_file(root, folders, name)
    if descriptor is None:
        return None
    try:
        status = os.fstat(descriptor)
    except BaseException:
        os.close(descriptor)
        raise
    if not S_ISREG(status.st_mode):
        os.close(descriptor)
        return None
    return descriptor, status


def _open_file(root: str, folders: Sequence[str], name: str) -> int | None:
    """Returns a descriptor of what has the name `name` in `root/folders`, a plain file or not; None if nothing has.
    Raises `InvalidKey` for a symbolic link in place of a directory, and `OSError`, also for a link with this name."""
    above = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        descriptor = open_nofollow(above, "/".join((*folders, name)), FILE_ITSELF)
    except FileNotFoundError:  # a second walk would find no more, and cost the event loop as many waits for the lock
        return None
    finally:
        os.close(above)
    if descriptor is not None:
        return descriptor
    with open_folder_nofollow(root, folders) as folder, suppress(FileNotFoundError):
        return None if folder is None else os.open(name, FILE_ITSELF, dir_fd=folder)
    return None


def _step(above: int, segment: str, make: bool) -> int | None:
    """Opens the directory `segment` in the open directory `above`, and returns its descriptor. If there is none, makes
    it if `make`, else returns None. Raises `InvalidKey` for a symbolic link, and for a file if `make`; `ParentRemoved`
    if `above`, or the new directory, was removed by a deletion."""
    try:
        return os.open(segment, FOLDER_ITSELF, dir_fd=above)
    except FileNotFoundError:
        if not make:
            return None
    except OSError as error:
        if error.errno not in (errno.ENOTDIR, errno.ELOOP):
            raise
        if S_ISLNK(os.stat(segment, dir_fd=above, follow_symlinks=False).st_mode):
            raise InvalidKey(
                f"the folder {segment!r} of a key is a symbolic link, and the local store follows none"
            ) from error
        if make:
            raise InvalidKey(
                f"{segment!r} is an object already, or another file, so no object can be written below it"
            ) from error
        return None
    try:
        with suppress(FileExistsError):
            os.mkdir(segment, dir_fd=above)
        os.fsync(above)
        return os.open(segment, FOLDER_ITSELF, dir_fd=above)
    except FileNotFoundError as error:
        raise ParentRemoved(segment) from error


def prune_empty(root: str, segments: Sequence[str]) -> None:
    """Removes the directory at `root/segments`, then each parent below the root, as long as they are empty. Follows no
    symbolic link. Stops without an error at one that can't be removed: it is no object."""
    for depth in range(len(segments), 0, -1):
        try:
            with open_folder_nofollow(root, segments[: depth - 1]) as above:
                if above is not None:
                    os.rmdir(segments[depth - 1], dir_fd=above)
        except FileNotFoundError:  # another thread has removed it
            continue
        except (OSError, InvalidKey):
            return


def status_of(folder: int, name: str) -> os.stat_result | None:
    """Returns the status of the plain file `name` in an open folder; None if no plain file has this name."""
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    return status if S_ISREG(status.st_mode) else None


def exists(parent: int, name: str) -> bool:
    """Whether the open folder `parent` has anything with this name, even a link that leads nowhere."""
    try:
        os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def read_from_memory(descriptor: int, size: int, start: int = 0) -> bytes:
    """Returns `size` bytes of a file from `start` on, if the operating system holds them in memory. Raises
    `NotInMemory` if it does not, if it can't tell, or if the file has fewer."""
    if sys.platform != "linux":
        raise NotInMemory
    body = bytearray(size)
    try:
        read = os.preadv(descriptor, [body], start, os.RWF_NOWAIT)
    except OSError as error:  # not in memory, or on a file system that can't tell
        raise NotInMemory from error
    if read != size:
        raise NotInMemory
    return bytes(body)


def read_from_disk(descriptor: int, size: int, start: int = 0) -> bytes:
    """Returns `size` bytes of a file from `start` on, fewer at its end. May wait for a disk."""
    with open(descriptor, "rb", closefd=False) as file:
        file.seek(start)
        return file.read(size)


def write_durably(path: str, body: bytes) -> int:
    """Creates a file with these bytes, fsyncs it and returns its open descriptor, for the caller to close. Raises
    `FileExistsError` if a file exists at the path, and other errors of `OSError`, after which a part of the file may be
    there."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        rest = memoryview(body)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        os.fsync(descriptor)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def version_of(status: os.stat_result) -> Version:
    """Returns the version of a file: its modification time, which the store sets, and its inode, by which a file that
    another program put there differs."""
    return Version(f"{status.st_mtime_ns:x}-{status.st_ino:x}")


def written_ms_of(status: os.stat_result) -> int:
    """Returns the time at which the file was written, in milliseconds since 1970."""
    return status.st_mtime_ns // 1_000_000


@contextmanager
def exclusive_lock(path: str, timeout_s: float) -> Iterator[int]:
    """Holds the lock file at `path` against every other thread and process, and releases it at the end; yields its
    descriptor.

    Each acquisition opens the file anew, since `flock` locks open files, not processes. The death of a process releases
    it. Raises `StoreUnavailable` if another holder, a suspended process perhaps, has not released it after `timeout_s`
    seconds.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        give_up = time.monotonic() + timeout_s
        while not try_lock(descriptor):
            if time.monotonic() > give_up:
                raise StoreUnavailable(
                    f"the local store did not change an object: other processes or threads held the lock file {path} "
                    f"for {timeout_s} s"
                )
            time.sleep(LOCK_POLL_S)
        yield descriptor
    finally:
        os.close(descriptor)


def try_lock(descriptor: int) -> bool:
    """Locks an open file or directory without waiting. Returns False if another process or thread holds the lock.
    Raises `OSError` where the file system has no locks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
