"""Notifications over HTTP: tables of an external catalog follow those of another one."""

import asyncio

import pytest

from arco_catalog.http.route import Effect
from arco_catalog.http.routes import GOVERNANCE, ROUTES
from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonObject, dumps
from arco_catalog.operations.as_of import relation_at
from arco_catalog.operations.delegation import table_access
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.history import history
from arco_catalog.operations.inspect import inspect_relation
from arco_catalog.operations.load import load_table
from arco_catalog.operations.undrop import undrop
from arco_catalog.planning.reserved_locations import MAX_HELD
from arco_catalog.planning.upkeep_settings import DAY_MS
from arco_catalog.protocol.catalog import Settings
from storage_backends import ABSENT
from tests.http.templates import path_of
from tests.support.http_service import POLARIS_DB, HttpService
from tests.support.realm_service import RealmApp, on_catalog
from tools.support.asgi_client import Answer, Client
from tools.support.request_bodies import set_property

DB = "/v1/wh/namespaces/db"
ROOT = "memory:///wh/warehouse"
NOTIFICATIONS = f"{DB}/tables/t/notifications"
OTHER = "6e9d1c5e-0a6b-4f2e-9d2c-0f6a0c1b2d3e"
OWNED = [route for route in ROUTES if not route.in_external]


@pytest.fixture
async def owned(service: HttpService) -> JsonObject:
    """The metadata of a table of another catalog."""
    document = (await service.client.get(f"{DB}/tables/t")).json["metadata"]
    assert isinstance(document, dict)
    return document


@pytest.fixture
def external() -> HttpService:
    """A catalog that follows that one, with nothing in it."""
    return HttpService(settings=Settings("wh", external=True))


async def left(external: HttpService, document: JsonObject, number: int = 1, folder: str = "t", **more: str) -> str:
    """Leaves a metadata file that a table's owner wrote."""
    body = dumps({**document, "location": f"{ROOT}/{folder}", **more})
    await external.store.put(f"wh/warehouse/{folder}/metadata/{number}.metadata.json", body, ABSENT)
    return f"{ROOT}/{folder}/metadata/{number}.metadata.json"


def notification(document: JsonObject, event: str, at: int, file: str, name: str = "t") -> JsonObject:
    payload: JsonObject = {"table-name": name, "timestamp": at, "table-uuid": document["table-uuid"]}
    return {"notification-type": event, "payload": {**payload, "metadata-location": file}}


async def current(client: Client, table: str = f"{DB}/tables/t") -> object:
    """The metadata file of the table, or the status of the refusal."""
    answer = await client.get(table)
    return answer.json["metadata-location"] if answer.status == 200 else answer.status


def refused(answer: Answer) -> tuple[int, str]:
    return answer.status, answer.error_type


async def test_a_table_follows_from_its_creation_to_its_drop(external: HttpService, owned: JsonObject) -> None:
    client, target = external.client, NOTIFICATIONS.replace("db", "a%1Fb")
    table = target.removesuffix("/notifications")
    first, second = await left(external, owned, 1), await left(external, owned, 2)

    created = await client.post(target, notification(owned, "CREATE", 10, first))
    assert (created.status, created.body) == (204, b""), created.body
    assert await current(client, table) == first
    assert (await client.post(target, notification(owned, "UPDATE", 20, second))).status == 204
    assert await current(client, table) == await current(external.serve(), table) == second
    assert (await client.get("/v1/wh/namespaces?parent=a")).json["namespaces"] == [["a", "b"]]
    assert (await client.get("/v1/wh/namespaces/a%1Fb")).json["properties"] == {"location": f"{ROOT}/a/b"}
    assert (await client.head(table)).status == 204
    assert (await client.post(target, notification(owned, "DROP", 30, second))).status == 204
    assert await current(client, table) == 404


async def test_an_update_of_what_is_not_there_makes_it_and_a_creation_of_what_is_there_updates(
    external: HttpService, owned: JsonObject
) -> None:
    first, second = await left(external, owned, 1), await left(external, owned, 2)

    for event, at, file in (("UPDATE", 1, first), ("CREATE", 2, second)):
        assert (await external.client.post(NOTIFICATIONS, notification(owned, event, at, file))).status == 204
        assert await current(external.client) == file


