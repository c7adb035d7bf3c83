"""What is stored of grants, and what each route states that it requires."""

from arco_catalog.http.management.routes import MANAGEMENT, TOKENS
from arco_catalog.http.routes import HEALTH, ROUTES
from arco_catalog.state.roles import GrantEntry, RoleEntry, grant_edits, grant_key, granted_key, usage_edits

ROLE = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


def grant(*privileges: str) -> GrantEntry:
    return GrantEntry.new(securable="T", kind="table", namespace=("db",), name="t", privileges=privileges)


def test_a_grant_is_stored_from_both_sides_and_ends_on_both() -> None:
    made = grant_edits(ROLE, grant("TABLE_READ_DATA"))
    assert set(made) == {grant_key("T", ROLE), granted_key(ROLE, "T")}
    assert all(entry is not None and entry["privileges"] == ["TABLE_READ_DATA"] for entry in made.values())

    assert grant_edits(ROLE, grant()) == dict.fromkeys(made)


def test_the_use_of_a_role_is_stored_from_both_sides_and_ends_on_both() -> None:
    of = RoleEntry.new(entity="P", name="people", properties={}, at_ms=0)
    to = RoleEntry.new(entity="C", name="reading", properties={}, at_ms=0)
    made = usage_edits(of, to)
    assert [entry and entry["name"] for entry in made.values()] == ["reading", "people"]

    assert usage_edits(of, to, used=False) == dict.fromkeys(made)


def test_every_route_states_what_it_requires_or_is_for_everybody() -> None:
    routes = (*HEALTH, *ROUTES, TOKENS, *MANAGEMENT)
    assert len(routes) > 60
    assert [route.endpoint for route in routes if (route.requires is None) is not route.public] == []
    assert {route.template for route in routes if route.public} == {"/health", "/openapi.json", "/v1/oauth/tokens"}
