"""One request loads several tables and views: each outcome is that of a load, in the shapes of the proposal, and what
exceeds one answer is listed (docs/resolve.md)."""

from collections.abc import Callable, Sequence

import pytest

from arco_catalog.http import resolve as resolving
from arco_catalog.http.config import RESOLVE_MAX_ITEMS
from arco_catalog.iceberg.errors import NotFound
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.operations import cut
from arco_catalog.operations.load import read_metadata
from arco_catalog.state.fields import mapping, objects
from arco_catalog.state.memory import OutOfMemory
from tests.support.http_service import HttpService
from tools.support.asgi_client import Answer, Client
from tools.support.request_bodies import set_property

RESOLVE = "/v1/wh/resolve"
DB = "/v1/wh/namespaces/db"
TABLE = f"{DB}/tables/t"


def item(name: str, namespace: str = "db", **hints: JsonValue) -> JsonObject:
    return {"identifier": [namespace, name], **hints}


async def resolve(client: Client, *items: JsonObject, **more: JsonValue) -> Answer:
    relations: list[JsonValue] = [*items]
    return await client.post(RESOLVE, {"relations": relations, **more})


def outcomes(answer: Answer) -> Sequence[JsonObject]:
    assert answer.status == 200, answer.body
    return objects(answer.json, "relations")


def statuses(answer: Answer) -> Sequence[JsonValue]:
    return [each["status"] for each in outcomes(answer)]


def unprocessed(answer: Answer) -> Sequence[JsonObject]:
    return objects(mapping(answer.json, "unprocessed"), "relations")


async def snapshots_of(service: HttpService, count: int) -> None:
    """Adds snapshots to `t`, of which only the last is on a branch."""
    updates: list[JsonValue] = []
    for number in range(1, count + 1):
        snapshot: JsonObject = {
            "snapshot-id": number,
            "sequence-number": number,
            "timestamp-ms": 1_767_225_600_000 + number,
            "manifest-list": f"memory:///wh/warehouse/db/{number}.avro",
            "summary": {"operation": "append"},
            "schema-id": 0,
        }
        updates.append({"action": "add-snapshot", "snapshot": snapshot})
    head: JsonObject = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": count}
    made = await service.client.post(TABLE, {"requirements": [], "updates": [*updates, head]})
    assert made.status == 200, made.body


async def test_each_outcome_has_what_a_load_answers(service: HttpService) -> None:
    await service.table("u")
    await service.view("v")

    found = outcomes(await resolve(service.client, item("u"), item("v"), item("none"), item("t", "nowhere"), item("t")))

    table, view = await service.client.get(f"{DB}/tables/u"), await service.client.get(f"{DB}/views/v")
    assert [each["identifier"] for each in found] == [
        ["db", "u"],
        ["db", "v"],
        ["db", "none"],
        ["nowhere", "t"],
        ["db", "t"],
    ]
    assert found[0]["result"] == {"object-type": "table", "table": table.json}
    assert found[0]["etag"] == table.headers["ETag"]
    assert found[1]["result"] == {"object-type": "view", "view": view.json}
    assert [*found[1]] == ["identifier", "status", "result"], "a view has no ETag"
    assert mapping(found[2], "error") == {
        "message": "Table or view does not exist: db.none",
        "type": "NoSuchTableException",
        "code": 404,
    }


async def test_an_etag_of_a_load_is_one_of_an_item_and_the_other_way_round(service: HttpService) -> None:
    loaded = (await service.client.get(TABLE)).headers["ETag"]
    assert outcomes(await resolve(service.client, item("t", etag=loaded))) == [
        {"identifier": ["db", "t"], "status": "not-modified", "etag": loaded}
    ]
    assert statuses(await resolve(service.client, item("t", etag=f"W/{loaded}"))) == ["not-modified"]

    await service.client.post(TABLE, set_property("a", "b"))
    [changed] = outcomes(await resolve(service.client, item("t", etag=loaded)))

    assert changed["status"] == "loaded"
    again = await service.client.get(TABLE, if_none_match=str(changed["etag"]))
    assert again.status == 304


async def test_snapshots_that_no_branch_names_are_left_out_on_request(service: HttpService) -> None:
    await snapshots_of(service, 3)

    found = outcomes(await resolve(service.client, item("t", snapshots="refs"), item("t"), item("t", snapshots="all")))

    shown = [mapping(mapping(mapping(each, "result"), "table"), "metadata")["snapshots"] for each in found]
    assert [len(each) for each in shown if isinstance(each, list)] == [1, 3, 3]
    refs = await service.client.get(f"{TABLE}?snapshots=refs")
    assert (found[0]["etag"], mapping(mapping(found[0], "result"), "table")) == (refs.headers["ETag"], refs.json)
    assert found[1]["etag"] == found[2]["etag"] != found[0]["etag"]


