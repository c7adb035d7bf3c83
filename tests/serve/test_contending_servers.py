"""Many servers, with one client each, change names of one catalog whose registry has proposals: none of them fails or
starves, and a change takes a bounded number of calls of the store (docs/design/registry.md#proposals)."""

import asyncio
import subprocess
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.support.contending_clients import (
    Clients,
    Work,
    change_all_kinds_of_names,
    create_table,
    describe,
    grant_and_revoke,
)
from tests.support.counted_s3 import BUCKET, counted_s3
from tests.support.served_realms import LOGINS, bootstrapped, token_of
from tools.support.arco_server import ARCO, WAREHOUSE, ArcoServer
from tools.support.environment import exported

STORE = f"s3://{BUCKET}/lake"
CATALOG = "arco"
"""The catalog of a realm that was bootstrapped."""
DELAY_MS = 20
STARVED_S = 10.0
"""How long no request may take, on a machine with other work: those that starved took until their deadline, 20 s. On
two cores without other work the slowest create of sixteen servers takes less than 2 s."""


@pytest.mark.parametrize(
    ("servers", "work", "seconds", "calls"),
    [
        (3, create_table, 4.0, 25),
        (3, change_all_kinds_of_names, 4.0, 25),
        pytest.param(16, create_table, 10.0, 25, marks=pytest.mark.slow),
        pytest.param(16, change_all_kinds_of_names, 10.0, 25, marks=pytest.mark.slow),
    ],
)
async def test_servers_that_change_names_at_once_get_their_turns(
    servers: int, work: Work, seconds: float, calls: int, tmp_path: Path
) -> None:
    with counted_s3(DELAY_MS) as (s3, objects), exported(s3.environment):
        async with AsyncExitStack() as stack:
            started = [stack.enter_context(ArcoServer(STORE, tmp_path / f"{n}.log")) for n in range(servers)]
            clients = await Clients.of(stack, [server.uri for server in started], WAREHOUSE)
            await arco("upgrade", WAREHOUSE)
            cpu_s, before = sum(server.cpu_seconds() for server in started), objects.calls
            took = await clients.work(work, seconds)
            cpu_s, each = sum(server.cpu_seconds() for server in started) - cpu_s, (objects.calls - before) / len(took)
        await arco("fsck", WAREHOUSE)

    print(f"{servers} servers: {describe(took, each)}, {1000 * cpu_s / len(took):.0f} ms of CPU; {objects.swaps}")
    assert all(len(client.seconds) >= 2 for client in clients.each)
    assert each <= calls
    assert took[-1] < STARVED_S


async def arco(command: str, warehouse: str) -> None:
    """Runs a command of `arco` on the catalog, which must succeed."""
    line = [str(ARCO), command, "--store", STORE, "--warehouse", warehouse]
    await asyncio.to_thread(subprocess.run, line, check=True, capture_output=True, timeout=60)


@pytest.mark.parametrize("servers", [3, pytest.param(16, marks=pytest.mark.slow)])
async def test_servers_of_a_realm_that_grant_at_once_get_their_turns(servers: int, tmp_path: Path) -> None:
    with counted_s3(DELAY_MS) as (s3, objects), exported({**s3.environment, **LOGINS}):
        root = await bootstrapped(STORE)
        await arco("upgrade", CATALOG)
        async with AsyncExitStack() as stack:
            started = [stack.enter_context(ArcoServer(STORE, tmp_path / f"{n}.log")) for n in range(servers)]
            headers = {"Authorization": f"Bearer {await token_of(started[0].uri, root.client_id, root.secret)}"}
            clients = await Clients.of(stack, [server.uri for server in started], CATALOG, headers)
            before = objects.calls
            took = await clients.work(grant_and_revoke, 4.0 if servers == 3 else 10.0)
            each = (objects.calls - before) / len(took)
        await arco("fsck", CATALOG)

    print(f"{servers} servers of a realm: {describe(took, each)}; {objects.swaps}")
    assert all(len(client.seconds) >= 2 for client in clients.each)
    assert each <= 25
    assert took[-1] < STARVED_S
