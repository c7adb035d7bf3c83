"""Transactions over HTTP."""

from typing import cast

import pytest

from arco_catalog.http.sessions import Sessions
from arco_catalog.iceberg.commit import MAX_REQUIREMENTS, MAX_UPDATES
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.protocol.catalog import Session
from tests.support.http_service import HttpService
from tools.support.request_bodies import set_property

COMMIT = "/v1/wh/transactions/commit"
TABLES = "/v1/wh/namespaces/db/tables"


def change(name: str, value: str) -> JsonObject:
    return {"identifier": {"namespace": ["db"], "name": name}, **set_property("a", value)}


async def value_of(service: HttpService, name: str) -> JsonValue:
    metadata = cast(JsonObject, (await service.client.get(f"{TABLES}/{name}")).json["metadata"])
    return cast(JsonObject, metadata["properties"]).get("a")


async def test_all_changes_are_applied(service: HttpService) -> None:
    await service.table("u")

    answer = await service.client.post(COMMIT, {"table-changes": [change("t", "1"), change("u", "2")]})

    assert (answer.status, answer.body) == (204, b"")
    assert [await value_of(service, name) for name in ("t", "u")] == ["1", "2"]


async def test_one_that_fails_applies_none(service: HttpService) -> None:
    await service.table("u")
    failing: JsonObject = {
        **change("u", "2"),
        "requirements": [{"type": "assert-current-schema-id", "current-schema-id": 9}],
    }

    answer = await service.client.post(COMMIT, {"table-changes": [change("t", "1"), failing]})

    assert (answer.status, answer.error_type) == (409, "CommitFailedException")
    assert [await value_of(service, name) for name in ("t", "u")] == [None, None]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "Invalid request: missing required field 'table-changes'"),
        ({"table-changes": {}}, "Invalid request.table-changes: expected an array, found an object"),
        ({"table-changes": [1]}, "Invalid request.table-changes[0]: expected an object, found an integer"),
        ({"table-changes": [{}]}, "Invalid request.table-changes[0]: missing required field 'identifier'"),
        (
            {"table-changes": [{"identifier": {"namespace": ["db"], "name": ""}}]},
            "request.table-changes[0].identifier.name must not be empty",
        ),
    ],
)
async def test_what_is_wrong_is_named(service: HttpService, body: JsonValue, message: str) -> None:
    answer = await service.client.post(COMMIT, body)

    assert (answer.status, answer.error_type, answer.message) == (400, "BadRequestException", message)


async def test_the_same_table_twice_is_refused(service: HttpService) -> None:
    answer = await service.client.post(COMMIT, {"table-changes": [change("t", "1"), change("t", "2")]})

    assert (answer.status, answer.error_type) == (400, "BadRequestException")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ([{}] * 101, "A transaction may name at most 100 tables, not 101"),
        (
            [{"updates": [{}] * (MAX_UPDATES // 2 + 1)}] * 2,
            "A commit to one table or more may have at most 50,000 updates, not 50,002: make more commits",
        ),
        (
            [{"requirements": [{}] * (MAX_REQUIREMENTS // 2 + 1)}] * 2,
            "A commit to one table or more may have at most 50,000 requirements, not 50,002: make more commits",
        ),
    ],
)
async def test_a_transaction_is_counted_before_its_rights_are_computed(
    service: HttpService, changes: list[JsonValue], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Sessions, "open", refuse_to_open)

    answer = await service.client.post(COMMIT, {"table-changes": changes})

    assert (answer.status, answer.message) == (400, message)


async def test_a_commit_is_counted_before_its_rights_are_computed(
    service: HttpService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Sessions, "open", refuse_to_open)

    answer = await service.client.post(f"{TABLES}/t", {"updates": [{}] * (MAX_UPDATES + 1)})

    assert (answer.status, answer.message) == (
        400,
        "A commit to one table or more may have at most 50,000 updates, not 50,001: make more commits",
    )


def refuse_to_open(sessions: Sessions) -> Session:
    """Stands in for opening a session, which computes the rights of each update."""
    raise AssertionError("the session was opened before the request was counted")
