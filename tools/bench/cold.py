"""Measures cold starts: from the spawn of a function's process to its first answer (`make bench-cold`).

The catalog is the zip that is deployed, unzipped, and the other one with Amazon's SDK, by which it goes. Beside them:
(a) the least that an ASGI app can be, and (b) the same with S3's usual asyncio client, sending one after the other the
calls that the catalog was counted to send. All under the same Python, AWS's own runtime client and the same Runtime
API, over S3 (moto) on loopback, and in turns: what else this machine does hits all alike.

Lambda can't keep the bytecode that Python makes, so a function has what its zip holds: all of them have theirs made
ahead, as ours is deployed; with --sources, none has any. The runtime client is AWS's, and always compiled.
"""

import argparse
import asyncio
import json
import os
import statistics
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from arco_catalog.http.app import create_app
from arco_catalog.http.lambda_adapter import Endpoint
from arco_catalog.iceberg.json import JsonObject, dumps
from arco_catalog.operations.open import build_catalog
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state.runtime import SystemRuntime
from storage_backends.open import open_store
from tools.bench.cold_folders import BARE, HANDLERS, OURS, OURS_BY_SDK, STOCK, functions, runtime_client
from tools.bench.cost import expect
from tools.gateway.events import DEFAULT_STAGE, Arrival, event_of
from tools.gateway.http1 import Request
from tools.gateway.sandbox import Function, Sandbox
from tools.support.asgi_client import Client
from tools.support.request_bodies import schema, set_property
from tools.support.s3_servers import moto_server
from tools.support.wrapped_stores import CountingStore

PROCESSES = 10
BUCKET = "cold"
STORE = f"s3://{BUCKET}/catalog"
TABLES = "/v1/wh/namespaces/db/tables"
RUNTIME = SystemRuntime()


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """A first request to a function whose cold start is measured."""

    name: str
    target: str
    body: JsonObject | None = None

    @property
    def event(self) -> bytes:
        """As an HTTP API invokes a function with it."""
        method, body = ("GET", b"") if self.body is None else ("POST", dumps(self.body))
        headers = [("Content-Type", "application/json"), ("Accept-Encoding", "gzip")]
        request = Request(method, self.target, headers, body, 0)
        arrival = Arrival(request, RUNTIME.uuid(), RUNTIME.now_ms(), DEFAULT_STAGE)
        return json.dumps(event_of(arrival, Endpoint.HTTP_API)).encode()

    async def send(self, client: Client) -> None:
        """The same, without events."""
        await expect(client.get(self.target) if self.body is None else client.post(self.target, self.body))


CONFIG = Operation("config", "/v1/config")
LOAD = Operation("loadTable", f"{TABLES}/t")
COMMIT = Operation("commit", f"{TABLES}/t", set_property("a", "b"))
OPERATIONS = (CONFIG, LOAD, COMMIT)