@pytest.mark.parametrize("event", ["CREATE", "UPDATE", "DROP"])
@pytest.mark.parametrize("at", [9, 10])
async def test_what_is_not_later_than_the_last_is_refused(
    external: HttpService, owned: JsonObject, event: str, at: int
) -> None:
    client = external.client
    first, second = await left(external, owned, 1), await left(external, owned, 2)
    await client.post(NOTIFICATIONS, notification(owned, "CREATE", 10, first))

    late = await client.post(NOTIFICATIONS, notification(owned, event, at, second))

    assert refused(late) == (409, "AlreadyExistsException")
    assert "A notification with the same or a newer timestamp has been admitted for table db.t" in late.message
    assert await current(client) == first


async def test_a_drop_is_remembered(external: HttpService, owned: JsonObject) -> None:
    client, file = external.client, await left(external, owned)
    assert refused(await client.post(NOTIFICATIONS, notification(owned, "DROP", 5, file))) == (
        404,
        "NoSuchTableException",
    )
    await client.post(NOTIFICATIONS, notification(owned, "CREATE", 10, file))
    await client.post(NOTIFICATIONS, notification(owned, "DROP", 20, file))

    late = await client.post(NOTIFICATIONS, notification(owned, "UPDATE", 15, file))
    again = await client.post(NOTIFICATIONS, notification(owned, "DROP", 20, file))
    assert refused(late) == refused(again) == (409, "AlreadyExistsException")
    assert await current(client) == 404

    assert (await client.post(NOTIFICATIONS, notification(owned, "CREATE", 21, file))).status == 204
    assert await current(client) == file


async def test_a_drop_of_another_table_leaves_the_one_that_is_followed(
    external: HttpService, owned: JsonObject
) -> None:
    client, file = external.client, await left(external, owned)
    await client.post(NOTIFICATIONS, notification(owned, "CREATE", 1, file))

    other = await client.post(NOTIFICATIONS, notification({"table-uuid": OTHER}, "DROP", 2, file))

    assert refused(other) == (400, "BadRequestException")
    assert f"db.t follows table {owned['table-uuid']}, not {OTHER}" in other.message
    assert await current(client) == file
    spelt: JsonObject = {"table-uuid": str(owned["table-uuid"]).upper()}
    assert (await client.post(NOTIFICATIONS, notification(spelt, "DROP", 2, file))).status == 204


@pytest.mark.parametrize("event", ["CREATE", "UPDATE", "DROP", "VALIDATE"])
async def test_a_notification_names_the_table_to_which_it_is_sent(
    external: HttpService, owned: JsonObject, event: str
) -> None:
    file = await left(external, owned)
    await external.client.post(NOTIFICATIONS, notification(owned, "CREATE", 1, file))

    answer = await external.client.post(NOTIFICATIONS, notification(owned, event, 2, file, "orders"))

    assert refused(answer) == (400, "BadRequestException")
    assert "table-name: it is 'orders', but the path names 't'" in answer.message
    assert await current(external.client) == file


@pytest.mark.parametrize("event", ["CREATE", "UPDATE", "DROP", "VALIDATE"])
async def test_a_time_in_another_unit_does_not_lock_the_name(
    external: HttpService, owned: JsonObject, event: str
) -> None:
    client, now_ms = external.client, external.clock.ms
    first, second = await left(external, owned, 1), await left(external, owned, 2)
    await client.post(NOTIFICATIONS, notification(owned, "CREATE", now_ms, first))

    for at in (now_ms * 1_000, 2**63 - 1, now_ms + DAY_MS + 1):
        answer = await client.post(NOTIFICATIONS, notification(owned, event, at, second))
        assert refused(answer) == (400, "BadRequestException")
        assert "milliseconds" in answer.message
    assert await current(client) == first
    assert (await client.post(NOTIFICATIONS, notification(owned, "UPDATE", now_ms + DAY_MS, second))).status == 204


async def test_notifications_at_once_leave_the_latest(external: HttpService, owned: JsonObject) -> None:
    files = [await left(external, owned, number) for number in range(6)]
    clients = [external.serve() for _ in files]

    answers = await asyncio.gather(
        *(
            client.post(NOTIFICATIONS, notification(owned, "UPDATE", at, file))
            for at, (client, file) in enumerate(zip(clients, files, strict=True))
        )
    )

    assert answers[-1].status == 204
    assert {answer.status for answer in answers} <= {204, 409}
    assert await current(external.client) == files[-1]


