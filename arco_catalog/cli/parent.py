"""Ends a worker process with its supervisor, which may be killed without a word to its workers."""

import ctypes
import os
import select
import signal
import sys

PR_SET_PDEATHSIG = 1
"""prctl(2): the signal that the kernel sends to this process when its parent dies."""


def end_with_parent() -> None:
    """Has the kernel send SIGTERM when the parent dies, where the kernel can (Linux); until the server handles that
    signal, it ends the process at once. Exits if the parent is dead already: it holds the other end of stdin open."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    closed, _, _ = select.select([sys.stdin], [], [], 0)
    if closed:
        os._exit(128 + signal.SIGTERM)
