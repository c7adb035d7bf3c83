"""A search shows a caller what it may list, and nothing else: what a HEAD of each object would say
(docs/design/registry.md#search)."""

import base64
from collections.abc import Sequence

import pytest

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.fields import objects
from tests.access.lake import DB, NAMESPACES, Lake
from tests.access.test_budgets import CountedCatalog, within
from tests.support.realm_service import on_catalog, on_namespace, on_table, table_request
from tools.support.asgi_client import Client

SEARCH = "/v1/lake/search"
NAMES = {"db": DB, "other": f"{NAMESPACES}/other", "t": f"{DB}/tables/t", "u": f"{DB}/tables/u", "v": f"{DB}/views/v"}
ON_V: JsonObject = {"type": "view", "namespace": ["db"], "viewName": "v", "privilege": "VIEW_LIST"}


@pytest.fixture
def lake(first: Lake) -> Lake:
    return first.copy()


async def found(client: Client, name: str) -> bool:
    answer = await client.get(f"{SEARCH}?q={name}")
    assert answer.status == 200, answer.body
    results = answer.json["results"]
    assert isinstance(results, list)
    return bool(results)


@pytest.mark.parametrize(
    ("grants", "shown"),
    [
        ([on_catalog("CATALOG_READ_PROPERTIES")], ""),
        ([on_catalog("NAMESPACE_LIST")], "db other"),
        ([on_catalog("TABLE_LIST")], "t u g m"),
        ([on_catalog("CATALOG_MANAGE_CONTENT")], "db other t u v g m"),
        ([on_namespace("NAMESPACE_READ_PROPERTIES", "other")], "other"),
        ([on_namespace("TABLE_READ_DATA", "db")], "t u g m"),
        ([on_table("TABLE_READ_DATA", "db", "t")], "t"),
        ([on_table("TABLE_DROP", "db", "t")], ""),
        ([on_table("TABLE_LIST", "db", "t"), ON_V], "t v"),
        ([on_namespace("VIEW_DROP", "db"), on_namespace("VIEW_LIST", "db")], "v"),
    ],
    ids=lambda value: None,
)
async def test_a_search_shows_what_head_shows(lake: Lake, grants: Sequence[JsonObject], shown: str) -> None:
    client = await lake.app.principal("searcher", *grants)

    assert [name for name in (*NAMES, "g", "m") if await found(client, name)] == shown.split()
    for name, target in NAMES.items():
        assert ((await client.head(target)).status == 204) == (name in shown.split())


async def test_a_stranger_gets_what_a_missing_catalog_gets(lake: Lake) -> None:
    stranger = await lake.app.principal("stranger")

    for target in (f"{SEARCH}?q=t", f"{SEARCH}?q=", "/v1/nowhere/search?q=t"):
        refused = await stranger.get(target)
        assert (refused.status, refused.error_type) == (404, "NoSuchWarehouseException")


async def test_a_revoked_grant_hides_at_once(lake: Lake) -> None:
    client = await lake.app.principal("searcher", on_catalog("NAMESPACE_LIST"), on_namespace("TABLE_LIST", "db"))
    assert await found(client, "t")

    await lake.app.manage(
        "POST", "catalogs/lake/catalog-roles/searcher-in-lake/grants", {"grant": on_namespace("TABLE_LIST", "db")}
    )

    assert not await found(client, "t")
    assert await found(client, "db")


async def test_a_page_token_is_good_for_its_own_principal_alone(lake: Lake) -> None:
    for name in ("t2", "t3"):
        await lake.ok(await lake.manager.post(f"{DB}/tables", table_request(name)))
    other = await lake.app.principal("other", on_catalog("TABLE_LIST"))
    token = (await lake.manager.get(f"{SEARCH}?q=t&limit=1")).json["next-page-token"]

    assert (await lake.manager.get(f"{SEARCH}?q=t&pageToken={token}")).json["next-page-token"] is None
    refused = await other.get(f"{SEARCH}?q=t&pageToken={token}")
    assert (refused.status, "was not issued for this listing" in refused.message) == (400, True)


async def test_a_page_keeps_to_its_budget() -> None:
    counted = await CountedCatalog().start(on_table("TABLE_LIST", "db", "t"))
    client = counted.client("reader")

    assert within(await counted.cost(client, "GET", f"{SEARCH}?q=t"), 2, 3)
    assert within(await counted.cost(client, "GET", f"{SEARCH}?q=t"), 1, 2)


async def test_a_page_token_does_not_show_a_hidden_name(lake: Lake) -> None:
    for name in ("t1", "t2_payroll"):
        await lake.ok(await lake.manager.post(f"{DB}/tables", table_request(name)))
    client = await lake.app.principal(
        "searcher", *(on_table("TABLE_LIST", "db", name) for name in ("t1", "t2_payroll"))
    )

    page = (await client.get(f"{SEARCH}?q=t&limit=1")).json
    token = str(page["next-page-token"])

    assert page["results"] == [{"type": "table", "namespace": ["db"], "name": "t1"}]
    encoded = token.partition(".")[0]
    shown = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))
    assert not any(part in shown for part in (b"payroll", b"relation", b"db"))
    assert len(objects((await client.get(f"{SEARCH}?q=t&pageToken={token}")).json, "results")) == 1


async def test_a_page_token_that_was_changed_is_refused(lake: Lake) -> None:
    for name in ("t1", "t2"):
        await lake.ok(await lake.manager.post(f"{DB}/tables", table_request(name)))
    token = str((await lake.manager.get(f"{SEARCH}?q=t&limit=1")).json["next-page-token"])

    for place in (0, 10, len(token) - 1):
        changed = token[:place] + ("0" if token[place] != "0" else "1") + token[place + 1 :]
        assert (await lake.manager.get(f"{SEARCH}?q=t&pageToken={changed}")).status == 400
    for odd in ("", ".", "x.", f".{token.rpartition('.')[2]}", "%ED%A0%80.%ED%A0%80", "9" * 4000):
        assert (await lake.manager.get(f"{SEARCH}?q=t&pageToken=a{odd}")).status == 400


async def test_a_full_page_does_not_show_that_a_hidden_name_matches(lake: Lake) -> None:
    for name in ("a_payroll", "b_payroll", "c_payroll"):
        await lake.ok(await lake.manager.post(f"{DB}/tables", table_request(name)))
    client = await lake.app.principal("searcher", *(on_table("TABLE_LIST", "db", f"{name}_payroll") for name in "ab"))

    first = (await client.get(f"{SEARCH}?q=payroll&limit=1")).json
    second = (await client.get(f"{SEARCH}?q=payroll&limit=1&pageToken={first['next-page-token']}")).json

    assert second["results"] == [{"type": "table", "namespace": ["db"], "name": "b_payroll"}]
    assert second["next-page-token"] is None
