"""Scans that functions plan: one begins a plan, others, which start cold, finish it, and each answer is one that the
host can carry."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from arco_catalog.http.lambda_adapter import Endpoint
from arco_catalog.iceberg.json import JsonObject
from storage_backends import ObjectStore
from tests.lambda_.conftest import WAREHOUSE, Caller
from tests.lambda_.test_limits import put
from tests.support.scanned_tables import Manifest, ScannedTable, commit_of, entry
from tools.gateway.running import running
from tools.support.asgi_client import Answer
from tools.support.request_bodies import schema
from tools.support.s3_servers import S3Server

TABLES = f"/v1/{WAREHOUSE}/namespaces/db/tables"
FILES = 13_000
LONG: JsonObject = {"type": "not-in", "term": "x", "values": [-number for number in range(1, 200)]}


@dataclass
class Bucket:
    """What tests of tables write to, in a bucket of a server."""

    server: S3Server

    async def put(self, location: str, body: bytes, when: object) -> None:
        put(self.server, location, body)


def tasks_of(answer: Answer) -> list[Any]:
    assert answer.status == 200, answer.body[:500]
    return cast(list[Any], answer.json.get("file-scan-tasks", []))


def test_a_plan_that_one_function_begins_is_finished_by_others(
    folder: Path, deployed: Callable[[], dict[str, str]], s3_server: S3Server, tmp_path: Path
) -> None:
    environment = deployed()
    with running(folder, Endpoint.HTTP_API, tmp_path / "first.log", environment) as uri:
        caller = Caller(uri)
        caller.post(f"/v1/{WAREHOUSE}/namespaces", {"namespace": ["db"]})
        made = caller.post(TABLES, {"name": "t", "schema": schema("x")})
        metadata = cast(dict[str, Any], made.json["metadata"])
        table = ScannedTable(cast(ObjectStore, Bucket(s3_server)), metadata["location"], root="")
        files = [entry(f"{table.location}/data/{number:064}.parquet", x=(0, 9)) for number in range(FILES)]
        snapshot = asyncio.run(table.snapshot(1, [Manifest(files)]))
        assert caller.post(f"{TABLES}/t", commit_of(snapshot)).status == 200
        begun = caller.post(f"{TABLES}/t/plan", {"filter": LONG, "stats-fields": ["x"]})
    assert tasks_of(begun) == []
    tasks = cast(list[str], begun.json["plan-tasks"])
    assert len(tasks) > 1
    found: list[str] = []
    while tasks:
        with running(folder, Endpoint.HTTP_API, tmp_path / "other.log", environment) as uri:
            answer = Caller(uri).post(f"{TABLES}/t/tasks", {"plan-task": tasks.pop(0)})
        found += [task["data-file"]["file-path"] for task in tasks_of(answer)]
        tasks += cast(list[str], answer.json.get("plan-tasks", []))
    assert sorted(found) == [f"{table.location}/data/{number:064}.parquet" for number in range(FILES)]
