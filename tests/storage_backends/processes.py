"""Starts workers (`worker.py`) and lets them begin together."""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from tools.support.environment import PROJECT


class Worker:
    """One process, ready to begin."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("the process was started without pipes")
        self.process = process
        self._input, self._output = process.stdin, process.stdout
        if (line := self._output.readline().strip()) != "ready":
            raise RuntimeError(f"a worker did not get ready: {line}")

    def begin(self) -> None:
        self._input.write("go\n")
        self._input.flush()

    def next_result(self) -> int | None:
        """Returns the next result, or None when the process has ended."""
        line = self._output.readline()
        return int(json.loads(line)) if line.endswith("\n") else None

    def results(self) -> list[int]:
        """Yields all results until the process ends."""
        return list(iter(self.next_result, None))

    def ended_well(self) -> bool:
        return self.process.wait(timeout=30) == 0


@contextmanager
def workers(count: int, job: str, url: str, *arguments: str) -> Iterator[Sequence[Worker]]:
    """Starts processes that wait for the signal to begin, and kills them at the end."""
    command = [sys.executable, "-m", "tests.storage_backends.worker", job, url, *arguments]
    with ExitStack() as stack:
        started = []
        for _ in range(count):
            process = stack.enter_context(
                subprocess.Popen(command, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
            stack.callback(process.kill)
            started.append(process)
        yield [Worker(process) for process in started]
