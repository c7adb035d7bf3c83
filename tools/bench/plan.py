"""Measures plans of scans beside those of Iceberg's Java library: `make bench-plan`, `python -m tools.bench.plan`.

Tables of some shapes on local files, with the statistics of twenty columns, are scanned with filters that keep a part
of the files, by their partitions (sorted, so that whole manifests are ruled out) and by the bounds of a column
(in each manifest). Ours is `arco serve` by HTTP with all plan tasks followed, theirs the library's local planner in a
JVM with default options and its cache of manifests, which reads the metadata file itself and sends nothing. Both find
the same files, or the bench fails.

*cold* is the first plan of a new process, *warm* the median of three or more after as many plans as one second takes
(`--warm-s`). CPU is the mean of the planner's process with all its
threads, and per entry of the manifests that the partition does not rule out; the memory is what the process had at its
peak above what it had before its first plan. Then eight plans of the last filter are followed at once, at a new server.

A filter that leaves more entries than `--max-entries` is left out: a plan of a million entries takes a minute.
"""

import argparse
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from urllib.request import urlopen

from arco_catalog.iceberg.json import JsonObject
from tools.bench.loop_delay import DelayFile, Lateness
from tools.bench.plan_tables import IDS, PARTITIONS, RANGE, Shape, write
from tools.bench.planners import (
    NAMESPACES,
    JavaLibrary,
    PlanTimes,
    ServedPlans,
    TimedPlanner,
    cpu_seconds,
    follow,
    send,
    served,
)
from tools.support.arco_server import WAREHOUSE, ArcoServer

SHAPES = ("10x100", "10x5000", "1000x100", "10000x100+3000")
MAX_ENTRIES = 100_000
SHARES = (0.001, 0.1, 1.0)
MIN_PLANS = 3
WARM_S = 1.0
PLANS_AT_ONCE = 8
MB = 1 << 20
PAUSE_S = 0.02
HEADINGS = ("keeps", "planner", "first ms", "wall ms", "CPU ms", "us an entry", "KB sent", "MB above idle")


@dataclass(frozen=True)
class Case:
    """A filter, with its name and the number of entries in manifests that it does not rule out."""

    name: str
    filter: JsonObject
    entries: int


@dataclass(frozen=True)
class ModeTimes:
    """What plans of a case took in one mode: the times of the one at the median of their wall time, CPU seconds of the
    planner's process, and its memory above idle in bytes."""

    mode: str
    times: PlanTimes
    cpu_s: float
    memory: int

    def row(self, case: Case) -> str:
        """A line of the table."""
        times = self.times
        sent = f"{times.sent >> 10:,}" if times.sent else "-"
        figures = (1e3 * times.first_s, 1e3 * times.wall_s, 1e3 * self.cpu_s, 1e6 * self.cpu_s / case.entries)
        cells = [case.name, self.mode, *(f"{each:,.1f}" for each in figures), sent, f"{self.memory / MB:,.0f}"]
        return f"| {' | '.join(cells)} |"


@dataclass(frozen=True)
class Crowd:
    """What eight plans at once took: seconds, the server's memory above idle in bytes, the longest wait for `/health`
    by the clock, how late the event loop was without what other processes did, and how many requests were refused
    because the server was too busy, and sent again."""

    wall_s: float
    memory: int
    health_s: float
    loop: Lateness
    refused: int


@dataclass(frozen=True)
class Site:
    """A table in a catalog's folder, and what is needed to plan its scans."""

    folder: Path
    metadata: Path


def cases_of(shape: Shape, max_entries: int = MAX_ENTRIES) -> list[Case]:
    """Returns the filters that leave no more than `max_entries` entries of a table, in the order of the share of files
    that they keep: for each share one by partition, then one by the bounds of a column."""
    found = []
    for share in SHARES:
        below = round(share * PARTITIONS)
        kept = f"{100 * share:g} %"
        condition: JsonObject = {"type": "lt", "term": "part", "value": below}
        found.append(Case(f"{kept} by partition", condition, shape.entries_below(below)))
        ids: JsonObject = {"type": "lt", "term": "id", "value": round(share * IDS) * RANGE}
        found.append(Case(f"{kept} by bounds", ids, shape.manifests * shape.entries))
    return [case for case in found if case.entries <= max_entries]


@contextmanager
def site(shape: Shape) -> Iterator[Site]:
    """Makes a table, and registers it in a catalog."""
    with tempfile.TemporaryDirectory(prefix="arco-plan-") as scratch:
        folder = Path(scratch, "store")
        metadata = write(shape, folder / WAREHOUSE / "warehouse" / "t")
        with served(folder) as planner:
            send(planner.server.uri, NAMESPACES, {"namespace": ["db"]})
            place = {"name": "t", "metadata-location": f"file://{metadata}"}
            send(planner.server.uri, f"{NAMESPACES}/db/register", place)
        yield Site(folder, metadata)


def measure(place: Site, case: Case, java: JavaLibrary | None, warm_s: float = WARM_S) -> Iterator[ModeTimes]:
    """Measures plans of a case: ours cold and warm, then Java's. Raises `RuntimeError` if they differ."""
    with served(place.folder) as ours:
        yield from _measured(ours, case, ("ours, cold", "ours, warm"), warm_s)
        expected = ours.plan(case.filter)
    if java is None:
        return
    with java.started(place.metadata) as theirs:
        for each in _measured(theirs, case, ("Java, cold", "Java, warm"), warm_s):
            if (each.times.files, each.times.deletes) != (expected.files, expected.deletes):
                raise RuntimeError(f"{case.name}: Java finds {each.times}, ours {expected}")
            yield each


