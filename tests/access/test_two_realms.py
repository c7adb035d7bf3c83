"""Two realms on one server and in one bucket: nothing of one reaches, or learns of, the other."""

import asyncio
import base64
from dataclasses import dataclass, replace

import pytest

from arco_catalog.http.management.routes import BASE as MANAGEMENT_PATH
from arco_catalog.http.management.routes import MANAGEMENT
from arco_catalog.http.route import Route
from arco_catalog.iceberg.json import JsonObject
from tests.access.lake import NAMESPACES, Lake, is_denied
from tests.access.test_routes import Case, each_case
from tests.support.realm_service import RealmApp, on_catalog, table_request
from tools.support.asgi_client import Answer, Client

LOOKS_AT_NOTHING = {"scan report", "commit report", "load function", "credentials", "sign", "notify", "cancel a plan"}
SECRET = b"secret"
"""Part of every name in the other realm."""


@dataclass
class Realms:
    """`a`, whose `mallory` manages its catalog `lake`; and `b`, whose catalog `lake` holds other things under other
    names, and whose catalog `secretlake` has no like in `a`."""

    lake: Lake
    mallory: Client
    bob: Client

    def copy(self) -> "Realms":
        """Both in a store of its own, over a server with empty caches."""
        lake = self.lake.copy()
        return Realms(lake, lake.app.client("mallory"), lake.app.client("root", "b"))


@pytest.fixture(scope="module")
def first() -> Realms:
    """Realms that no test changes: each has a copy."""
    return asyncio.run(realms())


async def realms() -> Realms:
    app = RealmApp(names=("a", "b"))
    lake = await Lake(app).start()
    mallory = await app.principal("mallory", on_catalog("CATALOG_MANAGE_CONTENT"))
    root = app.client("root", "b")
    for name in ("lake", "secretlake"):
        await app.catalog(name, root, app.base(name, "b"))
        grant: JsonObject = {"grant": on_catalog("CATALOG_MANAGE_CONTENT")}
        await app.ok("PUT", f"catalogs/{name}/catalog-roles/catalog_admin/grants", grant, root)
        assert (await root.post(f"/v1/{name}/namespaces", {"namespace": ["secretdb"]})).status == 200
        made = await root.post(f"/v1/{name}/namespaces/secretdb/tables", table_request("secrettable"))
        assert made.status == 200, made.body
    return Realms(lake, mallory, root)


async def records(found: Realms) -> dict[str, object]:
    """The objects of `b`, by their versions."""
    store = found.lake.app.store
    assert store is not None
    page = await store.list("b/")
    assert page.after is None
    return {entry.key: entry.version for entry in page.entries}


def without_names(answer: Answer) -> tuple[int, bytes]:
    """An answer without the requested name, which is one of two."""
    return answer.status, answer.body.replace(b"secret", b"absent")


def reveals(answer: Answer) -> bool:
    """Whether an answer has anything of the other realm in it."""
    return SECRET in answer.body.lower() or b"memory:///b" in answer.body


@each_case
async def test_names_of_the_other_realm_are_answered_like_names_that_do_not_exist(first: Realms, case: Case) -> None:
    answers = []
    for name in ("secret", "absent"):
        found = first.copy()
        before = await records(found)
        for catalog in ("lake", f"{name}lake"):
            target = case.target.replace("lake", catalog)
            target = target.replace("/db", f"/{name}db").replace("tables/t", f"tables/{name}table")
            attempt = replace(case, target=target)
            answers.append(without_names(await attempt.send(found.lake, found.mallory)))
        assert await records(found) == before
    assert answers[:2] == answers[2:]


NAMES = {
    "principal": "{}principal",
    "principal-role": "{}role",
    "catalog": "{}lake",
    "catalog-role": "{}reading",
    "namespace": "{}db",
    "table": "{}table",
    "view": "{}view",
}


