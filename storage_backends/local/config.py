"""The settings of a store of local files."""

from storage_backends.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class LocalConfig:
    """The settings of a store of local files: how many `threads` wait for disks and locks; `lock_timeout_s`, the
    longest wait for a lock that another process or thread has; `read_at_once`, the size in bytes up to which an object
    in the operating system's memory is read without a thread; `stale_after_ms`, the age beyond which the first write
    removes temporary files of a crash."""

    threads: int = 16
    lock_timeout_s: float = 10.0
    read_at_once: int = 256 * 1024
    stale_after_ms: int = 24 * 60 * 60 * 1_000
