"""Purges of one large table: `make bench-purge`, `python -m tools.bench.purge`.

The table's files are synthetic: its data files are empty, its manifests have the fields that engines write. It is
dropped with purge, and its task is done, each time from a new table:

- by one process, `arco tasks run`;
- by functions: each is a process of its own, as cold as one, does the task's message as the function behind a queue
  does, and stops when its time is up. The next goes on from the checkpoint;
- by Spark, with two cores of this machine, alone in the catalog, and then with a table beside it that leads to half of
  the files: these stay. Its executors are in the driver's JVM, and their Python beside it.

With `--beside` there are so many other tables in the catalog, each with a snapshot of ten files: all of them are asked
whether they lead to files of the table.

Files a second are those of the whole task, from the first process's spawn to the last one's end. Peak memory is the
largest of any of them, as the operating system counted it; of Spark's, of each kind. At the end nothing may be left at
the table's location but what is shared.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.environment import opened
from arco_catalog.planning.purge import PurgeSettings
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state.runtime import SystemRuntime
from arco_catalog.state.task import ENDED, Status, Task
from arco_catalog.state.task_log import all_hints, read_task
from arco_catalog.upkeep.invocation import MARGIN_MS, Invocation, Until
from arco_catalog.upkeep.jobs import Unfinished, Workplace, run_job
from storage_backends import ABSENT, ObjectStore
from storage_backends.open import open_store
from tools.support import local_spark
from tools.support.arco_server import ARCO
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.environment import exported
from tools.support.process_tree import watched
from tools.support.s3_servers import SERVERS
from tools.support.synthetic_table import Shape, key_prefix, location_of

SNAPSHOTS = 10
FOLDERS = 1_000
AT_ONCE = 64
WAREHOUSE = "wh"
DRIVER = "driver"
BESIDE = Shape(manifests=1, files_each=10)
"""What each of the other tables has."""
MOST_FUNCTIONS = 200
"""After so many the task is no longer believed to end."""


@dataclass(frozen=True)
class Lake:
    """A catalog at a URL, and what reaches its store."""

    url: str
    environment: Mapping[str, str]

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[CatalogFixture]:
        """The catalog, which gives no time to undo a drop."""
        store = open_store(self.url, self.environment)
        try:
            yield CatalogFixture(
                store, settings=Settings(WAREHOUSE, purge=PurgeSettings(undrop_window_ms=0)), url=self.url
            )
        finally:
            await store.close()

    @property
    def folder(self) -> Path | None:
        """Where the store's files lie, if they are files of this machine."""
        return Path(self.url.removeprefix("file:")) if self.url.startswith("file:") else None


@dataclass(frozen=True)
class Spent:
    """What a purge took. `objects` are all that were deleted, metadata included."""

    name: str
    processes: int
    seconds: float
    cpu_seconds: float
    peak_bytes: Mapping[str, int]
    objects: int
    kept: int = 0


@dataclass(frozen=True)
class Way:
    """Who does the task. `function_s` is the time of each function; `shared`: another table leads to half of the
    files."""

    name: str
    function_s: float | None = None
    spark: bool = False
    shared: bool = False


async def fill(lake: Lake, shape: Shape, *, shared: bool = False, beside: int = 0) -> str:
    """Makes the table, and so many others, and drops it. Returns its task."""
    async with lake.opened() as fixture:
        await fixture.namespace(*NS)
        location = await _make(lake, fixture, "t", shape)
        for number in range(beside):
            await _make(lake, fixture, f"n{number}", BESIDE)
        if shared:
            await _share_half(fixture, location, shape)
        session = fixture.session()
        await drop_table(session, NS, "t", purge=True)
        [task] = [hint.task async for hint in all_hints(session.state)]
        return task


async def _make(lake: Lake, fixture: CatalogFixture, name: str, shape: Shape) -> str:
    """Makes a table with its files. Returns its location."""
    await fixture.table(name)
    location = await location_of(fixture, name)
    prefix = key_prefix(fixture, location)
    await _write(lake, fixture.store, ((prefix + file, body) for file, body in shape.objects(location)))
    await shape.commit(fixture, name)
    return location


