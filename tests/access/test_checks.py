"""Checks of privileges: they agree with what requests are allowed, explain themselves, and reveal nothing to those who
may not manage grants (docs/design/access.md#checks)."""

from collections.abc import Sequence

import pytest

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.iceberg.shapes import Fields
from arco_catalog.operations.management import privilege_check
from arco_catalog.planning.held_grants import catalog_roles_of
from arco_catalog.planning.privilege_check import MAX_CHECKS
from arco_catalog.planning.privileges import GRANTABLE, Privilege
from arco_catalog.protocol.lookup import load
from arco_catalog.state.access import State
from arco_catalog.state.index import Index
from arco_catalog.state.needs import Needs, Steps
from arco_catalog.state.roles import grant_key
from tests.access.lake import DB, NAMESPACES, Lake, T
from tests.access.test_budgets import CountedCatalog
from tests.support.realm_service import MANAGEMENT, RealmApp, on_catalog, on_namespace, on_policy, on_table
from tools.support.asgi_client import Answer, Client

CHECK = f"{MANAGEMENT}/catalogs/lake/check"
SYSTEM: JsonObject = {"namespace": ["system"]}
ON_T, ON_DB = on_table("TABLE_READ_DATA", "db", "t"), on_namespace("TABLE_READ_DATA", "db")


async def send(client: Client, *checks: JsonObject, target: str = CHECK) -> Answer:
    listed: list[JsonValue] = [*checks]
    return await client.post(target, {"checks": listed})


async def check(client: Client, *checks: JsonObject) -> Sequence[JsonObject]:
    """The outcomes of checks, which must be answered."""
    answer = await send(client, *checks)
    assert answer.status == 200, answer.body
    results = answer.json["results"]
    assert isinstance(results, list)
    return [each for each in results if isinstance(each, dict)]


def of(principal: str, check: JsonObject) -> JsonObject:
    return {**check, "principal": principal}


@pytest.fixture
def lake(first: Lake) -> Lake:
    return first.copy()


async def test_an_allowed_check_shows_the_roles_and_the_grant(lake: Lake) -> None:
    reader = await lake.app.principal("reader", on_namespace("TABLE_WRITE_DATA", "db"))

    (found,) = await check(reader, ON_T)

    assert found == {
        "allowed": True,
        "principal": "reader",
        "principalRole": "reader-role",
        "catalogRole": "reader-in-lake",
        "grant": {"type": "namespace", "namespace": ["db"], "privilege": "TABLE_WRITE_DATA"},
    }


@pytest.mark.parametrize(
    "grant", [on_catalog("TABLE_DROP"), on_namespace("TABLE_DROP", "db"), on_table("TABLE_DROP", "db", "t")]
)
async def test_the_shown_grant_is_on_what_it_was_made(lake: Lake, grant: JsonObject) -> None:
    (found,) = await check(await lake.app.principal("dropper", grant), on_table("TABLE_DROP", "db", "t"))

    assert (found["allowed"], found["grant"]) == (True, grant)


async def test_a_denied_check_names_what_is_lacking(lake: Lake) -> None:
    reader = await lake.app.principal("reader", ON_T)

    assert await check(reader, ON_T, on_table("TABLE_WRITE_DATA", "db", "t")) == [
        {
            "allowed": True,
            "principal": "reader",
            "principalRole": "reader-role",
            "catalogRole": "reader-in-lake",
            "grant": ON_T,
        },
        {
            "allowed": False,
            "principal": "reader",
            "reason": "Principal reader lacks the privilege TABLE_WRITE_DATA on table db.t",
        },
    ]


async def test_a_grant_on_the_realm_itself_has_no_catalog_role(lake: Lake) -> None:
    (found,) = await check(lake.app.root, on_catalog("CATALOG_DROP"))

    assert found == {
        "allowed": True,
        "principal": "root",
        "principalRole": "service_admin",
        "grant": {"type": "realm", "privilege": "SERVICE_MANAGE_ACCESS"},
    }


def every_check() -> list[JsonObject]:
    """Every privilege on everything of the lake, and on things that are not there."""
    things: list[JsonObject] = [
        on_catalog(""),
        *(on_namespace("", name) for name in ("db", "other", "nowhere")),
        *(on_table("", "db", name) for name in ("t", "g", "m", "v", "nowhere")),
        *(on_policy("", "db", name) for name in ("p", "nowhere")),
        {"type": "view", "namespace": ["db"], "viewName": "v"},
    ]
    return [{**thing, "privilege": privilege} for thing in things for privilege in Privilege]


