"""Each row of the tables of differences from Polaris (docs/design/polaris.md), as this catalog answers. A row without a
check and a check without a row are errors, so the tables say what the catalog does."""

import ast
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from arco_catalog.http.routes import ROUTES
from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps
from tests.support.realm_service import RealmApp, on_catalog
from tools.support.asgi_client import Answer
from tools.support.request_bodies import schema, set_property, view_request

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/design/polaris.md").read_text()
LAKE = "/v1/lake/namespaces"
DB = f"{LAKE}/db"
POLARIS = "/polaris/v1/lake"
POLICIES = f"{POLARIS}/namespaces/db/policies"
GENERIC = f"{POLARIS}/namespaces/db/generic-tables"
MODELS = f"{POLARIS}/namespaces/db/semantic-models"
COMPACTION = dumps({"version": "2025-02-03", "enable": True}).decode()

Check = Callable[[RealmApp], Awaitable[None]]
CHECKS: dict[str, Check] = {}
ELSEWHERE: dict[str, tuple[str, str]] = {
    "`testRequestHeaderTooLarge`": (
        "cli/test_connections.py",
        "test_a_head_that_is_too_large_is_answered_before_the_connection_is_closed",
    ),
    "types that are not predefined are refused": (
        "http/test_policies.py",
        "test_content_of_another_type_is_kept_as_it_is",
    ),
    "a drop of the target removes attachments": (
        "http/test_policies.py",
        "test_they_go_with_what_is_renamed_dropped_and_restored",
    ),
    "a view is not a target": ("http/test_policies.py", "test_the_predefined_ones_are_for_tables_and_others_for_all"),
    "sources are checked in arrays of models": ("http/test_semantic_models.py", "test_sources_must_be_there"),
    "the uuid of a notification is not checked": (
        "http/test_notifications.py",
        "test_a_drop_of_another_table_leaves_the_one_that_is_followed",
    ),
    "its `table-name` is not checked": (
        "http/test_notifications.py",
        "test_a_notification_names_the_table_to_which_it_is_sent",
    ),
    "a drop's time is not checked": ("http/test_notifications.py", "test_a_drop_is_remembered"),
    "any time is accepted": ("http/test_notifications.py", "test_a_time_in_another_unit_does_not_lock_the_name"),
    "`VALIDATE` checks only the location": (
        "http/test_notifications.py",
        "test_a_validation_refuses_what_a_creation_would",
    ),
    "a create with `Polaris-Generic-Table-Access-Delegation` fails where no access is possible": (
        "access/test_generic_delegation.py",
        "test_a_table_without_a_place_is_made_and_gives_no_access",
    ),
    "a body that has its value both in its field and bare is read by its field": (
        "access/test_bare_bodies.py",
        "test_a_mixture_of_both_forms_is_refused",
    ),
    "a bare principal with `credentialRotationRequired` is created without it": (
        "access/test_bare_bodies.py",
        "test_a_bare_principal_cannot_require_the_rotation_of_its_credentials",
    ),
    "`generic-tables/` is a path, `generic-tables` another spelling of it": (
        "http/test_paths.py",
        "test_one_slash_behind_a_collection_is_passed_over",
    ),
    "`snapshots` in any case": ("http/test_tables.py", "test_snapshots_refs_hides_what_no_ref_names"),
    "the notification `UNKNOWN` is accepted, and has no effect": (
        "http/test_notifications.py",
        "test_an_unknown_type_is_refused_with_those_that_there_are",
    ),
    "a token request without a scope, or with `catalog`, is refused": (
        "authentication/test_token_endpoint.py",
        "test_all_roles_are_given_where_the_scopes_name_no_others",
    ),
    "the realm is `POLARIS`": ("access/test_polaris_header.py", "test_a_realm_at_the_root_is_polaris"),
}
"""Rows whose check is another test, by its file below tests/ and its name."""


