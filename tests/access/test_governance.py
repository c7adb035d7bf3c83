"""The rights to read and to change governance of a stranger, a reader, a writer, and a principal that governs."""

from collections.abc import Sequence

import pytest

from arco_catalog.iceberg.json import JsonObject
from tests.access.lake import DB, Lake, T, is_denied
from tests.support.realm_service import RealmApp, on_catalog, on_namespace, on_table
from tools.support.asgi_client import Client

OWNED: JsonObject = {"arco.owner": "ada"}
EVERYTHING = (DB, T, f"{DB}/views/v")
READS = ("NAMESPACE_READ_PROPERTIES", "TABLE_READ_DATA", "VIEW_READ_PROPERTIES")


async def governor(lake: Lake) -> Client:
    """Reads everything, and manages access."""
    return await lake.app.principal("governor", *map(on_catalog, (*READS, "CATALOG_MANAGE_ACCESS")))


@pytest.mark.parametrize("of", EVERYTHING)
async def test_a_principal_that_governs_may_change_it_and_readers_see_it(of: str) -> None:
    lake = await Lake().start()
    reader = await lake.app.principal("reader", *map(on_catalog, READS))

    answer = await (await governor(lake)).post(f"{of}/governance", OWNED)

    assert (answer.status, answer.json) == (200, OWNED)
    assert (await reader.get(f"{of}/governance")).json == OWNED
    loaded = (await reader.get(of)).json
    assert "ada" in str(loaded.get("labels", loaded.get("properties")))


@pytest.mark.parametrize("of", EVERYTHING)
@pytest.mark.parametrize(
    "grants",
    [READS, ("CATALOG_MANAGE_CONTENT",), ("CATALOG_MANAGE_METADATA",), ("CATALOG_MANAGE_ACCESS",)],
    ids=" ".join,
)
async def test_no_other_privileges_allow_it(of: str, grants: Sequence[str]) -> None:
    lake = await Lake().start()
    client = await lake.app.principal("another", *map(on_catalog, grants))

    refused = await client.post(f"{of}/governance", OWNED)

    assert is_denied(refused)
    assert (await (await governor(lake)).get(f"{of}/governance")).json == {}


@pytest.mark.parametrize("of", EVERYTHING)
async def test_a_stranger_learns_nothing(of: str) -> None:
    lake = await Lake().start()
    stranger = await lake.app.principal("stranger")

    answers = [await stranger.get(f"{of}/governance"), await stranger.post(f"{of}/governance", OWNED)]
    absent = [
        await stranger.get(f"{of}x/governance"),
        await stranger.post(f"{of}x/governance", OWNED),
    ]

    assert all(map(is_denied, answers))
    assert [(each.status, each.error_type) for each in answers] == [(each.status, each.error_type) for each in absent]


async def test_one_table_may_be_governed_and_no_other() -> None:
    lake = await Lake().start()
    steward = await lake.app.principal(
        "steward", on_table("CATALOG_MANAGE_ACCESS", "db", "t"), on_table("TABLE_READ_PROPERTIES", "db", "t")
    )

    assert (await steward.post(f"{T}/governance", OWNED)).status == 200
    for other in (f"{DB}/tables/u", f"{DB}/views/v", DB):
        assert is_denied(await steward.post(f"{other}/governance", OWNED))


async def test_grants_on_a_namespace_are_enough_for_what_is_in_it() -> None:
    lake = await Lake().start()
    grants = [on_namespace(privilege, "db") for privilege in (*READS, "CATALOG_MANAGE_ACCESS")]
    steward = await lake.app.principal("steward", *grants)

    for of in EVERYTHING:
        assert (await steward.post(f"{of}/governance", OWNED)).status == 200
    assert is_denied(await steward.post("/v1/lake/namespaces/other/governance", OWNED))


async def test_a_revocation_holds_for_the_next_change_and_a_replay_is_answered() -> None:
    lake = await Lake().start()
    client, key = await governor(lake), lake.app.key()
    assert (await client.post(f"{T}/governance", OWNED, idempotency_key=key)).status == 200

    await lake.app.revoke("governor", on_catalog("CATALOG_MANAGE_ACCESS"))

    assert (await client.post(f"{T}/governance", OWNED, idempotency_key=key)).status == 200
    assert is_denied(await client.post(f"{T}/governance", {"arco.owner": "me"}))


@pytest.mark.parametrize("of", [T, f"{DB}/views/v", f"{DB}/tables/u"])
async def test_rights_to_drop_neither_pass_over_protection_nor_lift_it(of: str) -> None:
    lake = await Lake().start()
    owner = await lake.app.principal("owner", *map(on_catalog, ("CATALOG_MANAGE_CONTENT", *READS)))
    stranger = await lake.app.principal("stranger")
    protect, lift = {"arco.protected": "true"}, {"arco.protected": None}
    assert is_denied(await owner.post(f"{of}/governance", {**protect}))
    assert (await (await governor(lake)).post(f"{of}/governance", {**protect})).status == 200

    refused = await owner.delete(of)

    assert (refused.status, refused.error_type) == (409, "CommitFailedException")
    assert is_denied(await owner.post(f"{of}/governance", {**lift}))
    assert is_denied(await stranger.delete(of))
    await lake.app.grant("owner", on_catalog("CATALOG_MANAGE_ACCESS"))
    assert (await owner.post(f"{of}/governance", {**lift})).status == 200
    assert (await owner.delete(of)).status == 204


