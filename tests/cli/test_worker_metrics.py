"""The files in which workers count: one set for each place, however many workers it has had."""

import errno
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from prometheus_client.mmap_dict import MmapedDict, mmap_key
from prometheus_client.parser import text_string_to_metric_families

from arco_catalog.cli import worker_metrics
from arco_catalog.cli.errors import CliError
from arco_catalog.cli.program import main
from arco_catalog.cli.worker_metrics import PREFIX, ROOM_BYTES, WorkerMetrics, metrics_directory
from arco_catalog.telemetry.metrics import OF_REQUESTS

HELP = {metric.series.name: metric.help for metric in OF_REQUESTS if metric.series is not None}
KILLED_WORKER = """
import os, signal, sys
from arco_catalog.cli.server_metrics import ServerMetrics
from arco_catalog.tasks.work_stats import WorkStats
counts = ServerMetrics(int(sys.argv[1]), lambda: 1_000).task_counts()
for _ in range(int(sys.argv[2])):
    counts.count("wh", WorkStats(executed=1, oldest_due_ms=2_000))
os.kill(os.getpid(), signal.SIGKILL)
"""
EVERY_LABEL = """
from arco_catalog.cli.server_metrics import ServerMetrics
from arco_catalog.planning.privileges import Privilege
from arco_catalog.protocol.request_stats import RequestStats
from arco_catalog.telemetry.engines import ENGINES
from arco_catalog.telemetry.names import OPERATIONS
from arco_catalog.telemetry.request_log import RequestLog, RequestSummary, ResponseSummary
from storage_backends.wrappers.measuring import Measurement
metrics = ServerMetrics(1, lambda: 1_000)
for operation in OPERATIONS.values():
    for engine in ENGINES:
        for status in (200, 304, 404, 503):
            log = RequestLog(RequestSummary("POST", "/", f"{engine}/1"), "id", "wh", Measurement(), 0.0)
            log.operation, log.response = operation, ResponseSummary(status)
            log.stats = RequestStats(conflicts=1)
            metrics.requests.observe(log)
for privilege in Privilege:
    log.stats = RequestStats(denied=(privilege, "table"))
    metrics.requests.observe(log)
"""


def work(metrics: WorkerMetrics, place: int, tasks: int) -> None:
    """A worker at this place counts tasks, and is killed."""
    command = [sys.executable, "-c", KILLED_WORKER, str(place), str(tasks)]
    assert subprocess.run(command, env={**os.environ, **metrics.environment}, check=False).returncode == -9


