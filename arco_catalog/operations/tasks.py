"""Finds, lists and retries background tasks for operators (docs/design/tasks.md)."""

from collections.abc import AsyncGenerator
from dataclasses import replace

from arco_catalog.iceberg.errors import BadRequest, InternalError, NotFound
from arco_catalog.planning.purge import first_version, purge_of
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.lookup import carry_out
from arco_catalog.state.purge_progress import Phase, Progress
from arco_catalog.state.registry import RegistryState
from arco_catalog.state.runtime import Runtime
from arco_catalog.state.task import ENDED, TABLE_PURGE, Status, Task
from arco_catalog.state.task_log import StoredTask, append_task, list_tasks, put_hint, read_task
from arco_catalog.state.tombstone import DROPPED, PURGING, Tombstone
from storage_backends import Found
from storage_backends.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ListedTask:
    """A background task as operators see it, and whether a worker has its lease (`held`). An `undone` task is a purge
    whose drop was undone, or that was cancelled by a drop or undrop of the catalog: when it is due, it ends without
    deleting a file. A task that `is_stuck` is a purge that failed and may have deleted files: until it has succeeded,
    the table's locations are reserved, and its catalog can't be dropped."""

    task: Task
    held: bool
    undone: bool = False
    is_stuck: bool = False


@dataclass(frozen=True, slots=True)
class DamagedTask:
    """A background task with a record that can't be read, and the reason."""

    id: str
    reason: str


async def tasks(session: Session) -> AsyncGenerator[ListedTask | DamagedTask, None]:
    """Yields all stored tasks of a catalog, and the purges that wait for their first worker and have a hint, in no
    order. A task with a record that can't be read is a `DamagedTask`. Raises `StoreError`."""
    for task in await list_tasks(session.state):
        try:
            found = await find_task(session, task)
            if found is not None:
                _require_fields(found.task)
        except InternalError as error:
            yield DamagedTask(task, error.message)
            continue
        if found is not None:
            yield found


def _require_fields(task: Task) -> None:
    """Raises `InternalError` if a task lacks a field that lists show and that `Task.parse` does not require."""
    _ = task.kind, task.attempts, task.next_run_ms, task.payload


async def find_task(session: Session, task: str) -> ListedTask | None:
    """Returns a task by its id, or None if it neither has a version nor waits for its first worker. Raises
    `InternalError` if the newest version is corrupt."""
    return await describe_task(session, task, await read_task(session.state, task))


async def describe_task(
    session: Session, task: str, stored: StoredTask | None, head: RegistryState | None = None
) -> ListedTask | None:
    """Returns a task as operators see it, from its stored version; without one, a purge that waits for its first
    worker, or None. `head` is a HEAD that was read after the version; None to read one if it is needed."""
    if stored is not None:
        undone, is_stuck = await _is_undone(session, stored.task, head), await _is_stuck(session, stored.task, head)
        return ListedTask(stored.task, stored.is_held, undone, is_stuck)
    first = await submitted_purge(session, task, head)
    return None if first is None else ListedTask(first, held=False)


async def submitted_purge(session: Session, task: str, head: RegistryState | None = None) -> Task | None:
    """Returns the first version of a purge task, computed from the tombstone that names it, as a task that waits for
    its first worker has it; None if no tombstone names it."""
    tombstone = await tombstone_of(session, task, head)
    if tombstone is None:
        return None
    runtime = session.runtime
    return first_version(session.state.paths.root, task, tombstone, record=runtime.ulid(), at_ms=session.now_ms())


async def _is_undone(session: Session, task: Task, head: RegistryState | None) -> bool:
    """Whether a task is a purge that waits to run although the drop was undone, or the purge was cancelled by a drop or
    undrop of the catalog, so that no tombstone names it in `head` (the current HEAD for None); False once the purge has
    deleted all files."""
    waits = task.kind == TABLE_PURGE and task.status in (Status.SUBMITTED, Status.RETRY_SCHEDULED)
    if not waits or Progress.parse(task.checkpoint).phase is Phase.DONE:  # then it may be purged already
        return False
    return await tombstone_of(session, task.id, head) is None


async def _is_stuck(session: Session, task: Task, head: RegistryState | None) -> bool:
    """Whether a task is a purge that failed after its start, by its tombstone in `head` (the current HEAD for None):
    the table may be partly deleted."""
    if task.kind != TABLE_PURGE or task.status is not Status.FAILURE:
        return False
    tombstone = await tombstone_of(session, task.id, head)
    return tombstone is not None and tombstone.state == PURGING


async def tombstone_of(session: Session, task: str, head: RegistryState | None = None) -> Tombstone | None:
    """Returns the tombstone that names a task now, by the HEAD `head` or, for None, the current one; None if none
    does."""
    index = (head or await session.state.head()).index
    return await carry_out(session.state, index, purge_of(index, task))


async def require_task(session: Session, task: str) -> ListedTask:
    """Returns a task by its id, as `find_task` does. Raises `NotFound` if there is none."""
    found = await find_task(session, task)
    if found is None:
        raise NotFound(f"Task does not exist: {task}")
    return found


async def missing_hint(session: Session, task: str) -> int | None:
    """Returns the time, in milliseconds since 1970, in the key of the hint that a task should have and lacks. None for
    a task that has its hint, that has ended, or that does not exist; and for one whose purge has begun and whose
    versions are all lost, because its checkpoint is unknown. Raises `StoreError`, and `InternalError` for a corrupt
    version."""
    state = session.state
    stored = await read_task(state, task)
    if stored is not None:
        due_ms = None if stored.task.status in ENDED else stored.task.next_run_ms
    else:
        tombstone = await tombstone_of(session, task)
        due_ms = tombstone.purge_after_ms if tombstone is not None and tombstone.state == DROPPED else None
    if due_ms is None or isinstance(await state.store.get(state.paths.open_task(task, due_ms)), Found):
        return None
    return due_ms


async def retry_task(session: Session, task: str, runtime: Runtime, *, anti_join: bool = False) -> Task:
    """Submits a failed task again, and returns its new version, which continues from the task's checkpoint. First puts
    a hint, by which workers find the task. With `anti_join` Spark executes a purge, else any worker; but a purge that
    may have deleted files continues in the way in which it started. Raises `NotFound`, and `BadRequest` for a task that
    has not failed, or has changed meanwhile."""
    found = (await require_task(session, task)).task
    if found.status is not Status.FAILURE:
        raise BadRequest(f"Task {task} is {found.status}: only a failed task can be submitted again")
    progress, checkpoint = Progress.parse(found.checkpoint), found.checkpoint
    if found.kind == TABLE_PURGE and progress.anti_join != anti_join and not progress.deleting:
        checkpoint = replace(progress, anti_join=anti_join).to_json()
    again = found.resubmitted(record=runtime.ulid(), at_ms=session.now_ms(), checkpoint=checkpoint)
    await put_hint(session.state, task, again.next_run_ms)
    if await append_task(session.state, again) is None:
        raise BadRequest(
            f"Task {task} was not submitted again, because it has changed meanwhile: read it and try again"
        )
    return again
