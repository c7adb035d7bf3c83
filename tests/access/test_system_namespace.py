"""The pipeline's principal is the only one that writes to `system`, whatever was granted to others
(docs/design/access.md#rule-9)."""

from collections.abc import Sequence

import pytest

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.privileges import Privilege
from arco_catalog.planning.reserved_namespace import is_reserved
from tests.access.lake import NAMESPACES, POLARIS_DB, Lake, T, send
from tests.access.test_delegation import VENDED, location_of
from tests.access.test_delegation import lake as lake_in_a_bucket
from tests.support.realm_service import RealmApp, on_catalog, on_namespace, on_table, table_request
from tests.vending.aws_policies import allows
from tools.support.asgi_client import Client
from tools.support.request_bodies import view_request

SYSTEM = f"{NAMESPACES}/system"
COMMITS = f"{SYSTEM}/tables/commits"
POLARIS_SYSTEM = "/polaris/v1/lake/namespaces/system"
REASON = "Only the pipeline writes to the namespace system"


async def register(app: RealmApp, name: str, value: str = "true") -> None:
    """Registers a principal as the pipeline's."""
    found = await app.ok("GET", f"principals/{name}")
    change: JsonObject = {"currentEntityVersion": found["entityVersion"], "properties": {"arco.pipeline": value}}
    await app.ok("PUT", f"principals/{name}", change)


async def started(app: RealmApp) -> Client:
    """The pipeline's principal, which has made a table in `system`."""
    pipeline = await app.principal("pipeline", on_catalog("CATALOG_MANAGE_CONTENT"))
    await register(app, "pipeline")
    assert (await pipeline.post(NAMESPACES, {"namespace": ["system"]})).status == 200
    assert (await pipeline.post(f"{SYSTEM}/tables", table_request("commits"))).status == 200
    return pipeline


def watermark(value: str) -> JsonObject:
    """A commit that moves one."""
    setting: JsonObject = {"action": "set-properties", "updates": {"pipeline.closed-before": value}}
    return {"requirements": [], "updates": [setting]}


def writes(lake: Lake) -> Sequence[tuple[str, str, JsonObject | None]]:
    """Requests that change `system`, or would."""
    moved: JsonObject = {
        "source": {"namespace": ["db"], "name": "t"},
        "destination": {"namespace": ["system"], "name": "moved"},
    }
    out: JsonObject = {
        "source": {"namespace": ["system"], "name": "commits"},
        "destination": {"namespace": ["db"], "name": "out"},
    }
    change: JsonObject = {"identifier": {"namespace": ["system"], "name": "commits"}, **watermark("9999-12-31")}
    staged: JsonObject = {**table_request("staged"), "stage-create": True}
    taken: JsonObject = {"name": "commits", "metadata-location": lake.table_file, "overwrite": True}
    generic: JsonObject = {"name": "g", "format": "delta"}
    return [
        ("POST", COMMITS, watermark("9999-12-31")),
        ("POST", "/v1/lake/transactions/commit", {"table-changes": [change]}),
        ("POST", f"{SYSTEM}/tables", table_request("more")),
        ("POST", f"{SYSTEM}/tables", staged),
        ("POST", f"{SYSTEM}/register", taken),
        ("POST", f"{SYSTEM}/register", {"name": "registered", "metadata-location": lake.table_file}),
        ("POST", f"{SYSTEM}/views", view_request("v")),
        ("POST", f"{SYSTEM}/properties", {"updates": {"location": "memory:///lake/db"}}),
        ("POST", "/v1/lake/tables/rename", moved),
        ("POST", "/v1/lake/tables/rename", out),
        ("POST", f"{POLARIS_SYSTEM}/generic-tables", generic),
        ("POST", NAMESPACES, {"namespace": ["system", "below"]}),
        ("POST", f"{COMMITS}/sign", {"method": "PUT", "uri": "http://127.0.0.1/b/k", "region": "r", "headers": {}}),
        ("DELETE", f"{COMMITS}?purgeRequested=true", None),
        ("DELETE", COMMITS, None),
        ("DELETE", SYSTEM, None),
    ]


async def test_a_principal_that_may_write_everywhere_else_is_refused_there_with_the_reason() -> None:
    lake = await Lake().start()
    pipeline = await started(lake.app)
    before = (await pipeline.get(COMMITS)).body

    for method, target, body in writes(lake):
        refused = await send(lake.manager, method, target, body)
        assert (refused.status, refused.error_type) == (403, "NotAuthorizedException"), (method, target, refused.body)
        assert refused.message.startswith(REASON), (method, target)

    assert (await pipeline.get(COMMITS)).body == before
    assert (await lake.manager.post(T, watermark("x"))).status == 200, "anywhere else it may"


async def test_no_principal_creates_the_namespace_before_the_pipeline() -> None:
    lake = await Lake().start()

    refused = await lake.manager.post(NAMESPACES, {"namespace": ["system"]})

    assert (refused.status, refused.message.startswith(REASON)) == (403, True)
    assert (await lake.manager.post(NAMESPACES, {"namespace": ["db", "system"]})).status == 200, "another one's name"
    assert (await lake.manager.post(NAMESPACES, {"namespace": ["system2"]})).status == 200


