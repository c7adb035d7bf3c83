"""Who has access: the list agrees with the checks, names the grant of each privilege, and is for those alone who manage
grants (docs/design/access.md#who-has-access)."""

from collections.abc import Sequence

import pytest

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.management import privilege_holders
from arco_catalog.planning.privilege_holders import USUAL
from arco_catalog.planning.privileges import GRANTABLE, Privilege, implied
from arco_catalog.state.fields import objects, text
from tests.access.lake import DB, NAMESPACES, Lake, T, is_denied
from tests.access.test_budgets import CountedCatalog
from tests.support.realm_service import MANAGEMENT, on_catalog, on_namespace, on_policy, on_table, table_request
from tools.support.asgi_client import Client

V = f"{DB}/views/v"
MANAGED = f"{MANAGEMENT}/catalogs/lake/namespaces/db/tables/t/access"
ON_V: JsonObject = {"type": "view", "namespace": ["db"], "viewName": "v"}


@pytest.fixture
def lake(first: Lake) -> Lake:
    return first.copy()


async def rows(client: Client, of: str, query: str = "", size: int = 50) -> Sequence[JsonObject]:
    """The rows of all pages."""
    found: list[JsonObject] = []
    token: object = ""
    while token is not None:
        answer = await client.get(f"{of}/access?pageSize={size}&pageToken={token}{query}")
        assert answer.status == 200, answer.body
        assert answer.json["checked"] is True
        page = objects(answer.json, "access")
        assert len(page) <= size
        found += page
        token = answer.json["next-page-token"]
    return found


async def steward(lake: Lake, grant: JsonObject | None = None) -> Client:
    return await lake.app.principal("steward", grant or on_catalog("CATALOG_MANAGE_ACCESS"))


def privileges(row: JsonObject) -> Sequence[str]:
    return [text(each, "privilege") for each in objects(row, "privileges")]


async def test_each_privilege_is_shown_with_roles_and_grant(lake: Lake) -> None:
    await lake.app.principal("reader", on_namespace("TABLE_READ_DATA", "db"), on_table("TABLE_DROP", "db", "t"))

    (row,) = [row for row in await rows(await steward(lake), T) if row["principal"] == "reader"]

    by_namespace: JsonObject = {"catalog-role": "reader-in-lake", "grant": on_namespace("TABLE_READ_DATA", "db")}
    assert row == {
        "principal-role": "reader-role",
        "principal": "reader",
        "privileges": [
            {"privilege": "TABLE_LIST", **by_namespace},
            {"privilege": "TABLE_READ_PROPERTIES", **by_namespace},
            {"privilege": "TABLE_READ_DATA", **by_namespace},
            {"privilege": "TABLE_DROP", "catalog-role": "reader-in-lake", "grant": on_table("TABLE_DROP", "db", "t")},
        ],
    }


async def test_the_list_agrees_with_the_checks(lake: Lake) -> None:
    people: dict[str, Sequence[JsonObject]] = {
        "reader": [on_table("TABLE_READ_DATA", "db", "t")],
        "writer": [on_namespace("TABLE_WRITE_DATA", "db"), on_namespace("VIEW_CREATE", "db")],
        "viewer": [{**ON_V, "privilege": "VIEW_READ_PROPERTIES"}],
        "admin": [on_catalog("CATALOG_MANAGE_METADATA")],
        "lister": [on_namespace("NAMESPACE_LIST", "other"), on_policy("POLICY_READ", "db", "p")],
        "idle": [],
    }
    for name, grants in people.items():
        await lake.app.principal(name, *grants)
    client = await steward(lake)
    things: dict[str, tuple[str, JsonObject]] = {
        T: ("table", on_table("", "db", "t")),
        f"{DB}/tables/g": ("table", on_table("", "db", "g")),
        V: ("view", ON_V),
        DB: ("namespace", on_namespace("", "db")),
        f"{NAMESPACES}/other": ("namespace", on_namespace("", "other")),
    }
    for of, (kind, thing) in things.items():
        listed = {
            (text(row, "principal"), privilege, str(each["grant"]))
            for privilege in GRANTABLE[kind]
            for row in await rows(client, of, f"&privilege={privilege}")
            for each in objects(row, "privileges")
        }
        checks: list[JsonObject] = [
            {**thing, "privilege": privilege, "principal": name}
            for name in (*people, "manager", "steward", "root")
            for privilege in GRANTABLE[kind]
        ]
        answer = await lake.app.manage("POST", "catalogs/lake/check", {"checks": [*checks]}, client)
        checked = {
            (text(check, "principal"), text(check, "privilege"), str(result["grant"]))
            for check, result in zip(checks, objects(answer.json, "results"), strict=True)
            if result["allowed"]
        }
        assert listed == checked
        assert len(listed) > 5


