"""Opens a path below a folder in one step, and follows no symbolic link.

That is `openat2` of Linux 5.6, for which Python has no name.
"""

import ctypes
import errno
import os
import sys
from functools import cache

_OPENAT2 = 437  # on every architecture
_NO_SYMLINKS_BENEATH = 0x04 | 0x08
"""RESOLVE_NO_SYMLINKS and RESOLVE_BENEATH."""


class _How(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


_HOW_BYTES = ctypes.sizeof(_How)


@cache  # by the few flags that there are; the kernel only reads it
def _open_how(flags: int) -> object:
    """Returns the argument of `openat2` that follows no symbolic link."""
    return ctypes.pointer(_How(flags | os.O_CLOEXEC, 0, _NO_SYMLINKS_BENEATH))


def open_nofollow(folder: int, path: str, flags: int) -> int | None:
    """Returns a descriptor of `path` below an open folder, or None if it can't be opened: because a link is on the way,
    for any other error, or because the kernel is not Linux 5.6 or later. The caller then opens segment by segment and
    finds out which. Raises `FileNotFoundError` if it does not exist."""
    if sys.platform != "linux":
        return None
    descriptor: int = _syscall(_OPENAT2, folder, os.fsencode(path), _open_how(flags), _HOW_BYTES)
    if descriptor >= 0:
        return descriptor
    if ctypes.get_errno() == errno.ENOENT:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    return None


if sys.platform == "linux":
    _syscall = ctypes.CDLL(None, use_errno=True).syscall
    _syscall.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t)
    _syscall.restype = ctypes.c_long