def values(metrics: WorkerMetrics, name: str) -> list[float]:
    body, _ = metrics.page("")
    families = text_string_to_metric_families(body.decode())
    return [sample.value for family in families for sample in family.samples if sample.name == name]


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where folders of workers are made."""
    monkeypatch.setattr(worker_metrics, "IN_MEMORY", tmp_path)
    return tmp_path


@pytest.fixture
def folder(folders: Path) -> Iterator[Path]:
    with metrics_directory(2) as made:
        yield made


def test_workers_count_together_and_go_on_where_dead_ones_stopped(folder: Path) -> None:
    metrics = WorkerMetrics(folder)
    for place, tasks in ((1, 3), (2, 4), (1, 5)):
        metrics.began()
        work(metrics, place, tasks)
        assert values(metrics, "arco_tasks_due_age_seconds") == [2.0]
        metrics.died(place, served=True)

    assert values(metrics, "arco_tasks_executed_total") == [12.0]
    assert values(metrics, "arco_worker_deaths_total") == [3.0]
    assert values(metrics, "arco_workers") == [0.0]


def test_facts_of_a_dead_worker_are_gone(folder: Path) -> None:
    metrics = WorkerMetrics(folder)
    work(metrics, 1, 1)
    metrics.died(1, served=False)

    assert values(metrics, "arco_connections_limit") == []
    assert values(metrics, "arco_tasks_due_age_seconds") == []


def count_as(folder: Path, place: int, by: float) -> None:
    """Counts as a process at a place does, and dies: its file is neither flushed nor closed by it."""
    name = "arco_server_errors"
    file = MmapedDict(str(folder / f"counter_{place}.db"))
    key = mmap_key(name, f"{name}_total", [], [], HELP[f"{name}_total"])
    file.write_value(key, file.read_value(key)[0] + by, 0.0)
    file.close()


def test_a_thousand_deaths_leave_as_many_files_as_none_and_lose_no_count(folder: Path) -> None:
    metrics = WorkerMetrics(folder)
    for death in range(1_000):
        count_as(folder, death % 4, 1.0)
        metrics.died(death % 4, served=False)

    assert values(metrics, "arco_server_errors_total") == [1_000.0]
    assert values(metrics, "arco_worker_deaths_total") == [1_000.0]
    assert sorted(file.name for file in folder.iterdir()) == [f"counter_{place}.db" for place in range(4)]
    assert sum(file.stat().st_size for file in folder.iterdir()) == 4 << 16


def test_a_file_that_a_worker_has_just_made_is_no_fault(folder: Path) -> None:
    metrics = WorkerMetrics(folder)
    count_as(folder, 1, 2.0)
    (folder / "counter_2.db").touch()
    (folder / "histogram_2.db").write_bytes(bytes(1 << 16))  # cut to size, but without its first number

    assert values(metrics, "arco_server_errors_total") == [2.0]
    count_as(folder, 2, 1.0)
    assert values(metrics, "arco_server_errors_total") == [3.0]


def test_a_folder_is_its_owners_and_goes_with_its_supervisor(folders: Path) -> None:
    with metrics_directory(2) as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
        count_as(folder, 1, 1.0)
    assert list(folders.iterdir()) == []


def test_folders_of_killed_supervisors_are_removed_and_those_of_living_ones_are_not(folders: Path) -> None:
    killed = folders / f"{PREFIX}killed"
    killed.mkdir()
    count_as(killed, 1, 1.0)
    (folders / "other").mkdir()
    with metrics_directory(2) as living, metrics_directory(2) as second:
        assert {path.name for path in folders.iterdir()} == {living.name, second.name, "other"}


def test_a_link_that_looks_like_a_folder_is_not_followed(folders: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").touch()
    (folders / f"{PREFIX}link").symlink_to(kept)
    with metrics_directory(2):
        assert (kept / "file").exists()


def test_without_a_folder_in_memory_the_temporary_one_serves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_metrics, "IN_MEMORY", tmp_path / "none")
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    with metrics_directory(2) as folder:
        assert folder.parent == tmp_path


def test_a_directory_in_memory_without_room_is_not_used(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = folders / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(elsewhere))
    free = {folders: 2 * ROOM_BYTES, elsewhere: 3 * ROOM_BYTES}
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=free[path]))
    with metrics_directory(2) as folder:
        assert folder.parent == folders
    with metrics_directory(3) as folder:
        assert folder.parent == elsewhere
    with pytest.raises(CliError, match="the metrics of these workers need 13 MB in"), metrics_directory(4):
        pass


def test_what_killed_supervisors_left_in_memory_is_removed_before_its_room_is_measured(
    folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, elsewhere = folders / f"{PREFIX}left", folders / "elsewhere"
    left.mkdir()
    elsewhere.mkdir()
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(elsewhere))
    monkeypatch.setattr(
        shutil,
        "disk_usage",
        lambda path: SimpleNamespace(free=0 if path == folders and left.exists() else 2 * ROOM_BYTES),
    )
    with metrics_directory(2) as folder:
        assert folder.parent == folders


def without_temporary_files() -> str:
    raise FileNotFoundError("No usable temporary directory found")


def test_a_file_system_that_is_read_only_but_in_memory_suffices(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "gettempdir", without_temporary_files)
    with metrics_directory(2) as folder:
        assert folder.parent == folders
    monkeypatch.setattr(worker_metrics, "IN_MEMORY", folders / "none")
    with pytest.raises(CliError, match="the metrics of these workers need"), metrics_directory(2):
        pass


class Locks:
    """Locks of a file system: the first ones are refused, by an error or because another supervisor has them."""

    def __init__(self, refused: int, error: OSError | None) -> None:
        self.calls = 0
        self._refused = refused
        self._error = error

    def try_lock(self, descriptor: int) -> bool:
        self.calls += 1
        assert self.calls < 100, "it goes on for ever"
        if self.calls <= self._refused and self._error is not None:
            raise self._error
        return self.calls > self._refused


def test_on_a_file_system_without_locks_a_supervisor_ends_with_the_reason(
    folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locks = Locks(1_000, OSError(errno.ENOTSUP, "Operation not supported"))
    monkeypatch.setattr(worker_metrics, "try_lock", locks.try_lock)
    with (
        pytest.raises(CliError, match=f"none in {folders} can be: its file system may have no locks"),
        metrics_directory(2),
    ):
        pass
    assert list(folders.iterdir()) == []


def test_directories_that_others_take_while_they_are_made_do_not_stop_a_supervisor(
    folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_metrics, "try_lock", Locks(3, None).try_lock)
    with metrics_directory(2) as folder:
        assert list(folders.iterdir()) == [folder]


def test_a_directory_of_another_programs_metrics_is_not_used(tmp_path: Path) -> None:
    mine, others = tmp_path / "mine", tmp_path / "others"
    mine.mkdir()
    others.mkdir()
    program = "import pathlib, sys; from arco_catalog.cli.worker_metrics import WorkerMetrics as W; " + (
        "W(pathlib.Path(sys.argv[1])).began()"
    )
    environment = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(others)}
    subprocess.run([sys.executable, "-c", program, str(mine)], env=environment, check=True)
    assert [*mine.iterdir(), *others.iterdir()] == []


def test_a_worker_that_uses_every_label_fits_into_its_room(folder: Path) -> None:
    metrics = WorkerMetrics(folder)
    metrics.reserve([1, 2])
    reserved = {file: (file.stat().st_size, file.stat().st_blocks) for file in folder.iterdir()}
    command = [sys.executable, "-c", EVERY_LABEL]
    subprocess.run(command, env={**os.environ, **metrics.environment}, check=True)
    metrics.died(1, served=False)

    assert {file: (file.stat().st_size, file.stat().st_blocks) for file in folder.iterdir()} == reserved
    assert sum(size for size, _ in reserved.values()) == 2 * ROOM_BYTES
    assert all(blocks * 512 >= size for size, blocks in reserved.values())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
@pytest.mark.parametrize("reserves", [True, False])
def test_a_directory_that_others_fill_up_kills_a_worker_only_where_nothing_was_reserved(
    tmp_path: Path, reserves: bool
) -> None:
    script = f"""
