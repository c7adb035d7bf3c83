"""Tasks in the form of the delegation service's API: the one table from stored statuses to the API's, and the bodies of
responses."""

from collections.abc import Mapping
from datetime import UTC, datetime

from arco_catalog.http.responses import Response, json_response
from arco_catalog.iceberg.json import JsonObject, JsonValue, MalformedJson, dumps, loads
from arco_catalog.state.fields import optional_text
from arco_catalog.state.task import Status, Task
from arco_catalog.upkeep.delegation_service.submission import lacks_credentials

BASE = "/delegation-service/api/v1"

WORDS: Mapping[Status, str] = {
    Status.SUBMITTED: "QUEUED",
    Status.ACQUIRING_RESOURCES: "RUNNING",
    Status.RUNNING: "RUNNING",
    Status.RETRY_SCHEDULED: "RETRY_SCHEDULED",
    Status.SUCCESS: "COMPLETED_SUCCESS",
    Status.FAILURE: "FAILED_TERMINAL",
}
_TIMES = ("received_timestamp", "last_status_change_ts", "created_ts", "lease_acquired_ts", "next_run_ts")
_OF_STORES = ("StoreUnavailable", "StoreDenied")
"""The beginnings of the summary of a task that failed because the table's store did."""


def accepted(task: Task, base_path: str) -> JsonObject:
    """Returns the body of the response to a submission: the task's id, its status, and the URL of the status below
    `base_path`."""
    url = f"{base_path}{BASE}/tasks/{task.id}"
    return {"delegation_task_id": task.id, "status": WORDS[task.status], "status_query_url": url}


def ended(task: Task) -> Response:
    """Returns the response to a synchronous execution: 200 with the result of a successful task, or the status of
    `failure_of` with the error of a failed one."""
    shown: JsonObject = {"delegation_task_id": task.id, "status": WORDS[task.status]}
    if task.status is Status.SUCCESS:
        return json_response({**shown, "message": task.summary, "execution_result": execution_result(task)})
    status, code = failure_of(task)
    body = dumps({**shown, "error_code": code, "message": task.summary or "The task has failed"})
    return Response(status, body, error_type=code)


def failure_of(task: Task) -> tuple[int, str]:
    """Returns the HTTP status and the error code of a failed task: 502 if it lacked credentials or the table's store
    failed, else 500."""
    if lacks_credentials(task):
        return 502, "CREDENTIALS_NEEDED"
    if (task.summary or "").startswith(_OF_STORES):
        return 502, "STORAGE_FAILED"
    return 500, "TASK_FAILED"


def record(task: Task, *, whole: bool) -> JsonObject:
    """Returns a stored task in the form of the API: of its lease only the time; the result if it was successful, or the
    error code if it failed; and only if `whole` its payload and the stored text of the details."""
    document = task.document
    times: JsonObject = {name: _time(document.get(name)) for name in _TIMES}
    shown: JsonObject = {
        "delegation_task_id": task.id,
        "version": task.number,
        "parent_id": optional_text(document, "parent_id"),
        "task_type": task.kind,
        "status": WORDS[task.status],
        "attempt_count": task.attempts,
        **times,
        "result_summary": task.summary,
    }
    if whole:
        shown["task_payload"] = optional_text(document, "task_payload")
        shown["result_extended"] = optional_text(document, "result_extended")
    if task.status is Status.SUCCESS:
        shown["execution_result"] = execution_result(task)
    if task.status is Status.FAILURE:
        shown["error_code"] = failure_of(task)[1]
    return shown


def execution_result(task: Task) -> JsonObject:
    """Returns the stored details of a successful task; empty if they are missing or malformed."""
    try:
        details = loads((optional_text(task.document, "result_extended") or "{}").encode())
    except MalformedJson:
        return {}
    return details if isinstance(details, dict) else {}


def _time(value: JsonValue) -> str | None:
    """Formats a time in milliseconds by ISO 8601; None without one."""
    if not isinstance(value, int):
        return None
    return datetime.fromtimestamp(value / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
