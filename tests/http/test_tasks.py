"""Tasks over HTTP: listed, read, and submitted again."""

import pytest

from arco_catalog.state.fields import objects, text
from arco_catalog.state.task import Status, Task
from arco_catalog.state.task_log import append_task, read_task
from tests.support.http_service import HttpService

TASKS = "/v1/wh/tasks"


@pytest.fixture
async def failed(service: HttpService) -> str:
    """The purge of `t`, which failed."""
    assert (await service.client.delete("/v1/wh/namespaces/db/tables/t?purgeRequested=true")).status == 204
    (found,) = objects((await service.client.get(TASKS)).json, "tasks")
    state = service.session().state
    stored = await read_task(state, text(found, "id"))
    assert stored is not None
    document = {**stored.task.document, "task_version": 2, "status": Status.FAILURE.value, "result_summary": "It broke"}
    await append_task(state, Task({**document, "id": "another"}))
    return stored.task.id


async def test_a_failed_task_is_listed_and_submitted_again(service: HttpService, failed: str) -> None:
    (found,) = objects((await service.client.get(f"{TASKS}?status=failure")).json, "tasks")
    assert (found["id"], found["result"], found["retriable"]) == (failed, "It broke", True)

    again = await service.client.post(f"{TASKS}/{failed}/retry", {})

    assert (again.status, again.json["status"], again.json["version"]) == (200, "SUBMITTED", 3)
    assert (await service.client.get(f"{TASKS}/{failed}")).json["status"] == "SUBMITTED"
    assert objects((await service.client.get(f"{TASKS}?status=FAILURE")).json, "tasks") == []
    assert [each["id"] for each in objects((await service.client.get(f"{TASKS}?unfinished=true")).json, "tasks")] != []
    second = await service.client.post(f"{TASKS}/{failed}/retry", {})
    assert (second.status, second.error_type) == (400, "BadRequestException")


@pytest.mark.parametrize("task", ["none", "open", "%2e%2e", "a%2Fb"])
async def test_a_missing_task_is_not_found(service: HttpService, failed: str, task: str) -> None:
    for answer in (await service.client.get(f"{TASKS}/{task}"), await service.client.post(f"{TASKS}/{task}/retry", {})):
        assert (answer.status, answer.error_type) == (404, "NotFoundException")


@pytest.mark.parametrize("query", ["status=done", "stuck=maybe", "pageSize=0", "pageToken=x"])
async def test_a_malformed_request_is_refused(service: HttpService, query: str) -> None:
    assert (await service.client.get(f"{TASKS}?{query}")).status == 400
