"""What is measured: kinds of requests, against small tables and one of many snapshots."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import TypeAlias

import orjson

from arco_catalog.http.etag import table_etag
from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps, loads
from arco_catalog.state.runtime import SystemRuntime
from tools.bench.metadata_semantics import snapshot, table
from tools.bench.sites import Site
from tools.support.arco_server import WAREHOUSE
from tools.support.request_bodies import schema, set_property, uuid7

SMALL = 8
"""How many small tables there are, so that as many clients commit beside each other."""
BIG = 10_000

NAMESPACES = f"/v1/{WAREHOUSE}/namespaces"
TABLES = f"{NAMESPACES}/db/tables"
PLAIN = {"accept-encoding": "identity"}

RUNTIME = SystemRuntime()

Sending: TypeAlias = Callable[[Site, int], AsyncIterator[None]]
"""An endless client, the one of a number: each step is one request and its answer."""


@dataclass(frozen=True, slots=True)
class Workload:
    """One kind of request, and by how many clients it is sent to a server."""

    name: str
    clients: int
    sending: Sending


@dataclass(frozen=True, slots=True)
class Figure:
    """Requests a second, and milliseconds of the server's CPU for each."""

    rate: float
    cpu_ms: float


def big_table(home: str) -> JsonObject:
    """Metadata of many snapshots, at this location."""
    document = table(BIG, home)
    snapshots: list[JsonValue] = [big_snapshot(number, home) for number in range(1, BIG + 1)]
    return {**document, "snapshots": snapshots}


def big_snapshot(number: int, home: str) -> JsonObject:
    """A snapshot whose manifest list is called as Iceberg's writers call them: by the snapshot's id."""
    made = snapshot(number, home)
    return {**made, "manifest-list": f"{home}/metadata/snap-{made['snapshot-id']}-1-{RUNTIME.uuid()}.avro"}


async def ask(site: Site, status: int, method: str, target: str, body: JsonValue = None, **headers: str) -> bytes:
    """One request. Raises `RuntimeError` for another status than the one that is due."""
    data = b"" if body is None else dumps(body)
    json = {} if body is None else {"content-type": "application/json"}
    found, answer = await site.send(method, target, data, {**PLAIN, **json, **headers})
    if found != status:
        raise RuntimeError(f"{method} {target}: {found} {answer[:1000]!r}")
    return answer


async def prepare(site: Site) -> None:
    """Makes the small tables, and registers the large one."""
    await ask(site, 200, "POST", NAMESPACES, {"namespace": ["db"]})
    for number in range(SMALL):
        await ask(site, 200, "POST", TABLES, {"name": f"t{number}", "schema": schema("a", "b", "c")})
    home = f"{site.root}/warehouse/big"
    location = f"{home}/metadata/00000-0.metadata.json"
    await site.keep(location, dumps(big_table(home)))
    await ask(site, 200, "POST", f"{NAMESPACES}/db/register", {"name": "big", "metadata-location": location})


async def load_small(site: Site, client: int) -> AsyncIterator[None]:
    while True:
        await ask(site, 200, "GET", f"{TABLES}/t{client}")
        yield


async def load_unchanged(site: Site, client: int) -> AsyncIterator[None]:
    answer = loads(await ask(site, 200, "GET", f"{TABLES}/t{client}"))
    assert isinstance(answer, dict)
    etag = table_etag(str(answer["metadata-location"]))
    while True:
        await ask(site, 304, "GET", f"{TABLES}/t{client}", **{"if-none-match": etag})
        yield


def load_big(query: str = "") -> Sending:
    async def sending(site: Site, client: int) -> AsyncIterator[None]:
        while True:
            await ask(site, 200, "GET", f"{TABLES}/big{query}")
            yield

    return sending


def commit_small(keyed: bool) -> Sending:
    async def sending(site: Site, client: int) -> AsyncIterator[None]:
        while True:
            headers = {"idempotency-key": uuid7(RUNTIME.now_ms(), RUNTIME)} if keyed else {}
            await ask(site, 200, "POST", f"{TABLES}/t{client}", set_property("last", RUNTIME.ulid()), **headers)
            yield

    return sending


async def append_big(site: Site, client: int) -> AsyncIterator[None]:
    """Appends as an engine does, on top of the newest snapshot."""
    answer = loads(await ask(site, 200, "GET", f"{TABLES}/big"))
    assert isinstance(answer, dict)
    metadata = answer["metadata"]
    assert isinstance(metadata, dict)
    number = metadata["last-sequence-number"]
    newest = metadata["current-snapshot-id"]
    assert isinstance(number, int)
    while True:
        number += 1
        added: JsonObject = {
            **big_snapshot(number, f"{site.root}/warehouse/big"),
            "parent-snapshot-id": newest,
            "timestamp-ms": RUNTIME.now_ms(),
        }
        body: JsonObject = {
            "requirements": [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": newest}],
            "updates": [
                {"action": "add-snapshot", "snapshot": added},
                {
                    "action": "set-snapshot-ref",
                    "ref-name": "main",
                    "type": "branch",
                    "snapshot-id": added["snapshot-id"],
                },
            ],
        }
        key = uuid7(RUNTIME.now_ms(), RUNTIME)
        await ask(site, 200, "POST", f"{TABLES}/big", body, **{"idempotency-key": key})
        newest = added["snapshot-id"]
        yield


WORKLOADS = (
    Workload("load, small table", SMALL, load_small),
    Workload("load, small table, unchanged (304)", SMALL, load_unchanged),
    Workload("load, large table", 2, load_big()),
    Workload("load, large table, snapshots=refs", 2, load_big("?snapshots=refs")),
    Workload("commit, small table, no key", SMALL, commit_small(keyed=False)),
    Workload("commit, small table, key", SMALL, commit_small(keyed=True)),
    Workload("append, large table, key", 1, append_big),
)


def json_ms() -> float:
    """Milliseconds that the JSON library takes to parse and dump the large table's metadata: the least of a few."""
    document, costs = dumps(big_table("memory:///big")), []
    for _ in range(5):
        began = time.process_time()
        orjson.dumps(orjson.loads(document))
        costs.append(time.process_time() - began)
    return 1000 * min(costs)


async def measure(site: Site, workload: Workload, clients: int, seconds: float) -> Figure:
    """Sends for so long, after one request of each client that does not count."""
    streams = [workload.sending(site, client) for client in range(clients)]
    for stream in streams:
        await anext(stream)
    before, began = site.cpu_seconds(), time.perf_counter()

    async def run(stream: AsyncIterator[None]) -> int:
        done = 0
        while time.perf_counter() - began < seconds:
            await anext(stream)
            done += 1
        return done

    done = sum(await asyncio.gather(*(run(stream) for stream in streams)))
    took, used = time.perf_counter() - began, site.cpu_seconds() - before
    return Figure(done / took, 1000 * used / done)