async def test_hints_are_ignored_for_a_view(service: HttpService) -> None:
    await service.view("v")
    assert statuses(await resolve(service.client, item("v", etag="*", snapshots="refs"))) == ["loaded"]


async def test_generic_tables_and_models_are_not_found(service: HttpService) -> None:
    await service.generic_table("g")
    await service.semantic_model("m")
    assert statuses(await resolve(service.client, item("g"), item("m"))) == ["not-found", "not-found"]


async def test_a_table_whose_metadata_file_is_missing_does_not_stop_the_others(service: HttpService) -> None:
    made = await service.table("u")
    await service.store.delete(str(made.json["metadata-location"]).removeprefix("memory:///"))

    lost, found = outcomes(await resolve(service.serve(), item("u"), item("t")))

    assert (lost["status"], mapping(lost, "error")["type"]) == ("not-found", "NotFoundException")
    assert found["status"] == "loaded"


async def test_no_credentials_are_vended(service: HttpService) -> None:
    relations: list[JsonValue] = [item("t")]
    answer = await service.client.post(
        RESOLVE, {"relations": relations}, x_iceberg_access_delegation="vended-credentials"
    )
    [found] = outcomes(answer)
    assert "storage-credentials" not in mapping(mapping(found, "result"), "table")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "missing required field 'relations'"),
        ({"relations": []}, "at least one item"),
        ({"relations": {}}, "expected an array"),
        ({"relations": [{}]}, "missing required field 'identifier'"),
        ({"relations": [{"identifier": ["t"]}]}, "the levels of a namespace, and then a name"),
        ({"relations": [{"identifier": ["db", ""]}]}, "must not be empty"),
        ({"relations": [{"identifier": ["..", "t"]}]}, "must not be"),
        ({"relations": [{"identifier": [*"abcdefghijklmnopq", "t"]}]}, "16 levels"),
        ({"relations": [{"identifier": "db.t"}]}, "expected an array"),
        ({"relations": [item("t", etag=1)]}, "relations[0].etag"),
        ({"relations": [item("t", etag="x" * 1_025)]}, "more than 1,024 characters"),
        ({"relations": [item("t", snapshots="some")]}, "expected 'all' or 'refs'"),
        ({"relations": [item("t")] * (RESOLVE_MAX_ITEMS + 1)}, "at most 100 (resolve-max-items)"),
    ],
    ids=lambda value: None,
)
async def test_an_invalid_request_is_refused(client: Client, body: JsonObject, message: str) -> None:
    refused = await client.post(RESOLVE, body)

    assert (refused.status, refused.error_type) == (400, "BadRequestException")
    assert message in str(mapping(refused.json, "error")["message"])


async def test_as_many_items_as_are_advertised_are_loaded(service: HttpService) -> None:
    limit = (await service.client.get("/v1/config")).json["resolve-max-items"]
    assert limit == RESOLVE_MAX_ITEMS
    assert statuses(await resolve(service.client, *[item("t")] * RESOLVE_MAX_ITEMS)) == ["loaded"] * RESOLVE_MAX_ITEMS


async def all_of(client: Client, items: Sequence[JsonObject]) -> tuple[Sequence[JsonObject], int]:
    """What is loaded by requests that repeat what was not processed, and the number of requests."""
    found: list[JsonObject] = []
    for number in range(1, len(items) + 1):
        answer = await resolve(client, *items)
        found += outcomes(answer)
        items = unprocessed(answer)
        if not items:
            return found, number
    raise AssertionError(f"left: {items}")


async def test_what_exceeds_the_bytes_of_an_answer_is_left_for_the_next(
    service: HttpService, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"t{number}" for number in range(9)]
    for name in names:
        await service.table(name)
    size = len((await service.client.get(f"{DB}/tables/t0")).body)
    monkeypatch.setattr(resolving, "MAX_RESPONSE_BYTES", 3 * size)
    items = [item(name, snapshots="all", etag="x") for name in names]

    first = await resolve(service.client, *items)
    found, requests = await all_of(service.client, items)

    assert len(first.body) < 4 * size
    assert unprocessed(first) == items[len(outcomes(first)) :], "as the request has them"
    assert [each["identifier"] for each in found] == [["db", name] for name in names]
    assert requests > 2


async def test_the_first_state_is_sent_however_large_it_is(
    service: HttpService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolving, "MAX_RESPONSE_BYTES", 1)
    answer = await resolve(service.client, item("t"), item("none"))
    assert (statuses(answer), unprocessed(answer)) == (["loaded"], [item("none")])


async def test_a_host_that_carries_little_gets_what_it_carries(service_with: Callable[..., HttpService]) -> None:
    service = service_with(payload_bytes=(16 << 10) + 8_000)
    await service.namespace("db", "db")
    names = [f"t{number}" for number in range(12)]
    for name in names:
        await service.table(name)

    found, requests = await all_of(service.client, [item(name) for name in names])

    assert len(found) == len(names)
    assert 1 < requests < len(names)