async def _share_half(fixture: CatalogFixture, location: str, shape: Shape) -> None:
    """Makes a table elsewhere whose one snapshot is an early one of the other's."""
    await fixture.table("neighbour")
    snapshot: JsonObject = {
        "snapshot-id": 1,
        "sequence-number": 1,
        "timestamp-ms": fixture.runtime.now_ms(),
        "manifest-list": f"{location}/metadata/snap-{shape.snapshots // 2}.avro",
        "summary": {"operation": "append"},
        "schema-id": 0,
    }
    added: JsonObject = {"action": "add-snapshot", "snapshot": snapshot}
    await fixture.commit({"requirements": [], "updates": [added]}, "neighbour")


async def _write(lake: Lake, store: ObjectStore, objects: Iterator[tuple[str, bytes]]) -> None:
    """Writes the objects: into a folder as plain files, since the store would make each of them last."""
    if lake.folder is not None:
        await asyncio.to_thread(_write_files, lake.folder, objects)
        return
    limit = asyncio.Semaphore(AT_ONCE)

    async def put(key: str, body: bytes) -> None:
        try:
            await store.put(key, body, ABSENT)
        finally:
            limit.release()

    async with asyncio.TaskGroup() as writers:
        for key, body in objects:
            await limit.acquire()
            writers.create_task(put(key, body))


def _write_files(root: Path, objects: Iterator[tuple[str, bytes]]) -> None:
    made: set[str] = set()
    for key, body in objects:
        path = f"{root}/{key}"
        folder = os.path.dirname(path)
        if folder not in made:
            os.makedirs(folder, exist_ok=True)
            made.add(folder)
        with open(path, "wb", buffering=0) as file:
            if body:
                file.write(body)


def purge(lake: Lake, task: str, way: Way, scratch: Path) -> Spent:
    """Does the task. Raises `RuntimeError` unless it ends well, and leaves nothing but what is shared."""
    command = [str(ARCO), "tasks", "run", task, "--store", lake.url]
    environment = {**os.environ, **lake.environment, "ARCO_STORE": lake.url, "ARCO_WAREHOUSE": WAREHOUSE}
    if way.function_s is not None:
        here = [sys.executable, "-m", "tools.bench.purge"]
        command = [*here, "--function", str(way.function_s), "--task", task]
    if way.spark:
        command = [sys.executable, "-m", "reconciler.purge", "--task", task]
        environment |= {**local_spark.environment(), "PYSPARK_SUBMIT_ARGS": local_spark.submit_arguments(scratch)}
    began, cpu_s, processes = time.perf_counter(), 0.0, 0
    peaks: dict[str, int] = {}
    while processes < MOST_FUNCTIONS:
        cpu, peak_bytes = _run(command, environment, scratch / "log")
        cpu_s, processes = cpu_s + cpu, processes + 1
        peaks = {name: max(peak, peaks.get(name, 0)) for name, peak in {**peaks, **peak_bytes}.items()}
        ended = asyncio.run(_look(lake, task))
        if ended.status in ENDED:
            break
    seconds = time.perf_counter() - began
    told = json.loads(str(ended.document.get("result_extended") or "{}"))
    kept = int(told.get("kept", 0))
    if ended.status is not Status.SUCCESS or told.get("left_behind") != kept or (kept > 0) is not way.shared:
        raise RuntimeError(f"the purge ended badly: {ended.document}")
    return Spent(way.name, processes, seconds, cpu_s, peaks, int(told["files_deleted"]), kept)


