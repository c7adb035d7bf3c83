"""Measures what a warm load of a table costs: `make bench-loads`, `python -m tools.bench.loads`.

The app and its client are in one process, without a server for HTTP. The store is in memory, on local files, or on S3,
which is the emulator of `tools/bench/peers` in a process of its own that answers at once. It prints the microseconds of
CPU of the bench's process for a load, the least of several batches. With `--instructions` it prints the instructions of
a load instead, without those of the system, counted by valgrind's cachegrind: they are the same each time.
"""

import argparse
import asyncio
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

import uvloop

from arco_catalog.http.app import create_app
from arco_catalog.http.asgi import Asgi, Message
from arco_catalog.operations.open import build_catalog
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state.runtime import SystemRuntime
from storage_backends.base import ObjectStore
from storage_backends.local.store import LocalStore
from storage_backends.memory import MemoryStore
from storage_backends.s3.config import S3Config
from storage_backends.s3.signature import Credentials
from storage_backends.s3.store import S3Store
from tools.bench.peers.servers import ours
from tools.support.asgi_client import Client, scope_of
from tools.support.environment import PROJECT
from tools.support.request_bodies import append_snapshot, schema

STORES = ("memory", "local", "s3")
BUCKET = "bench"
COLUMNS, SNAPSHOTS = 20, 20
NAMESPACES = "/v1/main/namespaces"
TABLE = f"{NAMESPACES}/db/tables/t"
BATCHES = 200
FEW_LOADS = 100
"""The loads of the process whose instructions are subtracted."""
INSTRUCTIONS = re.compile(r"I\s+refs:\s+([\d,]+)")
VALGRIND_TIMEOUT_S = 300


async def prepared(store: ObjectStore, url: str) -> Asgi:
    """Returns an app over a store with one table, which it has loaded once."""
    app = create_app({"main": build_catalog(Settings("main"), store, url, (), SystemRuntime())})
    client = Client(app)
    await client.post(NAMESPACES, {"namespace": ["db"]})
    columns = [f"column_{number}" for number in range(COLUMNS)]
    await client.post(f"{NAMESPACES}/db/tables", {"name": "t", "schema": schema(*columns)})
    location = (await client.get(TABLE)).json["metadata"]["location"]  # type: ignore[index, call-overload]
    now_ms = SystemRuntime().now_ms()
    for number in range(1, SNAPSHOTS + 1):
        commit = append_snapshot(number, now_ms + number, f"{location}/metadata/snap-{number}.avro")
        answer = await client.post(TABLE, commit)
        assert answer.status == 200, answer.body
    answer = await client.get(TABLE)
    assert answer.status == 200, answer.body
    return app


async def load(app: Asgi, loads: int) -> None:
    """Loads the table so many times, one after the other."""
    headers = {"host": "localhost:8181", "accept": "*/*", "accept-encoding": "identity", "user-agent": "bench"}
    scope = scope_of("GET", TABLE, headers)
    statuses: list[int] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        if "status" in message:
            statuses.append(message["status"])

    for _ in range(loads):
        await app(scope, receive, send)
    assert statuses == [200] * loads, statuses[:1]


async def least_us(app: Asgi, loads: int) -> float:
    """Returns the microseconds of CPU of a load: the least of `BATCHES` batches of so many loads."""
    least = float("inf")
    for _ in range(BATCHES):
        began = time.process_time()
        await load(app, loads)
        least = min(least, 1e6 * (time.process_time() - began) / loads)
    return least


def store_at(kind: str, place: str) -> tuple[ObjectStore, str]:
    """Returns a store of this kind with its URL; `place` is the folder, or the address of S3."""
    if kind == "memory":
        return MemoryStore(), "memory:///"
    if kind == "local":
        return LocalStore(Path(place)), f"file://{place}"
    config = S3Config(region="us-east-1", credentials=Credentials("bench", "secret"), endpoint_url=place)
    return S3Store(BUCKET, config=config), f"s3://{BUCKET}"


@contextmanager
def place_of(kind: str) -> Iterator[str]:
    """Yields the place of a store for `store_at`: a new folder, or the address of a new server of S3."""
    with tempfile.TemporaryDirectory(prefix="arco-bench-loads-") as folder:
        if kind != "s3":
            yield folder
            return
        with ours("tools.bench.peers.slow_s3", Path(folder), "0") as server:
            urlopen(Request(f"{server.uri}/{BUCKET}", method="PUT"), timeout=10).close()
            yield server.uri


@asynccontextmanager
async def app_over(kind: str, place: str) -> AsyncIterator[Asgi]:
    """Yields a prepared app over a store of this kind."""
    store, url = store_at(kind, place)
    try:
        yield await prepared(store, url)
    finally:
        await store.close()


async def measure(kind: str, loads: int) -> float:
    """Returns the microseconds of CPU of a load over a new store of this kind, by batches of so many loads."""
    with place_of(kind) as place:
        async with app_over(kind, place) as app:
            return await least_us(app, loads)


async def make_loads(kind: str, place: str, loads: int) -> None:
    """Makes so many loads, for a process whose instructions are counted."""
    async with app_over(kind, place) as app:
        await load(app, loads)


def instructions(kind: str, loads: int) -> int:
    """Returns the instructions of a load: those of a process that makes `loads` more than another one, by the number of
    these."""
    few, many = (_counted(kind, number) for number in (FEW_LOADS, FEW_LOADS + loads))
    return (many - few) // loads


def _counted(kind: str, loads: int) -> int:
    """Returns the instructions of a process that makes so many loads."""
    with place_of(kind) as place:
        command = [*("valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null")]
        command += [sys.executable, "-m", "tools.bench.loads", "--once", kind, place, "--loads", str(loads)]
        environment = {**os.environ, "PYTHONHASHSEED": "0"}
        done = subprocess.run(
            command,
            cwd=PROJECT,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=VALGRIND_TIMEOUT_S,
        )
    found = INSTRUCTIONS.search(done.stderr)
    assert found is not None, done.stderr
    return int(found[1].replace(",", ""))


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints a line for each store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", choices=STORES, nargs="+", default=STORES)
    parser.add_argument("--loads", type=int, default=100, help="in a batch")
    parser.add_argument("--instructions", action="store_true", help="count them by valgrind")
    parser.add_argument("--once", nargs=2, metavar=("STORE", "PLACE"), help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        if given.once is not None:
            kind, place = given.once
            runner.run(make_loads(kind, place, given.loads))
            return
        for kind in given.store:
            if given.instructions:
                print(f"{kind:8} {instructions(kind, given.loads):9,} instructions a load", flush=True)
                continue
            print(f"{kind:8} {runner.run(measure(kind, given.loads)):7.1f} us of CPU", flush=True)


if __name__ == "__main__":
    main()
