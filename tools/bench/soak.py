"""Whether a server stops growing, `make bench-soak ARGS="--minutes 30"`, `python -m tools.bench.soak`.

A real `arco serve` over local files, and clients that hardly ever send the same thing twice: new names of namespaces
and tables, names that do not exist, idempotency keys, user agents of all lengths, paths that are none, bodies of random
size with and without a length in front, connections that break off within a head. What they make they drop again a
little later. The server's memory (VmRSS) is sampled all the while; the run ends with a curve, and says whether the last
third of it is level: its trend is within its own noise, or under 2% of what the server holds.
"""

import argparse
import asyncio
import io
import random
import shutil
import statistics
import string
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from arco_catalog.http.options import MAX_BODY_BYTES
from arco_catalog.iceberg.json import JsonObject, dumps
from arco_catalog.state.runtime import SystemRuntime
from tools.support.arco_server import WAREHOUSE, ArcoServer
from tools.support.request_bodies import schema, uuid7

SAMPLE_SECONDS = 5.0
CLIENTS = 12
KEPT = 20
"""Tables that a client keeps before it drops the oldest."""
TABLES_A_NAMESPACE = 50
CACHES = "32MB"
"""What the server's caches may take: so little that they are full after some minutes."""
LARGEST_AGENT = 200 << 10
LEVEL = 0.02
"""What the last third may grow by, as a part of what the server holds, whatever its noise."""
BAR = 60
ROWS = 30
REQUEST_SECONDS = 60.0

RUNTIME = SystemRuntime()


@dataclass(frozen=True, slots=True)
class Sample:
    """What the server held after so many seconds and requests."""

    seconds: float
    requests: int
    megabytes: float


@dataclass
class Traffic:
    """What all clients together have done, and when they stop."""

    end: float
    most: int
    rate: float
    began: float = field(default_factory=time.monotonic)
    sent: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    """How often each status was answered; 0 for connections that were broken off."""

    async def turn(self) -> bool:
        """Waits so that there are no more than `rate` requests a second. False if it is over."""
        due = self.began + self.sent / self.rate
        self.sent += 1
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        return time.monotonic() < self.end and self.sent <= self.most


def word(most: int = 40) -> str:
    """A name that nobody has used."""
    return "".join(random.choices(string.ascii_lowercase, k=random.randint(12, most)))


def filler(most: int) -> str:
    """Text of random length, short ones as often as long ones on a logarithmic scale."""
    return random.choice(string.ascii_letters) * int(2 ** random.uniform(4, most.bit_length() - 1))


class Client:
    """Sends one request after the other."""

    def __init__(self, uri: str, session: aiohttp.ClientSession, traffic: Traffic) -> None:
        self._address = uri.removeprefix("http://")
        self._base = f"{uri}/v1/{WAREHOUSE}"
        self._session = session
        self._traffic = traffic
        self._namespace = ""
        self._made = 0
        self._tables: deque[tuple[str, str]] = deque()

    async def run(self) -> None:
        """Until it is over."""
        steps: Sequence[tuple[Callable[[], Awaitable[object]], int]] = (
            (self.create, 8),
            (self.commit, 8),
            (self.load, 20),
            (self.miss, 20),
            (self.large_body, 6),
            (self.bad_path, 6),
            (self.listing, 2),
            (self.break_off, 4),
        )
        await self.next_namespace()
        while await self._traffic.turn():
            [step] = random.choices([step for step, _ in steps], [weight for _, weight in steps])
            await step()

    async def next_namespace(self) -> None:
        self._namespace, self._made = word(), 0
        await self._send("POST", "/namespaces", {"namespace": [self._namespace], "properties": {word(): filler(2_000)}})

    async def create(self) -> None:
        if self._made >= TABLES_A_NAMESPACE:
            await self.next_namespace()
        name = word()
        self._made += 1
        body: JsonObject = {"name": name, "schema": schema(word(), word()), "properties": {word(): filler(20_000)}}
        if await self._send("POST", f"/namespaces/{self._namespace}/tables", body) == 200:
            self._tables.append((self._namespace, name))
        if len(self._tables) > KEPT:
            namespace, name = self._tables.popleft()
            await self._send("DELETE", f"/namespaces/{namespace}/tables/{name}")

    async def commit(self) -> None:
        if self._tables:
            namespace, name = random.choice(self._tables)
            updates: JsonObject = {"action": "set-properties", "updates": {"comment": filler(20_000)}}
            body: JsonObject = {"requirements": [], "updates": [updates]}
            await self._send("POST", f"/namespaces/{namespace}/tables/{name}", body)

    async def load(self) -> None:
        if self._tables:
            namespace, name = random.choice(self._tables)
            await self._send("GET", f"/namespaces/{namespace}/tables/{name}")

    async def miss(self) -> None:
        namespace = self._namespace if random.random() < 0.5 else word()
        await self._send(random.choice(("GET", "HEAD")), f"/namespaces/{namespace}/{random.choice(KINDS)}/{word(200)}")

    async def large_body(self) -> None:
        body = dumps({"updates": {word(): filler(MAX_BODY_BYTES)}, "removals": [word()]})
        path = f"/namespaces/{word()}/properties"
        await self._send("POST", path, body if random.random() < 0.5 else _pieces(body))

    async def bad_path(self) -> None:
        await self._send("GET", f"/{word()}/{filler(4_000)}?{word()}={filler(2_000)}")

    async def listing(self) -> None:
        await self._send("GET", f"/namespaces?pageSize={random.randint(1, 500)}&pageToken=")

    async def break_off(self) -> None:
        """Opens a connection, sends part of a head, and leaves."""
        host, _, port = self._address.partition(":")
        _reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(f"GET /{word()} HTTP/1.1\r\nX-{word()}: {filler(100_000)}".encode())
        await writer.drain()
        writer.close()
        self._traffic.statuses[0] += 1

    async def _send(self, method: str, path: str, body: JsonObject | bytes | AsyncIterator[bytes] | None = None) -> int:
        headers = {
            "User-Agent": f"soak/{random.random()} {filler(LARGEST_AGENT if random.random() < 0.02 else 500)}",
            "X-Request-Id": word(),
            "Content-Type": "application/json",
        }
        if method in ("POST", "DELETE"):
            headers["Idempotency-Key"] = uuid7(RUNTIME.now_ms(), RUNTIME)
        data = io.BytesIO(dumps(body) if isinstance(body, dict) else body) if isinstance(body, dict | bytes) else body
        async with self._session.request(method, self._base + path, data=data, headers=headers) as answer:
            await answer.read()
        self._traffic.statuses[answer.status] += 1
        return answer.status


