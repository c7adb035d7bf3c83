"""A history shows a caller the operations on the objects that it may read, and on no others: also not on those that had
their names before (docs/design/access.md#history)."""

from collections.abc import Sequence

import pytest

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.fields import mapping, objects, texts
from tests.access.lake import DB, NAMESPACES, POLARIS_DB, Lake, T
from tests.access.test_budgets import CountedCatalog
from tests.support.realm_service import on_catalog, on_namespace, on_policy, on_table, table_request
from tools.support.asgi_client import Client
from tools.support.request_bodies import view_request

HISTORY = "/v1/lake/history"
ROLES = {"create-catalog-role", "assign-catalog-role", "add-grant"}


@pytest.fixture
def lake(first: Lake) -> Lake:
    return first.copy()


async def seen(client: Client, query: str = "") -> Sequence[tuple[str, str]]:
    """The kinds of all operations that a caller sees, each with the last part of its name."""
    found: list[tuple[str, str]] = []
    token: object = ""
    while token is not None:
        answer = await client.get(f"{HISTORY}?pageToken={token}{query}")
        assert answer.status == 200, answer.body
        for each in objects(answer.json, "operations"):
            levels = texts(each, "namespace") if each["namespace"] else ("-",)
            found.append((str(each["kind"]), str(each["name"] or levels[-1])))
        token = answer.json["next-page-token"]
    return found


async def by(lake: Lake, *grants: JsonObject) -> Sequence[tuple[str, str]]:
    """What a principal with these grants sees of what was before it."""
    client = await lake.app.principal("reader", *grants)
    return [each for each in await seen(client) if each[0] not in ROLES]


async def test_the_owner_of_a_catalog_sees_everything(lake: Lake) -> None:
    owner = [*map(on_catalog, ("CATALOG_MANAGE_ACCESS", "CATALOG_MANAGE_METADATA"))]
    client = await lake.app.principal("owner", *owner)

    found = await seen(client)

    assert {"create-namespace", "create-table", "create-view", "drop-view", "drop-table", "attach-policy"} <= {
        kind for kind, _ in found
    }
    assert {kind for kind, _ in found} >= ROLES


@pytest.mark.parametrize(
    ("grant", "shown"),
    [
        (on_table("TABLE_READ_PROPERTIES", "db", "t"), [("create-table", "t")]),
        (on_table("TABLE_LIST", "db", "t"), []),
        (on_namespace("TABLE_READ_DATA", "other"), []),
        (on_namespace("NAMESPACE_READ_PROPERTIES", "other"), [("create-namespace", "other")]),
        (
            on_namespace("VIEW_READ_PROPERTIES", "db"),
            [("drop-view", "gone"), ("create-view", "gone"), ("create-view", "v")],
        ),
        (on_policy("POLICY_READ", "db", "p"), [("create-policy", "p")]),
        (
            on_namespace("TABLE_READ_PROPERTIES", "db"),
            [
                ("create-semantic-model", "m"),
                ("create-generic-table", "g"),
                ("drop-table", "gone"),
                ("create-table", "gone"),
                ("create-table", "u"),
                ("create-table", "t"),
            ],
        ),
    ],
    ids=lambda value: None,
)
async def test_a_caller_sees_what_it_may_read(lake: Lake, grant: JsonObject, shown: Sequence[tuple[str, str]]) -> None:
    found = await by(lake, grant)

    assert found == shown


async def test_grants_are_seen_by_those_who_may_list_them(lake: Lake) -> None:
    client = await lake.app.principal("lister", on_catalog("CATALOG_MANAGE_ACCESS"))

    assert {kind for kind, _ in await seen(client)} == ROLES


async def test_a_renamed_table_is_seen_by_what_it_is_now(lake: Lake) -> None:
    client = await lake.app.principal("reader", on_table("TABLE_READ_PROPERTIES", "db", "t"))
    other = await lake.app.principal("other", on_namespace("TABLE_READ_PROPERTIES", "other"))
    identifiers: JsonObject = {
        "source": {"namespace": ["db"], "name": "t"},
        "destination": {"namespace": ["other"], "name": "moved"},
    }
    await lake.ok(await lake.manager.post("/v1/lake/tables/rename", identifiers))
    await lake.ok(await lake.manager.post(f"{DB}/tables", table_request("t")))

    assert await seen(client) == await seen(other) == [("rename-table", "t")]
    assert await seen(other, "&namespace=other&table=moved") == [("rename-table", "t")]


