"""Servers of two workers are killed or stopped under clients, a hundred times in each way, and the next one answers at
the same port (`make test-restarts`; `ARCO_RESTARTS` is how often)."""

import http.client
import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tools.support.arco_server import ARCO

pytestmark = pytest.mark.slow
RESTARTS = int(os.environ.get("ARCO_RESTARTS", "100"))
CLIENTS = 4
PAUSES_S = (0.05, 0.3, 0.6, 0.9)
"""Between the first answer of a server and its end: some of them end while workers are still starting."""
GOAL_S = 2.0
BOUND_S = 30.0
PROBES = 6
"""Connections that are to be answered: of two workers, each gets some."""
DEATHS_IN_A_ROW = 4
"""Of workers: a server gives up after a few more within a minute."""


@dataclass
class Load:
    """Clients that create namespaces all the time, and what each was answered: None without an answer."""

    port: int
    answers: dict[str, int | None] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)

    def run(self, client: int) -> None:
        """One client, until the load is over."""
        number = 0
        while not self._over.is_set():
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=BOUND_S)
            try:
                for _ in range(20):
                    number += 1
                    self._create(connection, f"n{client}_{number}")
                    if self._over.is_set():
                        return
            except (OSError, http.client.HTTPException):
                self._over.wait(0.02)
            finally:
                connection.close()

    def _create(self, connection: http.client.HTTPConnection, name: str) -> None:
        self.answers[name] = None
        body = json.dumps({"namespace": [name]})
        connection.request("POST", "/v1/arco/namespaces", body, {"content-type": "application/json"})
        response = connection.getresponse()
        text = response.read()
        self.answers[name] = response.status
        if response.status != 200:
            self.failures.append(f"{response.status} {text[:300]!r}")

    def stop(self) -> None:
        """Lets each client finish its request."""
        self._over.set()


@dataclass
class Server:
    """`arco serve` of two workers at one port."""

    store: Path
    log: Path
    port: int
    process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Starts it, and returns when it serves. Raises `RuntimeError` if it does not."""
        command = [str(ARCO), "serve", "--store", f"file:{self.store}", "--port", str(self.port)]
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                [*command, "--workers", "2", "--quiet"], stdout=subprocess.PIPE, stderr=log, text=True
            )
        assert self.process.stdout is not None
        if not self.process.stdout.readline():
            raise RuntimeError(f"arco serve did not start: {self.log.read_text()[-2000:]}")

    def workers(self) -> list[int]:
        """The ids of its workers."""
        assert self.process is not None
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [int(pid) for pid in children.split()]

    def end(self, *pids: int, by: signal.Signals) -> int:
        """Sends a signal to these processes, and waits for the end of the server's own. Returns its exit code."""
        assert self.process is not None
        for pid in (*pids, self.process.pid):
            os.kill(pid, by)
        code = self.process.wait(timeout=BOUND_S)
        if self.process.stdout is not None:
            self.process.stdout.close()
        self.process = None
        return code

    def probe(self, _: int = 0) -> None:
        """Sends requests on new connections until one is answered. Raises `TimeoutError`."""
        until = time.monotonic() + BOUND_S
        while time.monotonic() < until:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=BOUND_S)
            try:
                connection.request("GET", "/health")
                if connection.getresponse().status == 200:
                    return
            except (OSError, http.client.HTTPException):
                time.sleep(0.01)
            finally:
                connection.close()
        raise TimeoutError(f"no answer at port {self.port} within {BOUND_S:.0f} s")

    def namespaces(self) -> set[str]:
        """All that there are."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=BOUND_S)
        connection.request("GET", "/v1/arco/namespaces")
        listed = json.loads(connection.getresponse().read())["namespaces"]
        connection.close()
        return {name for [name] in listed}


def kill_the_parent(server: Server, number: int) -> float:
    began = time.monotonic()
    server.end(by=signal.SIGKILL)
    server.start()
    return began


def kill_all(server: Server, number: int) -> float:
    began = time.monotonic()
    server.end(*server.workers(), by=signal.SIGKILL)
    server.start()
    return began


def kill_a_worker(server: Server, number: int) -> float:
    """The server replaces it. A server gives up after five deaths, so a new one is started before that; its start is
    not part of the time, which begins with the kill."""
    if number % (DEATHS_IN_A_ROW + 1) == DEATHS_IN_A_ROW:
        server.end(by=signal.SIGTERM)
        server.start()
    workers = server.workers()
    began = time.monotonic()
    os.kill(workers[number % len(workers)], signal.SIGKILL)
    return began


def stop(server: Server, number: int) -> float:
    began = time.monotonic()
    assert server.end(by=signal.SIGTERM) == 0
    server.start()
    return began


WAYS: Mapping[str, Callable[[Server, int], float]] = {
    "SIGKILL of the parent": kill_the_parent,
    "SIGKILL of a worker": kill_a_worker,
    "SIGKILL of all": kill_all,
    "SIGTERM": stop,
}
"""Each ends a server or a worker, and returns the time of the signal, from which the time to an answer is measured."""


def free_port() -> int:
    """A port of loopback at which nothing listens."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def _within(took: Sequence[float]) -> int:
    return sum(seconds <= GOAL_S for seconds in took)


@pytest.mark.parametrize("way", WAYS)
def test_the_next_server_answers_at_the_same_port(tmp_path: Path, way: str) -> None:
    server = Server(tmp_path / "store", tmp_path / "log", free_port())
    server.start()
    load, took = Load(server.port), list[float]()
    with ThreadPoolExecutor(CLIENTS + PROBES) as pool:
        clients = [pool.submit(load.run, client) for client in range(CLIENTS)]
        try:
            for number in range(RESTARTS):
                time.sleep(PAUSES_S[number % len(PAUSES_S)])
                began = WAYS[way](server, number)
                [*pool.map(server.probe, range(PROBES))]
                took.append(time.monotonic() - began)
                if len(took) % 10 == 0:
                    print(f"{way}: {len(took)} of {RESTARTS}, {_within(took)} within {GOAL_S:.0f} s", flush=True)
        finally:
            load.stop()
        for client in clients:
            client.result()
    there = server.namespaces()
    server.end(by=signal.SIGTERM)

    counts = Counter("no answer" if status is None else str(status) for status in load.answers.values())
    print(
        f"\n{way}: {len(took)} of {RESTARTS} answered, {_within(took)} within {GOAL_S:.0f} s, the slowest after "
        f"{max(took):.2f} s; requests: {dict(counts)}"
    )
    assert len(took) == RESTARTS
    assert load.failures == []
    assert [name for name, status in load.answers.items() if status == 200 and name not in there] == []
    assert "Traceback" not in server.log.read_text()
    if way == "SIGTERM":  # what was under way was answered: nothing else was applied
        assert [name for name, status in load.answers.items() if status is None and name in there] == []