def test_no_grant_on_the_realm_implies_what_is_listed() -> None:
    realm = implied(Privilege.SERVICE_MANAGE_ACCESS)
    assert all(realm.isdisjoint(GRANTABLE[kind]) for kind in USUAL)
    assert all(GRANTABLE[kind].issuperset(listed) for kind, listed in USUAL.items())


@pytest.mark.parametrize("size", [1, 2, 3, 50])
async def test_pages_add_up_to_the_whole(lake: Lake, size: int) -> None:
    for name in "abcde":
        await lake.app.principal(name, on_table("TABLE_READ_DATA", "db", "t"))
        await lake.app.ok("PUT", f"principals/{name}/principal-roles", {"principalRole": {"name": "a-role"}})
    await lake.app.ok("DELETE", "principals/e/principal-roles/e-role")
    client = await steward(lake)

    found = await rows(client, T, size=size)

    assert found == await rows(client, T)
    assert [(row["principal-role"], row["principal"]) for row in found] == [
        *[("a-role", name) for name in "abcde"],
        *[(f"{name}-role", name) for name in "bcd"],
        ("e-role", None),
        ("manager-role", "manager"),
        ("service_admin", "root"),
        ("steward-role", "steward"),
    ]


async def test_a_page_ends_after_so_many_roles(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(privilege_holders, "MAX_ROLES", 2)
    for name in "abcde":
        await lake.app.principal(name, on_table("TABLE_ADD_SCHEMA", "db", "t"))
    client = await steward(lake)

    assert [row["principal"] for row in await rows(client, T)] == ["manager", "root", "steward"]
    found = [row["principal"] for row in await rows(client, T, "&privilege=TABLE_ADD_SCHEMA")]
    assert found == [*"abcde", "manager", "root"]


async def test_what_has_no_effect_is_left_out(lake: Lake) -> None:
    for name in ("dropped", "rotating", "unassigned"):
        await lake.app.principal(name, on_table("TABLE_READ_DATA", "db", "t"))
    await lake.app.ok("DELETE", "principals/dropped")
    await lake.app.ok("DELETE", "principal-roles/dropped-role")
    made: JsonObject = {"principal": {"name": "late"}, "credentialRotationRequired": True}
    await lake.app.ok("POST", "principals", made)
    await lake.app.ok("PUT", "principals/late/principal-roles", {"principalRole": {"name": "rotating-role"}})
    await lake.app.ok("DELETE", "principal-roles/unassigned-role/catalog-roles/lake/unassigned-in-lake")

    found = await rows(await steward(lake), T)

    assert [row["principal"] for row in found] == ["manager", "rotating", "root", "steward"]


async def test_only_the_pipeline_writes_to_its_namespace(lake: Lake) -> None:
    pipeline = await lake.app.principal("pipeline", on_catalog("CATALOG_MANAGE_CONTENT"))
    shown = await lake.app.manage("GET", "principals/pipeline")
    body: JsonObject = {"currentEntityVersion": shown.json["entityVersion"], "properties": {"arco.pipeline": "true"}}
    await lake.app.ok("PUT", "principals/pipeline", body)
    await lake.ok(await pipeline.post(NAMESPACES, {"namespace": ["system"]}))
    client = await steward(lake)

    by_principal = {row["principal"]: privileges(row) for row in await rows(client, f"{NAMESPACES}/system")}

    assert "TABLE_WRITE_DATA" in by_principal["pipeline"]
    assert "TABLE_READ_DATA" in by_principal["manager"]
    assert "TABLE_WRITE_DATA" not in by_principal["manager"]


# Who may list it.


@pytest.mark.parametrize("of", [T, V, DB])
async def test_it_takes_the_right_to_manage_grants(lake: Lake, of: str) -> None:
    strangers = {
        "stranger": [],
        "reader": [on_catalog("TABLE_READ_DATA"), on_catalog("VIEW_LIST"), on_catalog("NAMESPACE_LIST")],
        "content": [on_catalog("CATALOG_MANAGE_CONTENT")],
        "elsewhere": [on_namespace("CATALOG_MANAGE_ACCESS", "other")],
    }
    for name, grants in strangers.items():
        assert is_denied(await (await lake.app.principal(name, *grants)).get(f"{of}/access")), name
    content = await lake.app.client("content").get(f"{of}/access")
    assert (content.status, "lacks the privilege CATALOG_MANAGE_ACCESS" in content.message) == (403, True)
    hidden, missing = [await lake.app.client("elsewhere").get(f"{name}/access") for name in (T, f"{DB}/tables/x")]
    assert (hidden.status, hidden.error_type) == (missing.status, missing.error_type) == (404, "NoSuchTableException")


async def test_the_manager_of_one_table_lists_it_and_no_other(lake: Lake) -> None:
    client = await steward(lake, on_table("CATALOG_MANAGE_ACCESS", "db", "t"))

    assert {row["principal"] for row in await rows(client, T)} == {"manager", "root", "steward"}
    for other in (f"{DB}/tables/u", V, DB):
        assert is_denied(await client.get(f"{other}/access"))


async def test_the_management_api_has_it_too(lake: Lake) -> None:
    client = await steward(lake)

    answer = await client.get(MANAGED)

    assert objects(answer.json, "access") == await rows(client, T)
    assert is_denied(await lake.manager.get(MANAGED))


@pytest.mark.parametrize("of", [f"{DB}/tables/none", f"{DB}/views/t", f"{DB}/tables/v", f"{NAMESPACES}/none"])
async def test_a_missing_object_is_not_found(lake: Lake, of: str) -> None:
    assert (await (await steward(lake)).get(f"{of}/access")).status == 404


@pytest.mark.parametrize("query", ["privilege=VIEW_DROP", "privilege=", "privilege=x", "pageSize=0", "pageToken=x"])
async def test_a_malformed_request_is_refused(lake: Lake, query: str) -> None:
    assert (await (await steward(lake)).get(f"{T}/access?{query}")).status == 400


async def test_a_token_of_another_table_is_refused(lake: Lake) -> None:
    client = await steward(lake)
    token = (await client.get(f"{T}/access?pageSize=1")).json["next-page-token"]

    refused = await client.get(f"{DB}/tables/u/access?pageToken={token}")
    assert (refused.status, "expired" in refused.message) == (400, True)
    await lake.ok(await lake.manager.delete(T))
    await lake.ok(await lake.manager.post(f"{DB}/tables", table_request("t")))
    assert (await client.get(f"{T}/access?pageToken={token}")).status == 400


async def test_a_page_keeps_to_its_budget() -> None:
    counted = await CountedCatalog().start(on_table("CATALOG_MANAGE_ACCESS", "db", "t"))
    client = counted.client("reader")

    assert (await counted.cost(client, "GET", f"{T}/access"))[1] <= 3
    assert (await counted.cost(client, "GET", f"{T}/access"))[1] <= 2
