"""Tables over HTTP."""

from collections.abc import Callable
from datetime import UTC, datetime
from json import loads

import pytest

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.operations.reports import MAX_BYTES
from storage_backends import Found
from tests.support.http_service import HttpService
from tools.support.asgi_client import Answer, Client
from tools.support.request_bodies import commit_report, scan_report, schema, set_property

TABLES = "/v1/wh/namespaces/db/tables"
TABLE = f"{TABLES}/t"


def snapshot(number: int, **more: JsonValue) -> JsonObject:
    return {
        "snapshot-id": number,
        "sequence-number": 1,
        "timestamp-ms": 1_767_225_600_000,
        "manifest-list": f"memory:///wh/warehouse/db/{number}.avro",
        "summary": {"operation": "append"},
        "schema-id": 0,
        **more,
    }


def metadata(answer: Answer) -> JsonObject:
    found = answer.json["metadata"]
    assert isinstance(found, dict)
    return found


async def test_a_created_table_comes_back_as_it_can_be_loaded(service: HttpService) -> None:
    created = await service.client.post(TABLES, {"name": "u", "schema": schema("x", "y")})
    loaded = await service.client.get(f"{TABLES}/u")

    assert [*created.json] == ["metadata-location", "metadata", "config"]
    assert created.body == loaded.body
    assert metadata(loaded)["last-column-id"] == 2
    assert loaded.json["config"] == {}


async def test_metadata_is_sent_as_it_is_stored(service: HttpService) -> None:
    """Registered files come from anywhere: with spaces, unknown fields, and numbers that no float holds."""
    unknown: list[JsonValue] = [2**63 - 1, 123456789012345678901234567890]
    location = await service.keep_metadata("kept", unknown=unknown)
    stored = await service.store.get(location.removeprefix("memory:///"))
    assert isinstance(stored, Found)

    registered = await service.client.post(
        "/v1/wh/namespaces/db/register", {"name": "u", "metadata-location": location}
    )

    assert registered.status == 200, registered.body
    for answer in (registered, await service.client.get(f"{TABLES}/u")):
        assert stored.body in answer.body
        assert metadata(answer)["unknown"] == unknown


async def test_a_commit_answers_with_the_new_state_and_no_config(client: Client) -> None:
    answer = await client.post(TABLE, set_property("a", "b"))

    assert [*answer.json] == ["metadata-location", "metadata"]
    assert metadata(answer)["properties"] == {**_properties(await client.get(TABLE)), "a": "b"}
    assert answer.json["metadata-location"] == (await client.get(TABLE)).json["metadata-location"]


def _properties(answer: Answer) -> JsonObject:
    found = metadata(answer)["properties"]
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    "identifier", [None, {"namespace": ["db"], "name": "t"}, {"namespace": ["db"], "name": "t", "more": 1}]
)
async def test_a_commit_may_name_its_table(client: Client, identifier: JsonValue) -> None:
    assert (await client.post(TABLE, {"identifier": identifier, **set_property("a", "b")})).status == 200


@pytest.mark.parametrize(
    "identifier",
    [
        {"namespace": ["db"], "name": "u"},
        {"namespace": ["db", "t"], "name": "t"},
        {"namespace": [], "name": "t"},
        {"namespace": ["db"]},
        {"name": "t"},
        "db.t",
        ["db", "t"],
    ],
)
async def test_a_commit_that_names_another_table_than_the_path_is_refused(
    client: Client, identifier: JsonValue
) -> None:
    answer = await client.post(TABLE, {"identifier": identifier, **set_property("a", "b")})

    assert (answer.status, answer.error_type) == (400, "BadRequestException")
    assert "identifier" in answer.message


async def test_unknown_updates_and_requirements_are_refused_by_name(client: Client) -> None:
    answer = await client.post(TABLE, {"requirements": [{"type": "assert-luck"}], "updates": [{"action": "improve"}]})

    assert (answer.status, answer.error_type) == (400, "BadRequestException")
    assert "assert-luck" in answer.message
    assert "improve" in answer.message


