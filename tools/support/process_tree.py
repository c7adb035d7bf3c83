"""What a process and those that it started take of this machine, as Linux tells it in /proc."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

EVERY_SECONDS = 0.5
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class TreeUse:
    """The most memory of any process by the name of its program, the first one's being `driver`, and the CPU seconds of
    all, as they were when last looked at: what processes do in their last half second is not in it."""

    peak_bytes: dict[str, int] = field(default_factory=dict)
    cpu_by_process: dict[int, float] = field(default_factory=dict)

    @property
    def cpu_seconds(self) -> float:
        return sum(self.cpu_by_process.values())

    def look(self, root: int) -> None:
        """Takes note of the process, and of all below it."""
        for pid in _below(root):
            try:
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
            except OSError:
                continue  # it has ended
            self.cpu_by_process[pid] = (int(fields[11]) + int(fields[12])) / TICKS
            name = status["Name"].strip() if pid != root else "driver"
            peak = int(status.get("VmHWM", "0 kB").split()[0]) * 1024
            self.peak_bytes[name] = max(peak, self.peak_bytes.get(name, 0))


@contextmanager
def watched(pid: int) -> Iterator[TreeUse]:
    """Looks again and again, for as long as the context lasts."""
    use, ended = TreeUse(), threading.Event()

    def watch() -> None:
        while not ended.wait(EVERY_SECONDS):
            use.look(pid)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield use
    finally:
        ended.set()
        watcher.join()


def thread_cpu_seconds(pid: int) -> float:
    """CPU time of the threads that a process has now, by the scheduler, which counts nanoseconds."""
    total = 0
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # threads come and go
            total += int((thread / "schedstat").read_text().split()[0])
    return total / 1e9


def _below(root: int) -> list[int]:
    """The process, and all that it, or one that it started, has started."""
    parents: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                parents[int(name)] = int(Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue  # it has ended
    found = [root]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found
