"""What the trial sends to a catalog: tables, concurrent commits, a transaction, a plan of a scan, a drop with purge."""

import asyncio
from collections.abc import Sequence

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.iceberg.manifests import ManifestFile
from arco_catalog.state.fields import mapping, objects, text
from arco_catalog.state.manifest_lists import encode_manifest_list
from arco_catalog.state.runtime import SystemRuntime
from storage_backends import ABSENT, ObjectStore
from tools.smoke_cloud.steps import require
from tools.support.asgi_client import Answer, Client
from tools.support.entry_files import entry, entry_file
from tools.support.request_bodies import append_snapshot, schema, set_property, uuid7

WAREHOUSE = "smoke"
TABLES = f"/v1/{WAREHOUSE}/namespaces/db/tables"
WRITERS = 16
TRIES = 10
PAUSE_S = 2.0
FILES = 3
SNAPSHOT = 1


async def made_table(client: Client, name: str) -> str:
    """Makes a table with a column x of longs, and returns its location."""
    made = expected(await client.post(TABLES, {"name": name, "schema": schema("x")}), 200)
    return text(mapping(made.json, "metadata"), "location")


async def commit_concurrently(clients: Sequence[Client], table: str) -> str:
    """Sends `WRITERS` commits to one table at once, by the clients in turn, each under a key of its own, and each again
    until it succeeds; then sends all to other clients than before. Returns what was found. Raises `StepFailed` if a
    commit is lost, or a key is answered otherwise."""
    runtime = SystemRuntime()
    keys = [uuid7(runtime.now_ms(), runtime) for _ in range(WRITERS)]
    turns = [clients[number % len(clients)] for number in range(WRITERS + 1)]
    tries = await asyncio.gather(
        *(_commit(client, table, number, key) for number, (client, key) in enumerate(zip(turns, keys, strict=False)))
    )
    again = await asyncio.gather(
        *(_send(client, table, number, key) for number, (client, key) in enumerate(zip(turns[1:], keys, strict=True)))
    )
    require(all(answer.status == 200 for answer in again), "a key that had succeeded was answered with an error")
    loaded = expected(await clients[0].get(f"{TABLES}/{table}"), 200)
    properties = mapping(mapping(loaded.json, "metadata"), "properties")
    lost = [number for number in range(WRITERS) if properties.get(f"p{number}") != "1"]
    require(not lost, f"commits were lost: {lost}")
    return f"{WRITERS} commits by {sum(tries)} requests, none lost, and the same answers again"


async def _send(client: Client, table: str, number: int, key: str) -> Answer:
    return await client.post(f"{TABLES}/{table}", set_property(f"p{number}", "1"), idempotency_key=key)


async def _commit(client: Client, table: str, number: int, key: str) -> int:
    """Sends a commit until it succeeds, at most `TRIES` times, and returns how often."""
    for attempt in range(1, TRIES + 1):
        answer = await _send(client, table, number, key)
        if answer.status == 200:
            return attempt
        require(answer.status in (409, 429, 500, 502, 503, 504), f"status {answer.status}: {answer.body[:200]!r}")
        await SystemRuntime().sleep(PAUSE_S)
    require(False, f"a commit did not succeed in {TRIES} tries: {answer.body[:200]!r}")
    return TRIES


async def commit_together(client: Client, tables: Sequence[str]) -> str:
    """Commits to several tables by one transaction, and returns what was found. Raises `StepFailed`."""
    changes: list[JsonValue] = []
    for name in tables:
        identifier: JsonObject = {"namespace": ["db"], "name": name}
        changes.append({"identifier": identifier, **set_property("together", "1")})
    expected(await client.post(f"/v1/{WAREHOUSE}/transactions/commit", {"table-changes": changes}), 204)
    for name in tables:
        loaded = expected(await client.get(f"{TABLES}/{name}"), 200)
        properties = mapping(mapping(loaded.json, "metadata"), "properties")
        require(properties.get("together") == "1", f"the transaction is missing in {name}")
    return f"{len(tables)} tables changed at once"


async def append_files(client: Client, store: ObjectStore, root: str, table: str, location: str) -> None:
    """Writes data files without rows, a manifest and a manifest list, as an engine would, and appends them."""
    entries = []
    for number in range(FILES):
        path = f"{location}/data/{number}.parquet"
        await store.put(path.removeprefix(root), b"no rows", ABSENT)
        bounds = {1: (number * 10).to_bytes(8, "little")}, {1: (number * 10 + 9).to_bytes(8, "little")}
        counts = {"value_counts": {1: 10}, "null_value_counts": {1: 0}}
        statistics = {**counts, "lower_bounds": bounds[0], "upper_bounds": bounds[1]}
        entries.append(
            entry(number, file_path=path, file_size_in_bytes=7, record_count=10, snapshot_id=SNAPSHOT, **statistics)
        )
    body, place = entry_file(entries), f"{location}/metadata/m0.avro"
    await store.put(place.removeprefix(root), body, ABSENT)
    listed = ManifestFile(place, len(body), 0, 0, 1, 1, SNAPSHOT, FILES, 0, 0, 10 * FILES, 0, 0)
    snapshots = f"{location}/metadata/snap-{SNAPSHOT}.avro"
    await store.put(snapshots.removeprefix(root), encode_manifest_list([listed], 2, (SNAPSHOT, None, 1)), ABSENT)
    commit = append_snapshot(SNAPSHOT, SystemRuntime().now_ms(), snapshots)
    expected(await client.post(f"{TABLES}/{table}", commit), 200)


async def plan_scan(client: Client, table: str) -> str:
    """Plans a scan that one of the files matches, and returns what was found. Raises `StepFailed`."""
    filter_: JsonObject = {"type": "gt", "term": "x", "value": 10 * (FILES - 1)}
    planned = expected(await client.post(f"{TABLES}/{table}/plan", {"filter": filter_}), 200)
    tasks = objects(planned.json, "file-scan-tasks")
    require(len(tasks) == 1, f"{len(tasks)} files were planned, and 1 matches")
    return f"1 of {FILES} files"


def expected(answer: Answer, status: int) -> Answer:
    """Returns the answer. Raises `StepFailed` if it has another status."""
    require(answer.status == status, f"status {answer.status}: {answer.body[:300].decode(errors='replace')}")
    return answer
