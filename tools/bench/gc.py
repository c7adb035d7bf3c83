"""Collects a store of synthetic objects: `python -m tools.bench.gc`.

100,000 orphans of all kinds lie among 1,000,000 objects, in a folder or in a bucket of an emulator. The collection runs
in a process of its own, whose peak memory is told, while this one commits to tables of the store. In the end each of
these must be as its last commit has left it.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.load import load_table
from arco_catalog.planning.collection import DAY_MS, Retention
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state import receipt
from arco_catalog.state.marker import Slot, WriteSet
from arco_catalog.state.paths import Paths, commit_key
from arco_catalog.state.pointer import MetadataFile, Pointer
from arco_catalog.state.runtime import SystemRuntime
from arco_catalog.state.transaction import Decision, encode
from arco_catalog.upkeep.collection.collect import collect
from storage_backends import ANY
from storage_backends.local.store import LocalStore
from storage_backends.open import opener_in
from tools.support.catalog_fixture import NS, CatalogFixture, state
from tools.support.environment import exported
from tools.support.request_bodies import set_property
from tools.support.s3_servers import SERVERS

if TYPE_CHECKING:
    from tools.support.large_moto import LargeMoto

WAREHOUSE = "wh"
PATHS = Paths(WAREHOUSE)
TABLES = 100
WRITERS = 2
"""Of the tables so many are committed to meanwhile, one commit after the other."""
OLD_S = 30 * DAY_MS / 1000
YOUNG = Retention(orphans_ms=60_000, markers_ms=60_000, decisions_ms=60_000, margin_ms=30_000)
"""What a bucket, in which nothing can be made to look old, is collected by: still more than a request takes."""
Write = Callable[[str, bytes], None]


def orphans(count: int, tables: list[tuple[str, str]], runtime: SystemRuntime) -> Iterator[tuple[str, bytes]]:
    """Objects that are to go: of a hundred 76 are of lost tries, 16 of markers; and decisions, pointers, commits and
    hints, two each."""
    long_ago = runtime.now_ms() - 30 * DAY_MS
    for number in range(count // 100):
        entity, folder = tables[number % len(tables)]
        for _ in range(38):
            file = MetadataFile(f"{folder}/00001-{runtime.uuid()}.metadata.json", long_ago)
            key = commit_key(entity, file.location)
            details: JsonObject = {"attempt": runtime.ulid(), "principal": "bench", "source": {"kind": "Bench"}}
            announced = receipt.pending(entity=entity, metadata=file, base=None, details=details)
            yield file.location, b"{}"
            yield PATHS.receipt(receipt.PENDING, key, file.ms), receipt.encode(announced)
        for place in range(8):
            name = os.urandom(32).hex()
            attempt = runtime.ulid()
            yield PATHS.marker_slot(name, 0), Slot(attempt, WriteSet({entity: 1}), {"method": "POST"}, None).body
            answer: JsonObject = {"status": 200, "body": None}
            yield PATHS.marker_slot(name, 1), Slot(attempt, WriteSet(), {}, answer if place else None).body
        for _ in range(2):
            transaction = runtime.ulid()
            closed = Decision.closed(transaction=transaction, move=runtime.ulid())
            yield PATHS.transaction(transaction), encode(closed.document)
            stray = runtime.ulid()
            first = MetadataFile(f"{folder}/00000-{runtime.uuid()}.metadata.json", long_ago)
            pointer = Pointer.first(entity=stray, kind="table", move=runtime.ulid(), metadata=first, summary={})
            yield PATHS.pointer(stray), pointer.body
            yield PATHS.registry_commit(runtime.ulid()), b'{"version":1}'
            yield PATHS.open_task(runtime.uuid(), long_ago), b""


def kept(count: int, tables: list[tuple[str, str]], runtime: SystemRuntime) -> Iterator[tuple[str, bytes]]:
    """Objects that stay: receipts, half as many metadata files, data files."""
    for number in range(count // 4):
        entity, folder = tables[number % len(tables)]
        file = MetadataFile(f"{folder}/00002-{runtime.uuid()}.metadata.json", runtime.now_ms() - DAY_MS)
        key = commit_key(entity, file.location)
        details: JsonObject = {"attempt": runtime.ulid(), "principal": "bench", "source": {"kind": "Bench"}}
        made = receipt.committed(receipt.pending(entity=entity, metadata=file, base=None, details=details))
        yield PATHS.receipt(receipt.COMMITTED, key, file.ms), receipt.encode(made)
        yield file.location, b"{}"
        data = folder.removesuffix("/metadata")
        yield f"{data}/data/{runtime.uuid()}.parquet", b"data"
        yield f"{data}/data/{runtime.uuid()}.parquet", b"data"


async def tables_in(fixture: CatalogFixture) -> list[tuple[str, str]]:
    """Live tables, each with its entity and its folder of metadata."""
    await fixture.namespace("db")
    made = []
    for number in range(TABLES):
        state = await fixture.table(f"t{number}")
        made.append((state.entity, state.metadata_location.rpartition("/")[0]))
    return made


def fill_folder(root: Path, count: int) -> int:
    """Fills a folder. Returns how many objects there are."""
    base, folders = root.as_uri() + "/", set[str]()

    def write(key: str, body: bytes, age_s: float) -> None:
        path = f"{root}/{key.removeprefix(base)}"
        folder = path.rpartition("/")[0]
        if folder not in folders:
            os.makedirs(folder, exist_ok=True)
            folders.add(folder)
        with open(path, "wb", buffering=0) as file:
            file.write(body)
        if age_s:
            os.utime(path, (time.time() - age_s,) * 2)

    fixture = CatalogFixture(LocalStore(root), SystemRuntime(), Settings(WAREHOUSE), url=root.as_uri())
    return fill(asyncio.run(tables_in(fixture)), count, write)


def fill_moto(moto: "LargeMoto", url: str, count: int) -> int:
    """Fills a bucket in this process. Returns how many objects there are."""
    base, prefix = url + "/", url.removeprefix(f"s3://{moto.bucket}/")

    async def tables() -> list[tuple[str, str]]:
        store = opener_in(os.environ)(url)
        made = await tables_in(CatalogFixture(store, SystemRuntime(), Settings(WAREHOUSE), url=url))
        await store.close()
        return made

    def write(key: str, body: bytes, age_s: float) -> None:
        moto.put(f"{prefix}/{key.removeprefix(base)}", body, time.time() - age_s)

    made = fill(asyncio.run(tables()), count, write)
    moto.settle()
    return made


def fill(tables: list[tuple[str, str]], count: int, write: Callable[[str, bytes, float], None]) -> int:
    """Writes one orphan for each nine objects that stay, with each one's age in seconds. Returns how many there are."""
    runtime, made = SystemRuntime(), 0
    for key, body in orphans(count // 10, tables, runtime):
        write(key, body, OLD_S)
        made += 1
    for key, body in kept(count - made, tables, runtime):
        write(key, body, 0)
        made += 1
    return made


async def fill_bucket(url: str, count: int) -> int:
    """The same in a bucket, whose objects are all young: the collection takes them for old after two minutes."""
    runtime, store = SystemRuntime(), opener_in(os.environ)(url)
    fixture = CatalogFixture(store, runtime, Settings(WAREHOUSE), url=url)
    tables = await tables_in(fixture)
    prefix, made = url.rstrip("/") + "/", 0
    batch: list[tuple[str, bytes]] = []
    orphaned = 0.0

    async def flush() -> None:
        await asyncio.gather(*(store.put(key.removeprefix(prefix), body, ANY) for key, body in batch))
        batch.clear()

    for source in (orphans(count // 10, tables, runtime), kept(count - count // 10, tables, runtime)):
        for item in source:
            batch.append(item)
            made += 1
            if len(batch) == 64:
                await flush()
        await flush()
        orphaned = orphaned or time.monotonic()
    await store.close()
    old_ms = YOUNG.with_margin(YOUNG.with_margin(YOUNG.orphans_ms))
    await asyncio.sleep(max(0.0, orphaned + old_ms / 1000 - time.monotonic()))
    return made


async def collected(url: str, *, young: bool) -> JsonObject:
    """One collection, in this process."""
    store = opener_in(os.environ)(url)
    settings = Settings(WAREHOUSE, retention=YOUNG if young else Retention())
    fixture = CatalogFixture(store, settings=settings, url=url)
    before, began = peak_mb(), time.perf_counter()
    stats = await collect(fixture.session(deadline_ms=DAY_MS), delete=True)
    seconds = time.perf_counter() - began
    await store.close()
    return {
        "seconds": round(seconds, 1),
        "listed": stats.listed,
        "collected": {kind.value: each.count for kind, each in stats.kinds.items()},
        "unreadable": stats.unreadable_count,
        "peak_mb": peak_mb(),
        "mb_before": before,
    }


def peak_mb() -> int:
    """The most memory of this process so far. (`ru_maxrss` begins with that of the process that started it.)"""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return round(int(status["VmHWM"].split()[0]) / 1024)


class Writers:
    """Commits to tables, for as long as a collection runs."""

    def __init__(self, url: str) -> None:
        self._store = opener_in(os.environ)(url)
        self._fixture = CatalogFixture(self._store, settings=Settings(WAREHOUSE), url=url)
        self._ends = False
        self.commits = 0

    async def beside(self, process: asyncio.subprocess.Process) -> bytes:
        """What the process prints, with commits going on until it ends. Raises what a commit does."""
        writing = [asyncio.create_task(self._write(f"t{number}")) for number in range(WRITERS)]
        told, _ = await process.communicate()
        self._ends = True
        await asyncio.gather(*writing)
        await self._store.close()
        return told

    async def _write(self, name: str) -> None:
        """Commits until the end. Raises `RuntimeError` if the table is not what the last commit made of it."""
        made, number = None, 0
        while not self._ends:
            number += 1
            made = await self._fixture.commit(set_property("n", str(number)), name)
            self.commits += 1
        found = state(await load_table(self._fixture.another().session(), NS, name))
        if made is None or found.metadata_location != made.metadata_location:
            raise RuntimeError(f"table {name} is not what its last commit made of it")


async def in_its_own_process(url: str, *, young: bool) -> JsonObject:
    """The same in a process that has made nothing of it, beside writers."""
    command = [sys.executable, "-m", "tools.bench.gc", "--collect", url, *(["--young"] if young else [])]
    writers = Writers(url)
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    told = json.loads(await writers.beside(process))
    assert isinstance(told, dict)
    return {**told, "commits beside": writers.commits}


def main(arguments: list[str] | None = None) -> None:
    """Fills a folder, or a bucket, and collects it."""
    parser = argparse.ArgumentParser(prog="bench-gc", description=__doc__)
    parser.add_argument("--objects", type=int, default=1_000_000, help="in the store, a tenth of them orphans")
    parser.add_argument("--server", choices=["local", *SERVERS], default="local", help="whose bucket, or a folder")
    parser.add_argument("--url", help="an empty bucket of your own, as `arco --store` takes it")
    parser.add_argument("--collect", metavar="URL", help=argparse.SUPPRESS)
    parser.add_argument("--young", action="store_true", help=argparse.SUPPRESS)
    parsed = parser.parse_args(arguments)
    if parsed.collect:
        print(json.dumps(asyncio.run(collected(parsed.collect, young=parsed.young))))
    elif parsed.url:
        measure_bucket(parsed.url, parsed.objects)
    elif parsed.server == "moto":
        from tools.support.large_moto import large_moto  # not at the top: the collector's memory is measured without it

        with large_moto("bench") as moto, exported(moto.server.environment):
            made = fill_moto(moto, "s3://bench/lake", parsed.objects)
            report(made, asyncio.run(in_its_own_process("s3://bench/lake", young=False)))
    elif parsed.server != "local":
        with SERVERS[parsed.server]() as server, exported(server.environment):
            server.make_bucket("bench")
            measure_bucket("s3://bench/lake", parsed.objects)
    else:
        with tempfile.TemporaryDirectory(prefix="bench-gc-") as folder:
            made = fill_folder(Path(folder), parsed.objects)
            report(made, asyncio.run(in_its_own_process(Path(folder).as_uri(), young=False)))


def measure_bucket(url: str, objects: int) -> None:
    """Fills a bucket, collects it, and prints what that took."""
    made = asyncio.run(fill_bucket(url, objects))
    report(made, asyncio.run(in_its_own_process(url, young=True)))


def report(made: int, told: JsonObject) -> None:
    """Prints what a collection did."""
    print(f"{made:,} objects made; one collection of them:")
    for name, value in told.items():
        print(f"  {name:<14} {value}")


if __name__ == "__main__":
    main()
