"""What the management API answers, beyond its specification: as Polaris's own tests of its service expect it."""

from dataclasses import replace
from typing import Any
from urllib.parse import quote

import pytest

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonObject, dumps
from arco_catalog.operations.management.catalogs import check_storage_change
from arco_catalog.protocol.catalog import Settings
from storage_backends.memory import MemoryStore
from tests.support.realm_service import RealmApp, on_catalog, on_namespace, on_table, table_request
from tools.support.asgi_client import Answer

BAD_NAMES = ["a" * 257, "", "system$catalog1", "SYSTEM$TestCatalog", "System$test_catalog", "  SysTeM$ test catalog"]
AWS: JsonObject = {"storageType": "S3", "roleArn": "arn:aws:iam::123456789011:role/role1", "externalId": "e"}


async def realm() -> RealmApp:
    app = await RealmApp().start()
    await app.catalog()
    return app


def catalog_body(name: str, base: str | None = None, storage: JsonObject | None = None) -> JsonObject:
    base = base or f"memory:///{name}"
    return {
        "type": "INTERNAL",
        "name": name,
        "properties": {"default-base-location": base},
        "storageConfigInfo": storage or {"storageType": "FILE"},
    }


async def create_catalog(app: RealmApp, body: JsonObject) -> Answer:
    return await app.manage("POST", "catalogs", {"catalog": body})


@pytest.mark.parametrize("name", BAD_NAMES)
async def test_a_name_that_nothing_may_have_is_refused(name: str) -> None:
    app = await realm()
    bodies: list[tuple[str, JsonObject]] = [
        ("catalogs", {"catalog": catalog_body(name, "memory:///other")}),
        ("principals", {"principal": {"name": name}}),
        ("principal-roles", {"principalRole": {"name": name}}),
        ("catalogs/lake/catalog-roles", {"catalogRole": {"name": name}}),
    ]
    for path, body in bodies:
        answer = await app.manage("POST", path, body)

        assert (answer.status, answer.message.startswith("Invalid value: ")) == (400, True), path


@pytest.mark.parametrize(
    ("path", "created"),
    [
        ("principals", {"principal": {"name": "some"}}),
        ("principal-roles", {"principalRole": {"name": "some"}}),
        ("catalogs/lake/catalog-roles", {"catalogRole": {"name": "some"}}),
    ],
)
async def test_an_entity_is_created_listed_updated_and_deleted(path: str, created: JsonObject) -> None:
    app = await realm()
    ((kind, entity),) = created.items()
    assert isinstance(entity, dict)
    body: JsonObject = {kind: {**entity, "properties": {"custom-tag": "foo"}}}
    assert (await app.manage("POST", path, body)).status == 201
    again = await app.manage("POST", path, body)
    assert (again.status, again.error_type) == (409, "AlreadyExistsException")

    got = await app.ok("GET", f"{path}/some")
    assert got["properties"] == {"custom-tag": "foo"}
    (listing,) = (await app.ok("GET", path)).values()
    assert isinstance(listing, list)
    assert got in listing

    version = got["entityVersion"]
    change: JsonObject = {"currentEntityVersion": version, "properties": {"custom-tag": "updated"}}
    changed = await app.ok("PUT", f"{path}/some", change)
    assert changed["properties"] == {"custom-tag": "updated"}
    assert await app.ok("GET", f"{path}/some") == changed
    stale = await app.manage("PUT", f"{path}/some", change)
    assert (stale.status, stale.error_type) == (409, "CommitFailedException")

    assert (await app.manage("DELETE", f"{path}/some")).status == 204
    for method in ("GET", "DELETE"):
        assert (await app.manage(method, f"{path}/some")).status == 404


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("principals", "principal"),
        ("principal-roles", "principalRole"),
        ("catalogs/lake/catalog-roles", "catalogRole"),
    ],
)
async def test_reserved_properties_are_refused(path: str, kind: str) -> None:
    app = await realm()
    reserved: JsonObject = {"polaris.reserved": "true"}
    bad = await app.manage("POST", path, {kind: {"name": "some", "properties": reserved}})
    assert (bad.status, "polaris.reserved" in bad.message) == (400, True)
    await app.ok("POST", path, {kind: {"name": "some", "properties": {"not.reserved": "true"}}})

    update = await app.manage("PUT", f"{path}/some", {"currentEntityVersion": 1, "properties": reserved})

    assert update.status == 400


