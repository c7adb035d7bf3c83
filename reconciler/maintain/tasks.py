"""Tasks that maintain tables: one at a time for each table, whoever begins it (docs/design/pipeline.md#rule-12)."""

import hashlib
import uuid

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.task import ENDED, TABLE_MAINTENANCE, Task, table_identity
from arco_catalog.state.task_log import StoredTask, append_task, put_hint, read_task
from arco_catalog.tasks.execution import TaskFailed
from reconciler.compact.values import text_of, texts_of
from reconciler.maintain.looking import Named

LONGEST = 1_000
"""How many tasks may follow the last one that a row tells of: those that had nothing to tell."""
LATE_MS = 5_000
"""By how much a store's time may be told late: it is whole seconds, and servers keep one for a second or more. What is
due now is due so much before."""


def following(entity: str, task: str) -> str:
    """The id of the task that follows one in maintaining a table: the same to everybody who asks."""
    return str(uuid.UUID(bytes=hashlib.sha256(f"maintain\n{entity}\n{task}".encode()).digest()[:16], version=5))


async def open_task(session: Session, table: Named, last: str) -> StoredTask:
    """The task that maintains a table now, which is made if the one before has ended; `last` is one that has. The hint
    comes before the first version. Raises `StoreError`."""
    task = last
    for _ in range(LONGEST):
        task = following(table.entity, task)
        stored = await read_task(session.state, task)
        if stored is None:
            first = submitted(table, task, session)
            await put_hint(session.state, task, first.next_run_ms)
            await append_task(session.state, first)
            stored = await read_task(session.state, task)
        if stored is not None and stored.task.status not in ENDED:
            return stored
    raise InternalError(f"{LONGEST} tasks have ended that maintained {table}, and no row tells of them")


def table_of(payload: JsonObject) -> Named:
    """The table that a task is about. Raises `TaskFailed`."""
    identity = table_identity(payload)
    entity, name = text_of(identity.get("table_entity_id")), text_of(identity.get("table_name"))
    if entity is None or name is None:
        raise TaskFailed("the payload names no table")
    return Named(tuple(texts_of(identity.get("namespace_levels"))), name, entity)


def submitted(table: Named, task: str, session: Session) -> Task:
    """The first version of a task."""
    identity: JsonObject = {
        "table_entity_id": table.entity,
        "namespace_levels": [*table.namespace],
        "table_name": table.name,
    }
    payload: JsonObject = {"operation_parameters": {"table_identity": identity}}
    now_ms = session.now_ms()
    due_ms = now_ms - LATE_MS
    return Task.submitted(
        record=session.runtime.ulid(),
        task=task,
        kind=TABLE_MAINTENANCE,
        payload=payload,
        at_ms=now_ms,
        not_before_ms=due_ms,
    )
