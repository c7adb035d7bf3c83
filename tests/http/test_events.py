"""The events of a catalog, in the shapes of the proposal (docs/events.md)."""

from collections import Counter
from collections.abc import Sequence
from copy import deepcopy

import pytest

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.operations import events as reading
from arco_catalog.planning.event_filter import FIELDS
from arco_catalog.state.feed import FeedKind, FeedRecord, FeedSegment, RegistryPosition
from arco_catalog.state.fields import integer, mapping, objects, text
from storage_backends import ABSENT
from tests.http.test_resolve import snapshots_of
from tests.support.feeding import feed
from tests.support.http_service import HttpService
from tests.support.scripted_store import Rule, ScriptedStore, get
from tools.openapi.events import SCHEMAS
from tools.support.asgi_client import Answer, Client
from tools.support.request_bodies import set_property

EVENTS = "/v1/wh/events"
DB = "/v1/wh/namespaces/db"


@pytest.fixture
async def fed(service: HttpService) -> HttpService:
    """A catalog with the table `db.t`, whose feed has begun."""
    await feed(service.session())
    return service


async def query(client: Client, **body: JsonValue) -> Answer:
    return await client.post(EVENTS, {name.replace("_", "-"): value for name, value in body.items()})


async def pages(service: HttpService, **body: JsonValue) -> Sequence[Sequence[JsonObject]]:
    """The events of each page, up to the end of the feed."""
    found: list[Sequence[JsonObject]] = []
    token: JsonValue = None
    while True:
        answer = await query(service.client, **body, continuation_token=token)
        assert answer.status == 200, answer.body
        if answer.json["continuation-token"] == token:
            assert answer.json["events"] == []
            return found
        found.append(objects(answer.json, "events"))
        token = answer.json["continuation-token"]


async def events(service: HttpService, **body: JsonValue) -> Sequence[JsonObject]:
    """All events that a request selects, of all pages, after the changes so far have entered."""
    await feed(service.session())
    return [each for page in await pages(service, **body) for each in page]


def operation_of(event: JsonObject) -> JsonObject:
    return mapping(event, "operation")


async def types(service: HttpService, **body: JsonValue) -> Sequence[JsonValue]:
    return [operation_of(each)["operation-type"] for each in await events(service, **body)]


async def everything(service: HttpService) -> None:
    """Makes one change of each kind that has an event."""
    client = service.client
    await service.namespace("e", "e")
    assert (await client.post("/v1/wh/namespaces/e/properties", {"updates": {"a": "1"}})).status == 200
    await service.table("u")
    await client.post(f"{DB}/tables/u", set_property("a", "b"))
    for kind, name in (("tables", "u"), ("views", "v")):
        if kind == "views":
            await service.view("v")
        names: JsonObject = {
            "source": {"namespace": ["db"], "name": name},
            "destination": {"namespace": ["e"], "name": f"{name}2"},
        }
        assert (await client.post(f"/v1/wh/{kind}/rename", names)).status == 204
    file = await service.keep_metadata("kept", **{"table-uuid": "11111111-1111-4111-8111-111111111111"})
    assert (await client.post(f"{DB}/register", {"name": "r", "metadata-location": file})).status == 200
    assert (await client.delete("/v1/wh/namespaces/e/tables/u2?purgeRequested=true")).status == 204
    assert (await client.post("/v1/wh/namespaces/e/tables/u2/undrop", {})).status == 204
    assert (await client.delete("/v1/wh/namespaces/e/tables/u2")).status == 204
    assert (await client.delete("/v1/wh/namespaces/e/views/v2")).status == 204
    assert (await client.delete("/v1/wh/namespaces/e")).status == 204


