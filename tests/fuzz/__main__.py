"""A long campaign: other requests in every run, at catalogs and realms in memory and at a real server, and what commits
cost; ends 1 for a fault.

`python -m tests.fuzz --minutes 10` is what `make fuzz` does. What it finds belongs into the corpus.
"""

import argparse
import asyncio
import os
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from hypothesis import given, seed

from storage_backends.open import open_store
from tests.fuzz import growth, management
from tests.fuzz.campaign import Tally, bounds, exchange, in_memory, run, sequences
from tests.fuzz.checks import audit
from tests.fuzz.corpus import entries
from tests.fuzz.live_realms import realm_server
from tests.fuzz.requests import Fuzz
from tests.fuzz.services import Address, LiveService, Request, keep_files, model_version
from tests.fuzz.services import seed as plant
from tests.fuzz.specification import management_operations, operations
from tools.support.arco_server import WAREHOUSE, ArcoServer

EXAMPLES = 40
"""Sequences at one operation in a row."""


def main() -> int:
    """Runs the campaigns: a tenth of the time for what commits cost, half of it at a real server; a third of both
    kinds is for the API of management."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10, help="how long (default 10)")
    parser.add_argument("--seed", type=int, default=None, help="where to begin; printed if not given")
    parsed = parser.parse_args()
    number = random.randrange(1 << 32) if parsed.seed is None else parsed.seed
    print(f"seed {number}")
    tally, faults = Tally(), 0
    faults += _growth(number, time.monotonic() + 6 * parsed.minutes)
    faults += _in_memory(tally, number, time.monotonic() + 16 * parsed.minutes)
    faults += _realms_in_memory(tally, number, time.monotonic() + 8 * parsed.minutes)
    with tempfile.TemporaryDirectory(prefix="arco-fuzz-") as folder:
        faults += _live(tally, number, time.monotonic() + 20 * parsed.minutes, Path(folder))
        faults += _realms_live(tally, number, time.monotonic() + 10 * parsed.minutes, Path(folder))
    for label in (*operations(), *management_operations()):
        print(f"{tally.success(label):4.0%} {label} {dict(tally.by_status(label))}")
    print(f"{tally.requests:,} requests, slowest {tally.slowest:.2f} s, {faults} faults")
    return 1 if faults else 0


def _growth(number: int, until: float) -> int:
    """Programs whose cost must not grow beyond linear."""
    faults = 0
    while time.monotonic() < until:
        number += 1
        with _reported("the cost of commits", number) as failed:
            growth.run(EXAMPLES, number=number)
        faults += len(failed)
    return faults


def _in_memory(tally: Tally, number: int, until: float) -> int:
    fresh, faults = in_memory(), 0
    for label, seed_of_run in _runs(number, until):
        with _reported(label, seed_of_run) as failed:
            tally.add(run(label, fresh, EXAMPLES, number=seed_of_run))
        faults += len(failed)
    return faults


def _live(tally: Tally, number: int, until: float, folder: Path) -> int:
    """At one server after another, each with a store of its own."""
    faults = 0
    for label, seed_of_run in _runs(number, until):
        store = folder / f"{label.rpartition('/')[2]}-{seed_of_run}"
        with ArcoServer(f"file:{store}", folder / "log") as server, _reported(label, seed_of_run) as failed:
            _play_live(server, f"file:{store}", label, seed_of_run, tally, with_corpus=seed_of_run == number + 1)
        faults += len(failed)
        shutil.rmtree(store)
    return faults


def _realms_in_memory(tally: Tally, number: int, until: float) -> int:
    fresh, faults = management.in_memory(), 0
    for label, seed_of_run in _runs(number, until, management_operations()):
        with _reported(label, seed_of_run) as failed:
            tally.add(management.run(label, fresh, EXAMPLES, number=seed_of_run))
        faults += len(failed)
    return faults


def _realms_live(tally: Tally, number: int, until: float, folder: Path) -> int:
    """At one server after another, each with a realm of its own."""
    faults = 0
    for label, seed_of_run in _runs(number, until, management_operations()):
        store = folder / f"realm-{seed_of_run}"
        with realm_server(store, folder) as server, _reported(label, seed_of_run) as failed:
            bounds(EXAMPLES)(
                seed(seed_of_run)(given(management.sequences(label, server.address))(server.player(tally)))
            )()
        faults += len(failed)
        shutil.rmtree(store)
    return faults


def _runs(number: int, until: float, known: Iterable[str] | None = None) -> Iterator[tuple[str, int]]:
    """Operations in random order, each with a seed of its own, until time is over."""
    chance, labels = random.Random(number), [*(operations() if known is None else known)]
    while True:
        for label in chance.sample(labels, len(labels)):
            if time.monotonic() > until:
                return
            number += 1
            yield label, number


@contextmanager
def _reported(label: str, number: int) -> Iterator[list[BaseException]]:
    """Prints what goes wrong and goes on."""
    failed: list[BaseException] = []
    try:
        yield failed
    except (AssertionError, ExceptionGroup) as error:
        failed.append(error)
        print(f"FAULT at {label}, seed {number}")
        traceback.print_exception(error, file=sys.stdout)


def _play_live(server: ArcoServer, url: str, label: str, number: int, tally: Tally, *, with_corpus: bool) -> None:
    """Sequences at one server, whose catalog is checked at the end; then the corpus, if wanted."""
    address = Address(
        WAREHOUSE, f"{url.replace('file:', 'file://')}/{WAREHOUSE}/warehouse", time.time_ns() // 1_000_000
    )

    async def use(visit: Callable[[LiveService], Awaitable[None]]) -> None:
        store = open_store(url, os.environ)
        try:
            await visit(LiveService(server.uri, address, store, url))
        finally:
            await store.close()

    async def planted() -> str:
        versions: list[str] = []

        async def visit(service: LiveService) -> None:
            await plant(service)
            versions.append(await model_version(service))

        await use(visit)
        return versions[0]

    def play(requests: list[Request]) -> None:
        async def visit(service: LiveService) -> None:
            await plant(service)
            for request in requests:
                await exchange(service, request, tally)

        try:
            asyncio.run(use(visit))
        except AssertionError as error:
            error.add_note("\n".join(["after", *(repr(request) for request in requests)]))
            raise

    async def replay(service: LiveService) -> None:
        for entry in entries():
            await plant(service)
            answer = await service.send(entry.request(address, ""))
            # uvicorn itself may refuse it, in words of its own
            assert answer.status < 500 or answer.status in entry.statuses, (entry.name, answer.body)

    async def look(service: LiveService) -> None:
        await audit(service)

    asyncio.run(use(keep_files))
    address = replace(address, model_version=asyncio.run(planted()))
    bounds(EXAMPLES)(seed(number)(given(sequences(label, address, Fuzz()))(play)))()
    asyncio.run(use(look))
    if with_corpus:
        asyncio.run(use(replay))


if __name__ == "__main__":
    sys.exit(main())
