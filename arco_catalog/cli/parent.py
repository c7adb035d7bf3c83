"""Ends a worker process when its supervisor dies: a supervisor that is killed can't end its workers itself."""

import ctypes
import os
import select
import signal
import sys

PR_SET_PDEATHSIG = 1
"""prctl(2): the signal that the kernel sends to this process when its parent dies."""


def end_with_parent() -> None:
    """On Linux, makes the kernel send SIGTERM to this process when its parent dies; the signal ends the process at once
    until the server handles it. On any system, exits at once if the parent has died already, which shows in the end of
    stdin, because a living parent holds the other end open."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    closed, _, _ = select.select([sys.stdin], [], [], 0)
    if closed:
        os._exit(128 + signal.SIGTERM)