async def test_a_check_is_allowed_exactly_if_a_grant_explains_it(lake: Lake) -> None:
    grants = (
        on_catalog("TABLE_LIST"),
        on_namespace("NAMESPACE_FULL_METADATA", "db"),
        on_table("TABLE_WRITE_DATA", "db", "t"),
        on_policy("POLICY_WRITE", "db", "p"),
    )
    mixed = await lake.app.principal("mixed", *grants)
    clients = {"mixed": mixed, "root": lake.app.root, "manager": lake.manager}
    checks = every_check()
    for name, client in clients.items():
        own = [
            found for start in range(0, len(checks), 500) for found in await check(client, *checks[start : start + 500])
        ]
        by_root = [
            found
            for start in range(0, len(checks), 500)
            for found in await check(lake.app.root, *(of(name, each) for each in checks[start : start + 500]))
        ]

        assert own == by_root
        assert {each["allowed"] for each in own} == {True, False}
        for each in own:
            assert ("grant" in each, "reason" in each) == (each["allowed"], not each["allowed"]), each


@pytest.mark.parametrize("privileges", [("TABLE_READ_DATA",), ("TABLE_LIST",), ("NAMESPACE_LIST", "TABLE_DROP"), ()])
async def test_a_check_agrees_with_requests(lake: Lake, privileges: Sequence[str]) -> None:
    grants = [on_namespace(each, "db") for each in privileges]
    client = await lake.app.principal("tried", on_catalog("VIEW_LIST"), *grants)
    tried = {
        "NAMESPACE_LIST": ("HEAD", DB, on_namespace("NAMESPACE_LIST", "db")),
        "TABLE_LIST": ("GET", f"{DB}/tables", on_namespace("TABLE_LIST", "db")),
        "TABLE_READ_PROPERTIES": ("GET", T, on_table("TABLE_READ_PROPERTIES", "db", "t")),
        "NAMESPACE_CREATE": ("POST", NAMESPACES, on_catalog("NAMESPACE_CREATE")),
        "TABLE_DROP": ("DELETE", T, on_table("TABLE_DROP", "db", "t")),
    }
    for method, target, wanted in tried.values():
        (found,) = await check(client, wanted)

        if method == "POST":
            answer = await client.post(target, {"namespace": ["new"]})
        else:
            answer = await client.send(method, target)

        assert (answer.status < 300) == found["allowed"], (method, target, answer.body, found)


async def test_a_revocation_holds_for_the_next_check_on_another_server(lake: Lake) -> None:
    await lake.app.principal("reader", ON_T)
    elsewhere = lake.app.client("root", app=lake.app.serve())
    (before,) = await check(elsewhere, of("reader", ON_T))

    await lake.app.revoke("reader", ON_T)

    (after,) = await check(elsewhere, of("reader", ON_T))
    assert (before["allowed"], after["allowed"]) == (True, False)


async def test_a_token_that_activates_fewer_roles_has_fewer_privileges(lake: Lake) -> None:
    await lake.app.principal("reader", ON_T)
    (found,) = await check(lake.app.client("reader"), ON_T)
    assert found["allowed"]
    await lake.app.grant("reader", on_catalog("TABLE_LIST"))
    role: JsonObject = {"principalRole": {"name": "narrow"}}
    await lake.app.ok("POST", "principal-roles", role)
    await lake.app.ok("PUT", "principals/reader/principal-roles", role)
    await lake.app.ok("POST", "catalogs/lake/catalog-roles", {"catalogRole": {"name": "lists"}})
    await lake.app.ok("PUT", "principal-roles/narrow/catalog-roles/lake", {"catalogRole": {"name": "lists"}})
    await lake.app.ok("PUT", "catalogs/lake/catalog-roles/lists/grants", {"grant": on_catalog("TABLE_LIST")})

    narrow = await check(lake.app.client("reader", roles="narrow"), ON_T, on_catalog("TABLE_LIST"))

    assert [each["allowed"] for each in narrow] == [False, True]


class TestReasons:
    """Why what is granted is not allowed."""

    async def test_a_principal_that_must_rotate_may_do_nothing(self, lake: Lake) -> None:
        made: JsonObject = {"principal": {"name": "new"}, "credentialRotationRequired": True}
        await lake.app.ok("POST", "principals", made)
        await lake.app.ok("PUT", "principals/new/principal-roles", {"principalRole": {"name": "service_admin"}})

        (found,) = await check(lake.app.root, of("new", on_catalog("CATALOG_LIST")))

        assert found["allowed"] is False
        assert "must rotate credentials first" in str(found["reason"])

    async def test_the_pipeline_alone_writes_to_its_namespace(self, lake: Lake) -> None:
        creates: JsonObject = {"type": "namespace", "privilege": "TABLE_CREATE", **SYSTEM}

        (found,) = await check(lake.manager, creates)

        assert found["allowed"] is False
        assert str(found["reason"]).startswith("Only the pipeline writes to the namespace system")