async def test_each_change_has_one_event_in_the_order_of_the_changes(fed: HttpService) -> None:
    await everything(fed)

    found = await events(fed)
    assert Counter(operation_of(each)["operation-type"] for each in found) == {
        "create-namespace": 1,
        "update-namespace-properties": 1,
        "create-table": 1,
        "update-table": 1,
        "rename-table": 1,
        "create-view": 1,
        "rename-view": 1,
        "register-table": 1,
        "drop-table": 2,
        "x-undrop": 1,
        "drop-view": 1,
        "drop-namespace": 1,
    }
    assert len({text(each, "event-id") for each in found}) == len(found)
    [created, *_] = [each for each in found if operation_of(each)["operation-type"] == "create-table"]
    of_table = [each for each in found if mapping(each, "arco")["entity"] == mapping(created, "arco")["entity"]]
    registry = [operation_of(each)["operation-type"] for each in of_table]
    assert registry[0] == "create-table"
    assert [each for each in registry if each not in ("create-table", "update-table")] == [
        "rename-table",
        "drop-table",
        "x-undrop",
        "drop-table",
    ]


async def test_an_event_has_what_the_record_of_the_change_has(fed: HttpService) -> None:
    made = await fed.table("u")
    await snapshots_of(fed, 2)

    created, changed = await events(fed)

    metadata = mapping(made.json, "metadata")
    assert operation_of(created) == {
        "operation-type": "create-table",
        "identifier": {"namespace": ["db"], "name": "u"},
        "table-uuid": metadata["table-uuid"],
    }
    assert created["request-event-count"] == 1
    assert mapping(created, "actor")["principal"] == "anonymous"
    assert mapping(created, "arco")["metadata-location"] == made.json["metadata-location"]
    assert operation_of(changed)["operation-type"] == "update-table"
    extension = mapping(changed, "arco")
    assert extension["added-snapshot-ids"] == [1, 2]
    assert extension["snapshot-id"] == 2
    assert extension["update-actions"] == ["add-snapshot", "set-snapshot-ref"]
    assert "updates" not in operation_of(changed), "receipts have their kinds alone"


async def test_a_commit_whose_receipt_is_pending_has_the_same_event(fed: HttpService) -> None:
    """A writer may die after its commit, before it has written the committed receipt."""
    await fed.table("u")
    await fed.client.post(f"{DB}/tables/u", set_property("a", "b"))
    other = HttpService()
    other.store.__dict__ |= deepcopy({name: value for name, value in vars(fed.store).items() if name != "_now_ms"})
    for key in other.store.keys("wh/_catalog/events/"):
        if "/committed/" in key:
            await other.store.delete(key)

    assert await events(other) == await events(fed)
    assert await types(other) == ["create-table", "update-table"]


async def test_the_events_of_a_transaction_have_one_request_and_no_count(fed: HttpService) -> None:
    await fed.table("u")
    changes: list[JsonValue] = [
        {"identifier": {"namespace": ["db"], "name": name}, **set_property("a", "b")} for name in ("t", "u")
    ]
    assert (await fed.client.post("/v1/wh/transactions/commit", {"table-changes": changes})).status == 204

    first, second = [each for each in await events(fed) if operation_of(each)["operation-type"] == "update-table"]

    assert text(first, "request-id") == text(second, "request-id")
    assert text(first, "event-id") != text(second, "event-id")
    assert "request-event-count" not in first


async def test_a_drop_with_a_purge_is_marked(fed: HttpService) -> None:
    await fed.table("u")
    await fed.client.delete(f"{DB}/tables/u?purgeRequested=true")
    await fed.table("w")
    await fed.client.delete(f"{DB}/tables/w")

    purged, dropped = await events(fed, operation_types=["drop-table"])

    assert (operation_of(purged)["purge"], operation_of(dropped)["purge"]) == (True, False)


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ({"operation_types": ["create-view", "rename-table"]}, {"create-view", "rename-table"}),
        ({"operation_types": ["none"]}, set()),
        ({"operation_types": []}, set()),
        ({"object_types": ["view"]}, {"create-view", "rename-view", "drop-view"}),
        (
            {"object_types": ["namespace"]},
            {"create-namespace", "update-namespace-properties", "drop-namespace"},
        ),
        ({"catalog_objects_by_name": [["db", "r"]]}, {"register-table"}),
        ({"catalog_objects_by_name": [["e", "v2"]]}, {"rename-view", "drop-view"}),
        ({"catalog_objects_by_name": [["db", "v"], ["none"]]}, {"create-view", "rename-view"}),
        (
            {"catalog_objects_by_name": [["e"]], "object_types": ["table"]},
            {"rename-table", "drop-table", "x-undrop"},
        ),
    ],
    ids=lambda value: None,
)
async def test_filters_select_events(fed: HttpService, body: dict[str, JsonValue], found: set[str]) -> None:
    await everything(fed)
    assert {*await types(fed, **body)} == found


