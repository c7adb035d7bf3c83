"""Starts and stops the server of the demo, `arco serve`."""

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ARCO = Path(sys.executable).with_name("arco")
WAREHOUSE = "demo"
FIRST_ANSWER_S = 30.0
LAST_ANSWER_S = 15.0


@dataclass(frozen=True)
class Server:
    """The running `arco serve` of the demo: its URI, and the URL of its store."""

    uri: str
    store: str

    def receipts(self, table: str) -> bytes:
        """What `arco receipts` prints about a table, as JSON."""
        command = [str(ARCO), "receipts", table, "--store", self.store, "--warehouse", WAREHOUSE, "--json"]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=60).stdout


@contextmanager
def serving(store: str, log: Path, *more: str) -> Iterator[Server]:
    """Runs `arco serve` over `store` on a free loopback port, with more of its options. Raises `RuntimeError` if it
    does not start or stop."""
    options = ["--store", store, "--host", "127.0.0.1", "--port", "0", "--warehouse", WAREHOUSE, "--quiet", *more]
    with log.open("wb") as out, subprocess.Popen([ARCO, "serve", *options], stdout=out, stderr=out) as process:
        try:
            yield Server(_await_address(process, log), store)
        finally:
            code = _stop(process)
        if code != 0:
            raise RuntimeError(f"arco serve ended with {code} when interrupted:\n{_end_of(log)}")


def _await_address(process: subprocess.Popen[bytes], log: Path) -> str:
    """The URI that the server logs once it listens. Raises `RuntimeError` if it does not start."""
    deadline = time.perf_counter() + FIRST_ANSWER_S
    while time.perf_counter() < deadline:
        if found := re.search(r"http://127\.0\.0\.1:\d+", log.read_text()):
            return found.group()
        if process.poll() is not None:
            raise RuntimeError(f"arco serve ended with {process.returncode}:\n{_end_of(log)}")
        time.sleep(0.05)
    raise RuntimeError(f"arco serve did not log its URI within {FIRST_ANSWER_S} s:\n{_end_of(log)}")


def _stop(process: subprocess.Popen[bytes]) -> int:
    """Stop the server as Ctrl-C does, or kill it after `LAST_ANSWER_S`, and return the exit status."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
    try:
        return process.wait(LAST_ANSWER_S)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def _end_of(log: Path) -> str:
    return log.read_text()[-4000:]