def rows(heading: str) -> list[str]:
    """The first cells of the table below a heading."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    cells = [line.split(" | ")[0].removeprefix("| ") for line in section.splitlines() if line.startswith("| ")]
    return [cell for cell in cells if cell not in ("tests", "Polaris") and not cell.startswith("---")]


def row(first_cell: str) -> Callable[[Check], Check]:
    """Registers the check of the row with this first cell."""

    def register(check: Check) -> Check:
        CHECKS[first_cell] = check
        return check

    return register


def is_refused(answer: Answer, status: int, *words: str) -> None:
    assert answer.status == status, answer.body
    for each in words:
        assert each in answer.message


async def create(app: RealmApp, name: str, **more: JsonValue) -> Answer:
    return await app.root.post(f"{DB}/tables", {"name": name, "schema": schema("x"), **more})


@row("`testCreateTableWithOverriddenBaseLocationCannotOverlapSibling`")
async def sibling(app: RealmApp) -> None:
    is_refused(await create(app, "a", location="memory:///lake/db/t"), 400, "db.t")


@row("`testCreateTableWithOverriddenBaseLocationMustResideInNsDirectory`")
async def outside_of_the_namespace(app: RealmApp) -> None:
    creator = await app.principal("creator", on_catalog("TABLE_CREATE"))
    body = {"name": "a", "schema": schema("x"), "location": "memory:///lake/elsewhere/a"}
    is_refused(await creator.post(f"{DB}/tables", body), 403, "CATALOG_MANAGE_CONTENT")
    owner = await app.principal("owner", on_catalog("CATALOG_MANAGE_CONTENT"))
    assert (await owner.post(f"{DB}/tables", body)).status == 200


@row("`testCreate...RejectsInvalidName`, `testRegister...`, `testRename...`")
async def names(app: RealmApp) -> None:
    for character in '\\:*?"<>#|':
        assert (await create(app, f"a{character}b")).status == 200, character
    is_refused(await create(app, "a\tb"), 400)


@row("`testLoadTableWithWildcardIfNoneMatchReturns400`")
async def wildcard(app: RealmApp) -> None:
    assert (await app.root.get(f"{DB}/tables/t", if_none_match="*")).status == 304


@row(
    "`testMultipleConflictingCommitsToSingleTableInTransaction`, "
    "`testCoalescedConflictOnOneTableRollsBackEntireTransaction`"
)
async def one_table_twice(app: RealmApp) -> None:
    change: JsonObject = {"identifier": {"namespace": ["db"], "name": "t"}, **set_property("a", "b")}
    body: JsonObject = {"table-changes": [change, change]}
    is_refused(await app.root.post("/v1/lake/transactions/commit", body), 400, "db.t")


@row("`testNonPaginatedListTablesViewNamespaces`")
async def unknown_token(app: RealmApp) -> None:
    is_refused(await app.root.get(f"{DB}/tables?pageToken=unknown"), 400)


@row("`testRegisterTable...ExternalCatalog...`, `testLoadTable...ExternalCatalog...`")
async def registered_in_external(app: RealmApp) -> None:
    await app.catalog("ext", kind="EXTERNAL")
    assert (await app.root.post("/v1/ext/namespaces", {"namespace": ["db"]})).status == 200
    body = {"name": "t", "metadata-location": "memory:///ext/db/t/metadata/1.metadata.json"}
    is_refused(await app.root.post("/v1/ext/namespaces/db/register", body), 400, "by notifications")


@row("`testNamespaceOutsideCatalog`")
async def namespace_outside(app: RealmApp) -> None:
    catalog = await app.ok("GET", "catalogs/lake")
    properties = {"default-base-location": "memory:///lake", "polaris.config.namespace-custom-location.enabled": "true"}
    update: JsonObject = {"currentEntityVersion": catalog["entityVersion"], "properties": {**properties}}
    await app.ok("PUT", "catalogs/lake", update)
    for levels in (["a"], ["db", "a"]):
        body = {"namespace": levels, "properties": {"location": "memory:///outside"}}
        is_refused(await app.root.post(LAKE, body), 400, "memory:///lake")


@row("`testIcebergCreateTablesWithWritePathBlocked`")
async def write_paths(app: RealmApp) -> None:
    for name in ("write.data.path", "write.metadata.path"):
        is_refused(await create(app, "a", properties={name: "s3://my-bucket/path/to/data"}), 400)


@row("`testLoadTableWithSnapshots`")
async def snapshots(app: RealmApp) -> None:
    answer = await app.root.get(f"{DB}/tables/t?snapshots=some")
    is_refused(answer, 400)
    assert "Unrecognized snapshots" not in answer.message


@row(
    "Application: `testWarehouseNotSpecified`, `testIcebergCreateTablesInExternalCatalog`, "
    "`testIcebergUpdateTableInExternalCatalog`, `testNamespaceOutsideCatalog`"
)
async def words_of_application(app: RealmApp) -> None:
    await app.catalog("ext", kind="EXTERNAL")
    await app.root.post("/v1/ext/namespaces", {"namespace": ["db"]})
    body: JsonObject = {"name": "t", "schema": schema("x")}
    is_refused(await app.root.get("/v1/config"), 400, "warehouse")
    is_refused(await app.root.post("/v1/ext/namespaces/db/tables", body), 400)
    is_refused(await app.root.post("/v1/ext/namespaces/db/tables/t", set_property("a", "b")), 400)


@row("Management: `testCreateCatalogWithoutProperties`, `testCreateCatalogWithoutStorageConfig`")
async def words_of_management(app: RealmApp) -> None:
    fields: JsonObject = {
        "properties": {"default-base-location": "memory:///x"},
        "storageConfigInfo": {"storageType": "FILE"},
    }
    for missing in fields:
        present = {field: value for field, value in fields.items() if field != missing}
        body: JsonObject = {"catalog": {"type": "INTERNAL", "name": "new", **present}}
        is_refused(await app.manage("POST", "catalogs", body), 400, f"missing required field '{missing}'")


@row(
    "Policy: `testCreatePolicyWithInvalidName`, `testDropNonExistingPolicy`, `testUpdateNonExistingPolicy`, "
    "`testLoadNonExistingPolicy`, `testGetApplicablePoliciesOnNonExistingTable`"
)
async def words_of_policy(app: RealmApp) -> None:
    policy = {"name": "a*b", "type": "system.data-compaction", "content": COMPACTION}
    is_refused(await app.root.post(POLICIES, policy), 400, "Invalid request.name")
    missing = "Policy does not exist: db.p"
    is_refused(await app.root.get(f"{POLICIES}/p"), 404, missing)
    is_refused(await app.root.delete(f"{POLICIES}/p"), 404, missing)
    update = {"content": COMPACTION, "current-policy-version": 0}
    is_refused(await app.root.put(f"{POLICIES}/p", update), 404, missing)
    applicable = f"{POLARIS}/applicable-policies?namespace=db&target-name=none"
    is_refused(await app.root.get(applicable), 404, "Table or view does not exist: db.none")


@row("`testDropViewWithPurge`")
async def settings_of_polaris(app: RealmApp) -> None:
    catalog = await app.ok("GET", "catalogs/lake")
    setting: JsonObject = {"default-base-location": "memory:///lake", "polaris.config.drop-with-purge.enabled": "false"}
    await app.ok("PUT", "catalogs/lake", {"currentEntityVersion": catalog["entityVersion"], "properties": setting})
    assert (await app.ok("GET", "catalogs/lake"))["properties"] == setting
    assert (await app.root.delete(f"{DB}/views/v?purgeRequested=true")).status == 204


@row("a base location is not checked")
async def base_location(app: RealmApp) -> None:
    for place in ("s3://elsewhere/g", "memory:///lake/db/t"):
        is_refused(await app.root.post(GENERIC, {"name": "g", "format": "delta", "base-location": place}), 400)


@row("403 for a location that conflicts")
async def conflict(app: RealmApp) -> None:
    is_refused(await create(app, "a", location="memory:///lake/db/t/inside"), 400)


@row("a semantic model's name may be a table's, too")
async def one_name(app: RealmApp) -> None:
    is_refused(
        await app.root.post(MODELS, {"name": "t", "document": {"version": "0.1.1", "semantic_model": "[]"}}), 409
    )


@row("semantic models take `CATALOG_MANAGE_CONTENT`")
async def privileges_of_models(app: RealmApp) -> None:
    creator = await app.principal("creator", on_catalog("TABLE_CREATE"))
    body: JsonObject = {
        "name": "m",
        "document": {"version": "0.1.1", "semantic_model": '{"name": "m", "datasets": []}'},
    }
    answer = await creator.post(MODELS, body)
    assert answer.status == 200, answer.body


@row("500 where no policy was attached")
async def nothing_attached(app: RealmApp) -> None:
    await app.root.post(POLICIES, {"name": "p", "type": "system.data-compaction", "content": COMPACTION})
    answer = await app.root.post(f"{POLICIES}/p/mappings", {"target": {"type": "namespace", "path": ["db"]}})
    assert (answer.status, answer.error_type) == (404, "NoSuchMappingException")


@row("lists are answered whole")
async def pages(app: RealmApp) -> None:
    for number in range(3):
        await app.root.post(GENERIC, {"name": f"g{number}", "format": "delta"})
    page = await app.root.get(f"{GENERIC}?pageToken=&pageSize=2")
    assert (len(page.json["identifiers"]), bool(page.json["next-page-token"])) == (2, True)  # type: ignore[arg-type]


@row("a page size without `pageToken` gives a page")
async def size_without_token(app: RealmApp) -> None:
    await create(app, "a")
    whole = await app.root.get(f"{DB}/tables?pageSize=1")
    assert len(whole.json["identifiers"]) == 2  # type: ignore[arg-type]


@row("HEAD wherever there is GET")
async def head(app: RealmApp) -> None:
    for path in (DB, f"{DB}/tables", f"{DB}/tables/t", f"{DB}/tables/t/credentials", GENERIC, POLICIES):
        got, headed = await app.root.get(path), await app.root.head(path)
        assert headed.status in (got.status, 204 if got.status == 200 else got.status), path
        assert headed.body == b"", path


@row("a reserved property is refused as `IllegalArgumentException`")
async def reserved(app: RealmApp) -> None:
    answer = await app.root.post(LAKE, {"namespace": ["a"], "properties": {"polaris.a": "b"}})
    assert (answer.status, answer.error_type) == (400, "BadRequestException")


@row("a catalog, such as an external one, may lack `default-base-location`")
async def without_base(app: RealmApp) -> None:
    for kind in ("INTERNAL", "EXTERNAL"):
        catalog: JsonObject = {
            "type": kind,
            "name": "new",
            "properties": {},
            "storageConfigInfo": {"storageType": "FILE"},
        }
        is_refused(await app.manage("POST", "catalogs", {"catalog": catalog}), 400, "default-base-location")


@row("`/api/openlineage/v1/lineage` accepts events of OpenLineage, and discards them")
async def lineage(app: RealmApp) -> None:
    assert (await app.root.post("/api/openlineage/v1/lineage", {})).status == 404
    routes = {(route.method, route.template) for route in ROUTES}
    assert ("POST", "/api/v1/{prefix}/lineage") in routes


@pytest.fixture
async def app() -> RealmApp:
    """A realm whose catalog `lake` has the table `db.t`, at `memory:///lake/db/t`, and the view `db.v`."""
    app = await RealmApp().start()
    await app.catalog()
    assert (await app.root.post(LAKE, {"namespace": ["db"]})).status == 200
    assert (await create(app, "t", location="memory:///lake/db/t")).status == 200
    assert (await app.root.post(f"{DB}/views", view_request("v"))).status == 200
    return app


@pytest.mark.parametrize("first_cell", CHECKS)
async def test_the_catalog_differs_from_polaris_as_the_tables_state(app: RealmApp, first_cell: str) -> None:
    await CHECKS[first_cell](app)


def test_every_row_is_checked_and_there_is_a_row_for_every_check() -> None:
    stated = [*rows("Tests of Polaris's own"), *rows("Deviations")]

    assert sorted(stated) == sorted([*CHECKS, *ELSEWHERE])


@pytest.mark.parametrize("first_cell", ELSEWHERE)
def test_a_check_elsewhere_is_a_test(first_cell: str) -> None:
    file, name = ELSEWHERE[first_cell]
    tree = ast.parse((ROOT / "tests" / file).read_text())

    assert name in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