async def test_a_new_namespace_of_a_name_shows_nothing_of_the_earlier_one(lake: Lake) -> None:
    client = await lake.app.principal("reader", on_catalog("NAMESPACE_LIST"))
    await lake.ok(await lake.manager.post(f"{NAMESPACES}/other/tables", table_request("secret")))
    await lake.ok(await lake.manager.delete(f"{NAMESPACES}/other/tables/secret"))
    await lake.ok(await lake.manager.delete(f"{NAMESPACES}/other"))
    await lake.ok(await lake.manager.post(NAMESPACES, {"namespace": ["other"]}))
    for privilege in ("TABLE_READ_DATA", "NAMESPACE_READ_PROPERTIES"):
        await lake.app.grant("reader", on_namespace(privilege, "other"))

    assert await seen(client) == [("create-namespace", "other")]
    owner = await lake.app.principal("owner", on_catalog("TABLE_READ_PROPERTIES"))
    assert {("drop-table", "secret"), ("create-table", "secret")} <= set(await seen(owner))


async def test_an_attachment_names_its_target_only_to_those_who_read_all_policies(lake: Lake) -> None:
    client = await lake.app.principal("reader", on_policy("POLICY_READ", "db", "q"))
    every = await lake.app.principal("every", on_catalog("POLICY_READ"))

    assert await seen(client) == [("create-policy", "q")]
    assert ("attach-policy", "q") in await seen(every)
    assert (await lake.manager.get(f"{POLARIS_DB}/policies/q")).status == 200


async def test_a_stranger_gets_what_a_missing_catalog_gets(lake: Lake) -> None:
    stranger = await lake.app.principal("stranger")

    for target in (HISTORY, f"{HISTORY}?pageSize=x", "/v1/nowhere/history"):
        refused = await stranger.get(target)
        assert (refused.status, refused.error_type) == (404, "NoSuchWarehouseException")


async def test_a_page_token_is_good_for_its_own_principal_alone(lake: Lake) -> None:
    other = await lake.app.principal("other", on_catalog("TABLE_READ_PROPERTIES"))
    token = (await lake.manager.get(f"{HISTORY}?pageSize=1")).json["next-page-token"]

    assert (await lake.manager.get(f"{HISTORY}?pageToken={token}")).status == 200
    refused = await other.get(f"{HISTORY}?pageToken={token}")
    assert (refused.status, "was not issued for this listing" in refused.message) == (400, True)


async def test_a_page_keeps_to_its_budget() -> None:
    counted = await CountedCatalog().start(on_table("TABLE_READ_PROPERTIES", "db", "t"))
    client = counted.client("reader")

    assert (await counted.cost(client, "GET", HISTORY))[1] <= 25
    assert (await counted.cost(client, "GET", HISTORY))[1] <= 25
    assert (await client.get(T)).status == 200


async def test_a_drop_does_not_show_to_a_reader_that_its_name_has_a_hidden_object(lake: Lake) -> None:
    client = await lake.app.principal("reader", on_table("TABLE_READ_PROPERTIES", "db", "t"))
    creates = [on_table("TABLE_READ_PROPERTIES", "db", "t"), on_namespace("TABLE_CREATE", "db")]
    creator = await lake.app.principal("creator", *creates)
    await lake.ok(await lake.manager.delete(T))

    async def dropped(of: Client) -> JsonObject:
        operations = objects((await of.get(f"{HISTORY}?namespace=db&table=t")).json, "operations")
        [found] = [each for each in operations if each["kind"] == "drop-table"]
        return found

    free = await dropped(client)
    await lake.ok(await lake.manager.post(f"{DB}/views", view_request("t")))

    assert await dropped(client) == free
    undo = mapping(await dropped(creator), "undo")
    assert mapping(undo, "blocked-by")["reason"] == "name-taken"
