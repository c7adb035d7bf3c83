"""Stores the first version of a background task that is due at once."""

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.task import Task
from arco_catalog.state.task_log import append_task, put_hint

CLOCK_LAG_MS = 5_000
"""By how much the store's clock may lag: a `Date` has whole seconds, and some servers reuse one for a second or more.
A new task is made due this much before the store's time, so that it can be leased at once."""


async def store_new_task(session: Session, task: str, kind: str, payload: JsonObject) -> None:
    """Stores the first version of a task of type `kind`, which is due now, with the id `task`; a task that has this id
    already stays as it is. The hint is written before in either case, so that a task is never without one. Raises
    `StoreError`."""
    now_ms = session.now_ms()
    first = Task.submitted(
        record=session.runtime.ulid(),
        task=task,
        kind=kind,
        payload=payload,
        at_ms=now_ms,
        not_before_ms=now_ms - CLOCK_LAG_MS,
    )
    await put_hint(session.state, task, first.next_run_ms)
    await append_task(session.state, first)
