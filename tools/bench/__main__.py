"""Requests a second, and CPU a request: `python -m tools.bench`.

Each line is one kind of request, measured twice: through the app within this process, over a store in memory, one
request at a time, which shows our own code alone; and through a real `arco serve` over a folder, by several clients
(one to each table where they commit), with HTTP, threads and fsync. CPU is that of the server alone.
"""

import argparse
import asyncio
import sys
from collections.abc import Sequence

from tools.bench.sites import in_process, over_http
from tools.bench.workloads import BIG, WORKLOADS, Figure, json_ms, measure, prepare

SECONDS = 2.5


async def run(seconds: float) -> None:
    """Prints each line when it has been measured."""
    print(f"{'':44}{'in process, memory':>26}{'arco serve, local files':>30}")
    print(f"{'':44}{'a second':>12}{'ms CPU each':>14}{'clients':>9}{'a second':>9}{'ms CPU each':>12}")
    async with in_process() as inner, over_http() as outer:
        for site in (inner, outer):
            await prepare(site)
        for workload in WORKLOADS:
            alone = await measure(inner, workload, 1, seconds)
            served = await measure(outer, workload, workload.clients, seconds)
            print(f"{workload.name:44}{told(alone)}{workload.clients:9}{told(served, 9, 12)}", flush=True)
    print(f"\nThe large table has {BIG:,} snapshots; one JSON parse and one dump of it take {json_ms():.0f} ms.")


def told(figure: Figure, rate_width: int = 12, cpu_width: int = 14) -> str:
    """Two columns."""
    return f"{figure.rate:{rate_width},.0f}{figure.cpu_ms:{cpu_width}.2f}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures everything."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--seconds", type=float, default=SECONDS, help="how long for each figure (default: %(default)s)"
    )
    asyncio.run(run(parser.parse_args(arguments).seconds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
