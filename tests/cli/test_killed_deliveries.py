"""Processes of `arco tasks run` that deliver events are ended by SIGKILL, before and after their receiver answers:
every event arrives at least once, and in order (docs/design/delivery.md)."""

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

from aiohttp import web

from arco_catalog.iceberg.json import loads
from arco_catalog.operations.events import event_of
from arco_catalog.operations.feed import read_feed
from arco_catalog.state.subscription import read_subscription
from tests.cli.in_process import arco
from tests.cli.test_operator import catalog_in
from tests.support.feeding import feed
from tests.support.stub_server import stub_server
from tools.support.environment import PROJECT
from tools.support.request_bodies import set_property

KILLS = {2: "before", 5: "after", 9: "before", 30: "after"}
"""At which messages the sender is killed: before the receiver has them, or before the sender has the answer."""
BOUND_S = 120.0
LEASE = "delegation.task.lease.lost-timeout-duration=PT4S"


async def test_senders_that_are_killed_lose_no_event_and_keep_the_order(folder: Path) -> None:
    store = f"file:{folder}"
    fixture = catalog_in(folder)
    await fixture.namespace("db")
    await feed(fixture.session())
    await fixture.table("t")
    for number in range(25):
        await fixture.commit(set_property("a", str(number)))
    await feed(fixture.another().session())
    got: list[str] = []
    messages = 0
    sender: subprocess.Popen[bytes] | None = None

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        nonlocal messages
        body, messages = loads(await request.read()), messages + 1
        fate = KILLS.get(messages)
        if fate == "before" and sender is not None:
            sender.kill()
            return web.Response(status=500)
        assert isinstance(body, dict)
        got.append(str(body["id"]))
        if fate == "after" and sender is not None:
            sender.kill()
        return web.Response()

    async with stub_server(handle) as server:
        made = await arco("events", "subscribe", "s", "--to", server.uri, "--allow-private", "--store", store)
        assert made.code == 0, made.err
        page = await read_feed(fixture.another().session().state, None, 1_000)
        events = [event for record in page.records if (event := event_of(record)) is not None]
        expected = [str(event["event-id"]) for event in events]
        assert len(expected) == 26
        command = [sys.executable, "-m", "arco_catalog.cli", "tasks", "run", "--store", store]
        environment = {**os.environ, "ARCO_EVENTS": "true", "ARCO_TASK_PROPERTIES": LEASE, "PYTHONPATH": str(PROJECT)}
        end_s = time.monotonic() + BOUND_S
        ended = []
        while time.monotonic() < end_s:
            sender = await asyncio.to_thread(
                subprocess.Popen, command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
            )
            await asyncio.to_thread(sender.communicate)
            ended.append(sender.returncode)
            found = await read_subscription(fixture.another().session().state, "s")
            if found is not None and found.subscription.cursor == page.records[-1].number:
                break
            await asyncio.sleep(1)

    assert ended.count(-9) == len(KILLS), ended
    assert [*dict.fromkeys(got)] == expected, "in order, where repetitions are left out"
    assert len(got) > len(expected), "at least one event came twice"
