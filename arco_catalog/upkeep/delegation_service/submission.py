"""Makes a task of a request to the delegation service, one for all requests of a caller with the same purge. By the
idempotency key, a request that is sent again resubmits no failed task, except after lost credentials
(docs/design/tasks.md#delegation)."""

from arco_catalog.iceberg.errors import CommitStateUnknown
from arco_catalog.planning.answers import Document, encode_answer
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import Superseded
from arco_catalog.protocol.idempotency import IdempotencyGuard
from arco_catalog.state.marker import WriteSet
from arco_catalog.state.task import Status, Task
from arco_catalog.state.task_log import StoredTask, append_task, put_hint, read_task
from arco_catalog.upkeep.delegation_service.payload import DelegatedPurge
from arco_catalog.upkeep.delegation_service.storage import CREDENTIALS_NEEDED

MAX_TRIES = 10
"""Attempts to write a version of a task that other processes change, before the outcome counts as undecided."""


async def bind_key(session: Session, task: str) -> bool:
    """Binds the idempotency key of the session's request to this request and the task's id. Returns true if an earlier
    sending of the request has done so, also concurrently, and false if this one does or if the request has no key.
    Raises `KeyReused` if the key is bound to another request, `CommitStateUnknown` for a key that is too old, and
    `BadRequest` for one from the future."""
    attempt = session.runtime.ulid()
    await session.identify()
    guard = IdempotencyGuard(session)
    if guard.marker is None:
        return False
    if await guard.read():
        return True
    try:
        if await guard.is_new(attempt):
            await guard.put(attempt, WriteSet(), encode_answer(Document(202, {"delegation_task_id": task})))
            return False
    except Superseded:
        pass
    await guard.require_slots()
    return True


async def submit_task(session: Session, purge: DelegatedPurge, caller: str, *, key_was_sent_before: bool) -> Task:
    """Returns the task of a submission, which it creates, with a hint for workers, if there is none. A task that has
    failed is resubmitted, and continues from its checkpoint. `key_was_sent_before` is whether the key of the request
    was sent before: then only a task that failed for lost credentials is submitted again. Raises `StoreError`, and
    `CommitStateUnknown` if other processes change the task at each of `MAX_TRIES` attempts."""
    task = purge.task_id(caller)
    for _ in range(MAX_TRIES):
        stored = await read_task(session.state, task)
        following = _next(session, purge, caller, stored, key_was_sent_before=key_was_sent_before)
        if following is None:
            assert stored is not None
            return stored.task
        await put_hint(session.state, task, following.next_run_ms)
        if await append_task(session.state, following) is not None:
            return following
    raise CommitStateUnknown(
        f"Other processes changed task {task} during {MAX_TRIES} attempts to submit it: read the status", "undecided"
    )


def lacks_credentials(task: Task) -> bool:
    """Whether a task has failed because its credentials were lost with its process."""
    return task.status is Status.FAILURE and (task.summary or "").startswith(CREDENTIALS_NEEDED)


def _next(
    session: Session, purge: DelegatedPurge, caller: str, stored: StoredTask | None, *, key_was_sent_before: bool
) -> Task | None:
    """Returns the version of a task that a submission writes: the first one if there is none, or a resubmission of a
    failed task. Returns None if the stored version stays as it is; with `key_was_sent_before`, only a failure for lost
    credentials is resubmitted."""
    record, at_ms = session.runtime.ulid(), session.now_ms()
    if stored is None:
        return purge.submitted(caller, record=record, at_ms=at_ms)
    task = stored.task
    if task.status is Status.FAILURE and (not key_was_sent_before or lacks_credentials(task)):
        return task.resubmitted(record=record, at_ms=at_ms)
    return None