async def test_a_validation_changes_nothing(external: HttpService, owned: JsonObject) -> None:
    for place in (f"{ROOT}/nowhere/1.metadata.json", f"{ROOT}/nowhere"):
        assert (await external.client.post(NOTIFICATIONS, notification(owned, "VALIDATE", 1, place))).status == 204
    outside = await external.client.post(NOTIFICATIONS, notification(owned, "VALIDATE", 1, "memory:///elsewhere"))

    assert refused(outside) == (400, "BadRequestException")
    assert external.store.keys() == HttpService().store.keys()


async def test_a_validation_refuses_what_a_creation_would(external: HttpService, owned: JsonObject) -> None:
    client, file = external.client, await left(external, owned)
    await client.post(NOTIFICATIONS, notification(owned, "CREATE", 10, file))
    await external.generic_table("g")
    other: JsonObject = {"table-uuid": OTHER}
    before = external.store.keys()

    async def both(name: str, owner: JsonObject, at: int) -> tuple[int, str]:
        answers = [
            await client.post(f"{DB}/tables/{name}/notifications", notification(owner, event, at, file, name))
            for event in ("CREATE", "VALIDATE")
        ]
        created, validated = map(refused, answers)
        assert (created, answers[0].message) == (validated, answers[1].message)
        return validated

    bad, taken = (400, "BadRequestException"), (409, "AlreadyExistsException")
    assert await both("t", owned, 10) == taken
    assert await both("g", owned, 11) == taken
    assert await both("t", other, 11) == bad
    assert await both("a%2Fb", owned, 11) == bad
    assert external.store.keys() == before
    assert (await client.post(NOTIFICATIONS, notification(owned, "VALIDATE", 11, file))).status == 204
    assert (await client.post(NOTIFICATIONS, notification(owned, "UPDATE", 11, file))).status == 204


@pytest.mark.parametrize("event", ["CREATE", "UPDATE", "DROP", "VALIDATE"])
async def test_a_catalog_that_owns_its_tables_takes_none(service: HttpService, owned: JsonObject, event: str) -> None:
    answer = await service.client.post(NOTIFICATIONS, notification(owned, event, 1, f"{ROOT}/t/1.metadata.json"))

    assert refused(answer) == (400, "BadRequestException")
    assert answer.message == "Cannot update internal catalog via notifications"


async def test_a_file_is_read_before_a_table_follows_it(external: HttpService, owned: JsonObject) -> None:
    client = external.client
    other: JsonObject = {**owned, "table-uuid": OTHER}
    await external.store.put("wh/warehouse/no.metadata.json", b"{}", ABSENT)
    its_own, strays = await left(external, owned, 1), await left(external, owned, 2, location="memory:///elsewhere")
    at = iter(range(1, 100))

    async def answer(owner: JsonObject, file: str) -> tuple[int, str]:
        return refused(await client.post(NOTIFICATIONS, notification(owner, "UPDATE", next(at), file)))

    bad, gone = (400, "BadRequestException"), (404, "NotFoundException")
    assert await answer(owned, f"{ROOT}/t/gone.metadata.json") == gone
    assert await answer(owned, f"{ROOT}/no.metadata.json") == bad
    assert await answer(owned, "memory:///elsewhere/1.metadata.json") == bad
    assert await answer(owned, strays) == bad
    assert await answer(other, its_own) == bad
    assert await current(client) == 404
    assert (await client.get("/v1/wh/namespaces")).json["namespaces"] == []
    assert (await client.post(NOTIFICATIONS, notification(owned, "UPDATE", next(at), its_own))).status == 204
    assert await answer(other, await left(external, other, 3)) == bad  # the name follows another table


async def test_a_place_and_a_name_have_one_owner(external: HttpService, owned: JsonObject) -> None:
    client, file = external.client, await left(external, owned)
    await client.post(NOTIFICATIONS, notification(owned, "CREATE", 1, file))
    await external.generic_table("g")

    place = await client.post(f"{DB}/tables/u/notifications", notification(owned, "CREATE", 1, file, "u"))
    name = await client.post(f"{DB}/tables/g/notifications", notification(owned, "CREATE", 1, file, "g"))
    over = await client.post(f"{POLARIS_DB}/generic-tables", {"name": "t", "format": "csv"})

    assert refused(place) == (400, "BadRequestException")
    assert refused(name) == refused(over) == (409, "AlreadyExistsException")


async def test_tables_that_moved_hold_both_places(external: HttpService, owned: JsonObject) -> None:
    client = external.client
    files = [await left(external, owned), await left(external, owned, folder="moved")]
    for at, file in enumerate(files):
        assert (await client.post(NOTIFICATIONS, notification(owned, "UPDATE", at, file))).status == 204

    for file in files:
        taken = await client.post(f"{DB}/tables/u/notifications", notification(owned, "CREATE", 1, file, "u"))
        assert refused(taken) == (400, "BadRequestException")