async def test_what_there_is_no_time_for_is_left_for_the_next(
    service: HttpService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each state takes five of the twenty seconds."""
    real = resolving.item_of

    async def slow(*arguments: object) -> bytes:
        service.clock.ms += 5_000
        return await real(*arguments)  # type: ignore[arg-type]  # as the handler gives them

    monkeypatch.setattr(resolving, "item_of", slow)
    monkeypatch.setattr(resolving, "AT_ONCE", 1)

    answer = await resolve(service.client, *[item("t")] * 9)

    assert len(outcomes(answer)) < 9
    assert len(outcomes(answer)) + len(unprocessed(answer)) == 9


async def test_what_there_is_no_memory_for_is_left_for_the_next(
    service: HttpService, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = resolving.item_of, iter(range(100))

    async def hungry(*arguments: object) -> bytes:
        if next(calls) == 5:
            raise OutOfMemory("none is left")
        return await real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(resolving, "item_of", hungry)

    answer = await resolve(service.client, *[item("t")] * 9)

    assert (len(outcomes(answer)), len(unprocessed(answer))) == (4, 5)


async def test_states_are_sent_as_they_are_stored(service: HttpService) -> None:
    """A registered file may have spaces, and numbers that no float holds."""
    location = await service.keep_metadata("kept", unknown=[123456789012345678901234567890])
    body: JsonObject = {"name": "u", "metadata-location": location}
    assert (await service.client.post(f"{DB}/register", body)).status == 200

    answer = await resolve(service.client, item("u"))

    assert (await service.client.get(f"{DB}/tables/u")).body in answer.body


# As they are at one instant.


async def test_a_consistent_answer_has_all_states_and_a_field_that_confirms_it(service: HttpService) -> None:
    await service.view("v")
    items = [item("t"), item("v"), item("none"), item("t", snapshots="refs")]

    plain, consistent = await resolve(service.client, *items), await resolve(service.client, *items, consistent=True)

    assert consistent.json == {**plain.json, "consistent": True}
    assert (await resolve(service.client, *items, consistent=False)).json == plain.json


async def test_a_consistent_request_of_what_the_client_has_sends_no_state(service: HttpService) -> None:
    [loaded] = outcomes(await resolve(service.client, item("t"), consistent=True))
    again = await resolve(service.client, item("t", etag=loaded["etag"]), consistent=True)
    assert statuses(again) == ["not-modified"]


async def test_tables_that_never_rest_are_named_in_a_503(service: HttpService, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one try, all that a process has not read before has moved."""
    await service.table("u")
    monkeypatch.setattr(cut, "TRIES", 1)

    refused = await resolve(service.serve(), item("t"), item("none"), item("u"), consistent=True)

    assert (refused.status, refused.error_type) == (503, "ServiceUnavailableException")
    assert refused.headers["Retry-After"] == "1"
    assert "in the last one db.t, db.u. Try again" in refused.message


async def test_a_consistent_answer_is_whole_or_none(service: HttpService, monkeypatch: pytest.MonkeyPatch) -> None:
    await service.table("u")
    found = outcomes(await resolve(service.client, item("t"), item("u")))
    monkeypatch.setattr(resolving, "MAX_RESPONSE_BYTES", 1_500)

    refused = await resolve(service.client, item("t"), item("u"), consistent=True)
    known = [item(name, etag=each["etag"]) for name, each in zip("tu", found, strict=True)]

    assert (refused.status, refused.error_type) == (400, "AnswerTooLargeException")
    assert "send the ETags" in refused.message
    assert statuses(await resolve(service.client, *known, consistent=True)) == ["not-modified", "not-modified"]


async def test_a_file_that_a_commit_has_removed_meanwhile_costs_another_cut(
    service: HttpService, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, missed = read_metadata, iter([True])

    async def read(*arguments: object) -> bytes:
        if next(missed, False):
            raise NotFound("a commit has removed it")
        return await real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(cut, "read_metadata", read)

    assert statuses(await resolve(service.client, item("t"), consistent=True)) == ["loaded"]


async def test_a_missing_file_fails_a_consistent_request(service: HttpService) -> None:
    made = await service.table("u")
    await service.store.delete(str(made.json["metadata-location"]).removeprefix("memory:///"))

    refused = await resolve(service.serve(), item("t"), item("u"), consistent=True)

    assert (refused.status, refused.error_type) == (404, "NotFoundException")


async def test_consistent_is_true_or_false(client: Client) -> None:
    refused = await resolve(client, item("t"), consistent="yes")
    assert (refused.status, "request.consistent" in refused.message) == (400, True)