async def test_a_requirement_that_does_not_hold_is_a_conflict(client: Client) -> None:
    requirement = {"type": "assert-current-schema-id", "current-schema-id": 7}

    answer = await client.post(TABLE, {**set_property("a", "b"), "requirements": [requirement]})

    assert (answer.status, answer.error_type) == (409, "CommitFailedException")
    assert answer.message.startswith("Requirement failed: current schema changed")


async def test_snapshots_refs_hides_what_no_ref_names(client: Client) -> None:
    add: list[JsonValue] = [{"action": "add-snapshot", "snapshot": snapshot(number)} for number in (1, 2)]
    point: JsonObject = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 2}
    answer = await client.post(TABLE, {"requirements": [], "updates": [*add, point]})
    assert answer.status == 200, answer.body

    def ids(loaded: Answer) -> list[JsonValue]:
        snapshots = metadata(loaded)["snapshots"]
        assert isinstance(snapshots, list)
        return [found["snapshot-id"] for found in snapshots if isinstance(found, dict)]

    everything = await client.get(TABLE)
    visible = await client.get(f"{TABLE}?snapshots=refs")
    assert ids(everything) == ids(await client.get(f"{TABLE}?snapshots=all")) == [1, 2]
    assert ids(everything) == ids(await client.get(f"{TABLE}?snapshots=ALL"))
    assert ids(visible) == ids(await client.get(f"{TABLE}?snapshots=Refs"))
    assert ids(visible) == [2]
    assert [*visible.json] == [*everything.json]
    assert {**metadata(visible), "snapshots": None} == {**metadata(everything), "snapshots": None}


@pytest.mark.parametrize("query", ["snapshots=", "snapshots=none", "snapshots=ALL%20", "snapshots=all&snapshots=refs"])
async def test_other_choices_of_snapshots_are_refused(client: Client, query: str) -> None:
    answer = await client.get(f"{TABLE}?{query}")

    assert (answer.status, answer.error_type) == (400, "BadRequestException")
    assert "snapshots" in answer.message


async def test_a_table_is_staged_then_created_by_a_commit(client: Client) -> None:
    staged = await client.post(TABLES, {"name": "s", "schema": schema("x"), "stage-create": True})
    assert staged.status == 200
    assert (await client.head(f"{TABLES}/s")).status == 404

    base = metadata(staged)
    updates: list[JsonValue] = [
        {"action": "assign-uuid", "uuid": base["table-uuid"]},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "add-schema", "schema": schema("x"), "last-column-id": 1},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": base["location"]},
    ]
    commit: JsonObject = {"requirements": [{"type": "assert-create"}], "updates": updates}
    created = await client.post(f"{TABLES}/s", commit)
    again = await client.post(f"{TABLES}/s", commit)

    assert created.status == 200, created.body
    assert metadata(created)["table-uuid"] == base["table-uuid"]
    assert metadata(created)["location"] == base["location"]
    assert (again.status, again.error_type) == (409, "CommitFailedException")
    assert again.message == "Requirement failed: table already exists"


@pytest.mark.parametrize("query", ["", "?purgeRequested=true", "?purgeRequested=True", "?purgeRequested=FALSE"])
async def test_a_drop_may_ask_for_a_purge(client: Client, query: str) -> None:
    answer = await client.delete(TABLE + query)

    assert (answer.status, answer.body) == (204, b"")
    assert (await client.head(TABLE)).status == 404
    assert (await client.get(TABLES)).json["identifiers"] == []


async def test_what_was_dropped_is_listed_and_restored(client: Client) -> None:
    listing = "/v1/namespaces/db/tables?deleted=true"
    assert (await client.get(listing)).json == {"identifiers": [], "next-page-token": None, "dropped": []}
    await client.delete(f"{TABLE}?purgeRequested=true")
    answer = loads((await client.get(listing)).body)
    assert answer["identifiers"] == [{"namespace": ["db"], "name": "t"}]
    [dropped] = answer["dropped"]
    assert dropped["purge-after-ms"] - dropped["dropped-at-ms"] == 24 * 60 * 60 * 1000
    assert (dropped["state"], len(dropped["purge-task"])) == ("dropped", 36)

    assert (await client.post(f"{TABLE}/undrop", {})).status == 204

    assert (await client.get(TABLE)).status == 200
    assert (await client.get(listing)).json["identifiers"] == []
    again = await client.post(f"{TABLE}/undrop", {})
    assert (again.status, again.error_type) == (404, "NoSuchTableException")


