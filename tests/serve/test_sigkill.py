"""Servers die by SIGKILL under writers that never give up (issue 3, item 10)."""

import asyncio
import json
import random
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import aiohttp
import pytest

from tests.serve.audit import (
    History,
    check_answers,
    check_names,
    check_receipts,
    check_tables,
    count_takeovers,
    read_history,
    reading,
)
from tests.serve.writers import ANSWER_S, NAMESPACE, PERMANENT, TABLES, Crowd, Sender
from tools.support.arco_server import ARCO, WAREHOUSE, ArcoServer
from tools.support.environment import exported
from tools.support.s3_servers import versitygw

SERVERS = 2
BOUND_S = 400.0
"""Writing, then 25 s until the last attempt that was killed may be taken over, and reading everything."""


async def kill_now_and_then(servers: Sequence[ArcoServer], rng: random.Random, times: int) -> None:
    """Kills one server or both, and starts them again, so many times. All run afterwards."""
    for _ in range(times):
        await asyncio.sleep(rng.uniform(0.2, 1.0))
        victims = servers if rng.random() < 0.3 else [rng.choice(servers)]
        for victim in victims:
            victim.kill()
        await asyncio.gather(*(asyncio.to_thread(victim.start) for victim in victims))


async def prepare(crowd: Crowd) -> None:
    """The namespace, and the tables that stay."""
    uri = crowd.sender.uris()[0]
    async with crowd.sender.session.post(f"{uri}/v1/{WAREHOUSE}/namespaces", json={"namespace": [NAMESPACE]}) as made:
        assert made.status == 200, await made.text()
    for name in PERMANENT:
        await crowd.sender.send(crowd.create(name))


async def check_replays(crowd: Crowd) -> None:
    """A retry gets the same answer."""
    for request in crowd.rng.sample(crowd.requests, min(50, len(crowd.requests))):
        assert await crowd.sender.ask(request) == (request.status, request.error), request


async def check_listings(crowd: Crowd, names: set[str]) -> None:
    """Both servers list the names that there are."""
    for uri in crowd.sender.uris():
        async with crowd.sender.session.get(uri + TABLES) as answer:
            listed = await answer.json()
        assert {identifier["name"] for identifier in listed["identifiers"]} == names


def check_printed_receipts(url: str, history: History) -> None:
    """`arco receipts` lists a table's commits, newest first, each once."""
    name = PERMANENT[0]
    command = [str(ARCO), "receipts", f"{NAMESPACE}.{name}", "--store", url, "--warehouse", WAREHOUSE, "--json"]
    ended = subprocess.run(command, capture_output=True, timeout=30)
    assert ended.returncode == 0, ended.stderr
    printed = json.loads(ended.stdout)
    log = history.logs[history.names[name]]
    assert [receipt["metadata_location"] for receipt in printed] == [version.location for version in reversed(log)]


async def survive(url: str, logs: Path, *, writers: int, kills: int, seed: int, takeovers: int) -> None:
    """The whole story over one store. `takeovers` is how many it must have seen at least, or it proves little."""
    rng = random.Random(seed)
    with ExitStack() as running:
        servers = [running.enter_context(ArcoServer(url, logs / f"server-{number}.log")) for number in range(SERVERS)]
        async with (
            asyncio.timeout(BOUND_S),
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=ANSWER_S)) as session,
        ):
            crowd = Crowd(Sender(session, lambda: [server.uri for server in servers], rng), rng)
            await prepare(crowd)
            killing = asyncio.create_task(kill_now_and_then(servers, rng, kills))
            await crowd.write(writers, meanwhile=killing)
            await killing
            async with reading(url) as store:
                history = await read_history(store)
                check_answers(history, crowd.requests)
                check_tables(history, crowd.requests)
                check_names(history)
                await check_receipts(store, history)
                assert any(request.tries > 1 for request in crowd.requests), "no server died under a request"
                assert await count_takeovers(store) >= takeovers, "no server died at a moment that matters"
            await check_listings(crowd, set(history.names))
            await check_replays(crowd)
            await asyncio.to_thread(check_printed_receipts, url, history)


async def test_no_answer_is_a_lie_when_servers_over_a_folder_are_killed(tmp_path: Path) -> None:
    await survive(f"file:{tmp_path}/store", tmp_path, writers=12, kills=8, seed=1, takeovers=1)


@pytest.mark.slow  # over a folder, and over an S3 that checks signatures, it runs each time
async def test_no_answer_is_a_lie_when_servers_over_s3_are_killed(s3_bucket: str, tmp_path: Path) -> None:
    await survive(f"s3://{s3_bucket}/catalog", tmp_path, writers=6, kills=3, seed=2, takeovers=0)


@pytest.mark.needs("go")
async def test_no_answer_is_a_lie_when_servers_over_an_s3_that_checks_signatures_are_killed(tmp_path: Path) -> None:
    with versitygw() as server, exported(server.environment):
        server.make_bucket("lake")
        await survive("s3://lake/catalog", tmp_path, writers=6, kills=3, seed=3, takeovers=0)
