"""HTTP handlers that list the background tasks of a catalog, return one, and submit a failed one again."""

from arco_catalog.http.paging import paging
from arco_catalog.http.request_context import RequestContext
from arco_catalog.http.responses import Response, json_response
from arco_catalog.operations.task_page import TaskFilter, get_task, task_page
from arco_catalog.operations.task_page import retry as retry_task
from arco_catalog.state.task import Status


async def list_(context: RequestContext) -> Response:
    """Returns a page of the background tasks of a catalog, with their progress and last results: all of them, or as
    `status`, `stuck` and `unfinished` in the query select. A page may be empty before the last one. Raises `BadRequest`
    for an invalid page token or status."""
    query, page = context.query, paging(context)
    status = query.choice("status", tuple(each.value.lower() for each in Status), "")
    selection = TaskFilter(Status(status.upper()) if status else None, query.flag("stuck"), query.flag("unfinished"))
    found = await task_page(context.sessions.open(), selection, page)
    return json_response({"tasks": [*found.tasks], "next-page-token": found.next_page_token})


async def get(context: RequestContext) -> Response:
    """Returns a background task with its payload and the details of its last result. Raises `NotFound`."""
    return json_response(await get_task(context.sessions.open(), context.params["task"]))


async def retry(context: RequestContext) -> Response:
    """Submits a failed background task again, and returns it. Raises `NotFound`, `Unsupported` in a read-only catalog,
    and `BadRequest` for a task that has not failed, or that has changed since it was read."""
    return json_response(await retry_task(context.sessions.open(), context.params["task"]))