import pathlib, sys
from arco_catalog.cli.worker_metrics import WorkerMetrics
folder = pathlib.Path({str(tmp_path)!r})
if {reserves}:
    WorkerMetrics(folder).reserve([1])
try:
    with open(folder / "others", "wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
except OSError:
    pass
"""
    mounting = 'mount -t tmpfs -o size=8m tmpfs "$1"; "$2" -c "$3"; exec "$2" -c "$4"'
    words = ("sh", str(tmp_path), sys.executable, script, EVERY_LABEL)
    ended = subprocess.run(
        ["unshare", "--mount", "sh", "-euc", mounting, *words],
        env={**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)},
        check=False,
    )
    assert ended.returncode == (0 if reserves else -signal.SIGBUS)


def test_no_room_to_reserve_is_one_error_before_any_worker_starts(
    folders: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def full(file: int, offset: int, size: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    words = ["serve", "--store", f"file:{folders}/store", "--workers", "2", "--port", "0", "--metrics-port", "0"]

    assert main(words) == 1

    printed = capfd.readouterr()
    assert printed.out == ""
    assert printed.err == (
        f"arco: the metrics of these workers need 7 MB in {folders}: No space left on device; "
        "leave --metrics-port out, or start fewer --workers\n"
    )
    assert not (folders / "store").exists()
