"""A real `arco serve` process that tests start, inspect, kill and start again."""

import os
import resource
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

ARCO = Path(sys.executable).with_name("arco")
WAREHOUSE = "main"
START_S = 30.0


class ArcoServer:
    """An `arco serve` over `store` for tests, in a process of its own, at another port each time it is started.

    `options` are more of its options; `descriptors` is how many files it may open; `program` is
    what runs in place of `arco`. A context that starts it, and ends
    it by a kill: nothing may depend on a better end.
    """

    def __init__(
        self,
        store: str,
        log: Path,
        *options: str,
        descriptors: int | None = None,
        program: Sequence[str] = (str(ARCO),),
    ) -> None:
        usual = [*program, "serve", "--store", store, "--port", "0", "--warehouse", WAREHOUSE, "--quiet"]
        self._command = [*usual, "--workers", "1", *options]
        self._log = log
        self._descriptors = descriptors
        self._process: subprocess.Popen[str] | None = None
        self.uri = ""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def start(self) -> None:
        """Starts it, and returns when it listens. Raises `RuntimeError` if it does not."""
        with self._log.open("a") as log:
            process = subprocess.Popen(
                self._command, stdout=subprocess.PIPE, stderr=log, text=True, preexec_fn=self._limit_descriptors
            )
        self._process = process
        watchdog = threading.Timer(START_S, process.kill)
        watchdog.start()
        try:
            line = process.stdout.readline() if process.stdout is not None else ""
        finally:
            watchdog.cancel()
        _, found, rest = line.partition(" at http://")
        if not found:
            self.kill()
            raise RuntimeError(f"arco serve did not start: {line}{self._log.read_text()[-4000:]}")
        self.uri = f"http://{rest.split()[0]}"

    def _limit_descriptors(self) -> None:
        if self._descriptors is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (self._descriptors, self._descriptors))

    def kill(self) -> None:
        """Ends it by SIGKILL, in the middle of whatever it does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            if self._process.stdout is not None:
                self._process.stdout.close()
            self._process = None

    @property
    def pid(self) -> int:
        """The process's id. Raises `RuntimeError` if there is none."""
        if self._process is None or self._process.poll() is not None:
            raise RuntimeError(f"arco serve is not running: {self._log.read_text()[-4000:]}")
        return self._process.pid

    def memory(self, field: str) -> int:
        """A size in bytes from /proc/PID/status: `VmRSS` is the present one, `VmHWM` the peak."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            name, _, value = line.partition(":")
            if name == field:
                return int(value.split()[0]) * 1024
        raise RuntimeError(f"/proc/PID/status has no field {field}")

    def cpu_seconds(self) -> float:
        """CPU time that it has used, in user and system mode."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
