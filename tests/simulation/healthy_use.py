"""Healthy use for months: commits by servers, functions and workers of every age to hot and idle tables, with pointers
and HEADs of any age in their caches, and no failure. Not one outcome may be unknown, nor that of any retry of a key
(docs/design/commit.md#unknown-outcomes).

    python -m tests.simulation.healthy_use --commits 100000 --state .arco/healthy-use.json

`make test-healthy-use` runs that. It goes on where it was stopped, by its state file; `--part N` stops after N commits.
"""

import argparse
import asyncio
import json
import logging
import sys
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from arco_catalog.iceberg.errors import KeyInProgress, Refusal, Unavailable
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.commit import commit_table
from arco_catalog.operations.create import create_table
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.load import load_table
from arco_catalog.operations.namespaces import update_properties
from arco_catalog.operations.rename import rename_table
from arco_catalog.operations.transaction import commit_transaction
from arco_catalog.planning.answers import Answer, TableState
from arco_catalog.protocol.advisory_locks import AdvisoryLocks
from arco_catalog.protocol.background_tasks import BackgroundTasks
from arco_catalog.protocol.catalog import Session, Settings
from arco_catalog.protocol.request_stats import RequestStats, collect_stats
from arco_catalog.upkeep.collection.collect import collect
from arco_catalog.upkeep.reconcile import reconcile
from tests.simulation.faults import NO_FAULTS
from tests.simulation.loop import SimulatedLoop
from tests.simulation.world import DIED, Process, World
from tests.support.json_file import write_json
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.request_bodies import schema, set_property, uuid7

Perform = Callable[[Session], Coroutine[Any, Any, Answer]]

SETTINGS = Settings("wh")
"""As deployed: deadlines, ages and retention are real ones."""
PART = 3_500
"""Commits of one world: half of them move one pointer, more often than it remembers."""
BURST = 125
"""Commits between two pauses."""
HOT = ("hot", "warm")
IDLE = tuple(f"idle{number}" for number in range(5))
PERIODS = {"server0": 1, "server1": 1, "server2": 3, "server3": 20, "server4": 20, "function0": 2, "function1": 20}
"""Processes, and how many bursts they stay idle: the hot table moves more often than its pointer remembers in 20."""
CLIENTS = 5
MAX_SENDINGS = 60
"""Sendings of one key until it must have a definite answer."""
MINUTE = 60.0
HOUR = 60 * MINUTE
DAY = 24 * HOUR
PAUSES = (0.5, 2.0, 30.0, 90.0, 17 * MINUTE, 3 * HOUR, 3 * DAY, 12 * DAY, 45 * DAY)
KEY_SECONDS = 22 * HOUR
"""How long after its first sending a key is sent again, at most: a day later it is refused."""
MAX_VIRTUAL_SECONDS = 5_000 * DAY
MAX_TURNS = 50_000_000
MAINTENANCE_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class KeyedRequest:
    """A request under a key, and how it was answered."""

    path: str
    body: JsonObject
    perform: Perform
    key: str
    sent_at: float
    refused: bool
    entity: str | None


@dataclass(slots=True)
class Tally:
    """What came of the requests of some worlds. `reasons` are those of unknown outcomes."""

    worlds: int = 0
    commits: int = 0
    requests: int = 0
    retries: int = 0
    refused: int = 0
    waits: int = 0
    virtual_days: float = 0.0
    reasons: Counter[str] = field(default_factory=Counter)

    @classmethod
    def read(cls, file: Path) -> "Tally":
        """What a file holds."""
        document = json.loads(file.read_text())
        return cls(**{**document, "reasons": Counter(document["reasons"])})

    def write(self, file: Path) -> None:
        """Keeps it in a file."""
        write_json(file, {each.name: getattr(self, each.name) for each in fields(self)})

    def add(self, other: "Tally") -> None:
        """Adds another world's."""
        self.worlds += other.worlds
        self.commits += other.commits
        self.requests += other.requests
        self.retries += other.retries
        self.refused += other.refused
        self.waits += other.waits
        self.virtual_days += other.virtual_days
        self.reasons.update(other.reasons)

    def __str__(self) -> str:
        return (
            f"{self.worlds} worlds: {self.commits} commits of {self.requests} requests in {self.virtual_days:.0f} "
            f"virtual days, {self.retries} retries, {self.refused} refusals, {self.waits} answers to wait, "
            f"{self.reasons.total()} unknown outcomes {dict(self.reasons)}"
        )


