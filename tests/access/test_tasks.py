"""Who may see the tasks of a catalog, and who may submit a failed one again (docs/design/tasks.md#api)."""

from collections.abc import Sequence

import pytest

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.fields import objects, text
from tests.access.lake import DB, Lake, T, is_denied
from tests.access.test_budgets import CountedCatalog
from tests.support.realm_service import on_catalog, on_namespace, on_table
from tools.support.asgi_client import Client

TASKS = "/v1/lake/tasks"


@pytest.fixture
async def lake(first: Lake) -> Lake:
    """With a purge that waits."""
    made = first.copy()
    await made.ok(await made.manager.delete(f"{T}?purgeRequested=true"))
    return made


async def purge(client: Client) -> JsonObject:
    answer = await client.get(TASKS)
    assert answer.status == 200, answer.body
    (found,) = objects(answer.json, "tasks")
    return found


@pytest.mark.parametrize("privilege", ["CATALOG_MANAGE_METADATA", "CATALOG_MANAGE_CONTENT"])
async def test_who_manages_a_catalog_sees_its_tasks(lake: Lake, privilege: str) -> None:
    client = await lake.app.principal("operator", on_catalog(privilege))

    found = await purge(client)

    assert (found["type"], found["namespace"], found["name"]) == ("TABLE_PURGE", ["db"], "t")
    assert (await client.get(f"{TASKS}/{text(found, 'id')}")).json["payload"] != {}


@pytest.mark.parametrize(
    "grants",
    [
        [on_catalog("TABLE_DROP"), on_catalog("TABLE_WRITE_DATA")],
        [on_namespace("CATALOG_MANAGE_CONTENT", "db")],
        [on_catalog("CATALOG_MANAGE_ACCESS"), on_catalog("CATALOG_READ_PROPERTIES")],
        [on_table("TABLE_READ_DATA", "db", "u")],
        [],
    ],
    ids=["dropper", "namespace", "access", "reader", "stranger"],
)
async def test_others_do_not(lake: Lake, grants: Sequence[JsonObject]) -> None:
    task = text(await purge(lake.manager), "id")
    client = await lake.app.principal("other", *grants)

    for answer in (
        await client.get(TASKS),
        await client.get(f"{TASKS}/{task}"),
        await client.get(f"{TASKS}/none"),
        await client.post(f"{TASKS}/{task}/retry", {}),
        await client.post(f"{TASKS}/none/retry", {}),
    ):
        assert is_denied(answer), answer.body


async def test_a_retry_takes_the_right_to_manage_content(lake: Lake) -> None:
    task = text(await purge(lake.manager), "id")
    client = await lake.app.principal("operator", on_catalog("CATALOG_MANAGE_METADATA"))

    refused = await client.post(f"{TASKS}/{task}/retry", {})
    allowed = await lake.manager.post(f"{TASKS}/{task}/retry", {})

    assert (refused.status, "lacks the privilege CATALOG_MANAGE_CONTENT" in refused.message) == (403, True)
    assert (allowed.status, "only a failed task can be submitted again" in allowed.message) == (400, True)


async def test_a_page_token_is_good_for_its_own_principal_alone(lake: Lake) -> None:
    await lake.ok(await lake.manager.delete(f"{DB}/tables/u?purgeRequested=true"))
    other = await lake.app.principal("other", on_catalog("CATALOG_MANAGE_METADATA"))
    token = (await lake.manager.get(f"{TASKS}?pageSize=1")).json["next-page-token"]

    assert len(objects((await lake.manager.get(f"{TASKS}?pageToken={token}")).json, "tasks")) == 1
    assert (await other.get(f"{TASKS}?pageToken={token}")).status == 400


async def test_a_page_keeps_to_its_budget() -> None:
    counted = await CountedCatalog().start()
    for name in ("t", "u"):
        assert (await counted.manager.delete(f"{DB}/tables/{name}?purgeRequested=true")).status == 204

    assert (await counted.cost(counted.client(), "GET", TASKS))[1] <= 25