def _run(command: Sequence[str], environment: Mapping[str, str], log: Path) -> tuple[float, Mapping[str, int]]:
    """Runs a program to its end. Returns the CPU seconds and the peak memory of what it started, and its own. Raises
    `RuntimeError` if it fails."""
    with log.open("wb") as out:
        action = [(os.POSIX_SPAWN_DUP2, out.fileno(), 1), (os.POSIX_SPAWN_DUP2, out.fileno(), 2)]
        pid = os.posix_spawn(command[0], [*command], environment, file_actions=action)
    with watched(pid) as tree:
        _, status, used = os.wait4(pid, 0)
    if status != 0:
        raise RuntimeError(f"{command} ended with {status}: {log.read_text()[-2000:]}")
    peaks = {**tree.peak_bytes, DRIVER: used.ru_maxrss * 1024} if len(tree.peak_bytes) < 2 else tree.peak_bytes
    return max(used.ru_utime + used.ru_stime, tree.cpu_seconds), peaks


async def _look(lake: Lake, task: str) -> Task:
    async with lake.opened() as fixture:
        stored = await read_task(fixture.session().state, task)
    if stored is None:
        raise RuntimeError(f"task {task} was not begun")
    return stored.task


async def function(environment: Mapping[str, str], task: str, seconds: float) -> None:
    """What the function behind a queue does with a message of the task, until its time is up."""
    runtime = SystemRuntime()
    invocation = Invocation(Until(runtime.now_ms() + round(seconds * 1000) + MARGIN_MS, runtime))
    message: dict[str, JsonValue] = {"version": 1, "work": "tasks", "task": task}
    request = invocation.request("QUEUE", "work", runtime)
    async with opened(environment, runtime) as inventory:
        with suppress(Unfinished):  # the next one goes on
            await run_job(json.dumps(message), Workplace(inventory, request, runtime, invocation.should_stop))


@contextmanager
def lake_on(server: str, folder: Path) -> Iterator[Lake]:
    """An empty lake in the folder, or on a server of S3."""
    if server == "local":
        yield Lake(f"file:{folder}/store", {})
        return
    with SERVERS[server]() as s3:
        s3.make_bucket("bench")
        yield Lake("s3://bench/lake", s3.environment)


def main(arguments: Sequence[str]) -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=1_000_000)
    parser.add_argument("--manifests", type=int, default=10_000)
    parser.add_argument("--beside", type=int, default=0, metavar="N", help="so many other tables in the catalog")
    parser.add_argument("--server", choices=["local", *SERVERS], default="local")
    parser.add_argument("--folder", help="where the files of a local store lie; some file systems are memory")
    parser.add_argument("--function", type=float, default=20.0, metavar="SECONDS", help="the time of each function")
    parser.add_argument(
        "--by", type=int, nargs="+", metavar="N", help="only these, by their number in the table from 0"
    )
    parser.add_argument("--task", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.task:
        asyncio.run(function(os.environ, options.task, options.function))
        return
    each = options.files // options.manifests
    shape = Shape(options.manifests, each, SNAPSHOTS, FOLDERS)
    files = f"{each * shape.manifests:,} files in {shape.manifests:,} manifests"
    print(f"{files}, beside {options.beside:,} tables, on {options.server}", flush=True)
    print("| by | processes | s | objects deleted | objects/s | CPU s | peak MB |")
    print("| --- | --: | --: | --: | --: | --: | --: |", flush=True)
    ways = [
        Way("one process"),
        Way(f"functions of {options.function:g} s", function_s=options.function),
        Way("Spark", spark=True),
        Way("Spark, half is shared", spark=True, shared=True),
    ]
    for way in ways if options.by is None else [ways[number] for number in options.by]:
        with (
            tempfile.TemporaryDirectory(dir=options.folder) as folder,
            lake_on(options.server, Path(folder)) as lake,
            exported(lake.environment),
        ):
            task = asyncio.run(fill(lake, shape, shared=way.shared, beside=options.beside))
            spent = purge(lake, task, way, Path(folder))
        rate = spent.objects / spent.seconds
        peaks = [f"{name} {peak / 1e6:,.0f}" for name, peak in sorted(spent.peak_bytes.items())]
        print(
            f"| {spent.name} | {spent.processes} | {spent.seconds:,.1f} | {spent.objects:,} | {rate:,.0f} "
            f"| {spent.cpu_seconds:,.1f} | {', '.join(peaks)} |",
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:])
