"""The event feed under kills: servers with their workers and sequencers, a worker of its own, a consumer, and a webhook
that fails now and then, beside clients that change everything. In the end the feed has each change once, the consumer
too, and the webhook each at least once (docs/design/events.md; `make test-feed`, `ARCO_FEED_SECONDS` is how long)."""

import asyncio
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.subscription import dead_letters, read_subscription
from tests.serve.audit import reading
from tests.serve.event_receiver import EventReceiver, receiving
from tests.serve.feed_audit import WholeFeed, check_clients, check_consumer, check_feed, check_receiver, read_all
from tests.serve.feed_clients import CATALOG, FeedCrowd
from tests.serve.writers import ANSWER_S, NAMESPACE, Sender
from tools.support.arco_server import WAREHOUSE, ArcoServer
from tools.support.environment import PROJECT

SECONDS = float(os.environ.get("ARCO_FEED_SECONDS", "900"))
ARCO = (sys.executable, "-m", "arco_catalog.cli")
PLANTED = (sys.executable, "-m", "tests.serve.planted_server")
LEASE = "delegation.task.lease.lost-timeout-duration=PT6S"
"""The deliveries of a worker that was killed are continued after so long."""
VARIABLES = {"ARCO_EVENTS": "true", "ARCO_TASK_PROPERTIES": LEASE}
SUBSCRIPTION = "loopback"
CLIENTS, PAUSE_S = 6, 0.1
QUIET_S = 60.0
"""How long the feed and the deliveries of a minute may take once nothing is killed any more."""


@dataclass
class Process:
    """A program that is started again whenever it has ended, and killed now and then."""

    command: Sequence[str]
    log: Path
    process: subprocess.Popen[bytes] | None = None
    starts: int = 0

    def keep_running(self) -> None:
        """Starts it unless it runs."""
        if self.process is None or self.process.poll() is not None:
            with self.log.open("ab") as log:
                environment = {**os.environ, **VARIABLES}
                self.process = subprocess.Popen(self.command, cwd=PROJECT, env=environment, stdout=log, stderr=log)
            self.starts += 1

    def kill(self) -> bool:
        """Kills it. Returns whether it ran."""
        if self.process is None:
            return False
        was_running = self.process.poll() is None
        self.process.kill()
        self.process.wait()
        self.process = None
        return was_running


@dataclass
class Run:
    """All processes of one run over the store in a folder, whose programs are `arco`."""

    folder: Path
    arco: Sequence[str]
    rng: random.Random
    kills: Counter[str] = field(default_factory=Counter)
    is_quiet: bool = False

    def __post_init__(self) -> None:
        self.url = f"file:{self.folder}/store"
        properties = ("--events", "--task-property", LEASE)
        logs = [self.folder / f"server-{number}.log" for number in range(2)]
        self.servers = [ArcoServer(self.url, log, *properties, program=self.arco) for log in logs]
        self.worker = Process([*self.arco, "tasks", "run", *self._catalog], self.folder / "worker.log")
        self.consumers = [self._consumer("consumer"), self._consumer("planted", "token-first")]

    @property
    def _catalog(self) -> Sequence[str]:
        return ("--store", self.url, "--warehouse", WAREHOUSE)

    def _consumer(self, name: str, *options: str) -> Process:
        (self.folder / name).mkdir()
        command = [sys.executable, "-m", "tests.serve.event_consumer", str(self.folder / name), *options]
        return Process(command, self.folder / f"{name}.log")

    async def command(self, *arguments: str) -> None:
        """Runs a command of `arco`, which must succeed."""
        line = [*ARCO, *arguments, *self._catalog]
        environment = {**os.environ, **VARIABLES}
        done = await asyncio.to_thread(
            subprocess.run, line, cwd=PROJECT, env=environment, capture_output=True, timeout=120
        )
        assert done.returncode == 0, f"{arguments}: {done.stdout.decode()}{done.stderr.decode()}"

    async def start(self, server: ArcoServer) -> None:
        """Starts a server, and stores its address for consumers."""
        await asyncio.to_thread(server.start)
        for name in ("consumer", "planted"):
            new = self.folder / name / "servers.new"
            new.write_text("\n".join(each.uri.removeprefix("http://") for each in self.servers))
            new.replace(self.folder / name / "servers")

    async def kill_servers(self) -> None:
        """Kills one server or both now and then, often while it is young: then its sequencer makes a step."""
        while not self.is_quiet:
            await asyncio.sleep(self.rng.choice([self.rng.uniform(0.0, 0.6), self.rng.uniform(0.5, 6.0)]))
            victims = self.servers if self.rng.random() < 0.2 else [self.rng.choice(self.servers)]
            for victim in victims:
                victim.kill()
                self.kills["servers"] += 1
            await asyncio.gather(*(self.start(victim) for victim in victims))

    async def kill_others(self, name: str, processes: Sequence[Process], longest_s: float) -> None:
        """Kills these processes now and then, half of the times soon after their start, since a worker ends by itself
        when nothing is due; each runs again soon."""
        while not self.is_quiet:
            for process in processes:
                process.keep_running()
            await asyncio.sleep(self.rng.uniform(0.1, longest_s) * self.rng.choice([0.3, 1.0]))
            for process in processes:
                self.kills[name] += process.kill()

    def end(self) -> None:
        """Ends all processes."""
        for process in (self.worker, *self.consumers):
            process.kill()
        for server in self.servers:
            server.kill()

    async def all_is_delivered(self, receiver: EventReceiver, quiet_s: float) -> WholeFeed:
        """Lets workers and consumers go on until nothing is left, for so long at most, and returns the feed."""
        receiver.is_reliable = True
        await self.command("reconcile")
        until = time.monotonic() + quiet_s
        while True:
            for process in (self.worker, *self.consumers):
                process.keep_running()
            await asyncio.sleep(1.0)
            async with reading(self.url) as session:
                feed = await read_all(session)
                found = await read_subscription(session.state, SUBSCRIPTION)
                assert found is not None
                is_sent = found.subscription.cursor == len(feed.records)
                letters = [letter async for _, letter in dead_letters(session.state, found.subscription.id)]
            if feed.is_whole and is_sent and self.has_consumed(feed):
                assert not letters, f"{len(letters)} events were set aside: {letters[0].reason}"
                return feed
            if time.monotonic() >= until:
                print(f"not all was delivered: {found.subscription}, {len(feed.records)} records", flush=True)
                return feed

    def has_consumed(self, feed: WholeFeed) -> bool:
        """Whether the consumers have read to the end."""
        last = str(feed.records[-1].number)
        places = [self.folder / name / "place" for name in ("consumer", "planted")]
        return all(place.exists() and json.loads(place.read_text())["token"].split("-")[0] == last for place in places)

    def consumed(self, name: str) -> list[JsonObject]:
        """The events that a consumer has stored, of which the last line may not be whole."""
        return [json.loads(line) for line in (self.folder / name / "events").read_text().splitlines()]


