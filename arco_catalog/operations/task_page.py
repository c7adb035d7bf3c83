"""Lists the background tasks of a catalog in pages, and returns and retries one, for its API
(docs/design/tasks.md#api)."""

import re
from collections.abc import Sequence

from arco_catalog.iceberg.errors import InternalError, NotFound
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.operations import page_tokens
from arco_catalog.operations.listing import Paging
from arco_catalog.operations.tasks import ListedTask, describe_task, find_task, retry_task
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import gather
from arco_catalog.state.access import State
from arco_catalog.state.fields import integer, optional_text, texts
from arco_catalog.state.registry import RegistryState
from arco_catalog.state.task import Status, correlation_id, table_identity
from arco_catalog.state.task_log import StoredTask, read_task
from storage_backends import Cursor, Page
from storage_backends.lazy_dataclass import dataclass

MAX_TASKS = 8
"""The maximum number of tasks that a page reads, and its default."""
_TASK_ID = re.compile(r"[0-9A-Za-z-]{1,64}")


@dataclass(frozen=True, slots=True)
class TaskFilter:
    """Selects tasks: of a `status`, None for all; with `stuck` only stuck ones, and with `unfinished` only ones with a
    hint. `status` and `stuck` also select the records that can't be read; `unfinished` only selects the ones of them
    that have a hint."""

    status: Status | None = None
    stuck: bool = False
    unfinished: bool = False

    def selects(self, listed: ListedTask) -> bool:
        """Whether a task has the status of this filter, if that has one, and is stuck if `stuck` is set. `unfinished`
        does not matter here: it selects what is listed at all."""
        return self.status in (None, listed.task.status) and (listed.is_stuck or not self.stuck)


@dataclass(frozen=True, slots=True)
class TaskPage:
    """One page of tasks, as answers show them, and the token of the next page, None if there is none."""

    tasks: Sequence[JsonObject]
    next_page_token: str | None


@dataclass(frozen=True, slots=True)
class _Item:
    """A task in the listing of the store: by its versions, or by a hint. Items are ordered by `key`."""

    key: str
    task: str
    is_hint: bool


async def task_page(session: Session, selection: TaskFilter, paging: Paging) -> TaskPage:
    """Returns a page of the tasks that are selected, in order of their ids, and behind them purges that wait for their
    first worker; unfinished tasks in order of the times when they are due. Of a store that does not list keys in order
    only the tasks in one page of the store's listing are ordered. It reads at most `MAX_TASKS` tasks, so it may be
    empty although a later page is not. Raises `BadRequest` for an invalid token, and the errors of `Session.head`."""
    await session.head()
    cursor, last = None, ""
    if paging.token:
        cursor, last = _start(await page_tokens.redeem(session, paging.token))
    state = session.state
    prefix = state.paths.open_tasks if selection.unfinished else state.paths.tasks
    page = await state.store.list(prefix, cursor)
    items = [item for item in _items(state, page) if item.key > last]
    chosen = items[: min(paging.size or MAX_TASKS, MAX_TASKS)]
    tasks = await _read(session, selection, chosen)
    if len(items) > len(chosen):
        position: list[JsonValue] = [cursor, chosen[-1].key]
    elif page.after is not None:
        position = [page.after, max((item.key for item in items), default=last) if page.in_order else ""]
    else:
        return TaskPage(tasks, None)
    return TaskPage(tasks, await page_tokens.issue(session, position))


def _start(position: JsonValue) -> tuple[Cursor | None, str]:
    """Returns from a page token the cursor of the store's listing, None for its beginning, and the key of the last item
    of the pages before. Raises the error of a token of another listing."""
    match position:
        case [None, str(last)]:
            return None, last
        case [str(cursor), str(last)]:
            return Cursor(cursor), last
    raise page_tokens.of_another_listing()


def _items(state: State, page: Page) -> Sequence[_Item]:
    """Returns the tasks in a page of the store's listing, in order of keys: every task with versions there once, and
    every hint there as an item of the task that it names, which may be without versions."""
    items: dict[str, _Item] = {}
    for key in (listed.key for listed in page.entries):
        hint = state.paths.read_open_task(key)
        if hint is not None:
            items[key] = _Item(key, hint[0], is_hint=True)
        elif not key.startswith(state.paths.open_tasks):
            task = key.removeprefix(state.paths.tasks).partition("/")[0]
            items[state.paths.task(task)] = _Item(state.paths.task(task), task, is_hint=False)
    return [items[key] for key in sorted(items)]


