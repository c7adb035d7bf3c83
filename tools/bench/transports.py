"""Loads and commits by each client of each cloud, and what they cost this process: `python -m tools.bench.transports`.

The app runs in this process, the cloud's server in one of its own, with no delay. CPU is that of this process alone,
all its threads included, since some SDKs use them. Clients take turns within each store.
"""

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import uvloop

from arco_catalog.cli.clients import StoreClient, clients_of
from tools.bench.clouds import CLOUDS, Place
from tools.bench.cost import Site
from tools.support.asgi_client import Client

SECONDS = 3.0
WARM_S = 0.5
TASKS = 8
"""Requests at once: loads of one table, since the store is asked each time. Commits are one after the other."""


@dataclass(frozen=True, slots=True)
class Rate:
    """What was measured of one kind of request."""

    requests: int
    seconds: float
    cpu_seconds: float

    @property
    def cpu_ms(self) -> float:
        """CPU of one request."""
        return 1_000 * self.cpu_seconds / self.requests

    @property
    def a_cpu_second(self) -> float:
        """Requests by as much work as one CPU does in a second."""
        return self.requests / self.cpu_seconds


async def rate(step: Callable[[], Awaitable[None]], tasks: int, seconds: float) -> Rate:
    """Does so for so long, that many at once."""
    began, cpu = time.perf_counter(), time.process_time()

    async def work() -> int:
        done = 0
        while time.perf_counter() - began < seconds:
            await step()
            done += 1
        return done

    requests = sum(await asyncio.gather(*(work() for _ in range(tasks))))
    return Rate(requests, time.perf_counter() - began, time.process_time() - cpu)


async def measure(place: Place, client: StoreClient, seconds: float) -> tuple[Rate, Rate]:
    """Loads and commits of a catalog of its own."""
    store = client.open(f"{place.url}-{client.name}", {**os.environ, **place.environment})
    site = Site(store)
    try:
        await site.prepare()
        app: Client = site.client

        async def load() -> None:
            await site.load(app)

        async def commit() -> None:
            await site.commit(app)

        await rate(load, TASKS, WARM_S)
        loads = await rate(load, TASKS, seconds)
        await rate(commit, 1, WARM_S)
        return loads, await rate(commit, 1, seconds)
    finally:
        await store.close()


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(prog="tools.bench.transports", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for each figure (default: %(default)s)")
    seconds = parser.parse_args().seconds
    print("| store | client | loads a CPU second | CPU ms a load | commits a CPU second | CPU ms a commit |")
    print("| --- | --- | --: | --: | --: | --: |")
    for name, opened in CLOUDS.items():
        with opened() as place:
            for client in clients_of(place.url):
                with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:  # as `arco serve`
                    loads, commits = runner.run(measure(place, client, seconds))
                print(
                    f"| {name} | {client.name} | {loads.a_cpu_second:,.0f} | {loads.cpu_ms:.2f} "
                    f"| {commits.a_cpu_second:,.0f} | {commits.cpu_ms:.2f} |",
                    flush=True,
                )
    return 0


if __name__ == "__main__":
    sys.exit(main())