@dataclass
class Outcome:
    """What there is in the end of a run."""

    feed: WholeFeed
    crowd: FeedCrowd
    receiver: EventReceiver
    run: Run

    def check(self) -> None:
        """Raises `AssertionError` if anything is missing, twice, or in another order."""
        check_feed(self.feed)
        check_clients(self.feed, self.crowd)
        check_consumer(self.feed, self.run.consumed("consumer"))
        check_receiver(self.feed, self.receiver)

    def __str__(self) -> str:
        kinds = Counter(record.kind for record in self.feed.records)
        requests = Counter("acknowledged" if each.acknowledged else "refused" for each in self.crowd.requests)
        again = sum(each.tries > 1 for each in self.crowd.requests)
        taken = self.receiver.taken
        return (
            f"{dict(requests)} requests, {again} sent again; kills: {dict(self.run.kills)}; feed: {dict(kinds)}, "
            f"{len(self.feed.events)} events; the webhook failed: {dict(self.receiver.failures)}, and took "
            f"{len(taken) - len({*taken})} events again"
        )


async def story(folder: Path, seconds: float, seed: int, arco: Sequence[str] = ARCO) -> Outcome:
    """One run: changes under kills for so many seconds, then rest."""
    rng = random.Random(seed)
    run = Run(folder, arco, rng)
    with ExitStack() as stack:
        stack.callback(run.end)
        async with (
            receiving(random.Random(seed)) as receiver,
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=ANSWER_S)) as session,
        ):
            await asyncio.gather(*(run.start(server) for server in run.servers))
            crowd = FeedCrowd(Sender(session, lambda: [server.uri for server in run.servers], rng), rng)
            made = await session.post(f"{run.servers[0].uri}{CATALOG}/namespaces", json={"namespace": [NAMESPACE]})
            assert made.status == 200, await made.text()
            await run.command("tasks", "run")
            await asyncio.gather(*(crowd.sender.send(request) for request in crowd.set_up()))
            await run.command("events", "subscribe", SUBSCRIPTION, "--to", receiver.url, "--allow-private")
            async with asyncio.TaskGroup() as group:
                ending = group.create_task(asyncio.sleep(seconds))
                killing = [
                    group.create_task(run.kill_servers()),
                    group.create_task(run.kill_others("workers", [run.worker], 2.0)),
                    group.create_task(run.kill_others("consumers", run.consumers, 1.5)),
                ]
                await crowd.write(CLIENTS, ending, PAUSE_S)
                run.is_quiet = True
                await asyncio.gather(*killing)
            feed = await run.all_is_delivered(receiver, max(QUIET_S, seconds / 3))
            run.end()
            ended = Outcome(feed, crowd, receiver, run)
            print(f"\n{seconds:.0f} s: {ended}", flush=True)
            return ended


@pytest.mark.parametrize("seconds", [20.0, pytest.param(SECONDS, marks=pytest.mark.slow)])
async def test_the_feed_has_each_change_once_although_all_are_killed(seconds: float, tmp_path: Path) -> None:
    """A consumer that stores its token before the page loses events, which the same check finds."""
    ended = await story(tmp_path, seconds, seed=int(seconds))
    ended.check()
    await ended.run.command("fsck")
    assert min(ended.run.kills[name] for name in ("servers", "workers", "consumers")) >= 4
    assert any(request.tries > 1 for request in ended.crowd.requests), "no server died under a request"
    with pytest.raises(AssertionError, match="the consumer"):
        check_consumer(ended.feed, ended.run.consumed("planted"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bug", "shown"),
    [
        ("cursor_before_sending", "the receiver lacks"),
        ("no_predecessors", "commits with receipts are not in the feed|follows"),
    ],
)
async def test_a_planted_bug_is_found(bug: str, shown: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=shown):
        await run_some(tmp_path, bug)


async def run_some(folder: Path, bug: str) -> None:
    """Checks some runs of programs with a bug."""
    for seed in range(4):
        (folder / str(seed)).mkdir()
        (await story(folder / str(seed), 40.0, seed, arco=(*PLANTED, bug))).check()
