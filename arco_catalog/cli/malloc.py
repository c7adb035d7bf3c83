"""How the C library's allocator is set, so that what large requests took goes back to the system."""

import ctypes

MMAP_THRESHOLD = -3
ARENA_MAX = -8
"""Parameters of `mallopt` (malloc.h)."""
LARGE_BYTES = 256 << 10
ARENAS = 2


def give_large_buffers_back() -> None:
    """Lets every buffer of `LARGE_BYTES` be a mapping of its own, which is gone when it is freed, and few threads have
    heaps of their own.

    Left to itself, glibc raises that bound to the largest buffer that was ever freed (`mallopt(3)`, M_MMAP_THRESHOLD):
    after one large body all others lie in the heap, between small values that stay, and the heap keeps growing. Does
    nothing where the C library has no `mallopt`.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(MMAP_THRESHOLD, LARGE_BYTES)
        mallopt(ARENA_MAX, ARENAS)
