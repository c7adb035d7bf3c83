"""The delegation service's HTTP API, held to docs/delegation-service.openapi.yaml, and that to its source."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from openapi_spec_validator import validate

from arco_catalog.http.delegation_service.errors import TABLE
from arco_catalog.http.delegation_service.shapes import BASE, WORDS
from arco_catalog.iceberg.errors import BadRequest, NotFound
from arco_catalog.operations.catalogs import DeployedCatalog
from arco_catalog.protocol.catalog import Catalog
from arco_catalog.state.access import State
from arco_catalog.state.task import TABLE_PURGE, Status
from arco_catalog.state.task_log import StoredTask, read_task
from arco_catalog.upkeep.delegation_service import service
from arco_catalog.upkeep.delegation_service.payload import TASK_TYPES
from arco_catalog.upkeep.delegation_service.service import DelegationService
from tests.http.delegation_service.conftest import SYNCHRONOUS, TASKS, Http, changed
from tests.http.delegation_service.openapi import DOCUMENT, SCHEMAS
from tests.support.foreign_tables import ForeignTable, foreign_table
from tools.support import worst_documents as worst

REQUIRED = {  # of Apache Polaris's proposal
    "TaskPayload": ["common_payload", "operation_parameters"],
    "CommonPayload": ["operation_type", "realm_identifier"],
    "PurgeTableOperationParameters": ["table_identity", "metadata_location", "metadata", "config"],
    "TableIdentity": ["table_entity_id", "catalog_name", "namespace_levels", "table_name"],
    "TableMetadata": ["location", "table-uuid", "format-version"],
    "TaskSuccessResponse": ["delegation_task_id", "status"],
    "ErrorResponse": ["error_code", "message"],
}


def test_the_file_describes_an_api_by_openapi() -> None:
    validate(DOCUMENT)


def test_the_file_has_the_shapes_of_the_proposal() -> None:
    assert {name: SCHEMAS[name]["required"] for name in REQUIRED} == REQUIRED
    properties = {name: set(schema.get("properties", ())) for name, schema in SCHEMAS.items()}
    assert properties["CommonPayload"] == {
        *("operation_type", "realm_identifier", "request_timestamp_utc", "polaris_correlation_id")
    }
    assert properties["PurgeTableOperationParameters"] == {
        *REQUIRED["PurgeTableOperationParameters"],
        "properties",
    }
    assert properties["TaskSuccessResponse"] == {"delegation_task_id", "status", "message", "execution_result"}
    assert properties["ErrorResponse"] == {"delegation_task_id", "status", "error_code", "message", "details"}
    assert {"files_deleted", "bytes_deleted"} <= properties["ExecutionResult"]
    assert {
        *("version", "parent_id", "task_type", "task_payload", "status", "received_timestamp", "attempt_count"),
        *("last_status_change_ts", "created_ts", "lease_acquired_ts", "result_summary", "result_extended"),
    } <= properties["Task"]
    assert SCHEMAS["CommonPayload"]["properties"]["operation_type"]["enum"] == ["SYNCHRONOUS_TABLE_PURGE"]
    assert SCHEMAS["TaskSuccessResponse"]["properties"]["status"]["enum"] == ["COMPLETED_SUCCESS"]
    assert SCHEMAS["ErrorResponse"]["properties"]["status"]["enum"] == ["FAILED_TERMINAL"]
    synchronous = DOCUMENT["paths"]["/v1/tasks/execute/synchronous"]["post"]
    assert {"200", "400", "401", "403", "409", "500", "502"} <= set(synchronous["responses"])
    assert DOCUMENT["servers"][0]["url"].endswith("/delegation-service/api")
    assert DOCUMENT["security"][0] == {"OAuth2": ["execute_tasks"]}


def test_the_code_uses_the_words_of_the_file() -> None:
    assert set(WORDS) == set(Status)
    assert set(WORDS.values()) == set(SCHEMAS["Status"]["enum"])
    assert set(TASK_TYPES) == set(SCHEMAS["CommonPayload"]["properties"]["operation_type"]["enum"])
    assert TASK_TYPES["SYNCHRONOUS_TABLE_PURGE"] == TABLE_PURGE
    codes = {code for _, code in TABLE.values()} | {"INTERNAL_ERROR", "STORAGE_FAILED", "TASK_FAILED"}
    assert codes == set(SCHEMAS["ErrorResponse"]["properties"]["error_code"]["enum"])


async def test_a_synchronous_purge_answers_when_all_is_deleted(http: Http, table: ForeignTable) -> None:
    count = len(table.files())

    answer = await http.execute(table.payload())

    assert answer.status == 200
    assert table.files() == []
    assert answer.json["status"] == "COMPLETED_SUCCESS"
    result: Any = answer.json["execution_result"]
    assert (result["files_deleted"], result["outside"], result["left_behind"]) == (count, 0, 0)
    assert result["bytes_deleted"] > 0


async def test_a_task_is_submitted_and_polled_until_it_has_ended(http: Http, table: ForeignTable) -> None:
    taken = await http.submit(table.payload())

    assert (taken.status, taken.json["status"]) == (202, "QUEUED")
    url = str(taken.json["status_query_url"])
    task = str(taken.json["delegation_task_id"])
    assert url == f"{BASE}/tasks/{task}"
    await http.services.service.ended(task)
    shown = await http.show(task)
    assert (shown.status, shown.json["status"], shown.json["task_type"]) == (200, "COMPLETED_SUCCESS", "TABLE_PURGE")
    payload = json.loads(str(shown.json["task_payload"]))
    assert payload["operation_parameters"]["table_identity"]["table_name"] == "t"
    assert "config" not in payload["operation_parameters"]
    listed = await http.list()
    assert [each["delegation_task_id"] for each in listed.json["tasks"]] == [task]  # type: ignore[index, union-attr, call-overload]


async def test_no_caller_sees_tasks_of_another(http: Http, table: ForeignTable) -> None:
    task = str((await http.submit(table.payload())).json["delegation_task_id"])
    await http.services.service.ended(task)

    assert (await http.show(task, caller="others")).status == 404
    assert (await http.list(caller="others")).json == {"tasks": []}
    other = await http.submit(table.payload(), caller="others")
    assert other.json["delegation_task_id"] != task


async def test_a_list_comes_in_pages(http: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arco_catalog.upkeep.delegation_service.service.PAGE", 2)
    for name in ("a", "b", "c"):
        table = foreign_table(http.services.folder, name, appends=0)
        assert (await http.execute(table.payload())).status == 200

    first = await http.list()
    second = await http.list(query=f"?page_token={first.json['next_page_token']}")

    pages: Any = [first.json["tasks"], second.json["tasks"]]
    assert [len(page) for page in pages] == [2, 1]
    assert len({task["delegation_task_id"] for page in pages for task in page}) == 3
    assert "next_page_token" not in second.json


async def test_a_page_reads_no_more_tasks_than_it_may_hold_of_any_caller(
    http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arco_catalog.upkeep.delegation_service.service.PAGE", 2)
    for number in range(5):
        table = foreign_table(http.services.folder, f"t{number}", appends=0)
        await http.execute(table.payload(), caller="others" if number else "them")
    reads: list[str] = []

    async def counted(state: State, task: str) -> StoredTask | None:
        reads.append(task)
        return await read_task(state, task)

    monkeypatch.setattr(service, "read_task", counted)
    pages: list[Any] = []
    while not pages or "next_page_token" in pages[-1]:
        reads.clear()
        after = f"?page_token={pages[-1]['next_page_token']}" if pages else ""
        pages.append((await http.list(query=after)).json)
        assert len(reads) <= 2

    assert sorted(len(page["tasks"]) for page in pages) == [0, 0, 1]


async def test_a_replay_is_the_same_task_with_and_without_a_key(http: Http, table: ForeignTable) -> None:
    key = http.services.key()
    first = await http.execute(table.payload(), idempotency_key=key)

    for headers in ({"idempotency_key": key}, {}):
        again = await http.execute(table.payload({"s3.session-token": "another"}), **headers)
        assert (again.status, again.json) == (200, first.json)


async def test_a_key_is_one_requests(http: Http, table: ForeignTable) -> None:
    key = http.services.key()
    await http.execute(table.payload(), idempotency_key=key)
    other = foreign_table(http.services.folder, "other")

    refused = [
        await http.execute(other.payload(), idempotency_key=key),
        await http.submit(table.payload(), idempotency_key=key),
        await http.execute(table.payload(), idempotency_key=key, caller="others"),
    ]

    assert [(each.status, each.json["error_code"]) for each in refused] == [(409, "IDEMPOTENCY_KEY_REUSED")] * 3
    assert len(other.files()) > 0


async def test_a_key_must_be_one(http: Http, table: ForeignTable) -> None:
    answer = await http.submit(table.payload(), idempotency_key="again")

    assert (answer.status, answer.json["error_code"]) == (400, "BAD_REQUEST")
    assert len(table.files()) > 0


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["common_payload"], None),
        (["operation_parameters"], None),
        (["common_payload", "operation_type"], "DROP_EVERYTHING"),
        (["common_payload", "realm_identifier"], None),
        (["operation_parameters", "config"], None),
        (["operation_parameters", "config"], {"s3.access-key-id": 1}),
        (["operation_parameters", "metadata"], None),
        (["operation_parameters", "metadata", "location"], None),
        (["operation_parameters", "metadata", "table-uuid"], 7),
        (["operation_parameters", "metadata", "format-version"], "two"),
        (["operation_parameters", "metadata_location"], ""),
        (["operation_parameters", "table_identity", "table_name"], ""),
        (["operation_parameters", "table_identity", "table_name"], "a\nb"),
        (["operation_parameters", "table_identity", "namespace_levels"], ["a\tb"]),
        (["operation_parameters", "table_identity", "namespace_levels"], "db"),
        (["operation_parameters", "properties"], {"x": "y" * 70_000}),
        (["operation_parameters", "config"], {"x": "y" * 70_000}),
        (["common_payload", "polaris_correlation_id"], "y" * 70_000),
    ],
)
async def test_a_malformed_payload_is_refused(http: Http, table: ForeignTable, path: list[str], value: object) -> None:
    before = table.files()
    answer = await http.execute(changed(table.payload(), path, value))

    assert (answer.status, answer.json["error_code"]) == (400, "BAD_REQUEST")
    assert table.files() == before
    assert (await http.list()).json == {"tasks": []}


async def test_an_unknown_task_and_an_unknown_route_have_one_form_of_error(http: Http) -> None:
    client = http.client()
    answers = [
        await client.get(f"{TASKS}/00000000-0000-4000-8000-000000000000"),
        await client.get(f"{TASKS}/..%2f..%2fcore"),
        await client.get(f"{BASE}/nothing"),
        await client.send("PUT", TASKS),
        await client.send("POST", TASKS, b"{", {"content-type": "application/json"}),
        await client.send("POST", TASKS, b"{}", {"content-type": "text/plain"}),
        await client.send("POST", TASKS, b"[" * 9_000_000, {"content-type": "application/json"}),
    ]

    assert [(each.status, each.json["error_code"]) for each in answers] == [
        (404, "NOT_FOUND"),
        (404, "NOT_FOUND"),
        (404, "NOT_FOUND"),
        (405, "METHOD_NOT_ALLOWED"),
        (400, "BAD_REQUEST"),
        (415, "UNSUPPORTED_MEDIA_TYPE"),
        (413, "PAYLOAD_TOO_LARGE"),
    ]
    assert all(set(each.json) == {"error_code", "message"} for each in answers)


@pytest.mark.parametrize("lost", ["realm", "catalog"])
async def test_a_service_that_can_not_open_its_catalogs_does_not_blame_the_caller(
    http: Http, table: ForeignTable, lost: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The catalog is another's: only the log names it."""

    def refuse() -> Catalog:
        raise BadRequest("catalog other-team: its locations are no longer allowed")

    async def catalogs() -> Sequence[DeployedCatalog]:
        if lost == "realm":
            raise NotFound("there is no realm other-team")
        return [DeployedCatalog("other-team", refuse)]

    access = http.services.access()
    places = replace(access.places, catalogs=catalogs)
    http.services.service = DelegationService(http.services.service.state, replace(access, places=places))
    before = table.files()

    answer = await http.submit(table.payload())

    assert (answer.status, answer.json["error_code"]) == (503, "UNAVAILABLE")
    assert answer.headers["Retry-After"] == "1"
    assert "other-team" not in str(answer.json)
    assert "other-team" in caplog.text
    assert table.files() == before


@pytest.mark.parametrize("name", worst.TASK_BODIES)
@pytest.mark.parametrize("path", [TASKS, SYNCHRONOUS])
async def test_the_worst_tasks_are_refused(http: Http, path: str, name: str) -> None:
    answer = await http.client().send("POST", path, worst.TASK_BODIES[name](), {})
    assert answer.status in (400, 413)
    assert len(answer.body) < 10_000
