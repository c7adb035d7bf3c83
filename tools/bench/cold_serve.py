"""How `arco serve` starts over each store, and what a first request there pays: `python -m tools.bench.cold --serve`.

The first table has a server from its spawn to its first load, which is how a container starts. The second has what a
process pays that opens a store and asks it something for the first time, by each client: the modules that it imports,
which a function's handler and a container pay alike. Servers of the stores run on this machine, with no delay.
"""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from arco_catalog.cli.clients import StoreClient, clients_of
from arco_catalog.http.app import create_app
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.open import build_catalog
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state.runtime import SystemRuntime
from storage_backends.open import canonical_url, open_store
from tools.bench.clouds import PLACES, Place
from tools.bench.cost import expect
from tools.bench.peers.servers import ARCO
from tools.support.asgi_client import Client
from tools.support.environment import PROJECT
from tools.support.process_tree import thread_cpu_seconds
from tools.support.request_bodies import schema

WAREHOUSE = "wh"
STARTS_IN_S = 60.0
TABLES = f"/v1/{WAREHOUSE}/namespaces/db/tables"
FIRST_CALL = """
import asyncio, json, os, resource, sys, time
before, began = len(sys.modules), time.perf_counter()
import arco_catalog.http.app
imported, modules = time.perf_counter(), len(sys.modules)
from storage_backends.open import open_store
async def ask():
    store = open_store(os.environ["COLD_URL"], os.environ)
    await store.list("nothing/")
    asked = time.perf_counter()
    await store.list("nothing/")
    again = time.perf_counter()
    await store.close()
    return asked, again
asked, again = asyncio.run(ask())
print(json.dumps({
    "app": 1000 * (imported - began), "first": 1000 * (asked - imported), "second": 1000 * (again - asked),
    "modules": len(sys.modules) - modules, "rss": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
}))
"""


async def prepare(place: Place) -> None:
    """Makes the table that is loaded."""
    environment = {**os.environ, **place.environment}
    store = open_store(place.url, environment)
    try:
        catalog = build_catalog(Settings(WAREHOUSE), store, canonical_url(place.url, environment), (), SystemRuntime())
        client = Client(create_app({WAREHOUSE: catalog}))
        await expect(client.post(f"/v1/{WAREHOUSE}/namespaces", {"namespace": ["db"]}))
        await expect(client.post(TABLES, {"name": "t", "schema": schema("a", "b", "c")}))
    finally:
        await store.close()


def serve_once(place: Place) -> tuple[float, float, float]:
    """Milliseconds from a server's spawn until it listens, until it has answered a load, and of its CPU until then."""
    command: list[str | Path] = [
        ARCO,
        "serve",
        "--store",
        place.url,
        "--warehouse",
        WAREHOUSE,
        "--port",
        "0",
        "--workers",
        "1",
        "--quiet",
    ]
    began = time.perf_counter()
    process = subprocess.Popen(
        command, env={**os.environ, **place.environment}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with process:
        try:
            said = process.stdout.readline() if process.stdout is not None else ""
            listening = time.perf_counter()
            _, found, rest = said.partition("http://")
            if not found:
                raise RuntimeError(f"arco serve did not start: {said}")
            with urllib.request.urlopen(f"http://{rest.split()[0]}{TABLES}/t", timeout=STARTS_IN_S) as answer:
                answer.read()
            took = time.perf_counter() - began
            return 1_000 * (listening - began), 1_000 * took, 1_000 * thread_cpu_seconds(process.pid)
        finally:
            process.kill()


def first_call(place: Place, client: StoreClient) -> JsonObject:
    """What a fresh process says of its imports and of its first call."""
    environment = {**os.environ, **place.environment, **client.variables, "COLD_URL": place.url}
    done = subprocess.run(
        [sys.executable, "-c", FIRST_CALL],
        cwd=PROJECT,
        env=environment,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        timeout=STARTS_IN_S,
    )
    said: JsonObject = json.loads(done.stdout)
    return said


def show(processes: int) -> None:
    """Prints both tables as Markdown."""
    calls: list[str] = []
    print("| store | listening, median ms | first load, median ms | min ms | CPU ms |\n| --- | --: | --: | --: | --: |")
    for name, opened in PLACES.items():
        with opened() as place:
            asyncio.run(prepare(place))
            starts = [serve_once(place) for _ in range(processes)]
            listening, loaded, cpu = (statistics.median(each) for each in zip(*starts, strict=True))
            least = min(took for _, took, _ in starts)
            print(f"| {name} | {listening:.0f} | {loaded:.0f} | {least:.0f} | {cpu:.0f} |", flush=True)
            for client in clients_of(place.url):
                calls.append(
                    f"| {name} | {client.name} | {_row([first_call(place, client) for _ in range(processes)])}"
                )
    print("\n| store | client | app ms | first call ms | second call ms | modules | MB |")
    print("| --- | --- | --: | --: | --: | --: | --: |")
    print("\n".join(calls))


def _row(said: Sequence[JsonObject]) -> str:
    def middle(name: str) -> float:
        return statistics.median(float(str(each[name])) for each in said)

    times = f"{middle('app'):.0f} | {middle('first'):.0f} | {middle('second'):.1f}"
    return f"{times} | {middle('modules'):.0f} | {middle('rss'):.0f} |"
