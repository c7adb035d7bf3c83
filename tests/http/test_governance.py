"""Governance over HTTP: who owns what, how good it is, and tags, which engines see as labels and cannot change."""

import pytest

from arco_catalog.iceberg.json import JsonObject, dumps
from arco_catalog.operations.history import history
from arco_catalog.planning.governance import MAX_CHANGES, MAX_TAG_NAME, MAX_TAGS, MAX_TEXT
from storage_backends import Found
from tests.support.http_service import HttpService
from tools.support.asgi_client import Answer, Client
from tools.support.request_bodies import renaming, schema, set_property, transaction, view_request

DB = "/v1/wh/namespaces/db"
T = f"{DB}/tables/t"
V = f"{DB}/views/v"
GOVERNED: JsonObject = {
    "arco.owner": "finance",
    "arco.quality": "checked",
    "arco.tag.domain": "sales",
    "arco.column.1.tag.pii": "none",
    "arco.column.1.tag.unit": "EUR",
}
LABELS: JsonObject = {
    "object-labels": {"arco.owner": "finance", "arco.quality": "checked", "arco.tag.domain": "sales"},
    "fields": [{"field-id": 1, "labels": {"arco.tag.pii": "none", "arco.tag.unit": "EUR"}}],
}
OWNED: JsonObject = {"arco.owner": "ada"}


@pytest.fixture
async def views(service: HttpService) -> HttpService:
    """With the view `v`, too."""
    await service.view("v")
    return service


async def govern(client: Client, of: str, patch: JsonObject, **headers: str) -> Answer:
    return await client.post(f"{of}/governance", patch, **headers)


async def governed(client: Client, of: str) -> JsonObject:
    """The document of something."""
    answer = await client.get(f"{of}/governance")
    assert answer.status == 200, answer.body
    return answer.json


async def body_of(service: HttpService, key: str) -> bytes:
    """What an object holds."""
    found = await service.store.get(key)
    assert isinstance(found, Found)
    return found.body


async def labels(client: Client, of: str) -> object:
    """The labels of a load, None for none."""
    answer = await client.get(of)
    assert answer.status == 200, answer.body
    return answer.json.get("labels")


@pytest.mark.parametrize("of", [T, V])
async def test_governance_is_returned_and_served_as_labels(views: HttpService, of: str) -> None:
    client = views.client
    assert (await governed(client, of), await labels(client, of)) == ({}, None)

    answer = await govern(client, of, GOVERNED)

    assert (answer.status, answer.json) == (200, GOVERNED)
    for server in (client, views.serve()):
        assert await governed(server, of) == GOVERNED
        assert await labels(server, of) == LABELS


async def test_a_patch_changes_what_it_names_and_null_removes(client: Client) -> None:
    await govern(client, T, GOVERNED)

    patch: JsonObject = {"arco.owner": "ada", "arco.quality": None, "arco.column.1.tag.pii": None, "arco.tag.new": ""}
    answer = await govern(client, T, patch)

    left = {"arco.owner": "ada", "arco.tag.domain": "sales", "arco.column.1.tag.unit": "EUR", "arco.tag.new": ""}
    assert answer.json == left
    assert (await govern(client, T, {})).json == left
    assert (await govern(client, T, {"arco.tag.absent": None})).json == left
    assert (await govern(client, T, dict.fromkeys(left))).json == {}
    assert await labels(client, T) is None


@pytest.mark.parametrize(
    "kind", ["application/merge-patch+json", "application/json", "application/json; charset=utf-8"]
)
async def test_a_patch_may_have_the_type_of_a_merge_patch(client: Client, kind: str) -> None:
    answer = await client.send("POST", f"{T}/governance", dumps(OWNED), {"content-type": kind})

    assert (answer.status, answer.json) == (200, OWNED)


@pytest.mark.parametrize("kind", ["text/plain", "application/json-patch+json", ""])
async def test_nothing_else_is_taken_for_a_patch(client: Client, kind: str) -> None:
    answer = await client.send("POST", f"{T}/governance", dumps(OWNED), {"content-type": kind})

    assert answer.status == 415
    assert "application/json or application/merge-patch+json" in answer.message
    other = await client.send("POST", f"{DB}/properties", b"{}", {"content-type": "application/merge-patch+json"})
    assert other.status == 415


