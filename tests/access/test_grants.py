"""What callers may do, over HTTP: the grants of a realm, and when they count."""

from tests.support.realm_service import RealmApp, on_catalog, on_namespace, on_table, table_request


async def lake() -> RealmApp:
    app = await RealmApp().start()
    await app.catalog()
    owner = await app.principal("owner", on_catalog("CATALOG_MANAGE_CONTENT"))
    assert (await owner.post("/v1/lake/namespaces", {"namespace": ["db"]})).status == 200
    for name in ("t", "u"):
        made = await owner.post("/v1/lake/namespaces/db/tables", table_request(name))
        assert made.status == 200, made.body
    return app


async def test_a_stranger_finds_no_catalog() -> None:
    app = await lake()
    stranger = await app.principal("stranger")

    answers = [
        await stranger.get("/v1/config?warehouse=lake"),
        await stranger.get("/v1/lake/namespaces"),
        await stranger.get("/v1/lake/namespaces/db/tables/t"),
        await stranger.delete("/v1/lake/namespaces/db/tables/nowhere"),
    ]

    assert [(answer.status, answer.error_type) for answer in answers] == [(404, "NoSuchWarehouseException")] * 4


async def test_a_request_without_a_token_is_refused() -> None:
    app = await lake()

    answer = await app.client("stranger").send("GET", "/v1/lake/namespaces", headers={"authorization": ""})

    assert (answer.status, answer.error_type) == (401, "NotAuthorizedException")
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")


async def test_a_reader_of_one_table_sees_nothing_else() -> None:
    app = await lake()
    reader = await app.principal("reader", on_table("TABLE_READ_DATA", "db", "t"))

    assert (await reader.get("/v1/lake/namespaces/db/tables/t")).status == 200
    assert (await reader.head("/v1/lake/namespaces/db/tables/t")).status == 204
    hidden = await reader.get("/v1/lake/namespaces/db/tables/u")
    missing = await reader.get("/v1/lake/namespaces/db/tables/v")
    assert (hidden.status, hidden.message.replace("db.u", "db.v")) == (missing.status, missing.message)
    denied = await reader.delete("/v1/lake/namespaces/db/tables/t")
    assert (denied.status, denied.message) == (403, "Principal reader lacks the privilege TABLE_DROP on table db.t")


async def test_a_revocation_holds_for_the_next_request_on_another_server() -> None:
    app = await lake()
    grant = on_table("TABLE_READ_DATA", "db", "t")
    await app.principal("reader", grant)
    elsewhere = app.client("reader", app=app.serve())
    assert (await elsewhere.get("/v1/lake/namespaces/db/tables/t")).status == 200

    await app.revoke("reader", grant)

    assert (await elsewhere.get("/v1/lake/namespaces/db/tables/t")).status == 404


async def test_a_principal_that_was_dropped_is_no_longer_known() -> None:
    app = await lake()
    reader = await app.principal("reader", on_table("TABLE_READ_DATA", "db", "t"))
    elsewhere = app.client("reader", app=app.serve())
    assert (await elsewhere.get("/v1/lake/namespaces/db/tables/t")).status == 200

    await app.ok("DELETE", "principals/reader")

    assert (await reader.get("/v1/lake/namespaces/db/tables/t")).status == 401
    assert (await elsewhere.get("/v1/lake/namespaces/db/tables/t")).status == 401


async def test_a_commit_needs_the_privilege_of_each_of_its_updates() -> None:
    app = await lake()
    writer = await app.principal("writer", on_table("TABLE_SET_PROPERTIES", "db", "t"))
    setting = {"action": "set-properties", "updates": {"a": "b"}}
    change = {"requirements": [], "updates": [setting]}
    both = {"requirements": [], "updates": [setting, {"action": "remove-properties", "removals": ["a"]}]}

    denied = await writer.post("/v1/lake/namespaces/db/tables/t", both, idempotency_key=app.key())
    assert (denied.status, "TABLE_REMOVE_PROPERTIES" in denied.message) == (403, True)
    assert (await writer.post("/v1/lake/namespaces/db/tables/t", change)).status == 200


async def test_a_retry_after_a_revocation_finds_its_commit() -> None:
    app = await lake()
    grant = on_table("TABLE_WRITE_DATA", "db", "t")
    writer = await app.principal("writer", grant)
    change = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]}
    key = app.key()
    assert (await writer.post("/v1/lake/namespaces/db/tables/t", change, idempotency_key=key)).status == 200

    await app.revoke("writer", grant)

    assert (await writer.post("/v1/lake/namespaces/db/tables/t", change, idempotency_key=key)).status == 200
    assert (await writer.post("/v1/lake/namespaces/db/tables/t", change)).status == 404


async def test_a_rename_keeps_grants_and_shows_them_under_the_new_name() -> None:
    app = await lake()
    reader = await app.principal("reader", on_table("TABLE_READ_DATA", "db", "t"))
    owner = app.client("owner")
    renaming = {"source": {"namespace": ["db"], "name": "t"}, "destination": {"namespace": ["db"], "name": "new"}}
    assert (await owner.post("/v1/lake/tables/rename", renaming)).status == 204

    assert (await reader.get("/v1/lake/namespaces/db/tables/new")).status == 200
    grants = await app.ok("GET", "catalogs/lake/catalog-roles/reader-in-lake/grants")
    assert grants == {
        "grants": [{"type": "table", "namespace": ["db"], "tableName": "new", "privilege": "TABLE_READ_DATA"}]
    }