class HealthyUse:
    """The processes of one world, and the requests that clients send to them."""

    def __init__(self, world: World, commits: int) -> None:
        self.world = world
        self.commits = commits
        self.tally = Tally()
        self._random = world.loop.stream("clients")
        self._fixtures: dict[str, CatalogFixture] = {}
        self._answered: list[KeyedRequest] = []
        self._awake: list[str] = []
        self._made: list[str] = []
        """Names of tables that come and go."""
        self._numbers = 0

    async def run(self) -> Tally:
        """Sets up, and then bursts and pauses in turn."""
        setup = self._fixture("setup")
        await setup.namespace("db")
        for name in (*HOT, *IDLE):
            await setup.table(name)
        bursts = 0
        while self.tally.commits < self.commits:
            await self._burst(bursts, self.tally.commits + BURST)
            await self._pause(f"maintenance{bursts}")
            bursts += 1
        await self.world.settle()
        self.tally.worlds, self.tally.virtual_days = 1, self.world.loop.time() / DAY
        return self.tally

    def _fixture(self, process: str) -> CatalogFixture:
        """The catalog as this process serves it, with all that it remembers. A server lives on after its answers."""
        if process not in self._fixtures:
            line = self.world.process(process)
            fixture = CatalogFixture(line.store, line.runtime, SETTINGS)
            if process.startswith("server"):
                fixture.catalog = replace(
                    fixture.catalog, background_tasks=BackgroundTasks(), table_locks=AdvisoryLocks()
                )
            self._fixtures[process] = fixture
        return self._fixtures[process]

    # Bursts and pauses.

    async def _burst(self, number: int, until: int) -> None:
        """Clients send to some processes, one of which lives for this burst alone. Each begins with a commit to the hot
        table; the first creates of one may come all at once."""
        awake = [name for name, period in PERIODS.items() if number % period == 0] + [f"worker{number}"]
        self._awake = awake
        await asyncio.gather(*(self._commit(process, HOT[0]) for process in awake))
        if self._random.random() < 0.3:
            crowd = self._random.choice(awake)
            await asyncio.gather(*(self._create(crowd) for _ in range(self._random.randint(2, 6))))
        async with asyncio.TaskGroup() as group:
            for _ in range(CLIENTS):
                group.create_task(self._client(awake, until))
        for process in awake:
            background = self._fixture(process).catalog.background_tasks
            if background is not None:
                await background.drain()

    async def _client(self, awake: list[str], until: int) -> None:
        while self.tally.commits < until:
            await self._request(self._random.choice(awake))
            await asyncio.sleep(self._random.expovariate(20.0))

    async def _pause(self, process: str) -> None:
        """Time passes. In a long pause receipts are walked, and garbage is collected, as the schedule does."""
        seconds = self._random.choice(PAUSES)
        await asyncio.sleep(seconds)
        if seconds >= DAY:
            fixture, line = self._fixture(process), self.world.process(process)
            assert await line.run(reconcile(fixture.session(deadline_ms=MAINTENANCE_MS))) is not DIED
            collecting = collect(fixture.session(deadline_ms=MAINTENANCE_MS), delete=True)
            assert await line.run(collecting) is not DIED
            del self._fixtures[process]

    # Requests.

    async def _request(self, process: str) -> None:
        """One request, of a kind by chance."""
        chance = self._random.random()
        if chance < 0.62:
            await self._commit(process, HOT[0] if self._random.random() < 0.8 else HOT[1])
        elif chance < 0.70:
            await self._commit(process, self._random.choice(IDLE))
        elif chance < 0.76:
            await self._transaction(process)
        elif chance < 0.82:
            await self._load(process, self._random.choice((*HOT, *IDLE)))
        elif chance < 0.86:
            await self._create(process)
        elif chance < 0.90:
            await self._drop_or_rename(process)
        elif chance < 0.92:
            await self._set_namespace_property(process)
        else:
            await self._retry(process)

    async def _commit(self, process: str, table: str) -> None:
        body = self._change()
        await self._send(process, f"/commit/{table}", body, lambda session: commit_table(session, NS, table, body))

    def _change(self) -> JsonObject:
        """A commit; a few require what is not so."""
        self._numbers += 1
        change = set_property(f"p{self._numbers % 20}", str(self._numbers))
        if self._random.random() < 0.02:
            change["requirements"] = [{"type": "assert-current-schema-id", "current-schema-id": 7}]
        return change

    async def _transaction(self, process: str) -> None:
        names = self._random.sample((*HOT, *IDLE), 2)
        changes = [(NS, name, self._change()) for name in names]
        body: JsonObject = {"changes": [change for _, _, change in changes], "names": [*names]}
        await self._send(process, "/transactions", body, lambda session: commit_transaction(session, changes))

    async def _create(self, process: str) -> None:
        self._numbers += 1
        name = f"t{self._numbers}"
        body: JsonObject = {"name": name, "schema": schema("x")}
        if await self._send(process, "/create", body, lambda session: create_table(session, NS, body)):
            self._made.append(name)

    async def _drop_or_rename(self, process: str) -> None:
        """A table that was made here goes, or gets another name; sometimes one that another client has just taken."""
        if not self._made:
            return
        name = self._made.pop(self._random.randrange(len(self._made)))
        if self._random.random() < 0.5:
            await self._send(process, f"/drop/{name}", {}, lambda session: drop_table(session, NS, name, purge=False))
            return
        self._numbers += 1
        other = f"t{self._numbers}"
        body: JsonObject = {"source": name, "destination": other}
        if await self._send(process, "/rename", body, lambda session: rename_table(session, (NS, name), (NS, other))):
            self._made.append(other)

    async def _set_namespace_property(self, process: str) -> None:
        self._numbers += 1
        updates = {"owner": str(self._numbers)}
        body: JsonObject = {"removals": [], "updates": {**updates}}
        await self._send(process, "/properties", body, lambda session: update_properties(session, NS, [], updates))

    async def _load(self, process: str, table: str) -> None:
        fixture = self._fixture(process)
        assert await self.world.process(process).run(load_table(fixture.session(), NS, table)) is not DIED

    # Sendings.

    async def _send(self, process: str, path: str, body: JsonObject, perform: Perform) -> bool:
        """Sends a new request, most often under a key; sometimes twice at once, to two processes. Returns whether the
        answer was yes."""
        key = uuid7(self.world.runtime.now_ms(), self.world.runtime) if self._random.random() < 0.5 else None
        request = KeyedRequest(path, body, perform, key or "", self.world.loop.time(), False, None)
        places = [process]
        if key is not None and self._random.random() < 0.1:
            places.append(self._random.choice(self._awake))
        answers = await asyncio.gather(*(self._until_answered(place, request, key) for place in places))
        self.tally.requests += 1
        first = answers[0]
        assert all(type(answer) is type(first) for answer in answers), answers
        refused = isinstance(first, Refusal)
        self.tally.refused += refused
        self.tally.commits += first is not None and not refused
        if key is not None:
            entity = first.entity if isinstance(first, TableState) else None
            self._answered.append(replace(request, refused=refused, entity=entity))
        return first is not None and not refused

    async def _retry(self, process: str) -> None:
        """Sends a request again that was answered before, minutes or hours ago: it has the same answer."""
        oldest = self.world.loop.time() - KEY_SECONDS
        self._answered = [request for request in self._answered if request.sent_at > oldest][-2_000:]
        if not self._answered:
            return
        request = self._random.choice(self._answered)
        self.tally.retries += 1
        answer = await self._until_answered(process, request, request.key)
        assert isinstance(answer, Refusal) == request.refused, f"{request} is answered {answer!r} the second time"
        if isinstance(answer, TableState):
            assert answer.entity == request.entity

    async def _until_answered(self, process: str, request: KeyedRequest, key: str | None) -> Answer | Refusal | None:
        """Sends until the answer is definite; None for a request without a key that is to wait."""
        for _ in range(MAX_SENDINGS):
            try:
                return await self._once(self.world.process(process), request, key)
            except Refusal as refusal:
                return refusal
            except (KeyInProgress, Unavailable):
                self.tally.waits += 1
                if key is None:
                    return None
            await asyncio.sleep(1.0)
        raise AssertionError(f"{request} has no definite answer after {MAX_SENDINGS} sendings")

    async def _once(self, process: Process, request: KeyedRequest, key: str | None) -> Answer:
        """One sending. Whatever it raises but what a healthy catalog may ends the run, an unknown outcome as well."""
        session_of, stats = self._fixture(process.name).session, RequestStats()
        with collect_stats(stats):
            try:
                answer = await process.run(request.perform(session_of(request.body, key=key, path=request.path)))
            finally:
                if stats.unknown_outcome is not None:
                    self.tally.reasons[stats.unknown_outcome] += 1
        assert answer is not DIED
        return answer