async def test_the_pipeline_s_principal_does_all_of_that() -> None:
    lake = await Lake().start()
    pipeline = await started(lake.app)

    for method, target, body in writes(lake):
        if "register" in target:
            continue  # the file is another table's: a refusal that has nothing to do with rights
        answer = await send(pipeline, method, target, body)
        assert answer.status != 403, (method, target, answer.body)
    assert (await pipeline.get(COMMITS)).status == 404, "it was moved away"


async def test_to_be_registered_gives_no_privilege() -> None:
    lake = await Lake().start()
    await started(lake.app)
    other = await lake.app.principal("other", on_table("TABLE_READ_DATA", "system", "commits"))
    await register(lake.app, "other")

    refused = await other.post(COMMITS, watermark("9999-12-31"))

    assert (refused.status, "lacks the privilege" in refused.message) == (403, True)


@pytest.mark.parametrize("value", ["false", "TRUE", ""])
async def test_only_true_registers(value: str) -> None:
    lake = await Lake().start()
    await started(lake.app)
    await register(lake.app, "manager", value)

    assert (await lake.manager.post(COMMITS, watermark("x"))).status == 403


async def test_who_is_no_longer_registered_is_refused_on_another_server_too() -> None:
    lake = await Lake().start()
    await started(lake.app)
    elsewhere = lake.app.client("pipeline", app=lake.app.serve())
    assert (await elsewhere.post(COMMITS, watermark("a"))).status == 200

    await register(lake.app, "pipeline", "false")

    assert (await elsewhere.post(COMMITS, watermark("b"))).status == 403


async def test_a_privilege_on_the_namespace_itself_does_not_do_instead() -> None:
    lake = await Lake().start()
    await started(lake.app)
    other = await lake.app.principal("other", on_namespace("CATALOG_MANAGE_CONTENT", "system"))

    refused = await other.post(COMMITS, watermark("x"))

    assert (refused.status, refused.message.startswith(REASON)) == (403, True)


async def test_it_is_read_and_policies_are_attached_as_anywhere() -> None:
    lake = await Lake().start()
    await started(lake.app)
    reader = await lake.app.principal("reader", on_table("TABLE_READ_DATA", "system", "commits"))

    for client in (reader, lake.manager):
        assert (await client.get(COMMITS)).status == 200
    assert (await lake.manager.get(f"{SYSTEM}/tables")).status == 200
    target: JsonObject = {"target": {"type": "table-like", "path": ["system", "commits"]}}
    assert (await lake.manager.put(f"{POLARIS_DB}/policies/p/mappings", target)).status == 204


async def test_a_caller_that_may_not_know_of_it_gets_not_found() -> None:
    lake = await Lake().start()
    await started(lake.app)
    other = await lake.app.principal("other", on_namespace("CATALOG_MANAGE_CONTENT", "db"))

    hidden = await other.post(COMMITS, watermark("x"))
    missing = await other.post(f"{SYSTEM}/tables/nothing", watermark("x"))

    assert (hidden.status, hidden.error_type) == (missing.status, missing.error_type) == (404, "NoSuchTableException")


async def test_a_catalog_that_follows_another_refuses_notifications_about_tables_there() -> None:
    app = await RealmApp().start()
    await app.catalog(kind="EXTERNAL")
    follower = await app.principal("follower", on_catalog("CATALOG_MANAGE_CONTENT"))
    target = f"{SYSTEM}/tables/commits/notifications"
    news: JsonObject = {
        "notification-type": "CREATE",
        "payload": {
            "table-name": "commits",
            "timestamp": 1,
            "table-uuid": "11111111-2222-3333-4444-555555555555",
            "metadata-location": "memory:///lake/system/commits/metadata/1.metadata.json",
        },
    }

    refused = await follower.post(target, news)

    assert (refused.status, refused.message.startswith(REASON)) == (403, True)
    assert (await follower.post(target.replace("system", "db"), news)).status != 403


async def test_credentials_for_its_files_are_to_read_with_but_for_the_pipeline_s() -> None:
    """Who could overwrite a data file would need no commit."""
    async with lake_in_a_bucket() as lake:
        pipeline = await started(lake.app)

        async def may_put(client: Client) -> bool:
            loaded = await client.get(COMMITS, **VENDED)
            assert loaded.status == 200, loaded.body
            file = f"arn:aws:s3:::{location_of(loaded).removeprefix('s3://')}/data/1.parquet"
            assert allows(lake.policies[-1], "s3:GetObject", file)
            return allows(lake.policies[-1], "s3:PutObject", file)

        assert not await may_put(lake.owner)
        assert await may_put(pipeline)


def test_what_changes_no_table_is_not_reserved() -> None:
    """Each privilege is one or the other: a new one must be listed here."""
    free = {privilege for privilege in Privilege if not is_reserved(privilege, ("system", "below"))}

    assert {each for each in free if each.startswith(("TABLE_", "VIEW_", "NAMESPACE_"))} == {
        *("NAMESPACE_LIST", "NAMESPACE_READ_PROPERTIES", "NAMESPACE_ATTACH_POLICY", "NAMESPACE_DETACH_POLICY"),
        *("TABLE_LIST", "TABLE_READ_PROPERTIES", "TABLE_READ_DATA", "TABLE_ATTACH_POLICY", "TABLE_DETACH_POLICY"),
        *("VIEW_LIST", "VIEW_READ_PROPERTIES"),
    }
    assert not any(is_reserved(privilege, ("db",)) for privilege in Privilege)
    assert not any(is_reserved(privilege, ()) for privilege in Privilege)
