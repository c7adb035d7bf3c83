"""Measures plans of tables that are written to cost the most: `make bench-hostile_plans`, `python -m
tools.bench.hostile_plans`.

Each table of tools/bench/hostile_tables.py is planned eight times at once by a new `arco serve` on local files, with up
to four requests a plan. An answered request is followed by its plan tasks, and one with a 503 is sent again, until
`--requests` were sent or `--seconds` have passed. Meanwhile one connection reads `/health` again and again. Printed are
the answers, the greatest memory (VmHWM) above that of the idle server, what it has above that at the end, the longest
step of the event loop and by how much it was late (tools/bench/loop_delay.py), without the time in which another
process had the core, and the longest wait for `/health` by the clock.
"""

import argparse
import http.client
import json
import multiprocessing
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from typing import Any

from arco_catalog.iceberg.json import JsonObject
from tools.bench.hostile_tables import TABLES, HostileTable
from tools.bench.loop_delay import DelayFile
from tools.bench.plan import MB, PLANS_AT_ONCE, memory, run_beside_health
from tools.bench.planners import AT_ONCE, BUSY, BUSY_PAUSE_S, NAMESPACES, TABLE, send
from tools.support.arco_server import WAREHOUSE, ArcoServer

REQUESTS = 40
SECONDS = 30.0
LIMIT_S = 60.0
NOTHING: JsonObject = {"filter": {"type": "is-null", "term": "part"}}
HEADINGS = (
    "table",
    "answers",
    "MB above idle",
    "MB at the end",
    "step ms",
    "delay ms",
    "`/health` ms",
)


def measure(table: HostileTable, requests: int = REQUESTS, seconds: float = SECONDS) -> str:
    """Measures plans of a table. Returns a line of the report."""
    with tempfile.TemporaryDirectory(prefix="arco-plan-") as scratch:
        folder = Path(scratch, "store")
        place = folder / WAREHOUSE / "warehouse" / "t"
        (place / "metadata").mkdir(parents=True)
        metadata = table.write(place)
        delays = DelayFile(Path(scratch, "delay"))
        program = (sys.executable, "-m", "tools.bench.loop_delay", f"{scratch}/delay")
        with ArcoServer(f"file:{folder}", Path(scratch, "log"), program=program) as server:
            send(server.uri, NAMESPACES, {"namespace": ["db"]})
            send(server.uri, f"{NAMESPACES}/db/register", {"name": "t", "metadata-location": f"file://{metadata}"})
            _send(server.uri, f"{NAMESPACES}/db/tables/none/plan", NOTHING)  # loads what every plan needs
            idle = memory(server.pid, "VmRSS")
            delays.reset()
            answers, waited = _crowd(server.uri, table.request, requests, seconds)
            peak, left = (memory(server.pid, each) - idle for each in ("VmHWM", "VmRSS"))
            worst = delays.worst
    figures = (peak / MB, left / MB, 1e3 * worst.step, 1e3 * worst.delay, 1e3 * waited)
    counted = ", ".join(f"{count} x {status}" for status, count in sorted(answers.items()))
    return f"| {' | '.join([table.name, counted, *(f'{each:,.0f}' for each in figures)])} |"


def _crowd(uri: str, request: JsonObject, requests: int, seconds: float) -> tuple[Counter[int], float]:
    """Plans the table eight times at once, by clients in a process of their own. Returns the statuses, and the longest
    wait for `/health` meanwhile."""
    spawning = multiprocessing.get_context("spawn")
    found: SimpleQueue[Counter[int]] = spawning.SimpleQueue()
    clients = spawning.Process(target=_follow_many, args=(uri, request, requests, seconds, found))
    health_s = run_beside_health(uri, clients)
    return found.get(), health_s


def _follow_many(
    uri: str, request: JsonObject, requests: int, seconds: float, found: "SimpleQueue[Counter[int]]"
) -> None:
    until = time.monotonic() + seconds
    with ThreadPoolExecutor(PLANS_AT_ONCE) as pool:
        plans = [pool.submit(_follow, uri, request, requests, until) for _ in range(PLANS_AT_ONCE)]
        found.put(sum((each.result() for each in plans), Counter[int]()))


def _follow(uri: str, request: JsonObject, requests: int, until: float) -> Counter[int]:
    """Plans a scan, and fetches plan tasks, until so many requests were sent, or a time has come. Counts the
    statuses."""
    statuses: Counter[int] = Counter()
    left: list[tuple[str, JsonObject]] = [(f"{TABLE}/plan", request)]
    waiting: dict[Future[tuple[int, list[str]]], tuple[str, JsonObject]] = {}
    sent = 0
    with ThreadPoolExecutor(AT_ONCE) as pool:
        while waiting or (left and sent < requests and time.monotonic() < until):
            while left and len(waiting) < AT_ONCE and sent < requests and time.monotonic() < until:
                each = left.pop(0)
                waiting[pool.submit(_send, uri, *each)] = each
                sent += 1
            for done in wait(waiting, return_when=FIRST_COMPLETED).done:
                each, (status, tasks) = waiting.pop(done), done.result()
                statuses[status] += 1
                left += [each] if status == BUSY else []
                left += [(f"{TABLE}/tasks", {"plan-task": task}) for task in tasks]
    return statuses


def _send(uri: str, path: str, body: JsonObject) -> tuple[int, list[str]]:
    """Sends a request. Returns the status, and the plan tasks of the answer."""
    connection = http.client.HTTPConnection(uri.removeprefix("http://"), timeout=LIMIT_S)
    try:
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        received: dict[str, Any] = json.loads(answer.read())
    finally:
        connection.close()
    if answer.status == BUSY:
        time.sleep(BUSY_PAUSE_S)
    return answer.status, received.get("plan-tasks", [])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="tables whose name has this text")
    parser.add_argument("--requests", type=int, default=REQUESTS, help="requests of each plan, at most")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="after which a plan sends no more requests")
    given = parser.parse_args(arguments)
    print(f"| {' | '.join(HEADINGS)} |\n| --- | --- {'| --: ' * 5}|")
    for table in TABLES:
        if given.only in table.name:
            print(measure(table, given.requests, given.seconds), flush=True)


if __name__ == "__main__":
    main()
