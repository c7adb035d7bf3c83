"""The timeline over HTTP: the versions of a table or view, who made them, and from when."""

from collections.abc import Sequence
from itertools import chain

import pytest

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.operations.relation_history import MAX_RECEIPT_READS
from arco_catalog.state.fields import objects
from arco_catalog.state.memory import Allocation, Hold
from tests.support.http_service import HttpService
from tests.support.page_tokens import encode_token
from tools.support.asgi_client import Client
from tools.support.request_bodies import append_snapshot, set_property
from tools.support.wrapped_stores import CountingStore, DelayingStore

DB = "/v1/wh/namespaces/db"
T = f"{DB}/tables/t"
V = f"{DB}/views/v"
EVENTS = "wh/_catalog/events/"
RUN, TASK = "01JBRA08H2E008000000000002", "01JBRA08H2E008000000000003"
SERVO = {"x_arco_servo_run_id": RUN, "x_arco_servo_task_id": TASK}
SUMMARY: JsonObject = {
    "operation": "append",
    "added-records": "10",
    "added-data-files": "1",
    "total-records": "10",
    "total-files-size": "9" * 30,
    "spark.app.id": "local-1",
}


async def page(client: Client, target: str = f"{T}/timeline") -> JsonObject:
    answer = await client.get(target)
    assert answer.status == 200, answer.body
    return answer.json


async def versions(client: Client, target: str = f"{T}/timeline") -> Sequence[JsonObject]:
    return objects(await page(client, target), "versions")


async def pages(client: Client, target: str) -> Sequence[JsonObject]:
    """All pages of a timeline; `target` has a query."""
    found = [await page(client, target)]
    while (token := found[-1]["next-page-token"]) is not None:
        found.append(await page(client, f"{target}&pageToken={token}"))
    return found


async def change(service: HttpService, times: int = 1, of: str = T) -> None:
    """Commits to a table, each a minute after the last."""
    for _ in range(times):
        service.clock.ms += 60_000
        made = await service.client.post(of, set_property("at", str(service.clock.ms)))
        assert made.status == 200, made.body


async def forget(service: HttpService, stage: str, skipped: int = 0) -> None:
    """Deletes the receipts of one stage of all versions but the newest ones."""
    for entry in (await versions(service.client))[skipped:]:
        key = str(entry["id"]).partition("-")[2]
        [path] = [each for each in service.store.keys(EVENTS) if each.endswith(f"/iceberg/{stage}/{key}.json")]
        await service.store.delete(path)


async def test_versions_are_there_newest_first_with_who_made_each(service: HttpService) -> None:
    client, made_ms = service.client, service.clock.now_ms()
    service.clock.ms += 60_000
    snapshot = append_snapshot(7, service.clock.now_ms(), "memory:///wh/warehouse/t/metadata/7.avro")
    objects(snapshot, "updates")[0]["snapshot"] = {
        **dict(objects(snapshot, "updates")[0]["snapshot"]),  # type: ignore[arg-type]
        "summary": SUMMARY,
    }
    assert (await client.post(T, snapshot, user_agent="PyIceberg/0.10.0")).status == 200

    found = await page(client)

    newest, oldest = objects(found, "versions")
    assert (found["type"], found["quality"], found["next-page-token"]) == ("table", None, None)
    assert found["end"] == {"reason": "created", "message": "Table was created by this version"}
    expected: JsonObject = {
        "version": 1,
        "current": True,
        "at-ms": made_ms + 60_000,
        "at-by": "catalog",
        "receipt": "committed",
        "source": "engine",
        "external": True,
        "claimed": False,
        "client": "PyIceberg/0.10.0",
        "principal": "anonymous",
        "run-id": None,
        "lineage": "DeclaredUnverified",
        "quality-status": "NotChecked",
        "application": "local-1",
        "changes": {"add-snapshot": 1, "set-snapshot-ref": 1},
        "snapshot-id": 7,
        "added-snapshots": 1,
    }
    assert {name: newest[name] for name in expected} == expected
    [added] = objects(newest, "snapshots")
    assert (added["snapshot-id"], added["known"], added["operation"]) == (7, True, "append")
    assert (added["added-records"], added["deleted-records"], added["total-files-size"]) == (10, None, None)
    assert (oldest["version"], oldest["current"], oldest["changes"]) == (0, False, {"create": 1})
    loaded = (await client.get(T)).json["metadata-location"]
    assert newest["metadata-location"] == loaded != oldest["metadata-location"]


