"""On whose behalf a change comes is taken from principals that are registered to say so; of others it is refused."""

import pytest

from arco_catalog.iceberg.json import JsonObject, loads
from arco_catalog.state.receipt import base_of
from storage_backends import Found
from tests.access.lake import DB, Lake, T
from tests.support.realm_service import on_catalog, table_request

SET: JsonObject = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]}
RUN, TASK = "01ARZ3NDEKTSV4RRFFQ69G5FAV", "01ARZ3NDEKTSV4RRFFQ69G5FAW"
SOURCES = [{"x_arco_admin_user": "ada"}, {"x_arco_servo_run_id": RUN, "x_arco_servo_task_id": TASK}]


async def servo(lake: Lake, registered: str | None) -> None:
    """A principal that may change everything in the catalog, registered in this way, or not."""
    await lake.app.principal("servo", on_catalog("CATALOG_MANAGE_CONTENT"))
    found = await lake.app.ok("GET", "principals/servo")
    properties: JsonObject = {} if registered is None else {"arco.source": registered}
    change: JsonObject = {"currentEntityVersion": found["entityVersion"], "properties": properties}
    await lake.app.ok("PUT", "principals/servo", change)


@pytest.mark.parametrize("headers", SOURCES, ids=str)
@pytest.mark.parametrize("registered", [None, "false", "TRUE"])
async def test_of_a_principal_that_is_not_registered_it_is_refused(
    registered: str | None, headers: dict[str, str]
) -> None:
    lake = await Lake().start()
    await servo(lake, registered)
    client = lake.app.client("servo")
    before = (await client.get(T)).body
    key = lake.app.key()

    refused = [
        await client.post(T, SET, **headers),
        await client.post(T, SET, idempotency_key=key, **headers),
        await client.post(T, SET, idempotency_key=key, **headers),
        await client.post(f"{DB}/tables", table_request("new"), **headers),
        await client.get(T, **headers),
    ]

    assert [(answer.status, answer.error_type) for answer in refused] == [(400, "BadRequestException")] * 5
    assert all("name the source of its changes" in answer.message for answer in refused)
    assert (await client.get(T)).body == before
    assert (await client.post(T, SET)).status == 200


@pytest.mark.parametrize("headers", SOURCES, ids=str)
async def test_of_a_principal_that_is_registered_receipts_keep_it(headers: dict[str, str]) -> None:
    lake = await Lake().start()
    await servo(lake, "true")

    assert (await lake.app.client("servo").post(T, SET, **headers)).status == 200

    receipts = [loads(body) for body in await stored(lake, "/iceberg/committed/")]
    [source] = [each["source"] for each in receipts if isinstance(each, dict) and base_of(each)]
    assert isinstance(source, dict)
    kind = "AdminApi" if "x_arco_admin_user" in headers else "Servo"
    assert (source["kind"], source["principal"]) == (kind, lake.app.ids["r", "servo"])
    assert "claimed" not in source


async def stored(lake: Lake, part: str) -> list[bytes]:
    """The objects whose keys contain this."""
    store, after = lake.app.store, None
    assert store is not None
    keys: list[str] = []
    while True:
        page = await store.list("", after)
        keys += [entry.key for entry in page.entries if part in entry.key]
        if page.after is None:
            break
        after = page.after
    found = [await store.get(key) for key in keys]
    return [each.body for each in found if isinstance(each, Found)]


async def test_a_registration_that_was_taken_back_holds_no_longer() -> None:
    lake = await Lake().start()
    await servo(lake, "true")
    warm = lake.app.client("servo", app=lake.app.serve())
    assert (await warm.post(T, SET, x_arco_admin_user="ada")).status == 200
    found = await lake.app.ok("GET", "principals/servo")
    change: JsonObject = {"currentEntityVersion": found["entityVersion"], "properties": {}}
    await lake.app.ok("PUT", "principals/servo", change)

    assert (await warm.post(T, SET, x_arco_admin_user="ada")).status == 400


async def test_a_caller_without_privileges_is_refused_before_its_source_is_checked() -> None:
    lake = await Lake().start()
    await lake.app.principal("stranger")
    assert (await lake.app.client("stranger").post(T, SET, x_arco_admin_user="ada")).status == 404
