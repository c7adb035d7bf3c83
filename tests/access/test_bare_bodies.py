"""The management API reads a body whose value is wrapped in a field, as its specification has it, and one that is the
value itself, as Polaris's Java client sends it."""

import pytest

from arco_catalog.http.management.routes import SPECIFIED
from arco_catalog.iceberg.json import JsonObject
from tests.support.realm_service import RealmApp, on_catalog, on_namespace

ROLES = "catalogs/lake/catalog-roles"
NEW_CATALOG: JsonObject = {
    "type": "INTERNAL",
    "name": "new",
    "properties": {"default-base-location": "memory:///new"},
    "storageConfigInfo": {"storageType": "FILE"},
}
BODIES: list[tuple[str, str, str, JsonObject]] = [
    ("POST", "catalogs", "catalog", NEW_CATALOG),
    ("POST", "principals", "principal", {"name": "new", "properties": {"a": "b"}}),
    ("POST", "principal-roles", "principalRole", {"name": "new", "federated": True}),
    ("PUT", "principals/p/principal-roles", "principalRole", {"name": "pr"}),
    ("POST", ROLES, "catalogRole", {"name": "new"}),
    ("PUT", "principal-roles/pr/catalog-roles/lake", "catalogRole", {"name": "cr"}),
    ("PUT", f"{ROLES}/cr/grants", "grant", on_namespace("TABLE_LIST", "db")),
    ("POST", f"{ROLES}/cr/grants", "grant", on_catalog("TABLE_WRITE_DATA")),
]
"""Method, path, field and value of each operation that takes both forms."""


async def realm() -> RealmApp:
    app = await RealmApp().start()
    await app.catalog()
    await app.ok("POST", "principals", {"principal": {"name": "p"}})
    await app.ok("POST", "principal-roles", {"principalRole": {"name": "pr"}})
    await app.ok("POST", ROLES, {"catalogRole": {"name": "cr"}})
    await app.ok("PUT", f"{ROLES}/cr/grants", {"grant": on_catalog("TABLE_WRITE_DATA")})
    await app.root.post("/v1/lake/namespaces", {"namespace": ["db"]})
    return app


async def contents(app: RealmApp) -> list[JsonObject]:
    """All that the realm lists."""
    paths = ("catalogs", "principal-roles", "principals/p/principal-roles", ROLES)
    grants = (f"{ROLES}/cr/grants", "principal-roles/pr/catalog-roles/lake")
    return [await app.ok("GET", path) for path in (*paths, *grants)]


@pytest.mark.parametrize(("method", "path", "field", "value"), BODIES)
async def test_both_forms_of_a_body_do_the_same(method: str, path: str, field: str, value: JsonObject) -> None:
    wrapped, bare = await realm(), await realm()

    answers = [await wrapped.manage(method, path, {field: value}), await bare.manage(method, path, value)]

    assert [answer.status for answer in answers] == [201, 201], answers[1].body
    assert await contents(wrapped) == await contents(bare)


@pytest.mark.parametrize(("method", "path", "field", "value"), BODIES)
async def test_a_mixture_of_both_forms_is_refused(method: str, path: str, field: str, value: JsonObject) -> None:
    app = await realm()
    before = await contents(app)

    answer = await app.manage(method, path, {field: value, **value})

    assert (answer.status, answer.error_type) == (400, "BadRequestException")
    assert f"must be inside '{field}', not beside it" in answer.message
    assert await contents(app) == before


@pytest.mark.parametrize(("method", "path", "field", "value"), BODIES)
async def test_a_body_of_neither_form_is_refused_with_the_name_of_the_field(
    method: str, path: str, field: str, value: JsonObject
) -> None:
    app = await realm()
    bodies: list[JsonObject] = [{}, {field: None}, {"unknown": 1}]
    for body in bodies:
        answer = await app.manage(method, path, body)

        assert (answer.status, f"'{field}'" in answer.message) == (400, True), body


async def test_null_is_no_value_of_either_form() -> None:
    app = await realm()

    assert (await app.manage("POST", "principals", {"principal": None, "name": "bare"})).status == 201
    assert (await app.manage("POST", "principals", {"principal": {"name": "wrapped"}, "name": None})).status == 201


async def test_a_bare_principal_cannot_require_the_rotation_of_its_credentials() -> None:
    app = await realm()

    answer = await app.manage("POST", "principals", {"name": "new", "credentialRotationRequired": True})

    assert answer.status == 400
    assert "with 'credentialRotationRequired', 'name' must be inside 'principal'" in answer.message


async def test_the_refusal_of_a_bare_body_names_the_wrong_field() -> None:
    app = await realm()

    nameless = await app.manage("POST", "principals", {"properties": {}})
    listed = await app.manage("POST", "principals", {"name": ["p"]})

    assert nameless.message == "Invalid request: missing required field 'name'"
    assert listed.message == "Invalid request.name: expected a string, found an array"


def test_these_are_all_the_operations_whose_body_may_be_bare() -> None:
    assert sorted(field for _, _, field, _ in BODIES) == sorted(
        route.bare_field for route in SPECIFIED if route.bare_field
    )