async def test_a_claimed_run_is_external_and_not_verified(service: HttpService) -> None:
    assert (await service.client.post(T, set_property("a", "b"), **SERVO)).status == 200

    newest, _ = await versions(service.client)

    shown = {name: newest[name] for name in ("source", "claimed", "external", "lineage", "run-id", "task-id")}
    assert shown == {
        "source": "pipeline",
        "claimed": True,
        "external": True,
        "lineage": "DeclaredUnverified",
        "run-id": RUN,
        "task-id": TASK,
    }


async def test_pages_have_each_version_once_also_beyond_the_metadata_log(service: HttpService) -> None:
    kept = {"write.metadata.previous-versions-max": "3"}
    assert (await service.client.post(T, {"updates": [{"action": "set-properties", "updates": kept}]})).status == 200
    await change(service, 40)

    for size in (1, 5, 1000):
        found = await pages(service.client, f"{T}/timeline?pageSize={size}")

        numbers = [[entry["version"] for entry in objects(each, "versions")] for each in found]
        assert [*chain(*numbers)] == [*range(41, -1, -1)]
        assert all(min(size, MAX_RECEIPT_READS - 1) <= len(each) <= MAX_RECEIPT_READS for each in numbers[:-1])
        assert [each["end"] is None for each in found] == [True] * (len(found) - 1) + [False]


async def test_a_version_is_found_by_its_number_or_id_with_its_receipt(service: HttpService) -> None:
    await change(service, 3)
    for entry in await versions(service.client):
        for named in (entry["version"], entry["id"]):
            answer = (await service.client.get(f"{T}/timeline/{named}")).json
            assert answer["entry"] == entry
            receipt = answer["receipt"]
            assert isinstance(receipt, dict)
            assert receipt["metadata_location"] == entry["metadata-location"]
            assert receipt["state"] == "committed"


async def test_an_old_version_is_found_by_its_id(service: HttpService) -> None:
    kept = {"write.metadata.previous-versions-max": "1"}
    assert (await service.client.post(T, {"updates": [{"action": "set-properties", "updates": kept}]})).status == 200
    await change(service, MAX_RECEIPT_READS + 3)
    first = objects((await pages(service.client, f"{T}/timeline?pageSize=9"))[-1], "versions")[-1]

    assert (await service.client.get(f"{T}/timeline/{first['id']}")).json["entry"] == first
    assert (await service.client.get(f"{T}/timeline/{MAX_RECEIPT_READS}")).status == 200
    assert (await service.client.get(f"{T}/timeline/{MAX_RECEIPT_READS - 6}")).status == 404
    assert (await service.client.get(f"{T}/timeline/0")).status == 404


async def test_a_number_that_is_too_far_back_is_not_called_unknown(service: HttpService) -> None:
    await change(service, 130)

    answer = await service.client.get(f"{T}/timeline/3")

    assert answer.status == 404
    assert "Version 3 is too far back to be found by its number: its entry in the timeline has an id" in answer.message
    assert "Version does not exist" in (await service.client.get(f"{T}/timeline/999")).message


@pytest.mark.parametrize("version", ["99", f"1-{'0' * 64}", f"{'9' * 15}-{'0' * 64}"])
async def test_an_unknown_version_is_not_found(client: Client, version: str) -> None:
    answer = await client.get(f"{T}/timeline/{version}")

    assert (answer.status, answer.error_type) == (404, "NotFoundException")


@pytest.mark.parametrize("version", ["-1", "x", "1-2", "9" * 20, "%E0%A4", f"1-{'A' * 64}", "1e3", "١"])
async def test_what_is_no_version_is_refused(client: Client, version: str) -> None:
    assert (await client.get(f"{T}/timeline/{version}")).status == 400