@pytest.mark.parametrize("route", MANAGEMENT, ids=lambda route: route.endpoint)
async def test_no_management_route_reaches_the_other_realm(first: Realms, route: Route) -> None:
    found = first.copy()
    app, root = found.lake.app, found.lake.app.client("root", "b")
    made: JsonObject = {"name": "secretprincipal"}
    await app.ok("POST", "principals", {"principal": made}, root)
    await app.ok("POST", "principal-roles", {"principalRole": {"name": "secretrole"}}, root)
    await app.ok("PUT", "principals/secretprincipal/principal-roles", {"principalRole": {"name": "secretrole"}}, root)
    for catalog in ("lake", "secretlake"):
        role: JsonObject = {"catalogRole": {"name": "secretreading"}}
        await app.ok("POST", f"catalogs/{catalog}/catalog-roles", role, root)
        await app.ok("PUT", f"principal-roles/secretrole/catalog-roles/{catalog}", role, root)
    before = await records(found)

    answers = []
    for name in ("secret", "absent"):
        target = route.template
        for parameter, spelled in NAMES.items():
            target = target.replace("{" + parameter + "}", spelled.format(name))
        body: JsonObject = {
            "grant": on_catalog("TABLE_READ_DATA"),
            "principalRole": {"name": f"{name}role"},
            "catalogRole": {"name": f"{name}reading"},
            "currentEntityVersion": 1,
            "properties": {"a": "b"},
        }
        if route.bare_field in body:  # beside it, other fields are refused
            body = {route.bare_field: body[route.bare_field]}
        if target.endswith("/governance"):
            body = {"arco.owner": "ada"}
        if target.endswith("/check"):
            body = {"checks": [on_catalog("TABLE_READ_DATA")]}
        has_body = route.method in ("POST", "PUT") and not route.optional_json
        answers.append(
            await app.manage(route.method, target.removeprefix(f"{MANAGEMENT_PATH}/"), body if has_body else None)
        )
    assert without_names(answers[0]) == without_names(answers[1])
    assert answers[0].status in ((403, 404) if "{" in route.template else (200, 400, 201))
    if answers[0].status == 200:
        assert not reveals(answers[0])
    assert await records(found) == before


@each_case
async def test_no_route_reaches_the_other_realm(first: Realms, case: Case) -> None:
    found = first.copy()
    before = [
        (await found.bob.get(target)).body for target in ("/v1/lake/namespaces", "/v1/lake/namespaces/secretdb/tables")
    ]

    there = replace(
        case,
        target=case.target.replace("lake", "secretlake")
        .replace("/db", "/secretdb")
        .replace("tables/t", "tables/secrettable"),
    )
    answer = await there.send(found.lake, found.mallory)
    assert is_denied(answer), (answer.status, answer.body)
    inside = replace(case, target=case.target.replace("/db", "/secretdb").replace("tables/t", "tables/secrettable"))
    if "secretdb" in inside.target:
        answer = await inside.send(found.lake, found.mallory)
        # A manager of the whole catalog passes the check of grants without a read.
        assert is_denied(answer) or (case.name in LOOKS_AT_NOTHING and case.is_allowed(answer)), answer.body
    for headers in ({"polaris-realm": "b"}, {"polaris-realm": "A"}, {"polaris-realm": ""}, {"polaris-realm": "a,b"}):
        refused = await case.send(found.lake, Client(found.lake.app.app, {**found.mallory.headers, **headers}))
        assert refused.status == 401, (headers, refused.status)
    after = [
        (await found.bob.get(target)).body for target in ("/v1/lake/namespaces", "/v1/lake/namespaces/secretdb/tables")
    ]
    assert before == after


async def test_the_same_name_is_another_catalog_in_another_realm(first: Realms) -> None:
    found = first.copy()
    mine, theirs = await found.mallory.get(NAMESPACES), await found.bob.get(NAMESPACES)
    assert (mine.json["namespaces"], theirs.json["namespaces"]) == ([["db"], ["other"]], [["secretdb"]])


LOCATIONS = ("", "/lake", "/lake/secretdb", "/secretlake", "/lake/new", "/_realm", "/_realm/core", "/new")