async def test_settings_of_polaris_are_kept_with_a_catalog() -> None:
    app = await realm()
    setting = {"default-base-location": "memory:///new", "polaris.config.drop-with-purge.enabled": "true"}
    made = await create_catalog(app, {**catalog_body("new"), "properties": {**setting}})
    assert (made.status, made.json["properties"]) == (201, setting)
    bad = await create_catalog(app, {**catalog_body("x"), "properties": {**setting, "polaris.x": ""}})
    assert bad.status == 400


@pytest.mark.parametrize("lacking", ["properties", "storageConfigInfo", "name"])
async def test_a_catalog_needs_what_is_required(lacking: str) -> None:
    app = await realm()
    body = {name: value for name, value in catalog_body("new").items() if name != lacking}

    answer = await create_catalog(app, body)

    assert (answer.status, lacking in answer.message) == (400, True)


@pytest.mark.parametrize("properties", [{}, {"default-base-location": None}, {"default-base-location": ""}])
async def test_a_catalog_needs_a_base_location(properties: JsonObject) -> None:
    app = await realm()

    assert (await create_catalog(app, {**catalog_body("new"), "properties": properties})).status == 400


async def test_a_storage_configuration_is_shown_without_fields_that_are_null() -> None:
    app = await realm()

    made = await create_catalog(app, catalog_body("new", storage={"storageType": "FILE", "storageName": None}))

    assert made.json["storageConfigInfo"] == {"storageType": "FILE", "allowedLocations": ["memory:///new"]}


async def test_the_base_location_of_a_catalog_is_among_the_allowed_ones_and_stays_there() -> None:
    app = await realm()
    made = await create_catalog(app, catalog_body("new"))
    assert made.json["storageConfigInfo"] == {"storageType": "FILE", "allowedLocations": ["memory:///new"]}

    kept = await app.ok("PUT", "catalogs/new", {"currentEntityVersion": 1, "properties": {"foo": "bar"}})
    assert kept["properties"] == {"default-base-location": "memory:///new", "foo": "bar"}
    moved: JsonObject = {"currentEntityVersion": 2, "properties": {"default-base-location": "memory:///newer"}}
    changed = await app.ok("PUT", "catalogs/new", moved)

    storage = changed["storageConfigInfo"]
    assert isinstance(storage, dict)
    assert storage["allowedLocations"] == ["memory:///newer", "memory:///new"]


def test_a_catalog_stays_in_its_account() -> None:
    check_storage_change(AWS, {**AWS, "roleArn": "arn:aws:iam::123456789011:role/other", "region": "eu-west-1"})
    refused: list[tuple[JsonObject, str]] = [
        ({"roleArn": "arn:aws:iam::999999999999:role/role1"}, "Cannot modify AWS account ID"),
        ({"roleArn": None}, "Cannot modify AWS account ID"),
        ({"externalId": "other"}, "Cannot modify ExternalId"),
        ({"storageType": "GCS"}, "Cannot modify storage type"),
    ]
    for change, message in refused:
        with pytest.raises(BadRequest, match=message):
            check_storage_change(AWS, {**AWS, **change})
        if message != "Cannot modify storage type":
            check_storage_change(AWS, {**AWS, **change}, account_may_change=True)
    with pytest.raises(BadRequest, match="Cannot modify storage type"):
        check_storage_change(AWS, {**AWS, "storageType": "GCS"}, account_may_change=True)
    azure: JsonObject = {"storageType": "AZURE", "tenantId": "12345"}
    with pytest.raises(BadRequest, match="Cannot modify TenantId"):
        check_storage_change(azure, {**azure, "tenantId": "22222"})


async def test_the_storage_type_of_a_catalog_cannot_be_changed() -> None:
    app = await realm()

    answer = await app.manage("PUT", "catalogs/lake", {"currentEntityVersion": 1, "storageConfigInfo": AWS})

    assert (answer.status, answer.message.startswith("Cannot modify storage type")) == (400, True)


