"""Measures whether other clients get answers while a server handles the worst documents: `make bench-hostile`, `python
-m tools.bench.hostile`.

A real `arco serve` over a local folder gets the worst of each format that outsiders can write (tools/support/worst_*),
several at once. Meanwhile one connection reads `/health` again and again, another commits to a table of its own, a
third makes tables and drops them with a purge; then programs collect and check the catalog. Printed are the answers,
the longest wait for `/health`, the longest step of the event loop in CPU time and by how much it was late
(tools/bench/loop_delay.py), and the server's greatest memory (VmHWM). It fails where an answer, a step, a delay or the
memory breaks its bound; the wait for `/health` depends on what else the machine does, and is only printed.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps
from tools.bench import hostile_callers
from tools.bench.hostile_site import DB, HEADINGS, PREFIX, PURGED, RESET, SPOILT, TIMEOUT, Site
from tools.bench.loop_delay import DelayFile
from tools.support import worst_avro, worst_callers
from tools.support import worst_documents as worst
from tools.support.arco_server import ARCO, WAREHOUSE, ArcoServer
from tools.support.request_bodies import set_property

PURGE_S = 120
"""How long the end of a purge is waited for."""
DROPS = 20
"""How often a drop is sent to a server that answers 503."""


async def idle(seconds: float) -> Counter[int]:
    """Nothing hostile."""
    await asyncio.sleep(seconds)
    return Counter()


async def bodies(site: Site) -> None:
    """Bodies of requests."""

    async def each(named: str, method: str, path: str, body: bytes) -> None:
        await site.report(named, site.crowd(lambda: site.send(method, path, body)))

    for name, make in worst.BODIES.items():
        await each(f"body: {name}", "POST", f"{DB}/tables/t", make())
    await each("OpenLineage event: data sets", "POST", f"/api/v1/{WAREHOUSE}/lineage", worst.event())
    await each("OpenLineage event: long names", "POST", f"/api/v1/{WAREHOUSE}/lineage", worst.event_of_names())
    await each("policy of brackets", "POST", f"/polaris{DB}/policies", worst.policy())
    for name, make in worst.SEMANTIC_MODELS.items():
        await each(f"semantic model: {name}", "POST", f"/polaris{DB}/semantic-models", make())
    for name, make in worst.GOVERNANCE.items():
        await each(f"governance: {name}", "POST", f"{DB}/tables/t/governance", make())
    for number, token in enumerate(worst_callers.tokens()):
        await heads(site, f"token {number}", {"Authorization": f"Bearer {token}"})
    for name, headers in worst_callers.heads().items():
        await heads(site, name, headers)


async def heads(site: Site, name: str, headers: Mapping[str, str]) -> None:
    """A load with a hostile head."""
    sent = site.crowd(lambda: site.send("GET", f"{DB}/tables/t", None, {**headers}))
    await site.report(f"head: {name}", sent, RESET)


async def metadata(site: Site) -> None:
    """Metadata files, replaced by who may write below a table: loaded, and committed to."""
    change = dumps(set_property("a", "b"))
    for number, (name, grown) in enumerate(worst.METADATA.items()):
        packed = number % 2 == 1
        table = f"m{number}"
        file = await site.table(table)
        document = grown(file.read_bytes())
        file.write_bytes(worst.packed(document) if packed else document)
        del document
        called = f"metadata{', gzip' if packed else ''}: {name}"
        path = f"{DB}/tables/{table}"
        await site.report(f"{called}: load", _sent(site, "GET", path), SPOILT)
        await site.report(f"{called}: commit", _sent(site, "POST", path, change), SPOILT)
    folder = site.folder / "alien"
    folder.mkdir(parents=True)
    for number, (name, make) in enumerate(worst.GZIP.items()):
        file = folder / f"{number}.metadata.json"
        file.write_bytes(make())
        body = dumps({"name": "alien", "metadata-location": f"file://{file}"})
        await site.report(f"gzip that {name}: register", _sent(site, "POST", f"{DB}/register", body))


def _sent(site: Site, method: str, path: str, body: bytes | None = None) -> Coroutine[object, object, Counter[int]]:
    return site.crowd(lambda: site.send(method, path, body))


async def purges(site: Site) -> None:
    """Purges of tables with hostile manifest lists, each with an ordinary one behind it."""
    for number, (name, make) in enumerate(worst_avro.LISTS.items()):
        table = f"p{number}"
        file = await site.table(table)
        manifests = file.with_name("list.avro")
        manifests.write_bytes(make())
        snapshot: JsonObject = {
            "snapshot-id": 1,
            "sequence-number": 1,
            "timestamp-ms": int(time.time() * 1e3),
            "manifest-list": f"file://{manifests}",
            "summary": {"operation": "append"},
        }
        ref: JsonObject = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 1}
        updates: list[JsonValue] = [{"action": "add-snapshot", "snapshot": snapshot}, ref]
        assert await site.send("POST", f"{DB}/tables/{table}", dumps({"requirements": [], "updates": updates})) == 200
        behind = await site.table(f"behind{number}")
        await site.report(f"purge: {name}", _dropped(site, (table, f"behind{number}"), behind), PURGED)
    file = await site.table("lists")
    document = worst_avro.many_lists(file.read_bytes(), file.parent)
    # Another purge may have recorded meanwhile that the empty table has no file elsewhere. A commit ends that.
    assert await site.send("POST", f"{DB}/tables/lists", dumps(set_property("a", "b"))) == 200
    max(file.parent.glob("*.metadata.json")).write_bytes(document)
    for number in range(2):
        behind = await site.table(f"beside{number}")
        case = f"purge {number + 1} beside a table of {worst_avro.MANY_LISTS:,} lists"
        await site.report(case, _dropped(site, (f"beside{number}",), behind), PURGED)


async def _dropped(site: Site, tables: Sequence[str], last: Path) -> Counter[int]:
    """Drops tables with a purge, and waits until the file of the last is deleted. Counts the statuses, and 504 if the
    file stays."""
    statuses = Counter([await _drop(site, name) for name in tables])
    for _ in range(10 * PURGE_S):
        if not _exists(last):
            return statuses
        await asyncio.sleep(0.1)
    return statuses + Counter([504])


async def _drop(site: Site, name: str) -> int:
    """Drops a table with a purge, again while the server is busy, and returns the last status."""
    for _ in range(DROPS):
        status = await site.send("DELETE", f"{DB}/tables/{name}?purgeRequested=true")
        if status != 503:
            break
        await asyncio.sleep(1)
    return status


def _exists(file: Path) -> bool:
    return file.exists()


@dataclass
class Purger:
    """Makes tables and drops them with a purge, one after the other, until it is cancelled."""

    site: Site
    ended: int = 0
    longest: float = 0.0

    async def run(self) -> None:
        """Purges tables."""
        while True:
            name, began = f"purged{self.ended}", time.perf_counter()
            file = await self.site.table(name)
            statuses = await _dropped(self.site, [name], file)
            if statuses != Counter([204]):
                self.site.faults.append(f"the purge of {name} did not end within {PURGE_S} s: {dict(statuses)}")
            self.ended += 1
            self.longest = max(self.longest, time.perf_counter() - began)


async def programs(site: Site) -> None:
    """Programs of operators over the catalog with hostile tables in it: each ends with a report."""
    for command in ("gc", "reconcile", "fsck"):
        began = time.perf_counter()
        process = await asyncio.create_subprocess_exec(
            str(ARCO), command, "--store", f"file:{site.folder}", "--warehouse", WAREHOUSE,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        printed, _ = await process.communicate()
        print(f"`arco {command}` in {time.perf_counter() - began:.1f} s, exit code {process.returncode}", flush=True)
        if process.returncode not in (0, 1) or b"Traceback" in printed:
            site.faults.append(f"arco {command}: {printed[-1_000:].decode(errors='replace')}")


PARTS: dict[str, Callable[[Site], Coroutine[object, object, None]]] = {
    "bodies": bodies,
    "metadata": metadata,
    "purges": purges,
    "programs": programs,
}


async def run(at_once: int, parts: Sequence[str]) -> Sequence[str]:
    """Runs the parts, and returns what broke a bound."""
    faults: list[str] = []
    print(f"| {' | '.join(HEADINGS)} |\n| --- | --- |{' --: |' * (len(HEADINGS) - 2)}")
    with tempfile.TemporaryDirectory() as folder:
        store, delays = Path(folder) / "store", DelayFile(Path(folder) / "delay")
        options = ("--purge-undrop-window", "PT0S", "--allowed-location", f"file:{folder}/store/alien")
        program = (sys.executable, "-m", "tools.bench.loop_delay", f"{folder}/delay")
        with ArcoServer(f"file:{store}", Path(folder) / "log", *options, program=program) as server:
            async with aiohttp.ClientSession(server.uri, timeout=TIMEOUT) as client:
                site = Site(server, store, client, delays, at_once)
                await site.send("POST", f"{PREFIX}/namespaces", dumps({"namespace": ["db"]}))
                for name in ("ordinary", "t"):
                    await site.table(name)
                await site.report("nothing", idle(3))
                purger = Purger(site)
                task = asyncio.create_task(purger.run())
                for part, work in PARTS.items():
                    if part in parts:
                        await work(site)
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
                print(f"{purger.ended} other purges ended meanwhile, the longest after {purger.longest:.1f} s")
                if not purger.ended and not PARTS.keys().isdisjoint(parts):
                    site.faults.append("no other purge ended")
                faults += site.faults
    if "callers" in parts:
        faults += await hostile_callers.run(at_once)
    return faults


def main() -> int:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    every = [*PARTS, "callers"]
    parser.add_argument("--at-once", type=int, default=4, help="how many of each document are sent at once")
    parser.add_argument("--parts", nargs="+", default=every, choices=every, help="what is sent")
    arguments = parser.parse_args()
    faults = asyncio.run(run(arguments.at_once, arguments.parts))
    for fault in faults:
        sys.stderr.write(f"{fault}\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
