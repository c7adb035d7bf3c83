"""A server that gets hostile documents, and measurements of what other clients get meanwhile, for
tools/bench/hostile.py."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from arco_catalog.iceberg.json import JsonObject, dumps
from tools.bench.loop_delay import DelayFile
from tools.support.arco_server import WAREHOUSE, ArcoServer
from tools.support.request_bodies import schema, set_property

MB = 1 << 20
JSON = {"Content-Type": "application/json"}
PREFIX = f"/v1/{WAREHOUSE}"
DB = f"{PREFIX}/namespaces/db"
PAUSE_S = 0.02
TIMEOUT = aiohttp.ClientTimeout(total=300)
REFUSALS = frozenset({200, 201, 204, 400, 401, 404, 409, 413, 415, 431, 503})
"""Statuses that a hostile request may get."""
SPOILT = REFUSALS | {500}
"""Of a metadata file that its table's writers have spoilt."""
RESET = REFUSALS | {0}
"""Of a head that may end its connection."""
PURGED = frozenset({204})
"""Of drops whose purges ended."""
MAX_STEP_S = 0.1
"""Of the event loop's own thread: `/health` is answered between two steps."""
MAX_LOOP_DELAY_S = 0.15
"""With what other threads do meanwhile, also without Python's lock."""
MAX_MEMORY = 1_280 * MB
"""The sum of docs/bounds.md: at rest, the accounts, and a document beyond each of two."""
HEADINGS = (
    "document",
    "answers",
    "s",
    "longest /health, ms",
    "step, ms",
    "loop delay, ms",
    "peak memory, MB",
    "commits",
    "refused",
)


@dataclass
class Others:
    """What other clients of the server got during one case: their waits, commits and refusals."""

    waits: list[float] = field(default_factory=list)
    commits: int = 0
    refused: int = 0


@dataclass
class Site:
    """The server that gets hostile documents, its folder, and the client that sends them. `faults` are the cases that
    broke a bound."""

    server: ArcoServer
    folder: Path
    client: aiohttp.ClientSession
    delays: DelayFile
    at_once: int
    headers: Mapping[str, str] = field(default_factory=dict)
    """Credentials of a client, for a server that needs them."""
    faults: list[str] = field(default_factory=list)

    async def send(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> int:
        """Sends a request, and returns the status; 0 if the connection broke."""
        given = JSON | {**self.headers} if headers is None else headers
        try:
            # Discarded piece by piece, and not unpacked: this process measures the waits of others meanwhile.
            exchange = self.client.request(method, path, data=body, headers=given, auto_decompress=False)
            async with exchange as answer:
                async for _ in answer.content.iter_any():
                    pass
                return answer.status
        except aiohttp.ClientError:
            return 0

    async def crowd(self, make: Callable[[], Coroutine[object, object, int]]) -> Counter[int]:
        """Sends the request several times at once."""
        return Counter(await asyncio.gather(*(make() for _ in range(self.at_once))))

    async def table(self, name: str) -> Path:
        """Makes a table, and returns the path of its metadata file."""
        body = dumps({"name": name, "schema": schema("x")})
        async with self.client.post(f"{DB}/tables", data=body, headers=JSON | {**self.headers}) as answer:
            made: JsonObject = await answer.json()
            assert answer.status == 200, made
            return Path(str(made["metadata-location"]).removeprefix("file://"))

    async def report(
        self, name: str, case: Coroutine[object, object, Counter[int]], allowed: frozenset[int] = REFUSALS
    ) -> None:
        """Runs a case, and prints a line. Its statuses must be `allowed`."""
        began = time.perf_counter()
        async with self._others() as seen:
            statuses = await case
        seconds, worst = time.perf_counter() - began, self.delays.worst
        memory = self.server.memory("VmHWM")
        answers = ", ".join(f"{count} x {status}" for status, count in sorted(statuses.items()))
        times = [f"{each * 1e3:.0f}" for each in (max(seen.waits), worst.step, worst.delay)]
        row = (name, answers, f"{seconds:.1f}", *times, f"{memory / MB:.0f}", f"{seen.commits}", f"{seen.refused}")
        print(f"| {' | '.join(row)} |", flush=True)
        if not allowed.issuperset(statuses):
            self.faults.append(f"{name}: answers {answers}")
        if worst.step > MAX_STEP_S:
            self.faults.append(f"{name}: a step of the event loop took {worst.step * 1e3:.0f} ms of CPU")
        if worst.delay > MAX_LOOP_DELAY_S:
            self.faults.append(f"{name}: the event loop was late by {worst.delay * 1e3:.0f} ms")
        if memory > MAX_MEMORY:
            self.faults.append(f"{name}: {memory / MB:.0f} MB")

    @asynccontextmanager
    async def _others(self) -> AsyncIterator[Others]:
        """Reads and commits for as long as the context lasts."""
        seen = Others()
        _reset_peak(self.server.pid)
        self.delays.reset()
        tasks = [asyncio.create_task(self._read_health(seen)), asyncio.create_task(self._commit(seen))]
        try:
            await asyncio.sleep(0.1)
            yield seen
            await asyncio.sleep(0.1)
        finally:
            for task in tasks:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task

    async def _read_health(self, seen: Others) -> None:
        async with aiohttp.ClientSession(self.server.uri, timeout=TIMEOUT) as client:
            while True:
                began = time.perf_counter()
                async with client.get("/health") as answer:
                    await answer.read()
                seen.waits.append(time.perf_counter() - began)
                await asyncio.sleep(PAUSE_S)

    async def _commit(self, seen: Others) -> None:
        """Commits to a table of its own."""
        async with aiohttp.ClientSession(self.server.uri, timeout=TIMEOUT, headers={**self.headers}) as client:
            while True:
                body = dumps(set_property("a", str(seen.commits)))
                async with client.post(f"{DB}/tables/ordinary", data=body, headers=JSON) as answer:
                    await answer.read()
                seen.commits += answer.status == 200
                seen.refused += answer.status != 200
                await asyncio.sleep(PAUSE_S)


def _reset_peak(pid: int) -> None:
    """Has VmHWM count from here."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")
