"""Sets up the C library's allocator, so that the memory of large requests goes back to the system."""

import ctypes

MMAP_THRESHOLD = -3
ARENA_MAX = -8
"""Parameters of `mallopt` (malloc.h)."""
LARGE_BYTES = 256 << 10
ARENAS = 2


def configure_malloc() -> None:
    """Makes malloc give each buffer of `LARGE_BYTES` or more a mapping of its own, which `free` returns to the system,
    and use at most `ARENAS` heaps for all threads.

    Left to itself, glibc raises that bound to the largest buffer that was ever freed (`mallopt(3)`, M_MMAP_THRESHOLD):
    after one large body all later ones lie in the heap, between small values that stay, and the heap keeps growing.
    Does nothing where the C library has no `mallopt`.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(MMAP_THRESHOLD, LARGE_BYTES)
        mallopt(ARENA_MAX, ARENAS)