async def test_the_version_of_a_time_comes_first(service: HttpService) -> None:
    await change(service, 30)
    for entry in (every := await versions(service.client, f"{T}/timeline?pageSize=1000")):
        found = await page(service.client, f"{T}/timeline?at={entry['at-ms']}&pageSize=1")
        assert objects(found, "versions") == [entry]
        later = int(str(entry["at-ms"])) + 59_999
        assert await versions(service.client, f"{T}/timeline?at={later}&pageSize=1") == [entry]
    assert len(every) == MAX_RECEIPT_READS
    before = await page(service.client, f"{T}/timeline?at=1")
    assert (before["versions"], before["next-page-token"]) == ([], None)


async def test_a_time_beyond_the_metadata_log_is_reached_by_pages(service: HttpService) -> None:
    kept = {"write.metadata.previous-versions-max": "1"}
    assert (await service.client.post(T, {"updates": [{"action": "set-properties", "updates": kept}]})).status == 200
    early_ms = service.clock.now_ms() + 1
    await change(service, 40)

    found = await pages(service.client, f"{T}/timeline?at={early_ms}")

    assert [entry["version"] for each in found for entry in objects(each, "versions")] == [1, 0]
    assert found[0]["versions"] == []


async def test_a_pending_receipt_is_shown_as_such(service: HttpService) -> None:
    await change(service, 4)
    await forget(service, "committed", skipped=1)

    assert [entry["receipt"] for entry in await versions(service.client)] == ["committed", *["pending"] * 4]


async def test_a_missing_receipt_is_passed_where_the_log_names_the_file_before(service: HttpService) -> None:
    await change(service, 4)
    [missing] = [entry for entry in await versions(service.client) if entry["version"] == 2]
    key = str(missing["id"]).partition("-")[2]
    for path in [each for each in service.store.keys(EVENTS) if each.endswith(f"/{key}.json")]:
        await service.store.delete(path)

    found = await versions(service.client)

    assert [entry["version"] for entry in found] == [4, 3, 2, 1, 0]
    shown = {
        name: found[2][name]
        for name in ("receipt", "source", "external", "principal", "lineage", "quality-status", "changes")
    }
    assert shown == {
        "receipt": "missing",
        "source": "unknown",
        "external": None,
        "principal": None,
        "lineage": None,
        "quality-status": None,
        "changes": {},
    }
    assert (await service.client.get(f"{T}/timeline/2")).json["receipt"] is None


async def test_the_end_is_stated_where_receipts_were_deleted(service: HttpService) -> None:
    await forget(service, "committed")
    await forget(service, "pending")

    found = await page(service.client)

    assert [entry["receipt"] for entry in objects(found, "versions")] == ["missing"]
    end = found["end"]
    assert isinstance(end, dict)
    assert end["reason"] == "unknown"
    assert "arco reconcile" in str(end["message"])


async def test_a_registered_table_begins_with_the_file_of_another_catalog(service: HttpService) -> None:
    log: dict[str, JsonValue] = {"metadata-log": [{"metadata-file": "s3://x/0", "timestamp-ms": 5}]}
    file = await service.keep_metadata("r", "tables/t", **log)
    made = await service.client.post(f"{DB}/register", {"name": "r", "metadata-location": file})
    assert made.status == 200, made.body
    await change(service, 2, f"{DB}/tables/r")

    found = await page(service.client, f"{DB}/tables/r/timeline")

    shown = [(entry["version"], entry["receipt"], entry["at-by"]) for entry in objects(found, "versions")]
    assert shown == [(1, "committed", "catalog"), (0, "committed", "catalog"), (None, "none", "writer")]
    assert isinstance(found["end"], dict)
    assert found["end"]["reason"] == "registered"


async def test_a_view_has_one_too(service: HttpService) -> None:
    await service.view("v")
    service.clock.ms += 1
    assert (await service.client.post(V, set_property("a", "b"))).status == 200

    found = await page(service.client, f"{V}/timeline")

    assert found["type"] == "view"
    shown = [(entry["version"], entry["snapshot-id"], entry["snapshots"]) for entry in objects(found, "versions")]
    assert shown == [(1, None, []), (0, None, [])]
    assert (await service.client.get(f"{V}/timeline/1")).json["entry"] == objects(found, "versions")[0]
    assert (await service.client.get(f"{T.replace('/t', '/v')}/timeline")).status == 404
    assert (await service.client.get(f"{DB}/views/t/timeline")).status == 404