@pytest.mark.parametrize(
    ("patch", "reason"),
    [
        ({"owner": "ada"}, "'owner': governance has the names"),
        ({"arco.Owner": "ada"}, "'arco.Owner': governance has the names"),
        ({"arco.lineage": "x"}, "'arco.lineage': governance has"),
        ({"arco.lineage": None}, "'arco.lineage': governance has"),
        ({"arco.tag.": "x"}, "a tag's name has 1 to 128 characters"),
        ({"arco.tag." + "x" * (MAX_TAG_NAME + 1): "x"}, "a tag's name has 1 to 128 characters"),
        ({"arco.tag.a\nb": "x"}, "a tag's name has 1 to 128 characters"),
        ({"arco.column.x.tag.pii": "x"}, "governance has the names"),
        ({"arco.column.01.tag.pii": "x"}, "01, after 'arco.column.', is no field id"),
        ({"arco.column.2147483648.tag.pii": "x"}, "2147483648, after 'arco.column.', is no field id"),
        ({"arco.column.1.owner": "x"}, "governance has the names"),
        ({"arco.column.1.tag.": "x"}, "a tag's name has"),
        ({"arco.owner": 1}, "expected a string, or null to remove it, found an integer"),
        ({"arco.owner": {"name": "ada"}}, "expected a string, or null to remove it, found an object"),
        ({"arco.owner": ["ada"]}, "expected a string, or null to remove it, found an array"),
        ({"arco.owner": ""}, "must not be empty"),
        ({"arco.quality": "x" * (MAX_TEXT + 1)}, "the value of 'arco.quality' may have at most 1,024 characters"),
        ({"arco.tag.a": "\u0000"}, "the value of 'arco.tag.a' may have"),
        ({f"arco.tag.{number}": "" for number in range(MAX_TAGS + 1)}, "table db.t would have 51 tags, more than 50"),
        (
            {f"arco.column.7.tag.{number}": "" for number in range(MAX_TAGS + 1)},
            "column 7 of table db.t would have 51 tags, more than 50",
        ),
        ({f"arco.tag.{number}": None for number in range(MAX_CHANGES + 1)}, "may change 1,000 names"),
        ({f"arco.column.{number}.tag.a": "x" * 1_000 for number in range(20)}, "more than 16,384; the longest of it"),
    ],
)
async def test_what_is_no_governance_is_refused_by_its_name(client: Client, patch: JsonObject, reason: str) -> None:
    answer = await govern(client, T, {**OWNED, **patch})

    assert (answer.status, answer.error_type) == (400, "BadRequestException")
    assert reason in answer.message
    assert await governed(client, T) == {}


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b'"x"', b"{"])
async def test_a_patch_is_an_object(client: Client, body: bytes) -> None:
    assert (await client.send("POST", f"{T}/governance", body)).status == 400


@pytest.mark.parametrize(
    "of", [f"{DB}/tables/v", f"{DB}/views/t", f"{DB}/tables/x", "/v1/wh/namespaces/x", f"{DB}/views/x"]
)
async def test_what_is_not_there_has_none(views: HttpService, of: str) -> None:
    for answer in (await views.client.get(f"{of}/governance"), await govern(views.client, of, OWNED)):
        assert answer.status == 404
        assert answer.error_type in ("NoSuchTableException", "NoSuchViewException", "NoSuchNamespaceException")


async def test_it_goes_along_with_a_rename_and_is_there_again_after_an_undrop(client: Client) -> None:
    await govern(client, T, GOVERNED)
    assert (await client.post("/v1/wh/tables/rename", renaming("t", "u"))).status == 204
    assert await labels(client, f"{DB}/tables/u") == LABELS

    assert (await client.delete(f"{DB}/tables/u")).status == 204
    assert (await client.post(f"{DB}/tables/u/undrop", {})).status == 204

    assert await governed(client, f"{DB}/tables/u") == GOVERNED


async def test_a_table_that_is_made_or_registered_begins_without(service: HttpService) -> None:
    client = service.client
    await govern(client, T, GOVERNED)
    file = (await client.get(T)).json["metadata-location"]
    assert (await client.delete(T)).status == 204

    await service.table("t")
    assert (await governed(client, T), await labels(client, T)) == ({}, None)
    await govern(client, T, OWNED)
    replaced = await client.post(f"{DB}/register", {"name": "t", "metadata-location": file, "overwrite": True})

    assert (replaced.status, replaced.json.get("labels")) == (200, None)
    assert await governed(client, T) == {}


