"""A request for several tables and views is judged item by item, as a load of each is: what the caller may not know of
is not found, and one that it may know of and not load fails the whole request (docs/design/resolve.md)."""

from collections.abc import Sequence

import pytest

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.state.fields import objects
from tests.access.lake import DB, Lake
from tests.access.test_budgets import CountedCatalog, within
from tests.support.realm_service import on_catalog, on_namespace, on_table
from tools.support.asgi_client import Answer, Client

RESOLVE = "/v1/lake/resolve"
TARGETS = {"t": f"{DB}/tables/t", "u": f"{DB}/tables/u", "v": f"{DB}/views/v", "none": f"{DB}/tables/none"}
ON_V: JsonObject = {"type": "view", "namespace": ["db"], "viewName": "v", "privilege": "VIEW_READ_PROPERTIES"}


@pytest.fixture
def lake(first: Lake) -> Lake:
    return first.copy()


async def resolve(client: Client, *names: str, **more: JsonValue) -> Answer:
    relations: list[JsonValue] = [{"identifier": ["db", name]} for name in names]
    return await client.post(RESOLVE, {"relations": relations, **more})


@pytest.mark.parametrize(
    "grants",
    [
        [on_catalog("CATALOG_READ_PROPERTIES")],
        [on_catalog("TABLE_LIST")],
        [on_namespace("TABLE_READ_PROPERTIES", "db")],
        [on_namespace("VIEW_READ_PROPERTIES", "db")],
        [on_table("TABLE_READ_DATA", "db", "t")],
        [on_table("TABLE_DROP", "db", "t"), on_namespace("VIEW_LIST", "db")],
        [on_table("TABLE_LIST", "db", "u"), ON_V],
        [on_catalog("CATALOG_MANAGE_CONTENT")],
    ],
    ids=lambda value: None,
)
@pytest.mark.parametrize("consistent", [False, True])
async def test_each_item_is_judged_as_its_load_is(
    lake: Lake, grants: Sequence[JsonObject], *, consistent: bool
) -> None:
    client = await lake.app.principal("reader", *grants)
    for name, target in TARGETS.items():
        loaded, answer = await client.get(target), await resolve(client, name, consistent=consistent)

        if loaded.status == 403:
            assert (answer.status, answer.error_type) == (403, "NotAuthorizedException")
            assert answer.error["forbidden-identifiers"] == [["db", name]]
        else:
            [found] = objects(answer.json, "relations")
            assert found["status"] == {200: "loaded", 404: "not-found"}[loaded.status]


async def test_one_forbidden_item_fails_the_whole_request_and_all_are_named(lake: Lake) -> None:
    client = await lake.app.principal("reader", on_catalog("TABLE_LIST"), on_table("TABLE_READ_DATA", "db", "t"))

    answer = await resolve(client, "t", "u", "none", "v", "u")

    assert answer.status == 403
    assert answer.error["forbidden-identifiers"] == [["db", "u"]]
    assert (await resolve(client, "t", "none", "v")).status == 200


async def test_a_hidden_table_looks_like_a_missing_one(lake: Lake) -> None:
    client = await lake.app.principal("reader", on_table("TABLE_READ_DATA", "db", "t"))

    hidden, missing = objects((await resolve(client, "u", "none")).json, "relations")

    assert str(hidden).replace("'u'", "'none'").replace("db.u", "db.none") == str(missing)


async def test_a_stranger_gets_what_a_missing_catalog_gets(lake: Lake) -> None:
    stranger = await lake.app.principal("stranger")

    for target in (RESOLVE, "/v1/nowhere/resolve"):
        bodies: Sequence[JsonObject] = ({"relations": [{"identifier": ["db", "t"]}]}, {"relations": []}, {})
        for body in bodies:
            refused = await stranger.post(target, body)
            assert (refused.status, refused.error_type) == (404, "NoSuchWarehouseException")


async def test_a_revocation_applies_to_the_next_request(lake: Lake) -> None:
    client = await lake.app.principal("reader", on_table("TABLE_READ_DATA", "db", "t"), on_catalog("TABLE_LIST"))
    assert (await resolve(client, "t")).status == 200

    await lake.app.revoke("reader", on_table("TABLE_READ_DATA", "db", "t"))

    assert (await resolve(client, "t")).status == 403
    assert (await resolve(client, "t", consistent=True)).status == 403


async def test_a_request_keeps_to_its_budget() -> None:
    counted = await CountedCatalog().start(on_catalog("TABLE_READ_PROPERTIES"))
    client = counted.client("reader")
    body: JsonObject = {"relations": [{"identifier": ["db", name]} for name in ("t", "u")]}

    assert within(await counted.cost(client, "POST", RESOLVE, body), 4, 1 + 2 * 2 + 2)
    assert within(await counted.cost(client, "POST", RESOLVE, body), 2, 1 + 2 + 1)


async def test_a_consistent_request_keeps_to_its_budget() -> None:
    counted = await CountedCatalog().start(on_catalog("TABLE_READ_PROPERTIES"))
    client = counted.client("reader")
    body: JsonObject = {"relations": [{"identifier": ["db", name]} for name in ("t", "u")], "consistent": True}

    assert within(await counted.cost(client, "POST", RESOLVE, body), 6, 2 + 3 * 2 + 2)
    assert within(await counted.cost(client, "POST", RESOLVE, body), 2, 1 + 2 + 1)
