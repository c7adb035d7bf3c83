"""Commits of many updates: what takes time in proportion to them is done by threads, not by the event loop."""

import threading

import pytest

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.planning import relation_change
from arco_catalog.planning.borrowing import MAX_NEW_PATHS
from arco_catalog.state.borrowed import outside
from arco_catalog.state.locations import Location
from tests.support.http_service import HttpService

DB = "/v1/wh/namespaces/db"


def snapshot(number: int, folder: str) -> JsonObject:
    return {
        "action": "add-snapshot",
        "snapshot": {
            "snapshot-id": number,
            "sequence-number": number,
            "timestamp-ms": 1_767_225_600_000 + number,
            "manifest-list": f"{folder}/{number}/list.avro",
            "summary": {"operation": "append"},
        },
    }


def commit(count: int, folder: str) -> JsonObject:
    updates: list[JsonValue] = [snapshot(number, folder) for number in range(1, count + 1)]
    return {"requirements": [], "updates": updates}


async def test_the_files_of_a_long_commit_are_compared_by_threads(
    service: HttpService, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await service.table("long")
    metadata = made.json["metadata"]
    assert isinstance(metadata, dict)
    threads: list[threading.Thread] = []

    def noted(paths: list[Location], locations: set[str]) -> list[Location]:
        threads.append(threading.current_thread())
        return outside(paths, locations)

    monkeypatch.setattr(relation_change, "outside", noted)
    answer = await service.client.post(f"{DB}/tables/long", commit(1_000, str(metadata["location"])))

    assert answer.status == 200, answer.body
    assert len(threads) >= 2  # the plan and the purges; the name is validated anew only under another HEAD
    assert threading.main_thread() not in threads


async def test_a_commit_takes_files_from_a_bounded_number_of_new_paths(service: HttpService) -> None:
    await service.table("long")

    refused = await service.client.post(f"{DB}/tables/long", commit(MAX_NEW_PATHS + 1, "memory:///wh/other"))

    assert (refused.status, refused.error_type) == (400, "BadRequestException")
    assert "1,000 paths outside of the table's locations, not 1,001" in refused.message