KINDS = ("tables", "views")


async def _pieces(body: bytes) -> AsyncIterator[bytes]:
    """A body that does not say how long it is."""
    for start in range(0, len(body), 100_000):
        yield body[start : start + 100_000]


async def watch(server: ArcoServer, traffic: Traffic, samples: list[Sample]) -> None:
    """Samples the server's memory until it is over."""
    while time.monotonic() < traffic.end:
        held = server.memory("VmRSS") / (1 << 20)
        samples.append(Sample(time.monotonic() - traffic.began, traffic.sent, held))
        if len(samples) % 12 == 0:
            print(f"  {samples[-1].seconds:6.0f} s {traffic.sent:>9,} requests {held:7.1f} MB", flush=True)
        await asyncio.sleep(SAMPLE_SECONDS)


async def soak(server: ArcoServer, seconds: float, most: int, rate: float) -> tuple[Traffic, Sequence[Sample]]:
    """Runs the clients, and returns what they did and what the server held meanwhile."""
    traffic = Traffic(time.monotonic() + seconds, most, rate)
    samples: list[Sample] = []
    timeout = aiohttp.ClientTimeout(total=REQUEST_SECONDS)
    connector = aiohttp.TCPConnector(limit=CLIENTS)
    async with aiohttp.ClientSession(timeout=timeout, connector=connector) as session, asyncio.TaskGroup() as group:
        watching = group.create_task(watch(server, traffic, samples))
        clients = [group.create_task(Client(server.uri, session, traffic).run()) for _ in range(CLIENTS)]
        await asyncio.wait(clients)
        watching.cancel()
    return traffic, samples


def curve(samples: Sequence[Sample]) -> str:
    """A bar for each of thirty stretches of time: the median of what was held."""
    step = max(1, len(samples) // ROWS)
    most = max(sample.megabytes for sample in samples)
    lines = []
    for start in range(0, len(samples), step):
        held = statistics.median(sample.megabytes for sample in samples[start : start + step])
        first = samples[start]
        bar = "#" * round(BAR * held / most)
        lines.append(f"{first.seconds / 60:5.1f} min {first.requests:>9,} requests {held:7.1f} MB {bar}")
    return "\n".join(lines)


def trend(samples: Sequence[Sample]) -> tuple[float, float]:
    """By how many megabytes a line through the samples rises from the first to the last, and how far they lie from it
    (twice the standard deviation)."""
    seconds, held = [each.seconds for each in samples], [each.megabytes for each in samples]
    slope, base = statistics.linear_regression(seconds, held)
    off = [megabytes - (base + slope * at) for at, megabytes in zip(seconds, held, strict=True)]
    return slope * (seconds[-1] - seconds[0]), 2 * statistics.pstdev(off)


def is_level(samples: Sequence[Sample]) -> bool:
    """Whether memory stays where it is: it does not rise by more than its noise, or 2%."""
    rise, noise = trend(samples)
    return rise <= max(noise, LEVEL * statistics.mean(each.megabytes for each in samples))


def main() -> int:
    """Prints the curve and the verdict. Returns the exit code: 1 if the server still grows."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0, help="how long")
    parser.add_argument("--requests", type=int, default=1_000_000, help="how many at most")
    parser.add_argument("--rate", type=float, default=150.0, help="how many a second at most")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    try:
        with ArcoServer(f"file:{folder}/store", folder / "log", "--cache-memory", CACHES) as server:
            traffic, samples = asyncio.run(soak(server, 60 * options.minutes, options.requests, options.rate))
        return report(traffic, samples, (folder / "log").read_text())
    finally:
        shutil.rmtree(folder)  # which may take minutes: there are many files


def report(traffic: Traffic, samples: Sequence[Sample], log: str) -> int:
    """Prints what came of it. Returns the exit code."""
    print(f"\n{curve(samples)}\n")
    statuses = ", ".join(f"{status or 'broken off'}: {count:,}" for status, count in sorted(traffic.statuses.items()))
    print(f"{traffic.sent:,} requests in {samples[-1].seconds / 60:.1f} minutes ({statuses})")
    for name, part in (("half", samples[len(samples) // 2 :]), ("third", samples[2 * len(samples) // 3 :])):
        rise, noise = trend(part)
        print(f"the last {name}: {rise:+.1f} MB, noise {noise:.1f} MB")
    level = is_level(samples[2 * len(samples) // 3 :])
    print("level" if level else "STILL GROWING")
    if log:
        print(f"the server said:\n{log[-2_000:]}")
    sys.stdout.flush()
    return 0 if level else 1


if __name__ == "__main__":
    sys.exit(main())
