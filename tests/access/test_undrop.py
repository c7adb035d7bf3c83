"""A restore of a table creates a name and undoes a drop: it needs the privileges of both
(docs/design/access.md#routes)."""

import pytest

from tests.access.lake import DB, Lake, T
from tests.support.realm_service import on_catalog, on_namespace, on_table, table_request
from tools.support.request_bodies import set_property

CREATES = on_namespace("TABLE_CREATE", "db")


@pytest.fixture
async def lake() -> Lake:
    return await Lake().start()


async def test_restoring_takes_the_drop_and_the_create(lake: Lake) -> None:
    both = await lake.app.principal("both", CREATES, on_table("TABLE_DROP", "db", "t"))
    assert (await lake.manager.delete(T)).status == 204
    assert (await both.post(f"{T}/undrop", {})).status == 204
    assert (await lake.manager.get(T)).status == 200


@pytest.mark.parametrize("where", ["namespace", "catalog"])
async def test_the_drop_may_be_granted_on_what_the_table_was_in(lake: Lake, where: str) -> None:
    grant = on_namespace("TABLE_DROP", "db") if where == "namespace" else on_catalog("TABLE_DROP")
    both = await lake.app.principal("both", CREATES, grant)
    await lake.manager.delete(T)
    assert (await both.post(f"{T}/undrop", {})).status == 204


async def test_a_principal_that_may_only_create_gets_the_missing_privilege(lake: Lake) -> None:
    creator = await lake.app.principal("creator", CREATES)
    await lake.manager.delete(T)
    refused = await creator.post(f"{T}/undrop", {})
    assert (refused.status, refused.error_type) == (403, "NotAuthorizedException")
    assert refused.message == "To restore db.t takes the privilege TABLE_DROP on it"
    assert (await lake.manager.post(f"{T}/undrop", {})).status == 204


async def test_who_may_only_drop_makes_no_name(lake: Lake) -> None:
    dropper = await lake.app.principal("dropper", on_table("TABLE_DROP", "db", "t"))
    assert (await dropper.delete(T)).status == 204
    assert (await dropper.post(f"{T}/undrop", {})).status in (403, 404)
    assert (await lake.manager.get(T)).status == 404


async def test_a_drop_of_another_table_of_the_name_gives_no_right(lake: Lake) -> None:
    both = await lake.app.principal("both", CREATES, on_table("TABLE_DROP", "db", "t"))
    await lake.manager.delete(T)
    made = await lake.manager.post(f"{DB}/tables", table_request("t"))
    assert made.status == 200
    await lake.manager.post(T, set_property("a", "1"))
    await lake.manager.delete(T)
    assert (await both.post(f"{T}/undrop", {})).status == 403


async def test_a_view_takes_what_views_take(lake: Lake) -> None:
    await lake.manager.delete(f"{DB}/views/v")
    drops_tables = await lake.app.principal("tables", CREATES, on_namespace("TABLE_DROP", "db"))
    absent = await drops_tables.post(f"{DB}/tables/w/undrop", {})
    refused = await drops_tables.post(f"{DB}/tables/v/undrop", {})
    assert (refused.status, refused.error_type) == (absent.status, absent.error_type) == (404, "NoSuchTableException")
    assert refused.message == absent.message.replace("db.w", "db.v")
    drops_views = await lake.app.principal("drops", CREATES, on_namespace("VIEW_DROP", "db"))
    refused = await drops_views.post(f"{DB}/tables/v/undrop", {})
    assert refused.status == 403
    assert refused.message == "To restore db.v takes the privilege VIEW_CREATE on its namespace"
    both = on_namespace("VIEW_CREATE", "db"), on_namespace("VIEW_DROP", "db")
    restores_views = await lake.app.principal("restores", CREATES, *both)
    assert (await restores_views.post(f"{DB}/tables/v/undrop", {})).status == 204


async def test_what_was_dropped_is_listed_for_who_may_list(lake: Lake) -> None:
    lister = await lake.app.principal("lister", on_namespace("TABLE_LIST", "db"))
    await lake.manager.delete(T)
    listed = await lister.get(f"{DB}/tables?deleted=true&pageToken=&pageSize=1")
    assert [each["name"] for each in listed.json["identifiers"]] == ["gone"]  # type: ignore[union-attr, index, call-overload]
    page = listed.json["next-page-token"]
    rest = await lister.get(f"{DB}/tables?deleted=true&pageToken={page}")
    assert [each["name"] for each in rest.json["identifiers"]] == ["t"]  # type: ignore[union-attr, index, call-overload]
    assert (await lake.manager.get(f"{DB}/tables?deleted=true&pageToken={page}")).status == 400