async def test_commits_and_transactions_leave_it_and_never_write_it(service: HttpService) -> None:
    client = service.client
    await service.table("u")
    await govern(client, T, GOVERNED)
    before = (await client.get(T)).json["metadata-location"]
    assert (await client.post(T, set_property("a", "1"))).status == 200
    changes = transaction(set_property("b", "2"), "t", "u")
    assert (await client.post("/v1/wh/transactions/commit", changes)).status == 204

    loaded = (await client.get(T)).json

    assert (loaded["labels"], loaded["metadata-location"] != before) == (LABELS, True)
    files = [key for key in service.store.keys("wh/") if key.endswith(".metadata.json")]
    assert files
    for key in files:
        assert b"finance" not in await body_of(service, key)


async def test_labels_change_the_tag_of_a_load_and_nothing_else_does(client: Client) -> None:
    plain = (await client.get(T)).headers["ETag"]
    await govern(client, T, OWNED)
    owned = (await client.get(T)).headers["ETag"]
    stale = await client.get(T, if_none_match=plain)
    fresh = await client.get(T, if_none_match=owned)
    await govern(client, T, {"arco.owner": None})

    assert (stale.status, fresh.status) == (200, 304)
    assert (await client.get(T)).headers["ETag"] == plain != owned


@pytest.mark.parametrize("snapshots", ["all", "refs"])
async def test_loads_of_all_snapshots_or_of_refs_have_labels(client: Client, snapshots: str) -> None:
    await govern(client, T, GOVERNED)

    assert await labels(client, f"{T}?snapshots={snapshots}") == LABELS


async def test_a_column_that_is_renamed_keeps_its_tags(client: Client) -> None:
    await govern(client, T, {"arco.column.1.tag.pii": "email"})
    schema: JsonObject = {
        "type": "struct",
        "fields": [{"id": 1, "name": "renamed", "required": False, "type": "long"}],
    }
    updates = [{"action": "add-schema", "schema": schema}, {"action": "set-current-schema", "schema-id": -1}]
    assert (await client.post(T, {"requirements": [], "updates": updates})).status == 200

    assert await labels(client, T) == {"fields": [{"field-id": 1, "labels": {"arco.tag.pii": "email"}}]}


class TestNamespaces:
    async def test_it_is_shown_among_the_properties(self, client: Client) -> None:
        answer = await govern(client, DB, OWNED)

        assert (answer.status, answer.json, await governed(client, DB)) == (200, OWNED, OWNED)
        properties = (await client.get(DB)).json["properties"]
        assert isinstance(properties, dict)
        assert properties["arco.owner"] == "ada"
        assert "location" in properties

    async def test_columns_are_not_its(self, client: Client) -> None:
        answer = await govern(client, DB, {"arco.column.1.tag.pii": "x"})

        assert (answer.status, "namespace db has no columns" in answer.message) == (400, True)

    @pytest.mark.parametrize("name", ["arco.owner", "arco.tag.domain", "ARCO.owner", "arco.anything"])
    async def test_engines_can_neither_make_nor_change_it(self, client: Client, name: str) -> None:
        await govern(client, DB, {**OWNED, "arco.tag.domain": "sales"})
        made = await client.post("/v1/wh/namespaces", {"namespace": ["new"], "properties": {name: "me"}})
        changed = await client.post(f"{DB}/properties", {"updates": {name: "me", "a": "b"}})
        removed = await client.post(f"{DB}/properties", {"removals": [name]})

        for answer in (made, changed, removed):
            assert (answer.status, answer.error_type) == (400, "BadRequestException")
            assert f"'arco.' are reserved: {name}" in answer.message
        assert await governed(client, DB) == {**OWNED, "arco.tag.domain": "sales"}
        assert "a" not in (await client.get(DB)).json["properties"]  # type: ignore[operator]

    async def test_what_was_shown_may_be_sent_back(self, client: Client) -> None:
        await govern(client, DB, OWNED)
        shown = (await client.get(DB)).json["properties"]
        assert isinstance(shown, dict)

        answer = await client.post(f"{DB}/properties", {"updates": {**shown, "comment": "mine"}})

        assert answer.status == 200
        assert (await client.get(DB)).json["properties"] == {**shown, "comment": "mine"}

    async def test_a_replay_of_a_change_that_removed_all_answers_with_an_empty_document(
        self, service: HttpService
    ) -> None:
        key = service.key()
        await govern(service.client, DB, OWNED)

        answers = [await govern(service.client, DB, {"arco.owner": None}, idempotency_key=key) for _ in range(2)]
        answers.append(await govern(service.serve(), DB, {"arco.owner": None}, idempotency_key=key))

        assert [(answer.status, answer.json) for answer in answers] == [(200, {})] * 3