async def test_a_namespace_that_is_made_again_has_no_grants() -> None:
    app = await lake()
    owner = app.client("owner")
    assert (await owner.post("/v1/lake/namespaces", {"namespace": ["gone"]})).status == 200
    reader = await app.principal("reader", on_namespace("NAMESPACE_READ_PROPERTIES", "gone"))
    assert (await reader.get("/v1/lake/namespaces/gone")).status == 200

    assert (await owner.delete("/v1/lake/namespaces/gone")).status == 204
    assert (await owner.post("/v1/lake/namespaces", {"namespace": ["gone"]})).status == 200

    assert (await reader.get("/v1/lake/namespaces/gone")).status == 404
    assert (await app.ok("GET", "catalogs/lake/catalog-roles/reader-in-lake/grants")) == {"grants": []}


async def test_a_token_activates_only_the_roles_that_it_names() -> None:
    app = await lake()
    await app.principal("reader", on_table("TABLE_READ_DATA", "db", "t"))

    assert (await app.client("reader", roles="reader-role").get("/v1/lake/namespaces/db/tables/t")).status == 200
    assert (await app.client("reader", roles="other-role").get("/v1/lake/namespaces/db/tables/t")).status == 404


async def test_a_catalog_that_was_dropped_and_made_again_shares_nothing() -> None:
    app = await lake()
    owner, elsewhere = app.client("owner"), app.client("owner", app=app.serve())
    assert (await elsewhere.get("/v1/lake/namespaces")).json["namespaces"] == [["db"]]
    full = await app.manage("DELETE", "catalogs/lake")
    assert (full.status, full.error_type) == (409, "NamespaceNotEmptyException")
    for name in ("t", "u"):
        assert (await owner.delete(f"/v1/lake/namespaces/db/tables/{name}")).status == 204
    assert (await owner.delete("/v1/lake/namespaces/db")).status == 204

    await app.ok("DELETE", "catalogs/lake")
    assert (await elsewhere.post("/v1/lake/namespaces", {"namespace": ["late"]})).status == 404
    await app.catalog()

    assert (await owner.get("/v1/lake/namespaces")).status == 404
    await app.grant("owner", on_catalog("CATALOG_MANAGE_CONTENT"))
    assert (await elsewhere.get("/v1/lake/namespaces")).json["namespaces"] == []


async def test_a_server_that_missed_how_a_catalog_was_dropped_and_made_again_serves_the_new_one() -> None:
    app = await lake()
    owner, elsewhere = app.client("owner"), app.client("owner", app=app.serve())
    for name in ("t", "u"):
        assert (await owner.delete(f"/v1/lake/namespaces/db/tables/{name}")).status == 204
    assert (await owner.delete("/v1/lake/namespaces/db")).status == 204
    assert (await elsewhere.get("/v1/lake/namespaces")).status == 200
    await app.ok("DELETE", "catalogs/lake")
    await app.catalog()
    await app.grant("owner", on_catalog("CATALOG_MANAGE_CONTENT"))

    made = await elsewhere.post("/v1/lake/namespaces", {"namespace": ["new"]}, idempotency_key=app.key())

    assert made.status == 200, made.body
    assert (await owner.get("/v1/lake/namespaces")).json["namespaces"] == [["new"]]


async def test_the_place_of_a_dropped_table_is_for_those_who_may_read_it() -> None:
    app = await lake()
    owner = app.client("owner")
    loaded = (await owner.get("/v1/lake/namespaces/db/tables/t")).json["metadata"]
    assert isinstance(loaded, dict)
    location = str(loaded["location"])
    makers = (
        await app.principal("maker", on_namespace("TABLE_CREATE", "db")),
        await app.principal("reader", on_namespace("TABLE_CREATE", "db"), on_table("TABLE_READ_DATA", "db", "t")),
    )
    assert (await owner.delete("/v1/lake/namespaces/db/tables/t")).status == 204

    def asking(name: str, where: str) -> dict[str, object]:
        return {**table_request(name), "location": where}

    maker, reader = makers
    for where in (location, f"{location}/data", location.rpartition("/")[0] + "/elsewhere"):
        answer = await maker.post("/v1/lake/namespaces/db/tables", asking("m", where))
        assert answer.status == (200 if where.endswith("elsewhere") else 403), (where, answer.body)
    assert (await reader.post("/v1/lake/namespaces/db/tables", asking("r", location))).status == 200


async def test_a_role_made_again_under_a_name_is_not_listed_with_what_the_former_had() -> None:
    app = await RealmApp().start()
    await app.catalog()
    await app.principal("worker", on_catalog("TABLE_READ_DATA"))
    listed = "catalogs/lake/catalog-roles/worker-in-lake/principal-roles"
    roles = (await app.ok("GET", listed))["roles"]
    assert isinstance(roles, list)
    assert [role["name"] for role in roles if isinstance(role, dict)] == ["worker-role"]

    await app.ok("DELETE", "principal-roles/worker-role")
    await app.ok("POST", "principal-roles", {"principalRole": {"name": "worker-role"}})

    assert (await app.ok("GET", listed))["roles"] == []
