"""Who makes a request: the caller's principal, and the principal roles that its token activates
(docs/design/access.md#the-caller)."""

import pytest

from tests.access.test_budgets import CountedCatalog
from tests.support.realm_service import MANAGEMENT, RealmApp, on_catalog
from tools.support.asgi_client import Client

CALLER = f"{MANAGEMENT}/caller"


@pytest.fixture
async def app() -> RealmApp:
    """A realm in which ada has two roles, one of which reads a catalog, and bob none."""
    made = await RealmApp().start()
    await made.catalog("lake")
    await made.principal("ada", on_catalog("TABLE_READ_DATA"))
    await made.ok("POST", "principal-roles", {"principalRole": {"name": "writers"}})
    await made.ok("PUT", "principals/ada/principal-roles", {"principalRole": {"name": "writers"}})
    await made.principal("bob")
    await made.ok("DELETE", "principals/bob/principal-roles/bob-role")
    return made


async def test_it_is_the_principal_with_its_roles_and_without_any_privilege_too(app: RealmApp) -> None:
    ada, bob, root = [(await app.client(name).get(CALLER)).json for name in ("ada", "bob", "root")]

    assert ada == {"principal": "ada", "principalRoles": ["ada-role", "writers"]}
    assert bob == {"principal": "bob", "principalRoles": []}
    assert root == {"principal": "root", "principalRoles": ["service_admin"]}


async def test_a_role_that_was_revoked_or_dropped_is_gone_with_the_next_request(app: RealmApp) -> None:
    ada = app.client("ada")
    await app.ok("DELETE", "principal-roles/writers")
    assert (await ada.get(CALLER)).json == {"principal": "ada", "principalRoles": ["ada-role"]}

    await app.ok("POST", "principal-roles", {"principalRole": {"name": "writers"}})
    await app.ok("DELETE", "principals/ada/principal-roles/ada-role")
    assert (await ada.get(CALLER)).json == {"principal": "ada", "principalRoles": []}


async def test_a_principal_that_was_dropped_is_none(app: RealmApp) -> None:
    ada = app.client("ada")
    await app.ok("DELETE", "principals/ada")

    assert (await ada.get(CALLER)).status == 401
    assert (await Client(app.app).get(CALLER)).status == 401


async def test_it_costs_one_call() -> None:
    counted = await CountedCatalog().start()
    client = counted.client("reader")
    await counted.cost(client, "GET", CALLER)

    assert await counted.cost(client, "GET", CALLER) == (1, 1)