@pytest.mark.parametrize("update", ["set-properties", "remove-properties"])
@pytest.mark.parametrize("of", [T, V])
async def test_no_commit_sets_or_removes_what_is_reserved(views: HttpService, of: str, update: str) -> None:
    change: JsonObject = {"updates": OWNED} if update == "set-properties" else {"removals": ["arco.owner"]}
    await govern(views.client, of, OWNED)

    answer = await views.client.post(of, {"requirements": [], "updates": [{"action": update, **change}]})

    assert (answer.status, "'arco.' are reserved: arco.owner" in answer.message) == (400, True)
    assert await governed(views.client, of) == OWNED


async def test_no_create_sets_what_is_reserved(client: Client) -> None:
    table = await client.post(f"{DB}/tables", {"name": "new", "schema": schema("x"), "properties": OWNED})
    view = await client.post(f"{DB}/views", view_request("new", {"arco.owner": "ada"}))

    for answer in (table, view):
        assert (answer.status, "are reserved: arco.owner" in answer.message) == (400, True)


async def test_no_property_is_set_that_polaris_would_refuse(views: HttpService) -> None:
    """So Polaris's own tests expect it: `test...WithReservedProperty`, `testRemoveReservedPropertyFromNamespace`."""
    client, theirs = views.client, {"polaris.reserved": "x"}
    removal = {"action": "remove-properties", "removals": [*theirs]}
    answers = [
        await client.post("/v1/wh/namespaces", {"namespace": ["new"], "properties": theirs}),
        await client.post(f"{DB}/properties", {"updates": theirs}),
        await client.post(f"{DB}/properties", {"removals": [*theirs]}),
        await client.post(f"{DB}/tables", {"name": "new", "schema": schema("x"), "properties": theirs}),
        await client.post(f"{DB}/views", view_request("new", {**theirs})),
        await client.post(f"/polaris{DB}/generic-tables", {"name": "new", "format": "csv", "properties": theirs}),
        await client.post(T, set_property("polaris.reserved", "x")),
        await client.post(V, set_property("polaris.reserved", "x")),
        await client.post(T, {"requirements": [], "updates": [removal]}),
    ]

    for answer in answers:
        assert (answer.status, answer.error_type) == (400, "BadRequestException")
        assert "Properties that start with 'polaris.' are reserved: polaris.reserved" in answer.message


async def test_a_generic_table_takes_no_name_that_is_reserved(client: Client) -> None:
    answer = await client.post(f"/polaris{DB}/generic-tables", {"name": "g", "format": "csv", "properties": OWNED})

    assert (answer.status, "'arco.' are reserved: arco.owner" in answer.message) == (400, True)


async def test_properties_of_a_registered_file_govern_nothing(service: HttpService) -> None:
    """They are another catalog's words: they stay where they are, in the file, and they do not become labels."""
    location = await service.keep_metadata("kept", properties={"arco.owner": "mallory"})

    answer = await service.client.post(f"{DB}/register", {"name": "u", "metadata-location": location})

    assert answer.status == 200, answer.body
    loaded = (await service.client.get(f"{DB}/tables/u")).json
    assert loaded["metadata"]["properties"]["arco.owner"] == "mallory"  # type: ignore[index,call-overload]
    assert ("labels" in loaded, await governed(service.client, f"{DB}/tables/u")) == (False, {})


async def test_the_history_names_what_was_changed_and_no_values(views: HttpService) -> None:
    for of in (DB, T, V):
        assert (await govern(views.client, of, OWNED)).status == 200
        assert (await govern(views.client, of, OWNED)).status == 200  # which changes nothing

    entries = [each async for each in history(views.session())][:3]

    assert [(each["kind"], each["governance"]) for each in entries] == [
        ("govern-view", ["arco.owner"]),
        ("govern-table", ["arco.owner"]),
        ("govern-namespace", ["arco.owner"]),
    ]
    assert b"ada" not in dumps([*entries])