async def test_a_restore_into_a_missing_namespace_names_what_to_create_first(client: Client) -> None:
    await client.delete(TABLE)
    assert (await client.delete("/v1/namespaces/db")).status == 204

    refused = await client.post(f"{TABLE}/undrop", {})

    assert (refused.status, refused.error_type) == (404, "NoSuchNamespaceException")
    assert refused.message == (
        "db.t cannot be restored: its namespace db does not exist. Create the namespace, and then restore what was "
        "dropped from it: in a realm that takes TABLE_DROP on the catalog, or VIEW_DROP for a view"
    )
    assert (await client.post("/v1/namespaces", {"namespace": ["db"]})).status == 200
    assert (await client.post(f"{TABLE}/undrop", {})).status == 204


async def test_what_was_dropped_is_listed_in_pages_of_one_state(service: HttpService) -> None:
    client, names = service.client, ["a", "b", "b", "c", "d"]
    for name in names:
        await client.post(TABLES, {"name": name, "schema": schema("x")})
        await client.delete(f"{TABLES}/{name}")
    await client.delete(TABLE)
    everything = loads((await client.get(f"{TABLES}?deleted=true")).body)
    assert [each["name"] for each in everything["identifiers"]] == ["t", *reversed(names)]

    pages, token = list[list[str]](), ""
    for _ in range(3):
        page = loads((await client.get(f"{TABLES}?deleted=true&pageSize=2&pageToken={token}")).body)
        assert [each["name"] for each in page["dropped"]] == [each["name"] for each in page["identifiers"]]
        pages.append([each["name"] for each in page["identifiers"]])
        token = page["next-page-token"]
        await client.delete(f"{TABLES}/later")
        await client.post(TABLES, {"name": "later", "schema": schema("x")})

    assert not token
    assert pages == [["a", "b"], ["b", "c"], ["d", "t"]]
    other = loads((await client.get(f"{TABLES}?pageSize=1&pageToken=")).body)["next-page-token"]
    assert other is None
    assert (await client.get(f"{TABLES}?deleted=true&pageToken=x")).status == 400


async def test_a_table_that_keeps_its_files_is_dropped_without_a_purge_alone(client: Client) -> None:
    update = {"action": "set-properties", "updates": {"gc.enabled": "false"}}
    await client.post(TABLE, {"requirements": [], "updates": [update]})

    refused = await client.delete(f"{TABLE}?purgeRequested=true")

    assert (refused.status, refused.error_type) == (409, "CommitFailedException")
    assert refused.message.startswith("Cannot purge table: db.t has gc.enabled=false")
    assert (await client.head(TABLE)).status == 204
    assert (await client.delete(TABLE)).status == 204


@pytest.mark.parametrize("value", ["", "yes", "1", "truE ", "true&purgeRequested=true"])
async def test_whether_to_purge_is_never_guessed(client: Client, value: str) -> None:
    answer = await client.delete(f"{TABLE}?purgeRequested={value.replace(' ', '%20')}")

    assert (answer.status, answer.error_type) == (400, "BadRequestException")
    assert (await client.head(TABLE)).status == 204


async def test_a_rename_moves_the_table_as_it_is(service: HttpService) -> None:
    await service.namespace("other", "other")
    before = (await service.client.get(TABLE)).json
    target = {"namespace": ["other"], "name": "u"}

    answer = await service.client.post(
        "/v1/wh/tables/rename", {"source": {"namespace": ["db"], "name": "t"}, "destination": target}
    )

    assert (answer.status, answer.body) == (204, b"")
    assert (await service.client.head(TABLE)).status == 404
    assert (await service.client.get("/v1/wh/namespaces/other/tables/u")).json == before


