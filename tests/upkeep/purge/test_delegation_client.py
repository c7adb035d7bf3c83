"""Calls to a delegation service, over HTTP on loopback."""

from collections.abc import Callable
from pathlib import Path

import pytest
from aiohttp import web

from arco_catalog.upkeep.purge.delegation_client import (
    ClientFiles,
    HttpDelegationClient,
)
from arco_catalog.upkeep.purge.delegation_service import DelegatedTask
from arco_catalog.upkeep.purge.worker import delegate_from_env
from storage_backends import StoreDenied, StoreUnavailable
from storage_backends.clock import system_now_ms
from tests.support.fake_runtime import FakeRuntime
from tests.support.stub_server import stub_server

KEY = "01890f5e-0000-7000-8000-000000000000"
TASK = {"delegation_task_id": "t1", "status": "QUEUED", "status_query_url": "/x"}


def answering(status: int, body: object) -> Callable[[web.BaseRequest], web.Response]:
    return lambda _: web.json_response(body, status=status)


async def test_a_task_is_handed_over_with_the_token_of_now(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first\n")
    seen: list[tuple[str, str, str | None, str | None]] = []

    async def handle(request: web.BaseRequest) -> web.Response:
        headers = request.headers
        seen.append((request.method, request.path, headers.get("authorization"), headers.get("idempotency-key")))
        ended = {
            "delegation_task_id": "t1",
            "status": "FAILED_TERMINAL",
            "error_code": "TASK_FAILED",
            "result_summary": "x",
            "execution_result": {"files_deleted": 3},
        }
        return web.json_response(TASK, status=202) if request.method == "POST" else web.json_response(ended)

    async with stub_server(handle) as server:
        client = HttpDelegationClient(f"{server.uri}/", ClientFiles(str(token)), system_now_ms)
        assert await client.submit({"a": 1}, KEY) == DelegatedTask("t1", "QUEUED")
        token.write_text("second")
        assert await client.status("t1") == DelegatedTask(
            "t1", "FAILED_TERMINAL", "TASK_FAILED", "x", {"files_deleted": 3}
        )

    tasks = "/delegation-service/api/v1/tasks"
    assert seen == [("POST", tasks, "Bearer first", KEY), ("GET", f"{tasks}/t1", "Bearer second", None)]


@pytest.mark.parametrize(
    ("status", "body", "error", "why"),
    [
        (403, {"error_code": "FORBIDDEN", "message": "no"}, StoreDenied, "status 403: FORBIDDEN no"),
        (409, {"error_code": "LOCATION_HELD", "message": "held"}, StoreDenied, "status 409: LOCATION_HELD held"),
        (302, {}, StoreDenied, "status 302"),
        (429, {}, StoreUnavailable, "status 429"),
        (503, ["x"], StoreUnavailable, "status 503"),
        (202, {"status": "QUEUED"}, StoreUnavailable, "has no delegation_task_id or no status"),
        (200, TASK, StoreDenied, "status 200"),
    ],
)
async def test_another_answer_is_a_refusal_or_passes(
    status: int, body: object, error: type[Exception], why: str
) -> None:
    answer = answering(status, body)

    async def handle(request: web.BaseRequest) -> web.Response:
        return answer(request)

    async with stub_server(handle) as server:
        client = HttpDelegationClient(server.uri, ClientFiles(), system_now_ms)
        with pytest.raises(error, match=why):
            await client.submit({}, KEY)


async def test_a_task_that_the_service_does_not_know_is_none() -> None:
    async def handle(request: web.BaseRequest) -> web.Response:
        return web.json_response({"error_code": "NOT_FOUND", "message": ""}, status=404)

    async with stub_server(handle) as server:
        assert await HttpDelegationClient(server.uri, ClientFiles(), system_now_ms).status("t") is None


async def test_files_that_cannot_be_used_are_searched_again(tmp_path: Path) -> None:
    (tmp_path / "long").write_text("x" * 70_000)
    for files in (
        ClientFiles(token=f"{tmp_path}/none"),
        ClientFiles(certificate=f"{tmp_path}/none"),
        ClientFiles(token=f"{tmp_path}/long"),
        ClientFiles(token="/dev/zero"),
    ):
        with pytest.raises(StoreUnavailable, match="can't be read"):
            await HttpDelegationClient("http://127.0.0.1:1", files, system_now_ms).status("t")


@pytest.mark.parametrize(
    ("variables", "why"),
    [
        ({}, "needs ARCO_DELEGATION_URL"),
        ({"ARCO_DELEGATION_URL": "http://delegation.example.com"}, "must be an https URL"),
        ({"ARCO_DELEGATION_URL": "file:///etc"}, "must be an https URL"),
        ({"ARCO_DELEGATION_URL": "https://user@example.com"}, "must be a plain URL"),
        ({"ARCO_PURGE_EXECUTOR": "other"}, "expected local or delegated"),
    ],
)
def test_variables_that_name_no_service_are_reported(variables: dict[str, str], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        delegate_from_env({"ARCO_PURGE_EXECUTOR": "delegated", **variables}, FakeRuntime())


def test_purges_run_here_unless_a_service_is_configured() -> None:
    assert delegate_from_env({"ARCO_DELEGATION_URL": "https://delegation.example.com"}, FakeRuntime()) is None
    named = {"ARCO_PURGE_EXECUTOR": "delegated", "ARCO_DELEGATION_URL": "https://delegation.example.com/"}
    delegate = delegate_from_env(named, FakeRuntime())
    assert delegate is not None
    assert delegate.client.url == "https://delegation.example.com"
