"""Computes the default number of workers of `arco serve` from the cores and the memory that this process may use.

In a container or a systemd service that can be less than the machine has: the limits of its control groups count.
"""

import math
import os
import sys
from collections.abc import Iterator
from pathlib import Path

PROCESS_BYTES = 64 << 20
"""Memory of a worker besides the buffers for requests and caches that its settings limit."""

CGROUPS = Path("/sys/fs/cgroup")
OWN_CGROUP = Path("/proc/self/cgroup")


def usual_workers(store: str, bound_bytes: int, limit: int) -> int:
    """Returns the default number of workers for a store: one for each core, as far as the memory suffices, at least
    one, and at most `limit`. Each may use up to `bound_bytes` for requests and caches, and `PROCESS_BYTES` besides.
    Returns 1 for a store in memory, which processes can't share, and on other systems than Linux, which do not spread
    connections evenly over sockets of one port."""
    if store.startswith("memory:") or sys.platform != "linux":
        return 1
    return max(1, min(limit, cores(), memory_bytes() // (PROCESS_BYTES + bound_bytes)))


def cores() -> int:
    """Returns the number of cores that this process may use: the fewest by the CPUs that the system assigns to it and
    by the quotas of its control groups, each rounded up; at most 1,024."""
    quotas = (_quota(text) for text in _settings("cpu.max"))
    return min(len(os.sched_getaffinity(0)), *(math.ceil(quota) for quota in quotas if quota is not None), 1_024)


def memory_bytes() -> int:
    """Returns the bytes of memory that this process may use: the memory of the machine, or the smallest limit of the
    control groups of the process if that is less."""
    limits = (int(text) for text in _settings("memory.max") if text.isdigit())
    return min(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), *limits, 1 << 62)


def _quota(text: str) -> float | None:
    """Returns the number of cores that a `cpu.max` file allows: the first number divided by the second. None if it sets
    no limit."""
    quota, _, period = text.partition(" ")
    return int(quota) / int(period) if quota.isdigit() and period.isdigit() and int(period) else None


def _settings(name: str) -> Iterator[str]:
    """Yields the text of a setting in the control group of this process and in every group around it (cgroups, version
    2), leaving out groups without the setting. Yields nothing on a system without such groups."""
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
