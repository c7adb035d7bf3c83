"""Whether others are answered beside the worst documents: `make bench-hostile`, `python -m tools.bench.hostile`.

A real `arco serve` over a local folder gets the worst of each format that outsiders can write
(tools/support/worst_documents.py), several at once. Meanwhile one connection reads `/health` again and again, and
another commits to a table of its own. Printed are the usual and the longest wait for `/health`, the commits, the
server's greatest memory so far in the case (VmHWM), and the answers.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps
from tools.support import worst_documents as worst
from tools.support.arco_server import WAREHOUSE, ArcoServer
from tools.support.request_bodies import schema, set_property

MB = 1 << 20
PREFIX = f"/v1/{WAREHOUSE}"
DB = f"{PREFIX}/namespaces/db"
JSON = {"Content-Type": "application/json"}
PAUSE_S = 0.02
PURGE_TRIES = 1_200
"""How often the end of a purge beside a hostile one is checked, ten times a second."""
TIMEOUT = aiohttp.ClientTimeout(total=300)


@dataclass
class Beside:
    """What others saw while a case ran."""

    waits: list[float] = field(default_factory=list)
    commits: int = 0
    refused: int = 0


@dataclass(frozen=True)
class Site:
    """The server, its folder, and a client for what is hostile."""

    server: ArcoServer
    folder: Path
    client: aiohttp.ClientSession
    at_once: int

    async def send(self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] = JSON) -> int:
        """Sends a request, and returns the status; 0 if the connection broke."""
        try:
            async with self.client.request(method, path, data=body, headers=headers) as answer:
                await answer.read()
                return answer.status
        except aiohttp.ClientError:
            return 0

    async def crowd(self, make: Callable[[], Coroutine[object, object, int]]) -> Counter[int]:
        """Sends the same request several times at once."""
        return Counter(await asyncio.gather(*(make() for _ in range(self.at_once))))

    async def table(self, name: str) -> Path:
        """Makes a table, and returns the path of its metadata file."""
        body = dumps({"name": name, "schema": schema("x")})
        async with self.client.post(f"{DB}/tables", data=body, headers=JSON) as answer:
            made = await answer.json()
            assert answer.status == 200, made
            return Path(str(made["metadata-location"]).removeprefix("file://"))


async def read_health(uri: str, beside: Beside) -> None:
    """Reads `/health` until it is cancelled."""
    async with aiohttp.ClientSession(uri, timeout=TIMEOUT) as client:
        while True:
            began = time.perf_counter()
            async with client.get("/health") as answer:
                await answer.read()
            beside.waits.append(time.perf_counter() - began)
            await asyncio.sleep(PAUSE_S)


async def commit_beside(uri: str, beside: Beside) -> None:
    """Commits to a table of its own until it is cancelled."""
    async with aiohttp.ClientSession(uri, timeout=TIMEOUT) as client:
        while True:
            body = dumps(set_property("a", str(beside.commits)))
            async with client.post(f"{DB}/tables/ordinary", data=body, headers=JSON) as answer:
                await answer.read()
            beside.commits += answer.status == 200
            beside.refused += answer.status != 200
            await asyncio.sleep(PAUSE_S)


@asynccontextmanager
async def beside(server: ArcoServer) -> AsyncIterator[Beside]:
    """Reads and commits for as long as the context lasts."""
    seen = Beside()
    _reset_peak(server.pid)
    tasks = [asyncio.create_task(each(server.uri, seen)) for each in (read_health, commit_beside)]
    try:
        yield seen
        await asyncio.sleep(0.1)
    finally:
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def report(site: Site, name: str, case: Coroutine[object, object, Counter[int]]) -> None:
    """Runs a case, and prints a line."""
    began = time.perf_counter()
    async with beside(site.server) as seen:
        statuses = await case
    waits = sorted(seen.waits)
    answers = ", ".join(f"{count} x {status}" for status, count in sorted(statuses.items()))
    print(
        f"| {name} | {time.perf_counter() - began:.1f} | {statistics.median(waits) * 1e3:.0f} | "
        f"{waits[int(len(waits) * 0.99)] * 1e3:.0f} | {waits[-1] * 1e3:.0f} | {seen.commits} | {seen.refused} | "
        f"{site.server.memory('VmHWM') / MB:.0f} | {answers} |",
        flush=True,
    )


def _reset_peak(pid: int) -> None:
    Path(f"/proc/{pid}/clear_refs").write_text("5")  # VmHWM counts from here


async def idle(seconds: float) -> Counter[int]:
    """Nothing hostile."""
    await asyncio.sleep(seconds)
    return Counter()


async def bodies(site: Site) -> None:
    """Bodies of a commit."""
    for name, make in worst.BODIES.items():
        body = make()
        await report(site, f"body: {name}", site.crowd(lambda body=body: site.send("POST", f"{DB}/tables/t", body)))  # type: ignore[misc]
    lineage = worst.event()
    sent = site.crowd(lambda: site.send("POST", f"/api/v1/{WAREHOUSE}/lineage", lineage))
    await report(site, "OpenLineage event", sent)
    policy = worst.policy()
    path = f"/polaris{DB}/policies"
    await report(site, "policy", site.crowd(lambda: site.send("POST", path, policy)))
    for number, token in enumerate(worst.tokens()):
        headers = {**JSON, "Authorization": f"Bearer {token}"}
        sent = site.crowd(lambda headers=headers: site.send("GET", "/v1/config", None, headers))  # type: ignore[misc]
        await report(site, f"token {number}", sent)


async def metadata(site: Site) -> None:
    """Metadata files, replaced by who may write below a table: loaded, and committed to."""
    change = dumps(set_property("a", "b"))
    for number, (name, grown) in enumerate(worst.METADATA.items()):
        for packed in (False, True):
            table = f"m{number}{'z' if packed else ''}"
            file = await site.table(table)
            document = grown(file.read_bytes())
            file.write_bytes(worst.packed(document) if packed else document)
            del document
            called = f"metadata{', gzip' if packed else ''}: {name}"
            path = f"{DB}/tables/{table}"
            await report(site, f"{called}: load", site.crowd(lambda path=path: site.send("GET", path)))  # type: ignore[misc]
            commits = site.crowd(lambda path=path: site.send("POST", path, change))  # type: ignore[misc]
            await report(site, f"{called}: commit", commits)
    file = site.folder / "alien" / "1.metadata.json"
    file.parent.mkdir(parents=True)
    file.write_bytes(worst.unpacking_to_more())
    body = dumps({"name": "alien", "metadata-location": f"file://{file}"})
    await report(
        site, "gzip that unpacks to 512 MB: register", site.crowd(lambda: site.send("POST", f"{DB}/register", body))
    )


async def purges(site: Site) -> None:
    """Purges of tables with hostile manifest lists and metadata, and of an ordinary one behind them."""
    for number, (name, make) in enumerate(worst.LISTS.items()):
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
        await report(site, f"purge, manifest list: {name}", dropped(site, table, f"behind{number}", behind))
    file = await site.table("pm")
    document = worst.METADATA["objects of one, each with its own name"](file.read_bytes())
    file.write_bytes(document)
    behind = await site.table("behindm")
    await report(site, "purge, metadata: objects of one", dropped(site, "pm", "behindm", behind))


async def dropped(site: Site, hostile: str, other: str, behind: Path) -> Counter[int]:
    """Drops both with a purge, and waits until the files of the second are deleted. Counts 1 for that, 0 without."""
    for name in (hostile, other):
        await site.send("DELETE", f"{DB}/tables/{name}?purgeRequested=true")
    for _ in range(PURGE_TRIES):
        if not exists(behind):
            break
        await asyncio.sleep(0.1)
    return Counter([int(not exists(behind))])


def exists(file: Path) -> bool:
    """Whether the file is there."""
    return file.exists()


async def run(at_once: int, parts: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        options = ("--purge-undrop-window", "PT0S", "--allowed-location", f"file:{folder}/store/alien")
        with ArcoServer(f"file:{store}", Path(folder) / "log", *options) as server:
            async with aiohttp.ClientSession(server.uri, timeout=TIMEOUT) as client:
                site = Site(server, store, client, at_once)
                await site.send("POST", f"{PREFIX}/namespaces", dumps({"namespace": ["db"]}))
                for name in ("ordinary", "t"):
                    await site.table(name)
                print("| case | s | health p50 ms | p99 | longest | commits beside | refused | VmHWM MB | answers |")
                print("| --- | --: | --: | --: | --: | --: | --: | --: | --- |")
                await report(site, "nothing", idle(5))
                for part, work in (("bodies", bodies), ("metadata", metadata), ("purges", purges)):
                    if part in parts:
                        await work(site)
                await report(site, "nothing", idle(5))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--at-once", type=int, default=4, help="how many of each document are sent at once")
    parser.add_argument("--parts", nargs="+", default=["bodies", "metadata", "purges"], help="bodies, metadata, purges")
    arguments = parser.parse_args()
    asyncio.run(run(arguments.at_once, arguments.parts))


if __name__ == "__main__":
    main()