class TestReports:
    async def test_they_are_kept_nowhere_unless_that_is_wanted(self, service: HttpService) -> None:
        before = service.store.keys()

        for report in (scan_report(), commit_report()):
            answer = await service.client.post(f"{TABLE}/metrics", report)
            assert (answer.status, answer.body) == (204, b"")

        assert service.store.keys() == before

    async def test_a_commit_may_be_to_a_table_that_is_only_staged(self, service: HttpService) -> None:
        """Java's client reports what a transaction appends before that makes the table."""
        answer = await service.client.post(f"{TABLES}/staged/metrics", commit_report("staged"))

        assert answer.status == 204

    @pytest.mark.parametrize(
        ("path", "report", "error"),
        [
            ("db/tables/none", scan_report("none"), "NoSuchTableException"),
            ("none/tables/t", scan_report(), "NoSuchTableException"),
            ("none/tables/t", commit_report(), "NoSuchNamespaceException"),
            ("db/tables/v", commit_report("v"), "NoSuchTableException"),
        ],
    )
    async def test_what_is_no_table_has_none(
        self, service: HttpService, path: str, report: JsonObject, error: str
    ) -> None:
        await service.view("v")
        answer = await service.client.post(f"/v1/wh/namespaces/{path}/metrics", report)

        assert (answer.status, answer.error_type) == (404, error)

    @pytest.mark.parametrize("report", [scan_report(), commit_report()])
    async def test_each_is_an_object_where_they_are_kept(
        self, report: JsonObject, service_with: Callable[..., HttpService]
    ) -> None:
        service = service_with(keep_reports=True)
        await service.namespace("db", "db")
        await service.table("t")
        for _ in range(2):
            assert (await service.client.post(f"{TABLE}/metrics", report)).status == 204

        kept = [*service.store.keys("wh/_catalog/reports/")]
        day = datetime.fromtimestamp(service.clock.now_ms() / 1000, UTC).date().isoformat()
        assert [key.rpartition("/")[0] for key in kept] == [f"wh/_catalog/reports/{day}"] * 2
        found = await service.store.get(kept[0])
        assert isinstance(found, Found)
        document = loads(found.body)
        assert isinstance(document, dict)
        assert [*document] == ["version", "ms", "namespace", "table", "entity", "by", "report"]
        assert (document["namespace"], document["table"], document["report"]) == (["db"], "t", report)

    async def test_one_that_no_engine_sends_is_not_kept(self, service_with: Callable[..., HttpService]) -> None:
        service = service_with(keep_reports=True)
        await service.namespace("db", "db")
        await service.table("t")
        before = service.store.keys()
        long = commit_report() | {"metadata": {"x": "y" * MAX_BYTES}}

        assert (await service.client.post(f"{TABLE}/metrics", long)).status == 204
        assert service.store.keys() == before


async def test_a_location_that_is_taken_is_a_bad_request_that_names_who_has_it(service: HttpService) -> None:
    """On a create engines would take a 409 for a table of that name, and on a commit they would try again."""
    place = "memory:///wh/warehouse/place"
    taken: JsonObject = {"name": "u", "schema": schema("x"), "location": f"{place}/inner"}
    made = await service.client.post(TABLES, {"name": "holder", "schema": schema("x"), "location": place})
    assert made.status == 200
    moved: JsonObject = {"requirements": [], "updates": [{"action": "set-location", "location": f"{place}/x"}]}
    identifier: JsonObject = {"namespace": ["db"], "name": "t"}
    register: JsonObject = {"name": "r", "metadata-location": made.json["metadata-location"]}
    answers = [
        await service.client.post(TABLES, taken),
        await service.client.post(TABLES, {**taken, "stage-create": True}),
        await service.client.post(TABLE, moved),
        await service.client.post(
            "/v1/wh/transactions/commit", {"table-changes": [{"identifier": identifier, **moved}]}
        ),
        await service.client.post("/v1/wh/namespaces/db/register", register),
    ]
    renaming = "rename that one if it is the same under its old name (`arco rename`), else drop it first"
    for answer, advice in zip(answers, [*["choose another location"] * 4, renaming], strict=True):
        assert (answer.status, answer.error_type) == (400, "BadRequestException")
        assert answer.message.endswith(
            f"overlaps the location of table db.holder: tables and views may not share a folder, so {advice}"
        )
