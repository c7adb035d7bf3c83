"""Makes the row of the system table `tasks` for a background task that has ended."""

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.iceberg.json import JsonObject, MalformedJson, dumps
from arco_catalog.state.task import ENDED, Task, table_identity
from reconciler.compact.values import namespace_of, text_of, time_of
from reconciler.system.definition import Row


def task_row(task: Task) -> Row | None:
    """Returns the row of `tasks` for the last version of a task, with the time of creation 0 if the record has none;
    None if the task has not ended. Raises `InternalError` if a required field is missing."""
    if task.status not in ENDED:
        return None
    document, table = task.document, _table_of(task)
    return {
        "task_id": task.id,
        "task_version": task.number,
        "task_type": task.kind,
        "entity": text_of(table.get("table_entity_id")),
        "namespace": namespace_of(table.get("namespace_levels")),
        "name": text_of(table.get("table_name")),
        "status": task.status.value,
        "created_at": time_of(document.get("created_ts")) or 0,
        "ended_at": time_of(document.get("last_status_change_ts")),
        "attempts": task.attempts,
        "summary": task.summary,
        "payload": text_of(document.get("task_payload")),
        "checkpoint": dumps(task.checkpoint, sort_keys=True).decode(),
    }


def _table_of(task: Task) -> JsonObject:
    """Returns the identity of the table in a task's payload; an empty object if the payload has none."""
    try:
        return table_identity(task.payload)
    except (InternalError, MalformedJson):
        return {}