def played(seed: int, commits: int = PART) -> Tally:
    """Plays one world of a seed. Raises what a request ended in that no healthy catalog answers."""
    loop = SimulatedLoop(seed, max_steps=MAX_TURNS, max_seconds=MAX_VIRTUAL_SECONDS)
    world = World(loop, NO_FAULTS, page_size=1_000)
    return loop.run(HealthyUse(world, commits).run())


def main() -> int:
    """Plays world after world, each of a seed of its own. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.healthy_use", description=__doc__)
    parser.add_argument("--commits", type=int, default=100_000, help="how many there are to be in all")
    parser.add_argument("--part", type=int, help="stop after so many more; the next call goes on")
    parser.add_argument("--first", type=int, default=1_000, help="the seed of the first world")
    parser.add_argument("--state", type=Path, help="a file that holds how far it came")
    options = parser.parse_args()
    logging.getLogger("arco_catalog").setLevel(logging.ERROR)
    tally = Tally.read(options.state) if options.state is not None and options.state.exists() else Tally()
    until = min(options.commits, tally.commits + (options.part or options.commits))
    while tally.commits < until:
        seed = options.first + tally.worlds
        try:
            tally.add(played(seed))
        except Exception:
            print(f"the world of seed {seed} fails", file=sys.stderr)
            raise
        if options.state is not None:
            tally.write(options.state)
        print(tally, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