@dataclass(slots=True)
class Starts:
    """The measured cold starts of one function with one operation, in milliseconds: until the answer, and CPU until
    then."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)


Measured = Mapping[tuple[Operation, str], Starts]
"""By operation and function."""


async def prepare() -> Mapping[Operation, Mapping[str, str]]:
    """Makes the table. Returns what the function with the usual client must know to make our calls: those that a
    process sends which remembers nothing, but writing beside our objects."""
    store = CountingStore(open_store(STORE, os.environ))

    def process() -> Client:
        return Client(create_app({"wh": build_catalog(Settings("wh"), store, STORE, (), RUNTIME)}))

    await expect(process().post("/v1/wh/namespaces", {"namespace": ["db"]}))
    await expect(process().post(TABLES, {"name": "t", "schema": schema("a", "b", "c")}))
    calls: dict[Operation, Mapping[str, str]] = {}
    for operation in OPERATIONS:
        with store.measure() as counted:
            await operation.send(process())
        gets = [f"catalog/{call.key}" for call in counted.trace if call.outcome == "Found"]
        puts = [f"beside/{place}" for place, call in enumerate(counted.trace) if call.kind == "put"]
        calls[operation] = {"COLD_BUCKET": BUCKET, "COLD_GETS": " ".join(gets), "COLD_PUTS": " ".join(puts)}
    await store.close()
    return calls


async def start(function: Function, client: Path, event: bytes) -> tuple[float, float]:
    """One process, from its spawn to its first answer: milliseconds, and those of its CPU."""
    began = time.perf_counter()
    async with Sandbox(function, client).started() as process:
        result = json.loads(await process.invoke(event))
        took = time.perf_counter() - began
        used = thread_cpu_seconds(process.pid)
    if result["statusCode"] != 200:
        raise RuntimeError(f"{function.handler} answered {result}: {function.log.read_text()}")
    return 1_000 * took, 1_000 * used


def thread_cpu_seconds(pid: int) -> float:
    """CPU time of the threads that a process has now, by the scheduler, which counts nanoseconds."""
    total = 0
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # threads come and go
            total += int((thread / "schedstat").read_text().split()[0])
    return total / 1e9


async def measure(processes: int, *, compiled: bool) -> Measured:
    """Starts everything that many times, in turns."""
    with TemporaryDirectory(prefix="arco-cold-") as folder, moto_server() as s3:
        s3.make_bucket(BUCKET)
        os.environ |= s3.environment
        variables = {
            **s3.environment,
            "ARCO_STORE": STORE,
            "ARCO_WAREHOUSE": "wh",
            "ARCO_SKIP_PROBE": "true",
            "ARCO_ENDPOINT": Endpoint.HTTP_API,
        }
        scratch, calls = Path(folder), await prepare()
        client, folders = runtime_client(scratch / "client"), functions(scratch, compiled=compiled)
        measured = {(operation, name): Starts() for operation in OPERATIONS for name in HANDLERS}
        for _ in range(processes):
            for (operation, name), starts in measured.items():
                chosen = {"ARCO_S3_CLIENT": "sdk"} if name == OURS_BY_SDK else {}
                environment = {**variables, **calls[operation], **chosen}
                function = Function(folders[name], HANDLERS[name], environment, scratch / "log")
                wall, cpu = await start(function, client, operation.event)
                starts.wall.append(wall)
                starts.cpu.append(cpu)
        return measured


def show(measured: Measured) -> None:
    """Prints the table as Markdown, and the aims."""
    print("| first request | function | min ms | median ms | CPU ms, median | median, ours is |")
    print("| --- | --- | --: | --: | --: | --: |")
    for (operation, name), starts in measured.items():
        share = "" if name == OURS else f"{ratio(measured, operation, name):.2f} times"
        middle = f"{statistics.median(starts.wall):.0f} | {statistics.median(starts.cpu):.0f}"
        print(f"| {operation.name} | {name} | {min(starts.wall):.0f} | {middle} | {share} |")
    print(f"\nAim: config at most 1.6 times (a). Measured: {ratio(measured, CONFIG, BARE):.2f} times.")
    print(f"Aim: loadTable at least 1.5 times as fast as (b). Measured: {1 / ratio(measured, LOAD, STOCK):.2f} times.")


def ratio(measured: Measured, operation: Operation, name: str) -> float:
    """Our median as a share of another function's."""
    ours, other = (statistics.median(measured[operation, each].wall) for each in (OURS, name))
    return ours / other


def main() -> int:
    """Measures everything."""
    parser = argparse.ArgumentParser(prog="tools.bench.cold", description=__doc__)
    parser.add_argument("--processes", type=int, default=PROCESSES, help=f"of each kind, default {PROCESSES}")
    parser.add_argument("--sources", action="store_true", help="without bytecode made ahead")
    options = parser.parse_args()
    show(asyncio.run(measure(options.processes, compiled=not options.sources)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