async def test_a_uuid_selects_the_commits_of_its_table(fed: HttpService) -> None:
    made = await fed.table("u")
    await fed.client.post(f"{DB}/tables/u", set_property("a", "b"))
    uuid = mapping(made.json, "metadata")["table-uuid"]

    assert await types(fed, catalog_objects_by_uuid=[uuid]) == ["create-table", "update-table"]


async def test_a_time_leaves_out_what_was_before(fed: HttpService) -> None:
    await fed.table("u")
    fed.clock.ms += 10_000
    since = fed.clock.ms
    await fed.view("v")

    [found] = await events(fed, since_timestamp_ms=since)

    assert integer(found, "timestamp-ms") == since


async def test_pages_have_all_events_once_and_end_with_the_same_token(fed: HttpService) -> None:
    await everything(fed)
    whole = await events(fed)

    for size in (1, 2, 5, 1_000):
        assert await events(fed, page_size=size) == whole


async def test_a_page_reads_a_bounded_part_of_the_feed(fed: HttpService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MAX_PARTS", 2)
    await everything(fed)
    await feed(fed.session())

    answer = await query(fed.client, page_size=2, operation_types=["drop-namespace"])
    assert answer.json["events"] == [], "a page may be empty although a later one is not"
    assert await types(fed, page_size=2, operation_types=["drop-namespace"]) == ["drop-namespace"]


async def feed_of_segments(number: int, last: FeedKind = "commit") -> HttpService:
    """A catalog whose feed has so many segments with one commit each, the last one with a record of this kind."""
    service = HttpService()
    service.store = ScriptedStore(service.clock.now_ms)
    service.client = service.serve()
    await service.namespace("db", "db")
    state, before = service.session().state, None
    for first in range(1, number + 1):
        kind: FeedKind = last if first == number else "commit"
        details: JsonObject = {"metadata_ms": 1, "namespace": ["db"], "name": "t", "entity_type": "table"}
        record = FeedRecord(first, kind, service.clock.ulid(), "e", 1, details)
        position = RegistryPosition(None, 0, 0)
        id_, previous = service.clock.ulid(), first - 1 or None
        segment = FeedSegment(id_, before, previous, first, position, begun=True, entered_ms=1, records=[record])
        await service.store.put(state.paths.feed_segment(first), segment.body, ABSENT)
        before = id_
    return service


async def test_a_page_reads_a_bounded_number_of_segments() -> None:
    service = await feed_of_segments(300, last="gap")
    store = service.store
    assert isinstance(store, ScriptedStore)
    before = len(store.calls)

    answer = await query(service.client, operation_types=["drop-table"])

    assert answer.json["events"] == []
    assert len(store.calls) - before <= reading.MAX_PARTS * (reading.PART_SEGMENTS + 1) + 5
    [*empty, last] = await pages(service, operation_types=["drop-table"])
    assert empty == [[]] * len(empty), "an empty page has the token by which the next one goes on"
    assert len(last) == 1


async def test_a_page_of_a_slow_store_ends_before_the_deadline() -> None:
    service = await feed_of_segments(60, last="gap")
    store = service.store
    assert isinstance(store, ScriptedStore)

    async def wait() -> None:
        service.clock.ms += 1_000

    store.rules = [Rule(get("/feed/segments/"), first=wait)]

    [*empty, last] = await pages(service, operation_types=["drop-table"])

    assert empty == [[]] * len(empty)
    assert len(last) == 1


@pytest.mark.parametrize("kind", ["gap", "restored"])
async def test_every_filter_selects_a_hole(kind: FeedKind) -> None:
    service = await feed_of_segments(2, last=kind)

    bodies: Sequence[dict[str, JsonValue]] = (
        {"operation_types": ["drop-table"]},
        {"operation_types": []},
        {"object_types": ["view"]},
        {"catalog_objects_by_name": [["other"]]},
        {"catalog_objects_by_uuid": ["11111111-1111-4111-8111-111111111111"]},
        {"since_timestamp_ms": 2},
    )
    for body in bodies:
        found = [each for page in await pages(service, **body) for each in page]
        assert [operation_of(each)["operation-type"] for each in found] == [f"x-{kind}"], body


async def test_a_page_ends_when_its_events_have_enough_bytes(fed: HttpService, monkeypatch: pytest.MonkeyPatch) -> None:
    await everything(fed)
    whole = await events(fed)
    monkeypatch.setattr(reading, "MAX_BYTES", 1)
    monkeypatch.setattr(reading, "MAX_EVENTS", 3)

    assert await events(fed) == whole


async def test_later_events_follow_the_last_token(fed: HttpService) -> None:
    await fed.table("u")
    await feed(fed.session())
    token = (await query(fed.client)).json["continuation-token"]
    assert (await query(fed.client, continuation_token=token)).json == {"continuation-token": token, "events": []}

    await fed.view("v")
    await feed(fed.session())

    [found] = objects((await query(fed.client, continuation_token=token)).json, "events")
    assert operation_of(found)["operation-type"] == "create-view"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"continuation_token": "x"}, "invalid continuation token"),
        ({"continuation_token": "x" * 1_025}, "more than 1,024 characters"),
        ({"continuation_token": "1-1-01KDVDNA00000000000000000Z"}, "no longer has record 1"),
        ({"continuation_token": 7}, "expected a string"),
        ({"page_size": 0}, "at least 1"),
        ({"page_size": "1"}, "expected an integer"),
        ({"operation_types": "drop-table"}, "expected an array"),
        ({"catalog_objects_by_name": [[]]}, "at least one level"),
        ({"object_types": ["function"]}, "'namespace' or 'table' or 'view'"),
        ({"custom_filters": {"a": "b"}}, "only the filters of"),
        ({"after_timestamp_ms": 1}, "unknown field 'after-timestamp-ms'"),
        ({"operation_types": ["x"] * 1_001}, "more than 1,000 items"),
        ({"since_timestamp_ms": 2**63}, "64 bits"),
    ],
    ids=lambda value: None,
)
async def test_an_invalid_request_is_refused(fed: HttpService, body: dict[str, JsonValue], message: str) -> None:
    refused = await query(fed.client, **body)

    assert (refused.status, refused.error_type) == (400, "BadRequestException")
    assert message in str(refused.error["message"])


def test_the_fields_of_a_request_are_those_in_the_document() -> None:
    assert set(SCHEMAS["QueryEventsRequest"]["properties"]) == FIELDS


async def test_a_token_of_another_catalog_is_refused(fed: HttpService) -> None:
    other = HttpService()
    other.clock.ms += 1
    await other.namespace("db", "db")
    await feed(other.session())
    token = (await query(other.client)).json["continuation-token"]

    assert (await query(fed.client, continuation_token=token)).status == 400


async def test_without_a_feed_the_answer_has_how_to_start_one(service: HttpService) -> None:
    refused = await query(service.client)

    assert (refused.status, refused.error_type) == (404, "NotFoundException")
    assert "ARCO_EVENTS=true" in str(refused.error["message"])