class TestOtherPrincipals:
    """A principal may be checked by who manages grants on the securable, and by no other."""

    @pytest.mark.parametrize(
        "grant", [on_catalog("CATALOG_MANAGE_ACCESS"), on_namespace("CATALOG_MANAGE_ACCESS", "db")]
    )
    async def test_a_manager_of_grants_checks_others(self, lake: Lake, grant: JsonObject) -> None:
        await lake.app.principal("reader", ON_T)
        steward = await lake.app.principal("steward", grant)

        (found,) = await check(steward, of("reader", ON_T))

        assert (found["allowed"], found["principal"], found["grant"]) == (True, "reader", ON_T)

    async def test_not_where_it_manages_no_grants(self, lake: Lake) -> None:
        steward = await lake.app.principal("steward", on_table("CATALOG_MANAGE_ACCESS", "db", "t"))
        (found,) = await check(steward, of("root", ON_T))
        assert not found["allowed"]

        refused = [
            await send(steward, of("root", ON_T), of("root", elsewhere))
            for elsewhere in (ON_DB, on_table("TABLE_DROP", "db", "u"), on_table("TABLE_DROP", "db", "nowhere"))
        ]

        assert [(each.status, each.error_type) for each in refused] == [(403, "NotAuthorizedException")] * 3
        assert refused[1].message.replace("db.u", "db.nowhere") == refused[2].message

    async def test_whether_a_principal_exists_is_not_revealed(self, lake: Lake) -> None:
        await lake.app.principal("idle")
        steward = await lake.app.principal("steward", on_catalog("CATALOG_MANAGE_ACCESS"))

        idle, nowhere = await check(steward, of("idle", ON_T), of("nowhere", ON_T))

        assert {**idle, "principal": "nowhere", "reason": str(idle["reason"]).replace("idle", "nowhere")} == nowhere

    async def test_a_name_of_its_own_is_no_exception(self, lake: Lake) -> None:
        reader = await lake.app.principal("reader", ON_T)

        assert (await send(reader, of("reader", ON_T))).status == 403


class TestStrangers:
    """Those without a privilege in the catalog learn nothing."""

    async def test_the_answer_is_that_of_a_catalog_that_does_not_exist(self, lake: Lake) -> None:
        stranger = await lake.app.principal("stranger")
        elsewhere = f"{MANAGEMENT}/catalogs/nowhere/check"

        for body in (ON_T, on_table("TABLE_DROP", "db", "nowhere"), of("root", ON_T)):
            there, missing = await send(stranger, body), await send(stranger, body, target=elsewhere)
            assert (there.status, missing.status) == (403, 403)
            assert there.message.replace("lake", "nowhere") == missing.message

    async def test_a_wrong_body_does_not_tell_whether_there_is_such_a_catalog(self, lake: Lake) -> None:
        stranger = await lake.app.principal("stranger")
        wrong = on_catalog("EVERYTHING")

        answers = [
            await send(stranger, wrong, target=f"{MANAGEMENT}/catalogs/{name}/check") for name in ("lake", "nowhere")
        ]

        assert {(each.status, each.body) for each in answers} == {(400, answers[0].body)}

    async def test_a_hidden_object_looks_like_a_missing_one(self, lake: Lake) -> None:
        reader = await lake.app.principal("reader", ON_T)

        hidden, missing = await check(
            reader, on_table("TABLE_READ_DATA", "db", "u"), on_table("TABLE_READ_DATA", "db", "w")
        )

        assert {**hidden, "reason": str(hidden["reason"]).replace("db.u", "db.w")} == missing


class TestBodies:
    @pytest.mark.parametrize(
        "wrong",
        [
            {},
            {"type": "realm", "privilege": "CATALOG_LIST"},
            {"type": "catalog", "privilege": "EVERYTHING"},
            {"type": "namespace", "privilege": "TABLE_LIST"},
            {"type": "table", "privilege": "TABLE_LIST", "namespace": ["db"]},
            {"type": "table", "privilege": "TABLE_LIST", "namespace": [], "tableName": "t"},
            {**on_catalog("CATALOG_LIST"), "principal": ""},
            {**on_catalog("CATALOG_LIST"), "principal": 1},
        ],
    )
    async def test_what_is_no_check_is_refused_with_its_place(self, lake: Lake, wrong: JsonObject) -> None:
        answer = await send(lake.app.root, on_catalog("CATALOG_LIST"), wrong)

        assert (answer.status, answer.error_type) == (400, "BadRequestException")
        assert "request.checks[1]" in answer.message

    async def test_a_thousand_checks_are_answered_and_one_more_is_refused(self, lake: Lake) -> None:
        assert len(await check(lake.app.root, *([ON_T] * MAX_CHECKS))) == MAX_CHECKS

        answer = await send(lake.app.root, *([ON_T] * (MAX_CHECKS + 1)))

        assert (answer.status, answer.error_type) == (400, "BadRequestException")
        assert "there may be 1,000 at most" in answer.message

    async def test_no_checks_have_no_outcomes(self, lake: Lake) -> None:
        assert await check(lake.app.root) == []

    async def test_every_privilege_that_can_be_granted_can_be_checked(self, lake: Lake) -> None:
        for kind, on in (("catalog", on_catalog), ("namespace", lambda each: on_namespace(each, "db"))):
            found = await check(lake.app.root, *map(on, sorted(GRANTABLE[kind])))
            assert len(found) == len(GRANTABLE[kind])