async def test_a_table_that_has_moved_too_often_is_refused_until_it_is_created_again(
    external: HttpService, owned: JsonObject
) -> None:
    for number in range(MAX_HELD):
        file = await left(external, owned, folder=f"moved-{number}")
        assert (await external.client.post(NOTIFICATIONS, notification(owned, "UPDATE", number, file))).status == 204

    file = await left(external, owned, folder="moved-once-more")
    answer = await external.client.post(NOTIFICATIONS, notification(owned, "UPDATE", MAX_HELD, file))

    assert refused(answer) == (400, "BadRequestException")
    assert answer.error["message"] == (
        f"db.t would have {MAX_HELD + 1} locations for its files, earlier ones included, "
        f"and may have at most {MAX_HELD}: send a DROP notification and then a CREATE notification, "
        "which make it a new table without the earlier locations"
    )
    for at, event in enumerate(("DROP", "CREATE"), MAX_HELD):
        assert (await external.client.post(NOTIFICATIONS, notification(owned, event, at, file))).status == 204
    assert await current(external.client) == file


@pytest.mark.parametrize("route", OWNED, ids=lambda route: route.endpoint)
async def test_engines_change_nothing_there(external: HttpService, owned: JsonObject, route: object) -> None:
    await external.client.post(NOTIFICATIONS, notification(owned, "CREATE", 1, await left(external, owned)))
    before = external.store.keys()
    method, template = route.endpoint.split(" ")  # type: ignore[attr-defined]  # a route

    answer = await external.client.send(method, path_of(template), dumps(set_property("a", "b")))

    assert refused(answer) == (400, "BadRequestException")
    assert "Catalog wh is external" in answer.message
    assert external.store.keys() == before


def test_what_engines_change_is_what_is_refused() -> None:
    changes = {route.endpoint for route in ROUTES if route.effect is not Effect.READS}
    others = {
        "POST /v1/{prefix}/namespaces",
        "DELETE /v1/{prefix}/namespaces/{namespace}",
        "POST /v1/{prefix}/namespaces/{namespace}/properties",
        "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/notifications",
    }
    of_polaris = {endpoint for endpoint in changes if "/polaris/" in endpoint}
    governance = {route.endpoint for route in GOVERNANCE}
    assert {route.endpoint for route in OWNED} == changes - of_polaris - governance - others


async def test_a_retry_with_its_key_gets_the_first_answer(external: HttpService, owned: JsonObject) -> None:
    first, second = await left(external, owned, 1), await left(external, owned, 2)
    keys = [external.key() for _ in range(3)]
    events = [("CREATE", first), ("UPDATE", second), ("DROP", second)]

    for at, (key, (event, file)) in enumerate(zip(keys, events, strict=True)):
        body = notification(owned, event, at, file)
        once = await external.client.post(NOTIFICATIONS, body, idempotency_key=key)
        again = await external.serve().post(NOTIFICATIONS, body, idempotency_key=key)
        assert (once.status, again.status) == (204, 204), again.body


BAD: dict[str, JsonObject] = {
    "nothing": {},
    "an unknown type": {"notification-type": "UNKNOWN", "payload": {}},
    "no payload": {"notification-type": "CREATE"},
    "no time": {
        "notification-type": "CREATE",
        "payload": {"table-name": "t", "table-uuid": "u", "metadata-location": "f"},
    },
    "a time in words": {
        "notification-type": "CREATE",
        "payload": {"table-name": "t", "table-uuid": "u", "metadata-location": "f", "timestamp": "now"},
    },
}


@pytest.mark.parametrize("what", BAD)
async def test_what_is_no_notification_is_refused(external: HttpService, what: str) -> None:
    assert refused(await external.client.post(NOTIFICATIONS, BAD[what])) == (400, "BadRequestException")


async def test_an_unknown_type_is_refused_with_those_that_there_are(external: HttpService) -> None:
    answer = await external.client.post(f"{DB}/tables/t/notifications", {"notification-type": "create"})

    assert refused(answer) == (400, "BadRequestException")
    assert answer.message == (
        "Invalid request.notification-type: expected 'CREATE' or 'UPDATE' or 'DROP' or 'VALIDATE', found 'create'"
    )


