"""Kills servers and starts others at their ports: `python -m tests.prove.restart_server STORE FILE PORT [FILE PORT
...]`. Each FILE has the id of a server's process. Ends when the new ones answer."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from urllib.request import urlopen

from tools.support.ports import free_port

START_S = 60.0


def restart_command(folder: Path, servers: int) -> tuple[Sequence[Path], Sequence[int], list[str]]:
    """Returns the files of so many servers, their ports, and the command that restarts them, or starts them."""
    files = [folder / f"server{number}" for number in range(servers)]
    ports = [free_port() for _ in files]
    pairs = (word for file, port in zip(files, ports, strict=True) for word in (str(file), str(port)))
    command = [sys.executable, "-m", "tests.prove.restart_server", f"file:{folder}/store", *pairs]
    return files, ports, command


def main(store: str, words: Sequence[str]) -> int:
    """Returns the exit code."""
    pairs = list(zip(map(Path, words[::2]), words[1::2], strict=True))
    for file, _ in pairs:
        if file.exists():
            with suppress(ProcessLookupError):
                os.kill(int(file.read_text()), signal.SIGKILL)
    with ThreadPoolExecutor(len(pairs)) as starting:
        started = starting.map(lambda pair: _start(store, *pair), pairs)
    return 0 if all(started) else 1


def _start(store: str, file: Path, port: str) -> bool:
    """Starts a server, again if its port is not free yet. Returns whether it answers."""
    program = [sys.executable, "-m", "arco_catalog.cli"]
    command = [*program, "serve", "--store", store, "--port", port, "--quiet", "--workers", "1"]
    end = time.monotonic() + START_S
    with file.with_suffix(".log").open("ab") as log:
        while time.monotonic() < end:
            process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
            file.write_text(str(process.pid))
            while time.monotonic() < end and process.poll() is None:
                try:
                    with urlopen(f"http://127.0.0.1:{port}/v1/config", timeout=5):
                        return True
                except OSError:
                    time.sleep(0.1)
    return False


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1], sys.argv[2:]))