async def test_a_batch_costs_the_two_calls_of_one_check() -> None:
    counted = await CountedCatalog().start()
    reader, root = counted.client("reader"), counted.app.client("root", app=counted.app.serve())
    many: list[JsonValue] = [on_table("TABLE_READ_DATA", "db", f"t{number}") for number in range(MAX_CHECKS)]
    others: list[JsonValue] = [of(f"p{number % 7}", ON_T) for number in range(MAX_CHECKS - 1)]
    batches: list[tuple[Client, list[JsonValue]]] = [(reader, [ON_T]), (reader, many)]
    for client, checks in (*batches, (root, [*others, of("reader", ON_T)])):
        await counted.cost(client, "POST", CHECK, {"checks": checks})
        assert await counted.cost(client, "POST", CHECK, {"checks": checks}) == (1, 2)


async def test_a_batch_looks_up_the_grants_around_its_securables_once(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a batch of deep names holds up the requests of all others, the longer the more roles its caller has."""
    granter = await lake.app.principal("granter", on_catalog("CATALOG_MANAGE_ACCESS"))
    keys: list[str] = []

    def counted(securable: str, role: str) -> str:
        keys.append(securable)
        return grant_key(securable, role)

    monkeypatch.setattr("arco_catalog.planning.held_grants.grant_key", counted)
    found = await check(granter, *(of(f"p{n}", on_table("TABLE_DROP", "db", f"t{n}")) for n in range(100)))

    assert {each["allowed"] for each in found} == {False}
    assert 2 <= len(keys) < 20


async def test_a_batch_rests_on_one_head_of_the_realm(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    await lake.app.principal("reader", ON_T)

    async def revoke_meanwhile(state: State, index: Index, needs: Needs) -> None:
        monkeypatch.setattr(privilege_check, "load", load)
        await load(state, index, needs)
        role = f"{MANAGEMENT}/principals/reader/principal-roles/reader-role"
        assert (await lake.app.root.delete(role)).status == 204

    monkeypatch.setattr(privilege_check, "load", revoke_meanwhile)

    assert [each["allowed"] for each in await check(lake.app.root, of("reader", ON_T))] == [True]
    assert [each["allowed"] for each in await check(lake.app.root, of("reader", ON_T))] == [False]


async def test_a_batch_is_parsed_once_and_reads_the_roles_of_each_principal_once(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A principal may have dozens of roles, and each role of the realm dozens in the catalog."""
    granter = await lake.app.principal("granter", on_catalog("CATALOG_MANAGE_ACCESS"))
    await lake.app.principal("reader", on_namespace("TABLE_LIST", "db"))
    found_for: list[Sequence[str]] = []
    parsed: list[object] = []

    def roles_of(index: Index, principal_roles: Sequence[str]) -> Steps[Sequence[str]]:
        found_for.append(principal_roles)
        return catalog_roles_of(index, principal_roles)

    def fields_of(value: JsonObject, at: str) -> Fields:
        parsed.append(at)
        return Fields(value, at)

    monkeypatch.setattr("arco_catalog.planning.held_grants.catalog_roles_of", roles_of)
    monkeypatch.setattr("arco_catalog.http.management.bodies.Fields", fields_of)
    own = [on_table("TABLE_LIST", "db", f"t{n}") for n in range(50)]
    found = await check(granter, *own, *(of("reader", each) for each in own))

    assert [each["allowed"] for each in found] == [False] * 50 + [True] * 50
    assert len(found_for) <= 3  # of the request itself, and of the two principals
    assert len(parsed) == len(found)


async def test_each_realm_checks_its_own_principals() -> None:
    app = RealmApp(names=("a", "b"))
    lake = await Lake(app).start()
    await app.principal("reader", ON_T)
    other = app.client("root", "b")
    await app.catalog("lake", other, app.base("lake", "b"))

    (ours,) = await check(lake.app.root, of("reader", ON_T))
    (theirs,) = await check(other, of("reader", ON_T))

    assert (ours["allowed"], theirs["allowed"]) == (True, False)