def token(*position: JsonValue) -> str:
    return encode_token([*position])


@pytest.mark.parametrize(
    "forged",
    ["x", "%00", token(), token("e", "l", 1), token("E", 5, 1), token("E", "l", -1), token("E", "l", 10**18), "=", "é"],
)
async def test_a_forged_page_token_is_refused(client: Client, forged: str) -> None:
    entity = str((await page(client))["entity"])
    sent = forged.replace(token("E", "")[:6], token(entity, "")[:6]) if forged.startswith("WyJF") else forged

    assert (await client.get(f"{T}/timeline?pageToken={sent}")).status == 400


async def test_a_page_token_is_of_one_table(service: HttpService) -> None:
    await service.table("u")
    await change(service, 2)
    next_page = (await page(service.client, f"{T}/timeline?pageSize=1"))["next-page-token"]

    assert (await service.client.get(f"{DB}/tables/u/timeline?pageToken={next_page}")).status == 400


@pytest.mark.parametrize("query", ["at=0", "at=x", "at=-1", "pageSize=0", "at=1&at=2", "at=" + "9" * 19])
async def test_wrong_parameters_are_refused(client: Client, query: str) -> None:
    assert (await client.get(f"{T}/timeline?{query}")).status == 400


async def test_a_page_takes_no_more_than_25_calls_of_the_store(service: HttpService) -> None:
    await change(service, 60)
    store = CountingStore(DelayingStore(service.store, 0.002))
    service.store = store  # type: ignore[assignment]  # it passes everything on
    cold = service.serve()

    with store.measure() as measured:
        found = await page(cold)
    assert (measured.depth, measured.calls) == (4, 3 + MAX_RECEIPT_READS)
    with store.measure() as measured:
        await page(cold)
    assert (measured.depth, measured.calls) == (2, 2 + MAX_RECEIPT_READS)
    with store.measure() as measured:
        await page(cold, f"{T}/timeline?pageToken={found['next-page-token']}")
    assert (measured.depth, measured.calls) == (2, 2 + MAX_RECEIPT_READS)
    with store.measure() as measured:
        await page(cold, f"{T}/timeline?pageSize=1")
    assert (measured.depth, measured.calls) == (2, 3)


async def test_a_page_takes_no_more_where_committed_receipts_are_missing(service: HttpService) -> None:
    await change(service, 12)
    await forget(service, "committed")
    store = CountingStore(service.store)
    service.store = store  # type: ignore[assignment]  # it passes everything on
    cold = service.serve()

    with store.measure() as measured:
        found = await page(cold)

    assert measured.calls <= 25
    assert 0 < len(objects(found, "versions")) < 13
    assert [
        entry["version"]
        for each in await pages(cold, f"{T}/timeline?pageSize=99")
        for entry in objects(each, "versions")
    ] == [*range(12, -1, -1)]


async def test_no_table_has_no_timeline(client: Client) -> None:
    answer = await client.get(f"{DB}/tables/x/timeline")

    assert (answer.status, answer.error_type) == (404, "NoSuchTableException")


async def test_memory_of_long_receipts_is_taken_from_the_request(
    service: HttpService, monkeypatch: pytest.MonkeyPatch
) -> None:
    for last in range(3):
        updates = [{"action": "set-properties", "updates": {"a": str(number)}} for number in range(5_000 + last)]
        assert (await service.client.post(T, {"updates": updates})).status == 200
    taken: list[int] = []
    take = Hold.take

    async def recorded(hold: Hold, size: int) -> Allocation:
        taken.append(size)
        return await take(hold, size)

    monkeypatch.setattr(Hold, "take", recorded)
    found = await page(service.client)

    assert len(objects(found, "versions")) == 4
    assert len([size for size in taken if size > 5_000 * len("set-properties")]) == 3
