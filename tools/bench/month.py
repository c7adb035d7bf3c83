"""A month of one commit a minute, and a collection a day: `python -m tools.bench.month`.

In memory, on a clock that is moved by hand. Each commit has an idempotency key; one in a hundred dies before its swap.
Prints what the store holds at the end of days, by kind. With `--burst` it makes so many requests at once instead, and
lets collections follow until nothing is left that may go.
"""

import argparse
import asyncio
from collections import Counter
from contextlib import suppress

from arco_catalog.iceberg.errors import CatalogError
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.collection import DAY_MS, Retention
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state.paths import Paths, record_kind
from arco_catalog.state.runtime import SystemRuntime
from arco_catalog.upkeep.collection.collect import collect
from arco_catalog.upkeep.reconcile import reconcile
from storage_backends import Matches, Outcome, StoreUnavailable, When
from storage_backends.memory import MemoryStore
from tools.support.catalog_fixture import CatalogFixture
from tools.support.request_bodies import set_property

MINUTE_MS = 60_000
MINUTES = DAY_MS // MINUTE_MS
LOST = 100
"""One commit of so many is lost."""
AFTERWARDS = (8, 8, 90, 8, 8)
"""Days from one collection to the next after a burst: by the last of them all of it is old."""
CLEANED: JsonObject = {
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "10",
}
KINDS = ("pointer", "metadata", "receipt", "marker", "registry-commit", "registry-value", "state", "operational")


class ManualRuntime(SystemRuntime):
    """A machine whose clock is moved by hand, and by sleeping."""

    ms = 1_767_225_600_000

    def now_ms(self) -> int:
        """See `Runtime.now_ms`."""
        return self.ms

    def boot_ms(self) -> int:
        """See `Runtime.boot_ms`."""
        return self.ms

    async def sleep(self, seconds: float) -> None:
        """See `Runtime.sleep`."""
        self.ms += round(seconds * 1000)
        await asyncio.sleep(0)


class FailingStore(MemoryStore):
    """A store that fails to swap pointers while it is told to."""

    fails = False

    async def put(self, key: str, body: bytes, when: When) -> Outcome:
        """See `ObjectStore.put`."""
        if self.fails and key.startswith(Paths("wh").pointers) and isinstance(when, Matches):
            raise StoreUnavailable("down")
        return await super().put(key, body, when)


class Month:
    """A catalog with one table, and its days."""

    def __init__(self, receipts_ms: int) -> None:
        self.runtime = ManualRuntime()
        self.store = FailingStore(self.runtime.now_ms)
        settings = Settings("wh", retention=Retention(receipts_ms=receipts_ms))
        self.fixture = CatalogFixture(self.store, self.runtime, settings)

    async def begin(self) -> None:
        """Makes the table."""
        await self.fixture.namespace("db")
        await self.fixture.table("t", None, properties=CLEANED)

    async def day(self, commits: int) -> None:
        """So many commits, evenly spread over a day, and a collection at its end."""
        for number in range(commits):
            self.runtime.ms += DAY_MS // commits
            self.store.fails = number % LOST == LOST - 1
            with suppress(CatalogError):
                await self.fixture.commit(set_property("n", str(number)), key=self.fixture.key())
        self.store.fails = False
        await reconcile(self.fixture.session(deadline_ms=DAY_MS))
        await collect(self.fixture.session(deadline_ms=DAY_MS), delete=True)

    async def burst(self, requests: int) -> None:
        """So many commits at once."""
        for number in range(requests):
            await self.fixture.commit(set_property("n", str(number)), key=self.fixture.key())

    async def pass_days(self, days: int) -> None:
        """Days in which nothing happens, and a collection at their end."""
        self.runtime.ms += days * DAY_MS
        await collect(self.fixture.session(deadline_ms=DAY_MS), delete=True)

    def sizes(self) -> dict[str, tuple[int, int]]:
        """Of each kind, how many objects there are and how large they are together."""
        counts: Counter[str] = Counter()
        sizes: Counter[str] = Counter()
        for key, size in self.store.sizes():
            kind = record_kind(key)
            counts[kind] += 1
            sizes[kind] += size
        return {kind: (counts[kind], sizes[kind]) for kind in counts}


def row(day: int, sizes: dict[str, tuple[int, int]]) -> str:
    """One line of the table: objects of each kind, and all bytes."""
    counts = [f"{sizes.get(kind, (0, 0))[0]:,}" for kind in KINDS]
    objects = sum(count for count, _ in sizes.values())
    total = sum(size for _, size in sizes.values())
    return f"| {day} | {' | '.join(counts)} | {objects:,} | {total / 1e6:.1f} |"


def print_heading() -> None:
    """The first two lines of the table."""
    print(f"| day | {' | '.join(KINDS)} | objects | MB |")
    print(f"| {' | '.join(['---'] * (len(KINDS) + 3))} |")


async def run(days: int, commits: int, receipts_days: int, every: int) -> None:
    """Prints the table."""
    month = Month(receipts_days * DAY_MS)
    await month.begin()
    print_heading()
    for day in range(1, days + 1):
        await month.day(commits)
        if day % every == 0 or day == 1:
            print(row(day, month.sizes()), flush=True)


async def run_burst(requests: int, receipts_days: int) -> None:
    """Prints the table, with a line after each collection."""
    month, day = Month(receipts_days * DAY_MS), 0
    await month.begin()
    print_heading()
    await month.burst(requests)
    print(row(day, month.sizes()), flush=True)
    for days in AFTERWARDS:
        await month.pass_days(days)
        day += days
        print(row(day, month.sizes()), flush=True)


def main(arguments: list[str] | None = None) -> None:
    """Runs the month that the options describe."""
    parser = argparse.ArgumentParser(prog="month", description=__doc__)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--commits", type=int, default=MINUTES, help="a day")
    parser.add_argument("--receipts", type=int, default=7, metavar="DAYS", help="how long receipts are kept")
    parser.add_argument("--every", type=int, default=3, metavar="DAYS", help="how often a line is printed")
    parser.add_argument("--burst", type=int, metavar="REQUESTS", help="requests at once, in place of a month")
    parsed = parser.parse_args(arguments)
    if parsed.burst is not None:
        asyncio.run(run_burst(parsed.burst, parsed.receipts))
        return
    asyncio.run(run(parsed.days, parsed.commits, parsed.receipts, parsed.every))


if __name__ == "__main__":
    main()
