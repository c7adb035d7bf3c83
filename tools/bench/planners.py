"""Two planners of scans, each in a process of its own: `arco serve`, and Iceberg's Java library."""

import http.client
import json
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from arco_catalog.iceberg.json import JsonObject, JsonValue
from tools.support.arco_server import WAREHOUSE, ArcoServer
from tools.support.java_programs import JavaProgram, compile_programs, running

NAMESPACES = f"/v1/{WAREHOUSE}/namespaces"
TABLE = f"{NAMESPACES}/db/tables/t"
AT_ONCE = 4
"""How many plan tasks of a plan are fetched at once."""
LIMIT_S = 3_600.0
RELEASE = "1.11.0"
"""Of Iceberg's Java library."""
BUSY = 503
BUSY_PAUSE_S = 0.1


@dataclass(frozen=True)
class PlanTimes:
    """What a plan found, and the seconds until the first task was there, and in all. `sent` is the bytes of the
    answers, `refused` the number of requests that were sent again after a 503."""

    files: int
    deletes: int
    first_s: float
    wall_s: float
    sent: int = 0
    refused: int = 0


class TimedPlanner(Protocol):
    """A process that plans scans of one table."""

    @property
    def pid(self) -> int:
        """The process's id."""

    def plan(self, filter_: JsonObject) -> PlanTimes:
        """Plans a scan to its end."""


@dataclass(frozen=True)
class ServedPlans:
    """`arco serve`, by HTTP."""

    server: ArcoServer

    @property
    def pid(self) -> int:
        return self.server.pid

    def plan(self, filter_: JsonObject) -> PlanTimes:
        return follow(self.server.uri, filter_)


def follow(uri: str, filter_: JsonObject) -> PlanTimes:
    """Plans a scan, and fetches all of its plan tasks. Raises `RuntimeError` for an answer that is no success."""
    began = time.perf_counter()
    files = deletes = sent = refused = 0
    first_s = 0.0
    with ThreadPoolExecutor(AT_ONCE) as pool:
        waiting: set[Future[SendResult]] = {pool.submit(send, uri, f"{TABLE}/plan", {"filter": filter_})}
        while waiting:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for each in done:
                body, again = each.result()
                answer: dict[str, Any] = json.loads(body)
                tasks = answer.get("file-scan-tasks", [])
                if tasks and not files:
                    first_s = time.perf_counter() - began
                files += len(tasks)
                deletes += sum(len(task.get("delete-file-references", ())) for task in tasks)
                sent += len(body)
                refused += again
                for token in answer.get("plan-tasks", []):
                    waiting.add(pool.submit(send, uri, f"{TABLE}/tasks", {"plan-task": token}))
    return PlanTimes(files, deletes, first_s, time.perf_counter() - began, sent, refused)


class SendResult(NamedTuple):
    """The body of an answer, and how many times the server was too busy for the request before."""

    body: bytes
    refused: int


def send(uri: str, path: str, body: Mapping[str, JsonValue]) -> SendResult:
    """Sends a POST, and again while the server is too busy. Raises `RuntimeError` for any other refusal."""
    refused = 0
    status, received = _send(uri, path, body)
    while status == BUSY:
        refused += 1
        time.sleep(BUSY_PAUSE_S)
        status, received = _send(uri, path, body)
    if status != 200:
        raise RuntimeError(f"{path}: {status} {received[:500]!r}")
    return SendResult(received, refused)


def _send(uri: str, path: str, body: Mapping[str, JsonValue]) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(uri.removeprefix("http://"), timeout=LIMIT_S)
    try:
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def cpu_seconds(pid: int) -> float:
    """CPU seconds of a process with all threads that it has or had, by its CPU clock (clock_getcpuclockid of Linux)."""
    return time.clock_gettime(~pid << 3 | 2)


@contextmanager
def served(folder: Path, *options: str) -> Iterator[ServedPlans]:
    """A new server of the catalog in a folder."""
    with ArcoServer(f"file:{folder}", folder.with_name("server.log"), *options) as server:
        yield ServedPlans(server)


@dataclass(frozen=True)
class JavaPlans:
    """Iceberg's Java library in a JVM."""

    program: JavaProgram

    @property
    def pid(self) -> int:
        return self.program.process.pid

    def plan(self, filter_: JsonObject) -> PlanTimes:
        """Plans a scan to its end. Raises `RuntimeError` if the JVM has ended."""
        return PlanTimes(**self.program.answer(filter_))


@dataclass(frozen=True)
class JavaLibrary:
    """The compiled program tools/javaclient/PlanTimes.java."""

    folder: Path

    @classmethod
    def compiled(cls, folder: Path) -> "JavaLibrary":
        """Compiles it into a folder. Raises `LookupError` without a JDK or Iceberg's jar."""
        compile_programs(("LocalFiles.java", "PlanTimes.java"), RELEASE, folder)
        return cls(folder)

    @contextmanager
    def started(self, metadata: Path) -> Iterator[JavaPlans]:
        """A new JVM with the default options, which plans scans of a metadata file, and keeps manifests in memory.
        Raises `RuntimeError` if it does not start."""
        with running(self.folder, RELEASE, "PlanTimes", f"file://{metadata}") as program:
            if program.read_line() != "ready\n":
                raise RuntimeError("the JVM prints something else than that it is ready")
            yield JavaPlans(program)
