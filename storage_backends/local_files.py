"""What the local store asks of a file system: folders that no link leads out of, versions, locks, errors.

Everything here blocks and belongs in a thread.
"""

import errno
import fcntl
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from stat import S_ISLNK, S_ISREG

from storage_backends.base import InvalidKey, StoreDenied, StoreUnavailable, Version

LOCK_PATIENCE_S = 10.0
LOCK_POLL_S = 0.001

FOLDER_ITSELF = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
"""Flags that open a folder and never what a link points to."""


@contextmanager
def store_errors(key: str) -> Iterator[None]:
    """Turns what the operating system refuses into a `StoreError`."""
    try:
        yield
    except OSError as error:
        reason = f"{key!r}: {error.strerror}"
        match error.errno:
            case errno.EACCES | errno.EPERM | errno.EROFS:
                raise StoreDenied(reason) from error
            case errno.ENAMETOOLONG | errno.ENOTDIR | errno.EISDIR | errno.ELOOP:
                raise InvalidKey(reason) from error
            case _:  # no space, too many open files, an unwell disk: may pass
                raise StoreUnavailable(reason) from error


def make_folder(path: str) -> None:
    """Makes a folder and those above it, each to last before the next."""
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


@contextmanager
def folder_beneath(root: str, segments: Sequence[str], *, make: bool = False) -> Iterator[int | None]:
    """A descriptor of the folder at `root/segments`, or None if there is none and it is not to be made.

    Each step starts at the descriptor of the one before and follows no symbolic link, so that none leads out of the
    root, not even one put there meanwhile. Raises `InvalidKey` for a link, or for a file where a folder is to be made.
    """
    folder: int | None = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
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


def _step(above: int, segment: str, make: bool) -> int | None:
    try:
        return os.open(segment, FOLDER_ITSELF, dir_fd=above)
    except FileNotFoundError:
        if not make:
            return None
    except OSError as error:
        if error.errno not in (errno.ENOTDIR, errno.ELOOP):
            raise
        if S_ISLNK(os.stat(segment, dir_fd=above, follow_symlinks=False).st_mode):
            raise InvalidKey(f"{segment!r} is a symbolic link, and none is followed below the root") from error
        if make:
            raise InvalidKey(f"{segment!r} is an object already, so that nothing can be stored under it") from error
        return None
    with suppress(FileExistsError):
        os.mkdir(segment, dir_fd=above)
    os.fsync(above)
    return os.open(segment, FOLDER_ITSELF, dir_fd=above)


def status_of(folder: int, name: str) -> os.stat_result | None:
    """What the file system knows of an object, or None if no plain file has this name."""
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    return status if S_ISREG(status.st_mode) else None


def version_of(status: os.stat_result) -> Version:
    """The time that the store gave the file, and the inode, which tells apart what others put there."""
    return Version(f"{status.st_mtime_ns:x}-{status.st_ino:x}")


def written_ms_of(status: os.stat_result) -> int:
    """The time of the write."""
    return status.st_mtime_ns // 1_000_000


@contextmanager
def exclusive_lock(path: str) -> Iterator[int]:
    """Holds the lock file at `path` against every other thread and process; gives its descriptor.

    Each acquisition opens the file anew, since `flock` locks open files, not processes. A kill releases it. Raises
    `StoreUnavailable` if the holder, a stopped process perhaps, keeps it for `LOCK_PATIENCE_S`.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        give_up = time.monotonic() + LOCK_PATIENCE_S
        while not _try_lock(descriptor):
            if time.monotonic() > give_up:
                raise StoreUnavailable(f"another process has held {path} for {LOCK_PATIENCE_S} s")
            time.sleep(LOCK_POLL_S)
        yield descriptor
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