async def test_operators_see_where_it_stands_and_stood(external: HttpService, owned: JsonObject) -> None:
    files = [await left(external, owned, number) for number in range(2)]
    times = []
    for at, file in enumerate(files):
        external.clock.ms += 1_000
        await external.client.post(NOTIFICATIONS, notification(owned, "UPDATE", at, file))
        times.append(external.clock.ms)

    shown = await inspect_relation(external.session(), ("db",), "t")
    stood = [await relation_at(external.session(), ("db",), "t", at_ms) for at_ms in times]
    entries = [entry async for entry in history(external.session())]

    assert (shown["type"], shown["metadata_location"], shown["notified"]) == ("table", files[1], 1)
    assert [each["metadata_location"] for each in stood] == files
    assert [(entry["kind"], entry["notification"]) for entry in entries[:2]] == [("follow", "UPDATE")] * 2


async def test_the_governance_of_a_followed_table_stays_while_it_changes(
    external: HttpService, owned: JsonObject
) -> None:
    """Governance is this catalog's own, also if another catalog owns the table."""
    files = [await left(external, owned, number) for number in (1, 2)]
    await external.client.post(NOTIFICATIONS, notification(owned, "CREATE", 1, files[0]))
    governed = await external.client.post(f"{DB}/tables/t/governance", {"arco.owner": "ada"})
    moved = await external.client.post(NOTIFICATIONS, notification(owned, "UPDATE", 2, files[1]))

    assert (governed.status, moved.status) == (200, 204)
    loaded = (await external.client.get(f"{DB}/tables/t")).json
    assert (loaded["metadata-location"], loaded["labels"]) == (files[1], {"object-labels": {"arco.owner": "ada"}})
    shown = await inspect_relation(external.session(), ("db",), "t")
    stood = await relation_at(external.session(), ("db",), "t", external.clock.ms)
    assert shown["governance"] == stood["governance"] == {"arco.owner": "ada"}

    assert (await external.client.post(NOTIFICATIONS, notification(owned, "DROP", 3, files[1]))).status == 204
    assert (await external.client.post(NOTIFICATIONS, notification(owned, "CREATE", 4, files[1]))).status == 204
    assert "labels" not in (await external.client.get(f"{DB}/tables/t")).json


async def test_files_of_another_catalog_are_read_and_never_deleted(external: HttpService, owned: JsonObject) -> None:
    await external.client.post(NOTIFICATIONS, notification(owned, "CREATE", 1, await left(external, owned)))

    access = await table_access(external.session(), ("db",), "t", await load_table(external.session(), ("db",), "t"))
    with pytest.raises(BadRequest, match="whose files only that catalog may delete"):
        await drop_table(external.session(), ("db",), "t", purge=True)
    await drop_table(external.session(), ("db",), "t", purge=False)
    await undrop(external.session(), ("db",), "t")

    assert access is not None
    assert not access.scope.write
    assert await current(external.client) is not None


PRIVILEGES = ("TABLE_CREATE", "TABLE_WRITE_PROPERTIES", "TABLE_DROP", "NAMESPACE_CREATE", "NAMESPACE_DROP")


async def test_catalogs_of_type_external_follow_for_principals_with_the_privileges(owned: JsonObject) -> None:
    app = await RealmApp().start()
    await app.catalog(kind="EXTERNAL")
    base = app.base("lake")
    assert app.store is not None
    place = f"{base.removeprefix('memory:///')}/t/metadata/1.metadata.json"
    await app.store.put(place, dumps({**owned, "location": f"{base}/t"}), ABSENT)
    target, body = NOTIFICATIONS.replace("wh", "lake"), notification(owned, "CREATE", 1, f"memory:///{place}")
    notifier = await app.principal("notifier", *map(on_catalog, PRIVILEGES))
    partly = await app.principal("partly", *map(on_catalog, PRIVILEGES[:-1]))
    reader = await app.principal("reader", on_catalog("TABLE_READ_DATA"))
    writer = await app.principal("writer", on_catalog("TABLE_WRITE_DATA"))
    table = target.removesuffix("/notifications")

    assert refused(await partly.post(target, body)) == (403, "NotAuthorizedException")
    assert refused(await reader.post(target, body)) == (403, "NotAuthorizedException")
    assert (await notifier.post(target, body)).status == 204
    assert await current(reader, table) == f"memory:///{place}"
    assert refused(await writer.post(table, set_property("a", "b"))) == (400, "BadRequestException")
    stranger = await app.client("stranger").post(table, set_property("a", "b"))
    assert stranger.status in (401, 403, 404)