@pytest.mark.parametrize("below", LOCATIONS)
async def test_nothing_is_placed_in_the_other_realm(first: Realms, below: str) -> None:
    found = first.copy()
    location = f"memory:///b{below}"
    table = str((await found.bob.get(f"{NAMESPACES}/secretdb/tables/secrettable")).json["metadata-location"])
    written: JsonObject = {"write.data.path": location}
    tries: list[tuple[str, JsonObject]] = [
        (f"{NAMESPACES}/db/tables", {**table_request("n"), "location": location}),
        (f"{NAMESPACES}/db/tables", {**table_request("n"), "properties": written}),
        (
            f"{NAMESPACES}/db/tables/t",
            {"requirements": [], "updates": [{"action": "set-properties", "updates": written}]},
        ),
        (f"{NAMESPACES}/db/register", {"name": "n", "metadata-location": table}),
        (f"{NAMESPACES}/db/register", {"name": "n", "metadata-location": f"{location}/1.metadata.json"}),
        (NAMESPACES, {"namespace": ["n"], "properties": {"location": location}}),
    ]
    for target, body in tries:
        answer = await found.mallory.post(target, body)
        assert answer.status in (400, 403), (body, answer.status, answer.body)
    catalog: JsonObject = {
        "type": "INTERNAL",
        "name": "thief",
        "properties": {"default-base-location": location},
        "storageConfigInfo": {"storageType": "FILE", "allowedLocations": [location]},
    }
    answer = await found.lake.app.manage("POST", "catalogs", {"catalog": catalog})
    assert answer.status == 400, answer.body
    beside: JsonObject = {**catalog, "properties": {"default-base-location": "memory:///a/thief"}}
    answer = await found.lake.app.manage("POST", "catalogs", {"catalog": beside})
    assert answer.status == 400, answer.body


async def test_page_tokens_and_keys_of_one_realm_are_nothing_to_the_other(first: Realms) -> None:
    found = first.copy()
    key = found.lake.app.key()
    for name in ("one", "two"):
        assert (await found.bob.post(NAMESPACES, {"namespace": [name]})).status == 200
    token = str((await found.bob.get(f"{NAMESPACES}?pageSize=1&pageToken=")).json["next-page-token"])
    commit, _, seal = token.partition(".")
    unsealed = base64.urlsafe_b64decode(commit + "=" * (-len(commit) % 4))
    for wrong in (token, commit, f"{commit}.{seal[:-1]}0", base64.urlsafe_b64encode(unsealed).decode()):
        answer = await found.mallory.get(f"{NAMESPACES}?pageSize=1&pageToken={wrong}")
        assert (answer.status, reveals(answer)) == (400, False)

    made = await found.bob.post(NAMESPACES, {"namespace": ["three"]}, idempotency_key=key)
    assert made.status == 200
    again = await found.mallory.post(NAMESPACES, {"namespace": ["three"]}, idempotency_key=key)
    assert (again.status, b"memory:///a/lake/three" in again.body, reveals(again)) == (200, True, False)


async def test_the_ids_of_one_realm_do_not_exist_in_the_other(first: Realms) -> None:
    found = first.copy()
    ids = found.lake.app.ids
    for principal in (ids["b", "root"], "root", "root-b"):
        thief = Client(found.lake.app.app, {"authorization": f"Bearer a/{principal}"})
        assert (await thief.get(NAMESPACES)).status == 401
        assert (await thief.get(f"{MANAGEMENT_PATH}/principals")).status == 401
    for realm in ("A", "", "c", "a ", "../b", "b/../a", "_realm"):
        thief = Client(found.lake.app.app, {"authorization": f"Bearer {realm}/{ids['b', 'root']}"})
        assert (await thief.get(NAMESPACES)).status == 401


async def test_the_management_of_one_realm_shows_nothing_of_the_other(first: Realms) -> None:
    found = first.copy()
    root = found.lake.app.root
    for path in ("catalogs", "principals", "principal-roles", "catalogs/lake/catalog-roles"):
        answer = await root.get(f"{MANAGEMENT_PATH}/{path}")
        assert (answer.status, reveals(answer), b"root-b" in answer.body) == (200, False, False)
    for path in ("catalogs/secretlake", "catalogs/secretlake/catalog-roles"):
        assert (await root.get(f"{MANAGEMENT_PATH}/{path}")).status == 404
