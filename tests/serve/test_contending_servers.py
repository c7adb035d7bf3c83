"""Many servers, with one client each, create tables in one catalog whose registry has proposals: none starves
(docs/design/registry.md#proposals)."""

import asyncio
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

import aiohttp
import pytest

from arco_catalog.state.runtime import SystemRuntime
from tools.bench.peers.places import BUCKET, far_s3
from tools.support.arco_server import ARCO, WAREHOUSE, ArcoServer
from tools.support.environment import exported
from tools.support.request_bodies import schema, uuid7

STORE = f"s3://{BUCKET}/lake"
SECONDS = 6.0
WORST_S = 2.0
"""How long one create may take at most, by the contract of sixteen servers on two cores without other work."""


@pytest.mark.parametrize("servers", [3, pytest.param(16, marks=pytest.mark.slow)])
async def test_servers_that_create_tables_at_once_get_their_turns(servers: int, tmp_path: Path) -> None:
    with far_s3(tmp_path, 20) as s3, exported(s3.environment), ExitStack() as stack:
        started = [stack.enter_context(ArcoServer(STORE, tmp_path / f"{n}.log")) for n in range(servers)]
        await send(started[0], "namespaces", {"namespace": ["db"]})
        upgrade = [str(ARCO), "upgrade", "--store", STORE, "--warehouse", WAREHOUSE]
        await asyncio.to_thread(subprocess.run, upgrade, check=True, capture_output=True, timeout=60)
        end = time.monotonic() + SECONDS
        created = await asyncio.gather(*(create(server, f"s{n}", end) for n, server in enumerate(started)))

    print(f"{servers} servers: creates {[len(each) for each in created]}, worst {max(map(max, created)):.2f} s")
    assert all(len(each) >= 2 for each in created)
    assert servers > 3 or max(map(max, created)) < 3 * WORST_S


async def create(server: ArcoServer, prefix: str, end: float) -> list[float]:
    """Creates tables one after the other until the end, each under a key, and returns how long each took."""
    took: list[float] = []
    while (since := time.monotonic()) < end:
        body = {"name": f"{prefix}-{len(took)}", "schema": schema("x")}
        await send(server, "namespaces/db/tables", body)
        took.append(time.monotonic() - since)
    return took


async def send(server: ArcoServer, path: str, body: object) -> None:
    """Sends a request under a key, which must succeed at once."""
    runtime = SystemRuntime()
    headers = {"Idempotency-Key": uuid7(runtime.now_ms(), runtime)}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{server.uri}/v1/{WAREHOUSE}/{path}", json=body, headers=headers) as answer,
    ):
        assert answer.status == 200, await answer.text()
