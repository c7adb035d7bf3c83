"""The background tasks that maintain tables. A table has one open task at a time, and concurrent runs compute the same
id for it (docs/design/pipeline.md#rule-12)."""

import hashlib
import uuid

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.task import ENDED, TABLE_MAINTENANCE, table_identity
from arco_catalog.state.task_log import StoredTask, read_task
from arco_catalog.tasks.execution import TaskFailed
from arco_catalog.tasks.new_task import store_new_task
from reconciler.compact.values import text_of, texts_of
from reconciler.maintain.table_plans import TableRef

MAX_TASKS_WITHOUT_ROWS = 1_000
"""How many ended tasks may follow the last one that has a row: a task in which nothing was due writes none."""


def following(entity: str, task: str) -> str:
    """Returns the id of the maintenance task that follows the task with this id for a table; the first task follows the
    empty id. It is a hash of both, so that concurrent runs get the same."""
    return str(uuid.UUID(bytes=hashlib.sha256(f"maintain\n{entity}\n{task}".encode()).digest()[:16], version=5))


async def open_task(session: Session, table: TableRef, last: str) -> StoredTask:
    """Returns the maintenance task of a table that is not over (a failed one is), and creates it if there is none.
    `last` is the id of the last task that has rows, after which the search starts, or empty to start with the first
    one. Raises `StoreError`, and `InternalError` if `MAX_TASKS_WITHOUT_ROWS` tasks after `last` are over."""
    task = last
    for _ in range(MAX_TASKS_WITHOUT_ROWS):
        task = following(table.entity, task)
        stored = await read_task(session.state, task)
        if stored is None:
            await store_new_task(session, task, TABLE_MAINTENANCE, payload_of(table))
            stored = await read_task(session.state, task)
        if stored is not None and stored.task.status not in ENDED:
            return stored
    raise InternalError(
        f"the table {table} cannot be maintained: {MAX_TASKS_WITHOUT_ROWS} maintenance tasks of it, a fixed limit, are "
        "done since the last one with a row in system.maintenance, and no further one is made: find out why the "
        "rows of these are missing, or why nothing was due when they ran"
    )


def table_of(payload: JsonObject) -> TableRef:
    """Returns the table in the payload of a maintenance task. Raises `TaskFailed` if the payload has none."""
    identity = table_identity(payload)
    entity, name = text_of(identity.get("table_entity_id")), text_of(identity.get("table_name"))
    if entity is None or name is None:
        raise TaskFailed(
            "the payload of the maintenance task has no table_entity_id or no table_name, so its table is unknown, and "
            "the task is not executed"
        )
    return TableRef(tuple(texts_of(identity.get("namespace_levels"))), name, entity)


def payload_of(table: TableRef) -> JsonObject:
    """Returns the payload of a maintenance task of this table."""
    identity: JsonObject = {
        "table_entity_id": table.entity,
        "namespace_levels": [*table.namespace],
        "table_name": table.name,
    }
    return {"operation_parameters": {"table_identity": identity}}
