"""The metrics for Prometheus of a server with workers: the supervisor answers with one page for all of them.

Each worker counts in files of its place, in a directory in memory, or elsewhere if that has not the space. A worker
that takes the place of a dead one goes on in its files, so no count is lost or doubled, and the directory has as many
files after a thousand deaths as after none (docs/decisions/0083-metrics-of-workers.md). The system kills a process that
writes to a mapped file for which there is no room, so the supervisor reserves all bytes of the files before a worker
starts."""

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from math import ceil
from pathlib import Path
from threading import Lock

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from arco_catalog.cli.errors import CliError
from arco_catalog.telemetry.collectors import DIRECTORY_VARIABLE, Page, count_in_memory, page_of
from arco_catalog.telemetry.server_info import ServerInfo
from storage_backends.local.files import try_lock

IN_MEMORY = Path("/dev/shm")
PREFIX = "arco-metrics-"
GAUGES = ("gauge_livesum", "gauge_livemostrecent")
"""The files of facts about a living worker, as the client library names them."""
FILE_BYTES = {"counter": 2 << 20, "histogram": 1 << 20, **dict.fromkeys(GAUGES, 1 << 16)}
"""The size of each file of a worker, which has space for every label that there is."""
ROOM_BYTES = sum(FILE_BYTES.values())
"""What the files of a worker take."""


MAX_TRIES = 20
"""How often a supervisor tries to create a directory that it can lock."""


class WorkerMetrics(Collector):
    """The metrics that the workers of a supervisor count in a directory, and on the page also the supervisor's counts
    of workers and deaths."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._reading = Lock()
        registry = CollectorRegistry()
        registry.register(self)
        count_in_memory()
        self._info = ServerInfo(registry)
        self.page: Page = page_of(registry)

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables that give a worker the directory."""
        return {DIRECTORY_VARIABLE: str(self._directory)}

    def reserve(self, places: Iterable[int]) -> None:
        """Creates the files of the workers at these places, with all the room that they can ever need. Raises
        `CliError` if the system has no space for them."""
        chosen = [*places]
        try:
            for place in chosen:
                for kind, size in FILE_BYTES.items():
                    with self._file(kind, place).open("wb") as file:
                        os.posix_fallocate(file.fileno(), 0, size)
        except OSError as error:
            raise _no_room(len(chosen) * ROOM_BYTES, f"{self._directory.parent}: {error.strerror}") from error

    def began(self) -> None:
        """Counts a worker that serves."""
        self._info.workers.inc()

    def died(self, place: int, *, served: bool) -> None:
        """Counts the death of the worker at a place, and clears its gauges, such as that of its connections, whose
        files keep their space. If it `served`, there is one serving worker fewer. Its counters remain for the worker
        that takes its place."""
        self._info.deaths.inc()
        if served:
            self._info.workers.dec()
        with self._reading:
            for kind in GAUGES:
                with suppress(FileNotFoundError), self._file(kind, place).open("r+b") as file:
                    file.write(bytes(FILE_BYTES[kind]))

    def collect(self) -> Iterable[Metric]:
        """Returns the metrics of all workers. Leaves out a file that a worker has just created, while it is still
        empty."""
        with self._reading:
            files = [str(file) for file in self._directory.glob("*.db") if file.stat().st_size]
            merged: Iterable[Metric] = MultiProcessCollector.merge(files)
            return merged

    def _file(self, kind: str, place: int) -> Path:
        """Returns the path of a worker's file of metrics of a kind."""
        return self._directory / f"{kind}_{place}.db"


@contextmanager
def metrics_directory(workers: int) -> Iterator[Path]:
    """Creates a directory for the files of this many workers, in memory if the system has a directory there with enough
    room, and removes it at the end. Before it looks for space, removes what killed supervisors left in memory or in the
    directory for temporary files. Raises `CliError` if there is no directory with enough space, or none that can be
    locked."""
    for parent in _parents():
        for left in parent.glob(f"{PREFIX}*"):
            if (lock := _locked(left)) is not None:
                _remove(left, lock)
    parent = _directory_with_room(workers * ROOM_BYTES)
    directory, lock = _locked_directory(parent)
    try:
        yield directory
    finally:
        _remove(directory, lock)


def _locked_directory(parent: Path) -> tuple[Path, int]:
    """Creates a directory that no other supervisor removes, and returns it with the descriptor of its lock. Raises
    `CliError` if it can't be locked, as on a file system without locks."""
    for _ in range(MAX_TRIES):  # a supervisor that starts at this moment may take the directory for one that is left
        directory = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
        lock = _locked(directory)
        if lock is not None:
            return directory, lock
        with suppress(FileNotFoundError):
            directory.rmdir()
    raise CliError(
        f"the metrics of these workers need a directory that can be locked, and none in {parent} can be: its file "
        "system may have no locks (flock); leave --metrics-port out, or mount one with locks there"
    )


def _parents() -> Sequence[Path]:
    """Returns the directories in which those for metrics can be: the one in memory, and the one for temporary files if
    there is one that can be written to."""
    try:
        return IN_MEMORY, Path(tempfile.gettempdir())
    except FileNotFoundError:
        return (IN_MEMORY,)


def _directory_with_room(needed: int) -> Path:
    """Returns a directory with `needed` bytes of space that can be written to: that in memory, or else that for
    temporary files. Raises `CliError` if neither has the space."""
    for parent in _parents():
        if _has_room(parent, needed):
            return parent
    raise _no_room(
        needed,
        f"{IN_MEMORY}, or in the directory for temporary files (TMPDIR): neither has the space and can be written to",
    )


def _no_room(needed: int, where: str) -> CliError:
    """Returns the error for too little space for metrics."""
    return CliError(
        f"the metrics of these workers need {ceil(needed / (1 << 20))} MB in {where}; leave --metrics-port out, or "
        "start fewer --workers"
    )


def _has_room(directory: Path, needed: int) -> bool:
    """Whether this process may write in a directory on whose file system `needed` bytes are free; False for a directory
    that does not exist."""
    return os.access(directory, os.W_OK | os.X_OK) and shutil.disk_usage(directory).free >= needed


def _locked(directory: Path) -> int | None:
    """Locks a directory for as long as the returned descriptor is open. Returns None if a living supervisor has locked
    it, if it is gone, if it is another user's, or if the file system has no locks."""
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        if try_lock(descriptor) and directory.exists():
            return descriptor
    except OSError:  # a file system without locks
        pass
    os.close(descriptor)
    return None


def _remove(directory: Path, lock: int) -> None:
    """Removes a directory and its lock. A worker that is about to die may create a file meanwhile; what is left then is
    removed at the next start."""
    shutil.rmtree(directory, ignore_errors=True)
    os.close(lock)