async def _read(session: Session, selection: TaskFilter, items: Sequence[_Item]) -> Sequence[JsonObject]:
    """Reads these tasks concurrently, and then HEAD, and returns the JSON of the selected ones, in order. Tasks that no
    longer exist are left out, and so is a task that is listed by a hint and has versions, unless unfinished tasks are
    selected."""
    found = await gather(*(_stored(session.state, item.task) for item in items))
    head = await session.state.head()
    shown = [
        await _described(session, selection, item.task, stored, head)
        for item, stored in zip(items, found, strict=True)
        # A task with versions is listed by these.
        if not item.is_hint or stored is None or selection.unfinished
    ]
    return [each for each in shown if each is not None]


async def _stored(state: State, task: str) -> StoredTask | InternalError | None:
    """Returns the newest version of a task, None if it has none, or the `InternalError` that reading it raised."""
    try:
        return await read_task(state, task)
    except InternalError as error:
        return error


async def _described(
    session: Session, selection: TaskFilter, task: str, stored: StoredTask | InternalError | None, head: RegistryState
) -> JsonObject | None:
    """Returns a task as answers show it; of one that can't be read the id and the reason. None for a task that is not
    selected, or does not exist any more."""
    try:
        if isinstance(stored, InternalError):
            raise stored
        listed = await describe_task(session, task, stored, head)
        return shown_task(listed) if listed is not None and selection.selects(listed) else None
    except InternalError as error:
        return {"id": task, "unreadable": error.message}


async def get_task(session: Session, task: str) -> JsonObject:
    """Returns one task as answers show it, with its payload and the details of its last result. Raises `NotFound`,
    `InternalError` for a record that can't be read, and the errors of `Session.head`."""
    await session.head()
    return _with_details(await _existing(session, task))


async def retry(session: Session, task: str) -> JsonObject:
    """Resubmits a failed task, and returns it as answers show it. Any worker may then run it, also a purge that ran
    on Spark, unless that may have deleted files. Raises `NotFound`, `BadRequest` for a task that has not failed, or has
    changed meanwhile, `InternalError` for a record that can't be read, `Unsupported` in a catalog that is read-only,
    and the errors of `Session.head`."""
    await session.head()
    session.check_writable()
    await _existing(session, task)
    return _with_details(ListedTask(await retry_task(session, task, session.runtime), held=False))


async def _existing(session: Session, task: str) -> ListedTask:
    """Returns the task with an id. Raises `NotFound` without one, and for a text that is no id."""
    found = await find_task(session, task) if _TASK_ID.fullmatch(task) and task != "open" else None
    if found is None:
        raise NotFound(f"Task does not exist: {task}")
    return found


def shown_task(listed: ListedTask) -> JsonObject:
    """Returns a task as answers show it. Raises `InternalError` for an invalid record."""
    task, payload = listed.task, listed.task.payload
    identity = table_identity(payload)
    return {
        "id": task.id,
        "type": task.kind,
        "namespace": [*texts(identity, "namespace_levels")] if identity else None,
        "name": optional_text(identity, "table_name"),
        "status": task.status.value,
        "version": task.number,
        "attempts": task.attempts,
        "created-at-ms": integer(task.document, "created_ts"),
        "changed-at-ms": integer(task.document, "last_status_change_ts"),
        "next-run-at-ms": task.next_run_ms,
        "held": listed.held,
        "undone": listed.undone,
        "stuck": listed.is_stuck,
        "retriable": task.status is Status.FAILURE,
        "progress": task.checkpoint,
        "result": task.summary,
        "correlation-id": correlation_id(payload),
    }


def _with_details(listed: ListedTask) -> JsonObject:
    """Returns the JSON of a task, with the payload and the details of the result."""
    details = optional_text(listed.task.document, "result_extended")
    return {**shown_task(listed), "result-details": details, "payload": listed.task.payload}