def _measured(planner: TimedPlanner, case: Case, modes: tuple[str, str], warm_s: float) -> Iterator[ModeTimes]:
    idle, before = memory(planner.pid, "VmRSS"), cpu_seconds(planner.pid)
    first = planner.plan(case.filter)
    cpu_s = cpu_seconds(planner.pid) - before
    yield ModeTimes(modes[0], first, cpu_s, memory(planner.pid, "VmHWM") - idle)
    _repeat(planner, case, warm_s)
    before = cpu_seconds(planner.pid)
    plans = sorted(_repeat(planner, case, warm_s / 2), key=lambda each: each.wall_s)
    cpu_s = (cpu_seconds(planner.pid) - before) / len(plans)
    yield ModeTimes(modes[1], plans[len(plans) // 2], cpu_s, memory(planner.pid, "VmHWM") - idle)


def _repeat(planner: TimedPlanner, case: Case, seconds: float) -> list[PlanTimes]:
    """Plans scans for some seconds, three or more."""
    until = time.perf_counter() + seconds
    found = [planner.plan(case.filter) for _ in range(MIN_PLANS)]
    while time.perf_counter() < until:
        found.append(planner.plan(case.filter))
    return found


def memory(pid: int, field: str) -> int:
    """A size of a process in bytes, from /proc/PID/status."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0]) * 1024
    raise RuntimeError(f"/proc/PID/status has no field {field}")


def measure_crowd(place: Site, case: Case) -> Crowd:
    """Measures eight plans at once, by clients in a process of their own. Raises `RuntimeError` if they fail."""
    file = place.folder.with_name("delay")
    delays = DelayFile(file)
    program = (sys.executable, "-m", "tools.bench.loop_delay", str(file))
    log = place.folder.with_name("server.log")
    with ArcoServer(f"file:{place.folder}", log, program=program) as server:
        planner = ServedPlans(server)
        follow(server.uri, {"type": "lt", "term": "part", "value": 0})  # loads what every plan needs
        idle = memory(planner.pid, "VmRSS")
        delays.reset()
        spawning = multiprocessing.get_context("spawn")
        refused = spawning.Value("q", 0)
        clients = spawning.Process(target=_follow_many, args=(server.uri, case.filter, refused))
        began = time.perf_counter()
        health_s = run_beside_health(server.uri, clients)
        wall_s = time.perf_counter() - began
        return Crowd(wall_s, memory(planner.pid, "VmHWM") - idle, health_s, delays.worst, refused.value)


def _follow_many(uri: str, filter_: JsonObject, refused: "Synchronized[int]") -> None:
    with ThreadPoolExecutor(PLANS_AT_ONCE) as pool:
        plans = [pool.submit(follow, uri, filter_) for _ in range(PLANS_AT_ONCE)]
        refused.value = sum(each.result().refused for each in plans)


def run_beside_health(uri: str, clients: BaseProcess) -> float:
    """Runs clients, which are a process of their own, and reads `/health` again and again until they end. Returns the
    longest wait for it in seconds. Raises `RuntimeError` if the clients fail."""
    longest = _health(uri)
    clients.start()
    while clients.is_alive():
        longest = max(longest, _health(uri))
        time.sleep(PAUSE_S)
    if clients.exitcode:
        raise RuntimeError(f"the clients ended with {clients.exitcode}")
    return longest


def _health(uri: str) -> float:
    """Returns how many seconds the server took to answer `/health`."""
    began = time.perf_counter()
    with urlopen(f"{uri}/health", timeout=60) as answer:
        answer.read()
    return time.perf_counter() - began


def report(shape: Shape, cases: Sequence[Case], java: JavaLibrary | None, warm_s: float) -> None:
    """Prints the figures of one shape."""
    with site(shape) as place:
        print(f"\n{shape}\n\n| {' | '.join(HEADINGS)} |\n| --- | --- {'| --: ' * 6}|")
        for case in cases:
            for found in measure(place, case, java, warm_s):
                print(found.row(case), flush=True)
        last = cases[-1]
        crowd = measure_crowd(place, last)
        print(
            f"\n{PLANS_AT_ONCE} plans of {last.name} at once: {crowd.wall_s:.1f} s, {crowd.memory / MB:.0f} MB above "
            f"idle, `/health` at most {1e3 * crowd.health_s:.0f} ms, a step of the event loop "
            f"{1e3 * crowd.loop.step:.0f} ms, its delay {1e3 * crowd.loop.delay:.0f} ms, "
            f"{crowd.refused} requests refused with 503",
            flush=True,
        )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", nargs="+", type=Shape.parse, default=[Shape.parse(each) for each in SHAPES],
                        help="manifests x entries + delete manifests: 10000x100 10000x5000 1000x100+3000")  # fmt: skip
    parser.add_argument("--without-java", action="store_true")
    parser.add_argument("--max-entries", type=int, default=MAX_ENTRIES, help="filters that leave more are left out")
    parser.add_argument("--warm-s", type=float, default=WARM_S)
    given = parser.parse_args(arguments)
    cases = {shape: cases_of(shape, given.max_entries) for shape in given.shapes}
    for shape in given.shapes:  # before the first one is measured, which takes minutes
        if not cases[shape]:
            parser.error(f"each filter leaves more than {given.max_entries:,} entries of {shape}: raise --max-entries")
    with tempfile.TemporaryDirectory(prefix="arco-plan-java-") as classes:
        java = None if given.without_java else JavaLibrary.compiled(Path(classes))
        for shape in given.shapes:
            report(shape, cases[shape], java, given.warm_s)


if __name__ == "__main__":
    main()
