"""Measures what a request pays to be counted: the CPU time of loads of a table, which the caches answer, without
metrics, counted in memory, and counted in files as by a worker: `python -m tools.bench.metrics`."""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence

from arco_catalog.cli.server_metrics import ServerMetrics
from arco_catalog.http.app import create_app
from arco_catalog.http.options import HttpOptions
from arco_catalog.state.runtime import SystemRuntime
from arco_catalog.telemetry.collectors import DIRECTORY_VARIABLE
from arco_catalog.telemetry.lines import JsonLines
from arco_catalog.telemetry.telemetry import Telemetry
from tools.support.asgi_client import Client
from tools.support.catalog_fixture import CatalogFixture

TABLE = "/v1/wh/namespaces/db/tables/t"
ROUNDS = 5
"""The least of so many measurements counts: what else runs on the machine only adds to it."""


def telemetries() -> Iterator[tuple[str, Telemetry | None]]:
    """What is printed of each measurement, and what takes its requests. One is made after the other is done with: the
    client library counts all that a process makes in one way."""
    runtime = SystemRuntime()
    yield "without metrics", None
    yield "as lines in JSON", Telemetry([JsonLines(lambda line: None)], runtime)
    yield "counted in memory", Telemetry([], runtime, [ServerMetrics(None, runtime.now_ms).requests])
    yield "counted in files", Telemetry([], runtime, [ServerMetrics(1, runtime.now_ms).requests])


async def microseconds(fixture: CatalogFixture, telemetry: Telemetry | None, requests: int) -> float:
    """The CPU time of one load."""
    client = Client(create_app({"wh": fixture.catalog}, HttpOptions(), telemetry), {"user-agent": "PyIceberg/0.12.0"})
    found = []
    for _ in range(ROUNDS):
        began = time.process_time()
        for _ in range(requests):
            answer = await client.get(TABLE)
            assert answer.status == 200
        found.append((time.process_time() - began) / requests)
    return 1e6 * min(found)


async def measured(requests: int) -> dict[str, float]:
    """The CPU time of one load in microseconds, by what takes the requests."""
    fixture = CatalogFixture()
    await fixture.namespace()
    await fixture.table()
    return {kind: await microseconds(fixture, telemetry, requests) for kind, telemetry in telemetries()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(prog="make bench-metrics", description=__doc__)
    parser.add_argument("--requests", type=int, default=2_000, metavar="N", help="loads of each measurement")
    with tempfile.TemporaryDirectory() as folder:
        os.environ[DIRECTORY_VARIABLE] = folder
        found = asyncio.run(measured(parser.parse_args(arguments).requests))
    least = found["without metrics"]
    for kind, time_us in found.items():
        print(f"{kind:20}{time_us:8.1f} µs a load{time_us - least:+8.1f} µs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
