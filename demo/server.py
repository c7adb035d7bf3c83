"""The servers that the demo starts and stops: `arco serve`, and moto where no S3 is named."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
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
    """A running `arco serve`: where it answers, over which store."""

    uri: str
    store: str

    def receipts(self, table: str) -> bytes:
        """What `arco receipts` prints about a table, as JSON."""
        command = [str(ARCO), "receipts", table, "--store", self.store, "--warehouse", WAREHOUSE, "--json"]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=60).stdout


@contextmanager
def serving(store: str, log: Path) -> Iterator[Server]:
    """Runs `arco serve` over `store` on a free loopback port. Raises `RuntimeError` if it does not start or stop."""
    port = _free_port()
    options = ["--store", store, "--host", "127.0.0.1", "--port", str(port), "--warehouse", WAREHOUSE]
    with log.open("wb") as out, subprocess.Popen([ARCO, "serve", *options], stdout=out, stderr=out) as process:
        try:
            uri = f"http://127.0.0.1:{port}"
            _await_answer(process, f"{uri}/v1/config?warehouse={WAREHOUSE}", log)
            yield Server(uri, store)
        finally:
            code = _stop(process)
        if code != 0:
            raise RuntimeError(f"arco serve ended with {code} when interrupted:\n{_end_of(log)}")


@contextmanager
def s3(store: str) -> Iterator[None]:
    """An S3 for an `s3://` store: the one in AWS_ENDPOINT_URL_S3, or a moto of our own with the store's bucket in it.

    The environment of this process, and of whatever it starts, leads there.
    """
    if not store.startswith("s3://") or os.environ.get("AWS_ENDPOINT_URL_S3"):
        yield
        return
    from tests.servers import moto_server  # the demo on a real S3 needs no moto

    with moto_server() as server:
        os.environ.update(server.environment)
        server.make_bucket(store.removeprefix("s3://").partition("/")[0])
        yield


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _await_answer(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.perf_counter() + FIRST_ANSWER_S
    while time.perf_counter() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"arco serve ended with {process.returncode}:\n{_end_of(log)}")
        try:
            with urllib.request.urlopen(url, timeout=FIRST_ANSWER_S):
                return
        except urllib.error.HTTPError as refused:
            raise RuntimeError(f"{url}: {refused.code} {refused.read()!r}") from refused
        except urllib.error.URLError:
            time.sleep(0.05)  # not listening yet
    raise RuntimeError(f"arco serve did not answer within {FIRST_ANSWER_S} s:\n{_end_of(log)}")


def _stop(process: subprocess.Popen[bytes]) -> int:
    """Ends it as Ctrl-C does, and says how it went."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
    try:
        return process.wait(LAST_ANSWER_S)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def _end_of(log: Path) -> str:
    return log.read_text()[-4000:]