async def test_it_is_one_realms_own() -> None:
    app = RealmApp(names=("a", "b"))
    lake = await Lake(app).start()
    other = app.client("root", "b")
    await app.catalog("lake", other, app.base("lake", "b"))
    grant: JsonObject = {"grant": on_catalog("CATALOG_MANAGE_CONTENT")}
    await app.ok("PUT", "catalogs/lake/catalog-roles/catalog_admin/grants", grant, other)
    assert (await other.post("/v1/lake/namespaces", {"namespace": ["db"]})).status == 200

    assert (await (await governor(lake)).post(f"{DB}/governance", OWNED)).status == 200

    assert (await other.get(f"{DB}/governance")).json == {}


MANAGED = "/api/management/v1/catalogs/lake/namespaces/db"
IN_BOTH = (DB, MANAGED), (T, f"{MANAGED}/tables/t"), (f"{DB}/views/v", f"{MANAGED}/views/v")
"""The paths of one object in the API of a catalog and in that of management."""


class TestManagement:
    """The API of management has the same documents, under the same rules."""

    @pytest.mark.parametrize(("ours", "managed"), IN_BOTH)
    async def test_a_change_in_one_api_is_visible_in_the_other(self, ours: str, managed: str) -> None:
        lake = await Lake().start()
        client = await governor(lake)

        answer = await client.post(f"{managed}/governance", {**OWNED, "arco.tag.a": "b"})
        assert (answer.status, answer.json) == (200, {**OWNED, "arco.tag.a": "b"})
        assert (await client.get(f"{ours}/governance")).json == answer.json
        assert (await client.post(f"{ours}/governance", {"arco.tag.a": None})).json == OWNED

        assert (await client.get(f"{managed}/governance")).json == OWNED

    @pytest.mark.parametrize(("ours", "managed"), IN_BOTH)
    @pytest.mark.parametrize("grants", [READS, ("CATALOG_MANAGE_CONTENT",), ("CATALOG_MANAGE_ACCESS",)], ids=" ".join)
    async def test_no_other_privileges_allow_it_there(self, ours: str, managed: str, grants: Sequence[str]) -> None:
        lake = await Lake().start()
        client = await lake.app.principal("another", *map(on_catalog, grants))

        refused = await client.post(f"{managed}/governance", OWNED)

        assert (refused.status, refused.error_type) == (403, "NotAuthorizedException")
        assert (await (await governor(lake)).get(f"{ours}/governance")).json == {}

    async def test_one_table_may_be_governed_there_and_no_other(self) -> None:
        lake = await Lake().start()
        steward = await lake.app.principal(
            "steward", on_table("CATALOG_MANAGE_ACCESS", "db", "t"), on_table("TABLE_READ_PROPERTIES", "db", "t")
        )

        assert (await steward.post(f"{MANAGED}/tables/t/governance", OWNED)).status == 200
        for other in (f"{MANAGED}/tables/u", f"{MANAGED}/views/v", MANAGED):
            assert (await steward.post(f"{other}/governance", OWNED)).status == 403

    @pytest.mark.parametrize("body", ['{"arco.owner": ""}', '{"owner": "me"}', "[]", "{"])
    async def test_what_is_no_governance_is_refused_there_too(self, body: str) -> None:
        lake = await Lake().start()

        answer = await (await governor(lake)).send(
            "POST", f"{MANAGED}/governance", body.encode(), {"content-type": "application/merge-patch+json"}
        )

        assert (answer.status, answer.error_type) == (400, "BadRequestException")

    @pytest.mark.parametrize(("path", "kind"), [("", "Namespace"), ("/tables/x", "Table"), ("/views/x", "View")])
    async def test_a_missing_object_is_not_found(self, path: str, kind: str) -> None:
        lake = await Lake().start()
        client, managed = await governor(lake), MANAGED if path else f"{MANAGED}x"

        for answer in (
            await client.get(f"{managed}{path}/governance"),
            await client.post(f"{managed}{path}/governance", {}),
        ):
            assert (answer.status, answer.error_type) == (404, f"NoSuch{kind}Exception")

    async def test_a_path_that_is_wrong_does_not_tell_whether_there_is_such_a_catalog(self) -> None:
        lake = await Lake().start()
        stranger = await lake.app.principal("stranger")
        answers = [
            await stranger.get(f"/api/management/v1/catalogs/{catalog}/namespaces/db%1F/governance")
            for catalog in ("lake", "nowhere")
        ]

        assert {(each.status, each.body) for each in answers} == {(400, answers[0].body)}

    async def test_a_table_that_follows_another_catalogs_is_governed_by_its_own(self) -> None:
        app = await RealmApp().start()
        await app.catalog(kind="EXTERNAL")
        client = await app.principal("governor", *map(on_catalog, ("CATALOG_MANAGE_CONTENT", "CATALOG_MANAGE_ACCESS")))
        assert (await client.post("/v1/lake/namespaces", {"namespace": ["db"]})).status == 200

        assert (await client.post(f"{MANAGED}/governance", OWNED)).status == 200
