"""The settings of a folder as a store."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LocalConfig:
    """`threads` wait for disks and locks at a time; a lock that another process holds is waited for `lock_timeout_s`;
    objects of up to `read_at_once` bytes are copied from the operating system's memory sooner than a thread is woken
    for them; temporary files that a crash left are removed when they are older than `stale_after_ms`."""

    threads: int = 16
    lock_timeout_s: float = 10.0
    read_at_once: int = 256 * 1024
    stale_after_ms: int = 24 * 60 * 60 * 1_000
