"""Measures loads of tables with a long history: `make bench-history`, `python -m tools.bench.history`.

Through the whole app over a store in memory, for each number of snapshots: the milliseconds of CPU of all threads for
the first load in each form after a commit, and for the loads after that, with the bytes of the answer. `refs` leaves
out the snapshots that no branch or tag names (`snapshots=refs`); gzip is for clients that accept it.
"""

import argparse
import asyncio
import time
from dataclasses import dataclass

from arco_catalog.http.app import create_app
from arco_catalog.iceberg.json import dumps
from arco_catalog.operations.open import build_catalog
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state.memory import CACHE_MEMORY_BYTES
from arco_catalog.state.runtime import SystemRuntime
from storage_backends import ANY
from storage_backends.memory import MemoryStore
from tools.support.asgi_client import Client
from tools.support.many_snapshots import table

TABLE = "/v1/wh/namespaces/db/tables/t"
HOME = "memory:///wh/warehouse/t"
FORMS = {
    "all": ("", "identity"),
    "refs": ("?snapshots=refs", "identity"),
    "all, gzip": ("", "gzip"),
    "refs, gzip": ("?snapshots=refs", "gzip"),
}
ROUNDS = 7
REQUEST_MS = 600_000


@dataclass(frozen=True, slots=True)
class LoadTimes:
    """The times of loads of a table in one form: milliseconds of CPU of the first load, and of the fastest of the loads
    after that."""

    first_ms: float
    next_ms: float
    size: int


async def measure(snapshots: int, cache_bytes: int = CACHE_MEMORY_BYTES) -> dict[str, LoadTimes]:
    """Measures the loads of a table with so many snapshots, in each form."""
    store, settings = MemoryStore(), Settings("wh", request_ms=REQUEST_MS, cache_bytes=cache_bytes)
    await store.put("wh/warehouse/t/metadata/00000-0.metadata.json", dumps(table(snapshots, HOME)), ANY)
    client = Client(create_app({"wh": build_catalog(settings, store, "memory:///", (), SystemRuntime())}))
    await client.post("/v1/wh/namespaces", {"namespace": ["db"]})
    register = {"name": "t", "metadata-location": f"{HOME}/metadata/00000-0.metadata.json"}
    answer = await client.post("/v1/wh/namespaces/db/register", {**register})
    assert answer.status == 200, answer.body
    await client.get(TABLE)
    return {form: await _times(client, query, coding) for form, (query, coding) in FORMS.items()}


async def _times(client: Client, query: str, coding: str) -> LoadTimes:
    times, size = [], 0
    for _ in range(1 + ROUNDS):
        began = time.process_time()
        answer = await client.get(f"{TABLE}{query}", accept_encoding=coding)
        times.append(1_000 * (time.process_time() - began))
        assert answer.status == 200, answer.body
        size = len(answer.body)
    return LoadTimes(times[0], min(times[1:]), size)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--snapshots", type=int, nargs="+", default=[10, 10_000, 100_000])
    parser.add_argument("--cache-mb", type=int, default=CACHE_MEMORY_BYTES >> 20)
    given = parser.parse_args()
    print("| snapshots | form | first, ms of CPU | next | KB of the answer |")
    print("| --: | --- | --: | --: | --: |")
    for snapshots in given.snapshots:
        for form, took in asyncio.run(measure(snapshots, given.cache_mb << 20)).items():
            print(f"| {snapshots:,} | {form} | {took.first_ms:.1f} | {took.next_ms:.2f} | {took.size >> 10:,} |")


if __name__ == "__main__":
    main()
