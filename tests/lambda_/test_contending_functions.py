"""Many processes of a function, which each handle one request at a time, change names of one catalog whose registry has
proposals: none fails, and a change takes a bounded number of calls of the store (docs/design/registry.md#proposals)."""

import asyncio
import subprocess
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from arco_catalog.http.lambda_adapter import Endpoint
from tests.lambda_.conftest import WAREHOUSE
from tests.support.contending_clients import Clients, Work, change_all_kinds_of_names, create_table, describe
from tests.support.counted_s3 import BUCKET, counted_s3
from tools.gateway.gateway import LIMITS
from tools.gateway.running import API, open_gateway
from tools.gateway.sandbox import Function
from tools.support.arco_server import ARCO
from tools.support.environment import exported

STORE = f"s3://{BUCKET}/lake"
DELAY_MS = 20
START_S = 120.0
"""How long an answer of the gateway may take: all processes start at once, on two cores."""


@pytest.mark.parametrize(
    ("processes", "work", "seconds", "calls"),
    [
        (3, change_all_kinds_of_names, 4.0, 25),
        pytest.param(16, create_table, 10.0, 25, marks=pytest.mark.slow),
        pytest.param(16, change_all_kinds_of_names, 10.0, 25, marks=pytest.mark.slow),
    ],
)
async def test_functions_that_change_names_at_once_get_their_turns(
    folder: Path, processes: int, work: Work, seconds: float, calls: int, tmp_path: Path
) -> None:
    endpoint = Endpoint.HTTP_API
    with counted_s3(DELAY_MS) as (s3, objects), exported(s3.environment):
        environment = {**s3.environment, "ARCO_STORE": STORE, "ARCO_WAREHOUSE": WAREHOUSE, "ARCO_ENDPOINT": endpoint}
        function = Function(folder, API, environment, tmp_path / "function.log", seconds=START_S)
        limits = replace(LIMITS[endpoint], seconds=START_S)
        async with (
            open_gateway(function, endpoint, concurrency=processes, limits=limits) as (uri, pool),
            AsyncExitStack() as stack,
        ):
            clients = await Clients.of(stack, [uri] * processes, WAREHOUSE)
            await arco("upgrade")
            await clients.work(work, 0.1)  # starts the processes
            before = objects.calls
            took = await clients.work(work, seconds)
            each = (objects.calls - before) / len(took)
            assert len(pool.pids) == processes
        await arco("fsck")

    print(f"{processes} functions: {describe(took, each)}; {objects.swaps}")
    assert all(len(client.seconds) >= 2 for client in clients.each)
    assert each <= calls


async def arco(command: str) -> None:
    """Runs a command of `arco` on the catalog, which must succeed."""
    line = [str(ARCO), command, "--store", STORE, "--warehouse", WAREHOUSE]
    await asyncio.to_thread(subprocess.run, line, check=True, capture_output=True, timeout=60)
