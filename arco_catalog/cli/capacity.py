"""How many workers serve by default: one for each core, as far as memory goes.

A container, or a service of systemd, may use less than its machine has: its control group says how much.
"""

import math
import os
import sys
from collections.abc import Iterator
from pathlib import Path

PROCESS_BYTES = 64 << 20
"""What a worker holds beside what its settings bound."""

CGROUPS = Path("/sys/fs/cgroup")
OWN_CGROUP = Path("/proc/self/cgroup")


def usual_workers(store: str, bound_bytes: int, most: int) -> int:
    """How many workers to start on a store, each of which takes up to `bound_bytes` for requests and caches; `most`
    at most. One if they could not share the store, or could not share a port fairly."""
    if store.startswith("memory:") or sys.platform != "linux":
        return 1
    return max(1, min(most, cores(), memory_bytes() // (PROCESS_BYTES + bound_bytes)))


def cores() -> int:
    """The cores that this process may use, rounded up."""
    quotas = (_quota(text) for text in _settings("cpu.max"))
    return min(len(os.sched_getaffinity(0)), *(math.ceil(quota) for quota in quotas if quota is not None), 1_024)


def memory_bytes() -> int:
    """The memory that this process may use."""
    limits = (int(text) for text in _settings("memory.max") if text.isdigit())
    return min(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), *limits, 1 << 62)


def _quota(text: str) -> float | None:
    """Cores of a `cpu.max`, which is a time and the period that it is for; None for no limit."""
    quota, _, period = text.partition(" ")
    return int(quota) / int(period) if quota.isdigit() and period.isdigit() and int(period) else None


def _settings(name: str) -> Iterator[str]:
    """A setting of each control group that this process is in, from its own outwards (version 2)."""
    try:
        lines = OWN_CGROUP.read_text().splitlines()
    except OSError:
        return
    path = next((line.removeprefix("0::") for line in lines if line.startswith("0::")), "/")
    own = Path(path.lstrip("/"))
    for group in (own, *own.parents):
        try:
            yield (CGROUPS / group / name).read_text().strip()
        except OSError:  # not there: it sets no limit
            continue
