"""Starts servers to test against, each in a process of its own on 127.0.0.1, which ends with the context that started
it."""

import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tools.support.environment import PROJECT
from tools.support.ports import free_port

START_S = 60.0
NOT_READY = 503

Command = Callable[[int, Path], Sequence[str | Path]]
"""What starts a server at this port of 127.0.0.1, with this empty folder for what it keeps."""


def built(name: str) -> Path:
    """The program of a server that the Makefile builds with Go. Raises `LookupError` if it is not there."""
    found = PROJECT / ".tools" / name
    if not found.exists():
        place = found.relative_to(PROJECT)
        raise LookupError(f"{place} is not built: run 'make {place}', which needs Go")
    return found


@contextmanager
def listening(command: Command, environment: Mapping[str, str] | None = None) -> Iterator[str]:
    """The URL of the server that a command starts, once it answers anything but that it is not ready.

    `environment` is added to this process's own. Raises `RuntimeError` with the server's log if it does not start.
    """
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryDirectory(prefix="arco-server-") as scratch:
        folder, log = Path(scratch, "kept"), Path(scratch, "log")
        folder.mkdir()
        with (
            log.open("wb") as out,
            subprocess.Popen(
                command(port, folder),
                cwd=scratch,
                env={**os.environ, **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            ) as process,
        ):
            try:
                _await_answer(url, process, log)
                yield url
            finally:
                process.kill()


@contextmanager
def announcing(module: str, *options: str) -> Iterator[str]:
    """The URL of a server of this project's own, which prints its port when it listens.

    Raises `RuntimeError` with what it said on standard error if it does not start.
    """
    with (
        tempfile.TemporaryFile("w+") as log,  # a pipe that nobody reads would stop a server that says much
        subprocess.Popen(
            [sys.executable, "-m", module, *options],
            cwd=PROJECT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as process,
    ):
        try:
            port = process.stdout.readline().strip() if process.stdout else ""
            if not port:
                log.seek(0)
                raise RuntimeError(f"{module} did not start: {log.read()}")
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()


def _await_answer(url: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.perf_counter() + START_S
    while time.perf_counter() < deadline:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except urllib.error.HTTPError as error:
            if error.code != NOT_READY:
                return
        except OSError:
            pass
        if process.poll() is not None:
            break
        time.sleep(0.05)
    raise RuntimeError(f"the server did not start: {process.args!r}\n{log.read_text()[-4000:]}")
