"""Starts the compared servers, each in processes of its own, and measures what they take of the machine."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from tools.bench.peers.generator import Score
from tools.bench.peers.traffic import Catalog
from tools.demo.java import java_home

PROJECT = Path(__file__).parents[3]
ARCO = Path(sys.executable).with_name("arco")
JARS = PROJECT / ".jars" / "reference-server"
WAREHOUSE = "main"
STARTS_IN_S = 60.0
PLAYS_IN_S = 60.0


@dataclass(frozen=True, slots=True)
class Server:
    """A running server of the comparison: its URI, the base of its paths, and its process."""

    uri: str
    base: str
    pid: int

    @property
    def port(self) -> int:
        """Where it listens."""
        return urlsplit(self.uri).port or 0

    @property
    def catalog(self) -> Catalog:
        """For requests before and after those that count."""
        return Catalog(self.uri, self.base)

    def play(self, requests: Sequence[str], warm: float, seconds: float) -> Score:
        """Has clients send these requests, one each."""
        pids = [self.pid, *_children(self.pid)]
        order = json.dumps({"port": self.port, "requests": requests, "warm": warm, "seconds": seconds, "pids": pids})
        command = [sys.executable, "-m", "tools.bench.peers.generator"]
        said = subprocess.run(
            command, input=order, stdout=subprocess.PIPE, text=True, cwd=PROJECT, check=True, timeout=PLAYS_IN_S + warm
        )
        return Score(**json.loads(said.stdout))

    def resident_mb(self) -> float:
        """Memory that it and its children hold now, in MB; what they share counts once."""
        return sum(_proportional_kb(pid) for pid in [self.pid, *_children(self.pid)]) / 1024


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # threads come and go
            found.extend(map(int, (task / "children").read_text().split()))
    return found


def _proportional_kb(pid: int) -> int:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "Pss":
            return int(value.split()[0])
    raise RuntimeError("/proc tells no Pss")


@contextmanager
def arco(store: str, scratch: Path, environment: Mapping[str, str], options: Sequence[str] = ()) -> Iterator[Server]:
    """`arco serve` over a store."""
    command = [str(ARCO), "serve", "--store", store, "--port", "0", "--warehouse", WAREHOUSE, "--quiet", *options]
    with _started(command, scratch / "arco.log", environment) as server:
        yield Server(server.uri, f"/v1/{WAREHOUSE}", server.pid)


@contextmanager
def reference(
    warehouse: str,
    scratch: Path,
    environment: Mapping[str, str],
    properties: Mapping[str, str],
    jars: Sequence[Path] = (),
) -> Iterator[Server]:
    """Iceberg's own REST server: names in SQLite, in a file, and metadata files below `warehouse`, with more `jars`.

    Raises `LookupError` without its jars or a JDK.
    """
    if not (JARS / "complete").exists():
        raise LookupError("the reference server is not in .jars: run `make bench-peers`")
    settings = {
        "uri": f"jdbc:sqlite:{scratch / 'catalog.db'}",
        "jdbc.schema-version": "V1",
        "warehouse": warehouse,
        **properties,
    }
    command = [
        str(java_home() / "bin" / "java"),
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
        *("-cp", ":".join([f"{JARS}/classes", f"{JARS}/*", *map(str, jars)]), "ReferenceServer"),
        *(f"{name}={value}" for name, value in settings.items()),
    ]
    with _started(command, scratch / "reference.log", environment) as server:
        yield Server(server.uri, "/v1", server.pid)


@contextmanager
def ours(module: str, scratch: Path, *arguments: str) -> Iterator[Server]:
    """A server that is a module of this folder."""
    with _started([sys.executable, "-m", module, *arguments], scratch / f"{module}.log") as server:
        yield server


@contextmanager
def _started(command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None) -> Iterator[Server]:
    """Starts a server that says where it listens on its first line; ends it by a kill."""
    with log.open("ab") as out:
        process = subprocess.Popen(
            command,
            cwd=PROJECT,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=out,
            text=True,
        )
    with process:
        watchdog = threading.Timer(STARTS_IN_S, process.kill)
        watchdog.start()
        try:
            said = process.stdout.readline() if process.stdout is not None else ""
            watchdog.cancel()
            _, found, rest = said.partition("http://")
            if not found:
                raise RuntimeError(f"{command[0]} did not start: {said}{log.read_text()[-2000:]}")
            yield Server(f"http://{rest.split()[0]}", "", process.pid)
        except BaseException:
            print(log.read_text()[-2000:], file=sys.stderr)  # its folder will be gone
            raise
        finally:
            watchdog.cancel()
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