@pytest.mark.parametrize("base", ["memory:///lake", "memory:///lake/inside", "memory:///"])
async def test_catalogs_do_not_overlap_unless_that_is_allowed(base: str) -> None:
    app = await realm()
    answer = await create_catalog(app, catalog_body("other", base))
    assert answer.status == 400
    of_tables = await RealmApp(settings=Settings("-", allow_location_overlap=True)).start()
    await of_tables.catalog()
    assert (await create_catalog(of_tables, catalog_body("other", base))).status == 400
    lenient = await RealmApp(settings=Settings("-", allow_catalog_overlap=True)).start()
    await lenient.catalog()
    if base != "memory:///":  # where the realm's own state lies
        assert (await create_catalog(lenient, catalog_body("other", base))).status == 201


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"settings": Settings("-", allow_catalog_overlap=True)}, {"settings": Settings("-")}),
        ({}, {"url": "memory:///now"}),
    ],
    ids=["overlap", "allowed"],
)
async def test_a_catalog_whose_locations_are_no_longer_allowed_can_still_change_other_properties(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    app = await RealmApp(**before).start()
    base: JsonObject = {"default-base-location": "memory:///now/lake"}
    storage: JsonObject = {"storageType": "FILE", "allowedLocations": ["memory:///former"]}
    await app.catalog(base="memory:///now/lake", storage=storage)
    if before:
        await app.catalog("other", base="memory:///now/lake/inside")
    later = replace(app, **after)
    later.ids, later.clear, later.app = app.ids, app.clear, later.serve()
    later.root = later.client("root")

    changed: JsonObject = {"currentEntityVersion": 1, "properties": {**base, "owner": "me"}}
    assert (await later.manage("PUT", "catalogs/lake", changed)).status == 200
    moved: JsonObject = {"storageType": "FILE", "allowedLocations": ["memory:///now/lake/inside/x", "memory:///other"]}
    refused = await later.manage("PUT", "catalogs/lake", {"currentEntityVersion": 2, "storageConfigInfo": moved})

    assert refused.status == 400, refused.body


async def test_only_a_principal_itself_rotates_its_credentials() -> None:
    app = await realm()
    made = await app.ok("POST", "principals", {"principal": {"name": "p"}, "credentialRotationRequired": True})
    credentials = made["credentials"]
    assert isinstance(credentials, dict)
    await app.adopt("p")
    itself = app.client("p")
    assert (await app.manage("POST", "principals/p/rotate")).status == 403
    first = await app.manage("GET", "principals/p", client=itself)
    assert (first.status, "must rotate credentials first" in first.message) == (403, True)

    rotated = (await app.ok("POST", "principals/p/rotate", client=itself))["credentials"]

    assert isinstance(rotated, dict)
    assert rotated["clientId"] == credentials["clientId"]
    assert rotated["clientSecret"] != credentials["clientSecret"]


async def test_no_cache_keeps_an_answer_with_a_secret() -> None:
    app = await realm()
    made = await app.manage("POST", "principals", {"principal": {"name": "p"}})
    await app.adopt("p")
    rotated = await app.manage("POST", "principals/p/rotate", client=app.client("p"))
    reset = await app.manage("POST", "principals/p/reset")

    answers = [(each.status, each.headers["Cache-Control"]) for each in (made, rotated, reset)]
    assert answers == [(201, "no-store"), (200, "no-store"), (200, "no-store")]


async def test_credentials_are_reset_to_chosen_ones_by_who_manages_the_realm() -> None:
    app = await realm()
    p, other = await app.principal("p"), await app.principal("other")
    chosen: JsonObject = {"clientId": "f174b76a7e1a99e2", "clientSecret": "27029d236abc08e204922b0a07031bc2"}

    assert (await app.ok("POST", "principals/p/reset", chosen))["credentials"] == chosen

    assert (await app.ok("GET", "principals/p"))["clientId"] == chosen["clientId"]
    assert (await app.manage("POST", "principals/p/reset", chosen, p)).status == 403
    assert (await app.manage("POST", "principals/p/reset", chosen, other)).status == 403
    assert (await app.manage("POST", "principals/other/reset", chosen)).status == 409


async def test_a_grant_is_given_once() -> None:
    app = await realm()
    await app.ok("POST", "catalogs/lake/catalog-roles", {"catalogRole": {"name": "cr"}})
    grants = "catalogs/lake/catalog-roles/cr/grants"
    for _ in range(2):
        assert (await app.manage("PUT", grants, {"grant": on_catalog("TABLE_WRITE_DATA")})).status == 201

    assert await app.ok("GET", grants) == {"grants": [on_catalog("TABLE_WRITE_DATA")]}


async def test_a_grant_on_what_does_not_exist_is_refused() -> None:
    app = await realm()
    await app.ok("POST", "catalogs/lake/catalog-roles", {"catalogRole": {"name": "cr"}})
    cases = {
        "NoSuchNamespaceException": on_namespace("TABLE_LIST", "a", "b"),
        "NoSuchTableException": on_table("TABLE_DROP", "a", "t"),
    }
    for method in ("PUT", "POST"):
        for error_type, grant in cases.items():
            answer = await app.manage(method, "catalogs/lake/catalog-roles/cr/grants", {"grant": grant})

            assert (answer.status, answer.error_type) == (404, error_type)


async def test_a_catalog_admin_hands_out_catalog_roles_of_its_own_catalog_alone() -> None:
    app = await realm()
    await app.catalog("other")
    admin = await app.principal("admin")
    await app.principal("second")
    await app.ok("PUT", "principal-roles/admin-role/catalog-roles/lake", {"catalogRole": {"name": "catalog_admin"}})
    role: JsonObject = {"catalogRole": {"name": "cr"}}
    await app.ok("POST", "catalogs/lake/catalog-roles", role, admin)
    await app.ok("POST", "catalogs/other/catalog-roles", role)

    for by in (admin, None):
        await app.ok("PUT", "principal-roles/second-role/catalog-roles/lake", role, admin)
        await app.ok("DELETE", "principal-roles/second-role/catalog-roles/lake/cr", client=by)

    gone = await app.manage("DELETE", "principal-roles/second-role/catalog-roles/lake/cr")
    assert (gone.status, gone.error_type) == (400, "BadRequestException")
    assert "Operation failed: GRANT_NOT_FOUND" in gone.message
    wrong = await app.manage("PUT", "principal-roles/second-role/catalog-roles/other", role, admin)
    assert wrong.status == 403


async def test_a_service_admin_hands_over_a_catalog() -> None:
    app = await realm()
    admin = await app.principal("admin")
    role: JsonObject = {"catalogRole": {"name": "catalog_admin"}}
    await app.ok("PUT", "principal-roles/admin-role/catalog-roles/lake", role)

    await app.ok("DELETE", "principal-roles/service_admin/catalog-roles/lake/catalog_admin")

    denied = await app.manage("DELETE", "principal-roles/admin-role/catalog-roles/lake/catalog_admin")
    assert denied.status == 403
    await app.ok("PUT", "principal-roles/service_admin/catalog-roles/lake", role, admin)
    await app.ok("DELETE", "principal-roles/admin-role/catalog-roles/lake/catalog_admin")


async def test_who_manages_the_access_to_a_namespace_grants_there_and_nowhere_else() -> None:
    app = await realm()
    await app.catalog("other")
    content = await app.principal("content", on_catalog("CATALOG_MANAGE_CONTENT"))
    await app.grant("content", on_catalog("CATALOG_MANAGE_CONTENT"), catalog="other")
    for catalog in ("lake", "other"):
        for name in ("c", "d"):
            assert (await content.post(f"/v1/{catalog}/namespaces", {"namespace": [name]})).status == 200
        await app.ok("POST", f"catalogs/{catalog}/catalog-roles", {"catalogRole": {"name": "target"}})
    assert (await content.post("/v1/lake/namespaces/c/tables", table_request("t"))).status == 200
    manager = await app.principal("manager", on_namespace("CATALOG_MANAGE_ACCESS", "c"))

    async def granting(grant: JsonObject, catalog: str = "lake") -> int:
        path = f"catalogs/{catalog}/catalog-roles/target/grants"
        return (await app.manage("PUT", path, {"grant": grant}, manager)).status

    assert await granting(on_namespace("TABLE_CREATE", "c")) == 201
    assert await granting(on_table("TABLE_READ_DATA", "c", "t")) == 201
    assert await granting(on_table("TABLE_READ_DATA", "c", "missing")) == 404
    assert await granting(on_catalog("TABLE_CREATE")) == 403
    for hidden in ("d", "missing"):
        assert await granting(on_namespace("TABLE_CREATE", hidden)) == 403
        assert await granting(on_table("TABLE_DROP", hidden, "t")) == 403
    assert await granting(on_namespace("TABLE_CREATE", "c"), "other") == 403
    assert await granting(on_catalog("TABLE_CREATE"), "other") == 403
    role: JsonObject = {"catalogRole": {"name": "target"}}
    assert (await app.manage("PUT", "principal-roles/manager-role/catalog-roles/lake", role, manager)).status == 403
    revoking: JsonObject = {"grant": on_namespace("TABLE_CREATE", "c")}
    assert (await app.manage("POST", "catalogs/lake/catalog-roles/target/grants", revoking, manager)).status == 403


async def test_what_holds_a_realm_together_stays() -> None:
    app = await realm()
    for path in (
        "principals/root",
        "principal-roles/service_admin",
        "catalogs/lake/catalog-roles/catalog_admin",
        "principals/root/principal-roles/service_admin",
    ):
        assert (await app.manage("DELETE", path)).status == 400, path


async def test_a_policy_is_missing_only_to_who_could_grant_it() -> None:
    app = await realm()
    content = await app.principal("content", on_catalog("CATALOG_MANAGE_CONTENT"))
    assert (await content.post("/v1/lake/namespaces", {"namespace": ["c"]})).status == 200
    grant: JsonObject = {"type": "policy", "namespace": ["c"], "policyName": "p", "privilege": "POLICY_READ"}
    path = "catalogs/lake/catalog-roles/content-in-lake/grants"

    assert (await app.manage("PUT", path, {"grant": grant}, content)).status == 403
    missing = await app.manage("PUT", path, {"grant": grant})
    assert (missing.status, missing.message) == (404, "Policy does not exist: c.p")


async def test_a_key_makes_no_second_answer_of_the_first_and_stores_no_secret() -> None:
    store = MemoryStore()
    app = await RealmApp(store=store).start()
    key = {"idempotency-key": "019b76da-a800-7000-8000-000000000001", "content-type": "application/json"}
    body = dumps({"principal": {"name": "ada"}})

    answers = [await app.root.send("POST", "/api/management/v1/principals", body, {**key}) for _ in range(2)]
    reset = [await app.manage("POST", "principals/ada/reset", {}) for _ in range(2)]

    assert [answer.status for answer in answers] == [201, 409]
    assert [answer.status for answer in reset] == [200, 200]
    assert [name for name in [*store.keys()] if "idempotency" in name] == []


async def test_the_refusal_of_a_location_names_the_allowed_ones_and_how_to_allow_others() -> None:
    app = await realm()
    manager = await app.principal("manager", on_catalog("CATALOG_MANAGE_CONTENT"))
    assert (await manager.post("/v1/lake/namespaces", {"namespace": ["db"]})).status == 200

    refused = await manager.post(
        "/v1/lake/namespaces/db/tables", {**table_request("t"), "location": "memory:///other/t"}
    )

    assert (refused.status, refused.message) == (
        400,
        "Location memory:///other/t is outside the allowed locations: memory:///lake. "
        "To allow others, change allowedLocations of the catalog",
    )


@pytest.mark.parametrize("kind", ["catalogs", "principals", "principal-roles", "catalogs/lake/catalog-roles"])
@pytest.mark.parametrize("name", [name for name in BAD_NAMES if name])
async def test_a_path_that_names_what_nothing_is_called_is_refused(kind: str, name: str) -> None:
    app = await realm()
    stranger = await app.principal("stranger")

    answers = [await app.manage("GET", f"{kind}/{quote(name)}", client=client) for client in (app.root, stranger)]

    for answer in answers:
        assert (answer.status, answer.error_type) == (400, "BadRequestException")
        assert "Invalid value:" in answer.message


@pytest.mark.parametrize("path", ["principals/another/principal-roles/some", "catalogs/lake/catalog-roles/some/grants"])
async def test_what_was_not_given_can_not_be_taken_away(path: str) -> None:
    app = await realm()
    await app.ok("POST", "principals", {"principal": {"name": "another"}})
    await app.ok("POST", "principal-roles", {"principalRole": {"name": "some"}})
    await app.ok("POST", "catalogs/lake/catalog-roles", {"catalogRole": {"name": "some"}})
    grants = path.endswith("/grants")

    taken = await app.manage(
        "POST" if grants else "DELETE", path, {"grant": on_catalog("TABLE_LIST")} if grants else None
    )

    assert (taken.status, taken.error_type) == (400, "BadRequestException")
    assert taken.message.startswith("Operation failed: GRANT_NOT_FOUND: ")
